"""Blobs: the contents of files, beside LMDB in a folder of the data directory.

Owns writing a content whole or not at all, its hash, and reading it piece by piece. Does not own what a
content is, who may have it, or how long it is kept.

A content is written under another name, synced, and then renamed, so what has the right name is whole; what
a crash left half-written is removed at the next start. Its SHA-256 is taken while it is written. Whoever
stored that can have a later read compared with it.

Why not in LMDB: a file of gigabytes would be copied through the pages of the store, and a slow reader would
keep old pages of the whole store from being used again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

from trunkline.store.directory import sync_directory
from trunkline.store.errors import StoreBroken, translate

DRAFT = ".draft"
BUFFER_BYTES = 256 * 1024
_OWNER_ONLY = 0o600


class Stored(NamedTuple):
    """A content that is on disk."""

    size_bytes: int
    sha256: str


class Blobs:
    """The contents in one folder, by name. Nothing here may run in the event loop but `open` and `remove`."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def prepare(cls, path: Path) -> Blobs:
        """The contents of the folder `path`, made where it is missing; half-written ones are removed."""
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            for draft in path.glob(f"*{DRAFT}"):
                draft.unlink()
        except OSError as error:
            raise translate(error, f"opening of {path}") from error
        return cls(path)

    def write(self, name: str) -> Draft:
        """Begin a content. It replaces one of the same name when it is whole. Raises StoreFull or StoreBroken."""
        return Draft(self._path / name)

    def open(self, name: str) -> Content | None:
        """The content for reading; None where there is none. It can be read to its end also when it is removed."""
        try:
            return Content((self._path / name).open("rb", buffering=0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, f"reading of {name}") from error

    def remove(self, name: str) -> None:
        """Remove the content; no error where there is none."""
        try:
            (self._path / name).unlink(missing_ok=True)
        except OSError as error:
            raise translate(error, f"removal of {name}") from error

    def names(self) -> list[str]:
        """The names of all contents."""
        try:
            return sorted(path.name for path in self._path.iterdir() if path.suffix != DRAFT)
        except OSError as error:
            raise translate(error, "listing of the files") from error

    def used_bytes(self) -> int:
        """The bytes of all contents, also of those that are being written."""
        return sum(self._sizes())

    def _sizes(self) -> Iterator[int]:
        try:
            for entry in os.scandir(self._path):
                try:
                    yield entry.stat().st_size
                except FileNotFoundError:
                    continue  # removed meanwhile
        except OSError as error:
            raise translate(error, "listing of the files") from error


class Draft:
    """A content that is being written. Use it as a context manager: what is not finished is removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(path.name + DRAFT)
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self.size_bytes = 0

    def __enter__(self) -> Draft:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._draft, flags, _OWNER_ONLY), "wb", BUFFER_BYTES)
        except OSError as error:
            raise translate(error, f"writing of {self._path.name}") from error
        return self

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises StoreFull or StoreBroken."""
        assert self._file is not None
        try:
            self._file.write(piece)
        except OSError as error:
            raise translate(error, f"writing of {self._path.name}") from error
        self._hash.update(piece)
        self.size_bytes += len(piece)

    def finish(self) -> Stored:
        """Put the content under its name; it is whole and on disk when this returns."""
        assert self._file is not None
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._draft.replace(self._path)
            sync_directory(self._path.parent)
        except OSError as error:
            raise translate(error, f"writing of {self._path.name}") from error
        return Stored(self.size_bytes, self._hash.hexdigest())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # what can not be flushed is removed
                self._file.close()
        self._draft.unlink(missing_ok=True)


class Content:
    """A content that is read from its beginning to its end. Not for two threads at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size_bytes = os.fstat(file.fileno()).st_size

    def read(self, size_bytes: int) -> bytes:
        """The next piece; empty at the end. Raises StoreBroken where the disk fails."""
        try:
            piece = self._file.read(size_bytes)
        except OSError as error:
            raise translate(error, "reading of a file") from error
        self._hash.update(piece)
        return piece

    def check(self, stored: Stored) -> None:
        """Raise StoreBroken where what was read so far is not the whole of what was stored."""
        if self._hash.hexdigest() != stored.sha256:
            raise StoreBroken("A file is not what was written; the disk has changed it.")

    def close(self) -> None:
        """Give the file back. Idempotent."""
        self._file.close()
