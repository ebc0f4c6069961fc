"""Output for operators: results on standard output, everything else on standard error.

Text is printed literally, without markup, because a path or an address may contain characters that look like markup.
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
    """Standard error that never fails: if the pipe is closed or the disk is full, the line is lost."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def announce(text: str) -> None:
    """Print a line. A failure is ignored, so that a server continues. (Rich exits the program at a closed pipe.)"""
    with contextlib.suppress(OSError, SystemExit):
        OUT.print(text)


def warn(text: str) -> None:
    """Like `announce`, on standard error and in red."""
    with contextlib.suppress(OSError, SystemExit):
        ERR.print(text, style="bold red")


def failure_message(failure: BaseException) -> str:
    """The message of a failure; of a group, that of its first one. An `OSError` is named with its file."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, OSError) and failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {failure.strerror}."
    return str(failure)
