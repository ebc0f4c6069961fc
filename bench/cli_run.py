"""Running a command of the bench: its exit code, its error sentences and its report files."""

from __future__ import annotations

import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import trio
import typer
from rich.console import Console

from trunkline.bench.errors import BenchError
from trunkline.bench.page import page_of
from trunkline.bench.result import Result, Verdict

DIFFERENT, UNABLE, GENERATOR_BOUND = 1, 2, 3
"""Exit codes: something acknowledged is missing or different; the command could not be carried out; the load
generator was the bottleneck."""

EXIT_CODES: dict[Verdict, int] = {"sound": 0, "loss": DIFFERENT, "generatorBound": GENERATOR_BOUND}


def run_command(work: Callable[[], Awaitable[int]]) -> None:
    """Run a command and exit with its code. A BenchError is printed as a sentence, without a traceback."""
    code = UNABLE
    if threading.current_thread() is threading.main_thread():
        # SIGTERM must also stop the programs that a command has started, so it is turned into SIGINT. A shell without
        # job control starts background commands with SIGINT ignored, and Trio would then not handle either signal.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        code = trio.run(work)
    except* BenchError as group:
        Console(stderr=True).print(_first(group), style="red", markup=False, soft_wrap=True)
    except* KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def write_result(result: Result, json: Path | None, html: Path | None) -> None:
    """Write the reports that are asked for; raises BenchError."""
    if json is not None:
        write_report(json, msgspec.json.format(msgspec.json.encode(result)).decode())
    if html is not None:
        write_report(html, page_of(result))


def write_report(file: Path, text: str) -> None:
    """Write a report; raises BenchError."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise BenchError(f"{file} cannot be written: {problem.strerror}.") from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
