"""The longest turns of the event loop in all servers of a run of tests: `pytest --turns`.

Owns gathering them, over the processes of the run, and the table at its end. A server in the process of its test shares
the loop with it, so the steps of the tests themselves are left out; servers in processes of their own are not seen.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

DIRECTORY: Final = "TURNS_OF_TESTS"
"""The variable that names the directory of the run; the processes of the run inherit it."""
LIMIT_MS: Final = 5.0
"""Turns whose own processor time is above are listed: the rest of their time is that of a busy machine."""
SHOWN_MAX: Final = 40


class Group(NamedTuple):
    """The turns of one operation."""

    kind: str
    name: str
    times: int
    cpu_ms: float
    """The most processor time of one, without that of the garbage collector."""
    ms: float
    test: str


def begin(config: pytest.Config) -> None:
    """Note the turns of this process, if the run wants them."""
    if config.getoption("turns") and DIRECTORY not in os.environ:
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="turns-")
    if directory := os.environ.get(DIRECTORY):
        _note_turns(Path(directory))


def _note_turns(directory: Path) -> None:
    from trunkline.actors.core.runtime.loop_watch import LongTurn, LoopWatch

    inner = LoopWatch._note

    def note(watch: LoopWatch, turn: LongTurn) -> None:
        inner(watch, turn)
        if turn.cpu_ms - turn.gc_ms > LIMIT_MS and not _of_a_test(turn):
            line = json.dumps([*turn, os.environ.get("PYTEST_CURRENT_TEST", "")])
            with (directory / str(os.getpid())).open("a") as file:
                file.write(line + "\n")

    LoopWatch._note = note  # type: ignore[method-assign,assignment]


def _of_a_test(turn: Any) -> bool:
    """Whether a turn is a step of a test: its task has the name of the test, or of a function in it."""
    return turn.kind == "other" and (turn.name.startswith(("<test", "<fixture")) or "<locals>" in turn.name)


def grouped(lines: Iterable[str]) -> list[Group]:
    """The turns by operation, the worst first."""
    found = defaultdict(list)
    for line in lines:
        _at_ms, ms, cpu_ms, gc_ms, kind, name, _detail, *_whose, test = json.loads(line)
        found[kind, name if kind != "run" else ""].append((cpu_ms - gc_ms, ms, test))
    groups = [Group(kind, name, len(turns), *max(turns)) for (kind, name), turns in found.items()]
    return sorted(groups, key=lambda group: -group.cpu_ms)


def summarize(reporter: pytest.TerminalReporter) -> None:
    """Print the longest turns of the run, at its end."""
    if not reporter.config.getoption("turns"):
        return
    directory = Path(os.environ[DIRECTORY])
    groups = grouped(line for file in directory.iterdir() for line in file.read_text().splitlines())
    reporter.section("the longest turns of the event loop")
    reporter.line(
        f"Turns of more than {LIMIT_MS:g} ms of processor time, without that of the garbage collector. All: {directory}"
    )
    for group in groups[:SHOWN_MAX]:
        reporter.line(f"{group.cpu_ms:8.1f} ms  {group.times:5} x  {group.kind} {group.name}  ({group.test})")
    if not groups:
        reporter.line("None.")
