"""Blobs: files in a folder of the data directory, outside of LMDB.

Owns writing a file atomically, its hash, and reading it in pieces. Does not own what a file contains, who may
read it, or how long it is kept.

A file is written under a temporary name, synced, and then renamed, so a file with its final name is complete;
incomplete ones that a crash left are removed at the next start. The SHA-256 is computed while the file is
written, and a later read can be compared with it.

Why not in LMDB: a file of gigabytes would be copied through the pages of the store, and a slow reader would
prevent old pages of the whole store from being reused.
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
    """The size and the hash of a complete file on disk."""

    size_bytes: int
    sha256: str


class Blobs:
    """The files in one folder, by name. Everything but `open` and `remove` blocks: not for the event loop."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def prepare(cls, path: Path) -> Blobs:
        """Open the folder `path`, or create it; incomplete files are removed."""
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            for draft in path.glob(f"*{DRAFT}"):
                draft.unlink()
        except OSError as error:
            raise translate(error, f"opening of {path}") from error
        return cls(path)

    def write(self, name: str) -> Draft:
        """Begin a file. When complete, it replaces one of the same name. Raises StoreFull or StoreBroken."""
        return Draft(self._path / name)

    def open(self, name: str) -> Content | None:
        """Open a file for reading; None if there is none. An open file can be read to its end after `remove`."""
        try:
            return Content((self._path / name).open("rb", buffering=0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, f"reading of {name}") from error

    def remove(self, name: str) -> None:
        """Remove a file; no error if there is none."""
        try:
            (self._path / name).unlink(missing_ok=True)
        except OSError as error:
            raise translate(error, f"removal of {name}") from error

    def names(self) -> list[str]:
        """The names of all complete files."""
        try:
            return sorted(path.name for path in self._path.iterdir() if path.suffix != DRAFT)
        except OSError as error:
            raise translate(error, "listing of the files") from error

    def used_bytes(self) -> int:
        """The bytes of all files, including those that are being written."""
        return sum(self._sizes())

    def _sizes(self) -> Iterator[int]:
        try:
            for entry in os.scandir(self._path):
                try:
                    yield entry.stat().st_size
                except FileNotFoundError:
                    continue  # removed after the listing
        except OSError as error:
            raise translate(error, "listing of the files") from error


class Draft:
    """A file that is being written. Use it as a context manager: without `finish` the file is removed."""

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
        """Give the file its final name. It is complete and on disk when this returns."""
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
            with contextlib.suppress(OSError):  # a file that cannot be flushed is removed anyway
                self._file.close()
        self._draft.unlink(missing_ok=True)


class Content:
    """A file that is read from its beginning to its end. Not thread-safe."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size_bytes = os.fstat(file.fileno()).st_size

    def read(self, size_bytes: int) -> bytes:
        """Return the next piece, empty at the end. Raises StoreBroken if the disk fails."""
        try:
            piece = self._file.read(size_bytes)
        except OSError as error:
            raise translate(error, "reading of a file") from error
        self._hash.update(piece)
        return piece

    def check(self, stored: Stored) -> None:
        """Raise StoreBroken unless the bytes read so far are exactly those that were stored."""
        if self._hash.hexdigest() != stored.sha256:
            raise StoreBroken("A file is not what was written; the disk has changed it.")

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()
