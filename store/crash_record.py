"""The crash record: why the process before died, for the start after it.

LMDB reads through a memory map. If the disk fails to deliver a page, or a page is damaged, the kernel or LMDB ends
the process at once (SIGBUS, SIGSEGV, SIGABRT), and no code of ours can catch that. Python's fault handler writes the
stack into a file of the data directory then. The next start finds it, verifies all pages before it serves, and
says what happened; so a damaged page ends the process once, and not again and again.
"""

from __future__ import annotations

import contextlib
import faulthandler
from pathlib import Path
from typing import Final, TextIO

from trunkline.store.errors import translate

RECORD: Final = "crash"
"""The file in the data directory: empty while a process uses it, missing otherwise."""

_CHARACTERS_MAX: Final = 4000


class CrashRecord:
    """The crash record of one data directory, which this process has locked."""

    __slots__ = ("_file", "_path")

    def __init__(self, directory: Path) -> None:
        self._path = directory / RECORD
        self._file: TextIO | None = None

    def earlier(self) -> str | None:
        """What the process before left when it died of a fault; None if it did not."""
        try:
            return self._path.read_text("utf-8", "replace")[:_CHARACTERS_MAX].strip() or None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, f"reading of {self._path}") from error

    def begin(self) -> None:
        """Let Python's fault handler write into the record, unless it writes elsewhere already."""
        if faulthandler.is_enabled():
            return
        try:
            self._file = self._path.open("w")
        except OSError as error:
            raise translate(error, f"writing of {self._path}") from error
        faulthandler.enable(self._file)

    def end(self) -> None:
        """Remove the record: the store is closed in good order. Idempotent."""
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
            self._file = None
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
