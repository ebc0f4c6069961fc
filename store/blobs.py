"""Blobs: an object store in a folder of the data directory, outside of LMDB.

Owns writing a file atomically, its hash, and reading it in pieces. Does not own what a file contains, who may
read it, or how long it is kept.

A file is written as a draft with a name of its own, synced, and then renamed, so a file with its final name is
complete and two drafts of one name cannot mix. All drafts are in one folder: those that a crash left are removed at
the next start without listing all files. The SHA-256 is computed while the file is written, and a later read is
compared with it.

    FOLDER/NAME          a file
    FOLDER/PART/NAME     a file of a name with a slash
    FOLDER/drafts/       files that are being written
    FOLDER/lock          locked (shared) by whoever copies the files, so that none is removed meanwhile

Why not in LMDB: a file of gigabytes would be copied through the pages of the store, and a slow reader would
prevent old pages of the whole store from being reused.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from trunkline.store.directory import sync_directory
from trunkline.store.errors import translate
from trunkline.store.leftovers import SHARED_LEFT_S, remove_left
from trunkline.store.object_store import Content, Digest, Stored, checked_name

DRAFTS = "drafts"
LOCK = "lock"
BUFFER_BYTES = 256 * 1024
SYNC_BYTES = 8 << 20
"""How much of a large file waits to be written to the disk. A commit of the store has to wait for what other files have
written, so a gigabyte that is written at once would hold up all writes."""
_OWNER_ONLY = 0o600


class Blobs:
    """Implements `ObjectStore` in one folder. Everything but `open` and `remove` blocks: not for the event loop."""

    __slots__ = ("_path", "_thinned")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thinned: set[Path] = set()
        """The folders from which something was removed, and that are not synced yet."""

    @classmethod
    def prepare(cls, path: Path, *, left_s: float = 0.0) -> Blobs:
        """Open the folder `path`, or create it; incomplete files are removed (`leftovers.py`)."""
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            (path / DRAFTS).mkdir(mode=0o700, exist_ok=True)
            (path / LOCK).touch(_OWNER_ONLY)
            remove_left((path / DRAFTS).iterdir(), left_s)
            remove_left(path.glob("*.draft"), left_s)  # of earlier versions
        except OSError as error:
            raise translate(error, f"opening of {path}") from error
        return cls(path)

    def write(self, name: str) -> FileDraft:
        """Begin a file. When complete, it replaces one of the same name. Raises StoreFull or StoreBroken."""
        return FileDraft(self._path / checked_name(name), self._path / DRAFTS)

    def open(self, name: str, stored: Stored | None = None) -> Content | None:
        """Open a file for reading; None if there is none. An open file can be read to its end after `remove`."""
        path = self._path / checked_name(name)
        try:
            source = _FileSource(path.open("rb", buffering=0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, f"reading of {name}") from error
        return Content(source, stored)

    def take(self, paths: Iterable[Path]) -> None:
        """Have files of another folder here as well, by their names. On disk when this returns.

        No error for those that are here already, or that were removed there meanwhile.
        """
        try:
            for path in paths:
                self._take(path)
            sync_directory(self._path)
        except OSError as error:
            raise translate(error, f"copying of files to {self._path}") from error

    def _take(self, path: Path) -> None:
        target = self._path / checked_name(path.name)
        try:
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.link(path, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            with path.open("rb") as file, self.write(path.name) as draft:
                while piece := file.read(BUFFER_BYTES):
                    draft.write(piece)
                draft.finish()

    def remove(self, name: str) -> None:
        """Remove a file; no error if there is none."""
        path = self._path / checked_name(name)
        try:
            path.unlink(missing_ok=True)
            self._thinned.add(path.parent)
        except OSError as error:
            raise translate(error, f"removal of {name}") from error

    def remove_folder(self, name: str) -> None:
        """Remove all files whose names begin with `name` and a slash."""
        try:
            shutil.rmtree(self._path / checked_name(name))
            self._thinned.add(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise translate(error, f"removal of {name}") from error

    @contextlib.contextmanager
    def removing(self) -> Iterator[bool]:
        """Whether files may be removed now: not while another process holds `kept`. Hold it while removing.

        After it what was removed does not come back by a power cut.
        """
        with self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB) as locked:
            yield locked
            self._sync_removals()

    def _sync_removals(self) -> None:
        thinned, self._thinned = self._thinned, set()
        try:
            for folder in thinned:
                if folder.is_dir():
                    sync_directory(folder)
        except OSError as error:
            self._thinned |= thinned
            raise translate(error, f"removal of files in {self._path}") from error

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """While this is held, the sweep of no process removes a file. Ends with the process that holds it."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[bool]:
        try:
            file = os.open(self._path / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise translate(error, f"locking of {self._path}") from error
        try:
            try:
                fcntl.flock(file, how)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(file)

    def within(self, name: str) -> Blobs:
        """The files of a folder in this one."""
        return Blobs.prepare(self._path / checked_name(name), left_s=SHARED_LEFT_S)

    def names(self) -> list[str]:
        """The names of all complete files whose names have no slash."""
        try:
            return sorted(path.name for path in self._path.iterdir() if path.is_file() and path.name != LOCK)
        except OSError as error:
            raise translate(error, "listing of the files") from error

    def sizes(self) -> Iterator[tuple[str, int]]:
        """The names of these files, those that are being written with names of their own, and their bytes."""
        try:
            for folder in (self._path, self._path / DRAFTS):
                for entry in os.scandir(folder):
                    try:
                        if entry.is_file() and entry.name != LOCK:
                            yield entry.name, entry.stat().st_size
                    except FileNotFoundError:
                        continue  # removed after the listing
        except OSError as error:
            raise translate(error, "listing of the files") from error


class FileDraft:
    """A file that is being written. Use it as a context manager: without `finish` the file is removed."""

    def __init__(self, path: Path, drafts: Path) -> None:
        self._path = path
        self._draft = drafts / secrets.token_hex(16)
        self._digest = Digest()
        self._file: BinaryIO | None = None
        self.size_bytes = 0
        self._synced_bytes = 0

    def __enter__(self) -> FileDraft:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._draft, flags, _OWNER_ONLY), "wb", BUFFER_BYTES)
        except OSError as error:
            raise translate(error, f"writing of {self._path.name}") from error
        return self

    @property
    def stored(self) -> Stored:
        """The size and the hashes of what was written so far."""
        return self._digest.stored

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises StoreFull or StoreBroken."""
        assert self._file is not None
        try:
            self._file.write(piece)
            self.size_bytes += len(piece)
            if self.size_bytes - self._synced_bytes >= SYNC_BYTES:
                self._sync(self._file)
        except OSError as error:
            raise translate(error, f"writing of {self._path.name}") from error
        self._digest.update(piece)

    def _sync(self, file: BinaryIO) -> None:
        file.flush()
        os.fdatasync(file.fileno())
        # Otherwise a large file takes the place of the store's pages in memory.
        os.posix_fadvise(file.fileno(), 0, self.size_bytes, os.POSIX_FADV_DONTNEED)
        self._synced_bytes = self.size_bytes

    def finish(self, name: str | None = None, /) -> Stored:
        """Give the file its final name, or `name`. It is complete and on disk when this returns."""
        assert self._file is not None
        path = self._path if name is None else self._path.with_name(checked_name(name))
        folder = path.parent
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_directory(folder.parent)  # also if somebody else has just made it, and has not synced it yet
            self._draft.replace(path)
            sync_directory(folder)
        except OSError as error:
            raise translate(error, f"writing of {self._path.name}") from error
        return self.stored

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a file that cannot be flushed is removed anyway
                self._file.close()
        with contextlib.suppress(OSError):  # the next start removes it, and what was stored stays stored
            self._draft.unlink(missing_ok=True)


class _FileSource:
    """An open file. Implements `Source`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size_bytes = os.fstat(file.fileno()).st_size

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        try:
            return os.pread(self._file.fileno(), size_bytes, offset)
        except OSError as error:
            raise translate(error, "reading of a file") from error

    def close(self) -> None:
        self._file.close()
