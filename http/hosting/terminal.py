"""Output for operators: results on standard output, everything else on standard error.

Owns what a server prints, which never stops it. Commands print with `typer.echo`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import typer

from trunkline.http.wire.faults import place_of


class LossyStderr:
    """Standard error that never fails: if the pipe is closed or the disk is full, the line is lost."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def announce(text: str) -> None:
    """Print a line. At the first failure all that is printed later is discarded, so that a server continues."""
    try:
        typer.echo(text)
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("w") as nothing:
            # What the failed line has left in its buffer would fail again when the process ends.
            os.dup2(nothing.fileno(), sys.stdout.fileno())


def warn(text: str) -> None:
    """Print a line on standard error, in red on a terminal. A failure is ignored."""
    with contextlib.suppress(OSError, ValueError):
        typer.secho(text, err=True, fg="red", bold=True)


def failure_message(failure: BaseException) -> str:
    """The message of a failure; of a group, that of its first one.

    An `OSError` is named with its file, a lack of memory with its place, and a call that the store has failed by the
    fault of the store, which names the file.
    """
    from trunkline.actors.core.values.store_errors import StoreError

    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure.__cause__, StoreError):
        return str(failure.__cause__)
    if isinstance(failure, OSError) and failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {failure.strerror}."
    if isinstance(failure, MemoryError):
        return f"No memory is left: {place_of(failure)}."
    return str(failure)
