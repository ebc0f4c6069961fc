"""Zip archives as the results of jobs, written piece by piece: no archive is held in memory, nor a file in it."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write

_MEMBER_BUFFER_BYTES: Final = 64 * 1024
_FIRST_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The first date that an archive can hold."""
_OWNER_ONLY: Final = 0o600


class Archive(zipfile.ZipFile):
    """An archive that is written to the result of a job: `with Archive(write) as archive: archive.add(...)`.

    Its files have the date of their writing, unless `dated` is false: then equal contents make equal archives.
    """

    def __init__(self, write: Write, *, dated: bool = True) -> None:
        super().__init__(_Sink(write), "w", zipfile.ZIP_DEFLATED)
        self._dated = dated

    def add(self, name: str, pieces: Iterable[bytes], *, compressed: bool = True) -> None:
        """Write a file from its pieces. What would not become smaller may be written as it is."""
        info = zipfile.ZipInfo(name, time.localtime()[:6] if self._dated else _FIRST_DATE)
        info.compress_type = self.compression
        if not compressed:
            # Not the method "stored": many programs cannot read that from a stream that has sizes behind the files.
            info._compresslevel = 0  # type: ignore[attr-defined]  # noqa: SLF001
        info.external_attr = _OWNER_ONLY << 16
        with (
            self.open(info, "w", force_zip64=True) as member,
            io.BufferedWriter(member, _MEMBER_BUFFER_BYTES) as file,
        ):
            for piece in pieces:
                file.write(piece)


class _Sink(io.RawIOBase):
    """The file object that an archive is written to. It cannot seek, so the archive is not held in memory."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        content = bytes(piece)
        self._write(content)
        return len(content)
