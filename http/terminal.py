"""What an operator reads: standard output for what was asked, standard error for the rest, each in sentences.

What is printed is shown as it is: a path or an address may hold what looks like markup.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final

from rich.console import Console

OUT: Final = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
ERR: Final = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


class LossyStderr:
    """Standard error for what must not fail: a line is lost where the pipe is closed or the disk is full."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def announce(text: str) -> None:
    """Print for a server, which goes on where nobody can read it. (Rich ends the program at a closed pipe.)"""
    with contextlib.suppress(OSError, SystemExit):
        OUT.print(text)


def warn(text: str) -> None:
    """The same on standard error, to be seen."""
    with contextlib.suppress(OSError, SystemExit):
        ERR.print(text, style="bold red")


def failure_message(failure: BaseException) -> str:
    """What to tell of a failure; of a group, its first one. An error of the system names its file."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, OSError) and failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {failure.strerror}."
    return str(failure)
