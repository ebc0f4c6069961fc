"""The folder of archives: files with names that people read, and the drafts of files.

Owns writing a draft, and giving it its name in the folder atomically. Does not own what a file contains, nor which
files there are. An archive in a bucket begins as a draft here as well, so that it is uploaded as a whole.

A draft has a random name. It is synced and renamed, so a file with its final name is complete. Drafts that a crash
left are removed at the next start. All methods block, so none is for the event loop.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Protocol

from trunkline.store.directory import sync_directory
from trunkline.store.errors import translate
from trunkline.store.leftovers import remove_left

DRAFTS: Final = ".drafts"
BUFFER_BYTES: Final = 256 * 1024
NAME: Final = re.compile(
    r"[0-9A-Za-z_=-][0-9A-Za-z_=. -]{0,254}(/[0-9A-Za-z_=-][0-9A-Za-z_=. -]{0,254})*", re.ASCII
)
"""The name of a file, and of a directory: no part begins with a full stop, so none leads out of the folder."""

_OWNER_ONLY: Final = 0o600


class Written(NamedTuple):
    """The size and the SHA-256 (in hexadecimal) of a draft."""

    size_bytes: int
    sha256: str


class Target(Protocol):
    """Where the files of an archive are put: a directory of the folder, or a bucket."""

    def put(self, name: str, draft: Draft) -> None:
        """Give a draft its name, atomically and durably; it replaces a file of the same name."""
        ...

    def read(self, name: str) -> Iterator[bytes] | None:
        """The pieces of a file; None if there is none."""
        ...


class ArchiveFolder:
    """The folder. It is made with the first draft."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def remove_drafts(self, *, left_s: float = 0.0) -> None:
        """Remove the drafts that a crash left. For the start: no draft of this process may be open (`leftovers.py`)."""
        try:
            remove_left((self.path / DRAFTS).glob("*"), left_s)
        except OSError as error:
            raise translate(error, f"opening of {self.path}") from error

    def drafts(self) -> Drafts:
        """A set of drafts, to be used as a context manager: at its end those that were put nowhere are removed."""
        return Drafts(self.path / DRAFTS)

    def directory(self, name: str) -> Directory:
        """A directory of the folder. Raises ValueError for a name that could lead out of it."""
        return Directory(self.path / _checked(name))


class Directory:
    """A directory of the folder: the `Target` of archives that are kept by the operator."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, name: str, draft: Draft) -> None:
        """Rename a draft. Raises StoreFull or StoreBroken."""
        path = self._path / _checked(name)
        try:
            draft.sync()
            _make(path.parent)
            draft.path.replace(path)
            sync_directory(path.parent)
        except OSError as error:
            raise translate(error, f"writing of {name}") from error

    def read(self, name: str) -> Iterator[bytes] | None:
        """The pieces of a file; None if there is none. Raises StoreBroken."""
        try:
            file = (self._path / _checked(name)).open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, f"reading of {name}") from error
        return _pieces(file, name)


class Drafts:
    """Drafts that end together."""

    __slots__ = ("_open", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[Draft] = []

    def new(self) -> Draft:
        """Begin a draft. Raises StoreFull or StoreBroken."""
        path = self._path / secrets.token_hex(12)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            _make(self._path)
            draft = Draft(path, os.fdopen(os.open(path, flags, _OWNER_ONLY), "wb", BUFFER_BYTES))
        except OSError as error:
            raise translate(error, f"writing of {path}") from error
        self._open.append(draft)
        return draft

    def remove(self, draft: Draft) -> None:
        """Remove a draft, if it was not put anywhere."""
        self._open.remove(draft)
        draft.remove()

    def __enter__(self) -> Drafts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for draft in self._open:
            draft.remove()


class Draft:
    """A file that is being written. It is a file object, as far as writers of formats need one."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._hash = hashlib.sha256()
        self.size_bytes = 0

    @property
    def written(self) -> Written:
        """The size and the hash of what was written."""
        return Written(self.size_bytes, self._hash.hexdigest())

    def write(self, piece: bytes) -> int:
        """Add a piece, as file objects do. Raises StoreFull or StoreBroken."""
        self.add(piece)
        return len(piece)

    def add(self, piece: bytes) -> None:
        """Add a piece. Raises StoreFull or StoreBroken."""
        try:
            self._file.write(piece)
        except OSError as error:
            raise translate(error, "writing of an archive") from error
        self._hash.update(piece)
        self.size_bytes += len(piece)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            self._file.flush()
        except OSError as error:
            raise translate(error, "writing of an archive") from error

    def sync(self) -> None:
        """Make what was written durable."""
        self.flush()
        os.fsync(self._file.fileno())

    def lines(self) -> Iterator[bytes]:
        """What was written, line by line."""
        self.flush()
        with self.path.open("rb") as file:
            yield from file

    def remove(self) -> None:
        """Close the draft, and remove it if it has no other name yet."""
        with contextlib.suppress(OSError):  # a file that cannot be flushed is removed anyway
            self._file.close()
        with contextlib.suppress(OSError):  # the next start removes it, and what was put stays
            self.path.unlink(missing_ok=True)


def _checked(name: str) -> str:
    if NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot be the name of a file of an archive")
    return name


def _make(path: Path) -> None:
    """Make a directory and those above it, durably."""
    if path.is_dir():
        return
    _make(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    sync_directory(path.parent)


def _pieces(file: BinaryIO, name: str) -> Iterator[bytes]:
    with file:
        while True:
            try:
                piece = file.read(BUFFER_BYTES)
            except OSError as error:
                raise translate(error, f"reading of {name}") from error
            if not piece:
                return
            yield piece
