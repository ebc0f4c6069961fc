"""An object store: complete, immutable objects by name, in a folder (`blobs.py`) or in a bucket (`s3.py`).

Owns what both have in common: the protocols, which names are allowed, and reading with the comparison of hashes.
Does not own which objects are needed, nor what they contain.

An object is there as a whole or not at all: it is written as a draft and gets its name when it is complete and
durable. All methods block, so none is for the event loop.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from trunkline.store.errors import StoreBroken

_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,100}(/[0-9A-Za-z_-]{1,100})?", re.ASCII)


class Stored(NamedTuple):
    """The size and the SHA-256 (in hex) of a complete object; its MD5 where that is known.

    The MD5 protects nothing: clients of object stores compare it with that of their file.
    """

    size_bytes: int
    sha256: str
    md5: str = ""


class Digest:
    """The size and the hashes of what is written, piece by piece."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._size_bytes = 0

    def update(self, piece: bytes) -> None:
        """Add a piece."""
        self._sha256.update(piece)
        self._md5.update(piece)
        self._size_bytes += len(piece)

    @property
    def stored(self) -> Stored:
        """Of what was added so far."""
        return Stored(self._size_bytes, self._sha256.hexdigest(), self._md5.hexdigest())


class Draft(Protocol):
    """An object that is being written. Use it as a context manager: without `finish` nothing of it is kept."""

    def __enter__(self) -> Draft: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def stored(self) -> Stored:
        """The size and the hash of what was written so far."""
        ...

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises StoreFull or StoreBroken."""
        ...

    def finish(self, name: str | None = None, /) -> Stored:
        """Give the object its name, or `name`; it replaces one of the same name. It is complete and durable when this
        returns."""
        ...


class Source(Protocol):
    """An open object. Several threads may not use it at a time."""

    size_bytes: int

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        """At most so many bytes at an offset; empty at the end. Raises StoreBroken."""
        ...

    def close(self) -> None:
        """Release the object. Idempotent."""
        ...


class ObjectStore(Protocol):
    """Objects by name: letters, digits, `-` and `_`, and at most one `/`. Other names raise ValueError.

    Errors of the disk or the network are StoreFull or StoreBroken.
    """

    def write(self, name: str) -> Draft:
        """Begin an object. Several drafts of one name do not disturb each other; the last that finishes is kept."""
        ...

    def open(self, name: str, stored: Stored | None = None) -> Content | None:
        """Open an object; None if there is none. With `stored`, what is read is compared with that."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object; no error if there is none."""
        ...

    def remove_folder(self, name: str) -> None:
        """Remove all objects whose names begin with `name` and a slash."""
        ...

    def names(self) -> list[str]:
        """The names of all objects whose names have no slash."""
        ...

    def sizes(self) -> Iterator[tuple[str, int]]:
        """These names and the bytes of each. A folder also yields what is being written, under names of its own."""
        ...

    def within(self, name: str) -> ObjectStore:
        """The objects whose names begin with `name` and a slash, as a store of their own: without that in their names.

        Several processes may use it. Raises StoreFull or StoreBroken.
        """
        ...

    def removing(self) -> AbstractContextManager[bool]:
        """Whether objects may be removed now; not while another process copies them. Hold it while removing."""
        ...


class Content(io.RawIOBase):
    """An object that is read: a file object that `zipfile` and others take. Not thread-safe.

    If it is read from the beginning to the end, the last piece is returned only if the hash of all is right.
    """

    def __init__(self, source: Source, stored: Stored | None = None) -> None:
        """Raises StoreBroken if the size is not the one that was stored; `source` is then closed."""
        super().__init__()
        self._source = source
        self._stored = stored
        self._hash = hashlib.sha256()
        self._hashed_bytes = 0
        self._position = 0
        self.size_bytes = source.size_bytes
        if stored is not None and stored.size_bytes != self.size_bytes:
            self.close()
            raise StoreBroken(
                f"A file of {stored.size_bytes} bytes has {self.size_bytes} bytes; it is not what was written."
            )

    def read(self, size: int = -1, /) -> bytes:
        """Return the next piece, empty at the end. Raises StoreBroken if it is not what was written."""
        left = max(0, self.size_bytes - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        piece = self._source.read_at(self._position, wanted) if wanted else b""
        if self._hashed_bytes == self._position:
            self._hash.update(piece)
            self._hashed_bytes += len(piece)
        self._position += len(piece)
        if wanted and not piece:
            raise StoreBroken("A file is shorter than it was when it was opened.")
        if self._hashed_bytes == self.size_bytes == self._position:
            self.check()
        return piece

    def check(self) -> None:
        """Raise StoreBroken unless the bytes from the beginning that were read are those that were stored."""
        if self._stored is not None and self._hash.hexdigest() != self._stored.sha256:
            raise StoreBroken("A file is not what was written; the disk has changed it.")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # that of io takes more types
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Read from another place. Pieces behind a gap are not compared with the hash."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size_bytes}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        """Release the object. Idempotent."""
        if not self.closed:
            self._source.close()
        super().close()


def checked_name(name: str) -> str:
    """The name, if it cannot lead out of a folder. Raises ValueError."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot be the name of an object")
    return name


class HashOnly:
    """A draft of which nothing is kept: only the size and the hash are computed. Implements `Draft`."""

    def __init__(self) -> None:
        self._digest = Digest()

    def __enter__(self) -> HashOnly:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    @property
    def stored(self) -> Stored:
        """The size and the hash of what was written so far."""
        return self._digest.stored

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        self._digest.update(piece)

    def finish(self, _name: str | None = None, /) -> Stored:
        """Nothing gets a name."""
        return self.stored
