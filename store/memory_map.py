"""The memory-mapped file: how LMDB is opened, and when its map may move.

Owns the LMDB environment, the handles of the named databases, and the count of open read transactions. Does
not decide what is written or when (`journal.py`).

LMDB reads through one map of fixed size, and fails a write that would pass it. The map may be made larger
only while no transaction is open in this process, because it moves in memory under whoever still reads: a
crash, not an error. So every read is counted here, and while the journal waits to grow the map, new reads
in worker threads are held at the door. Reads in the event loop are not: they could not be waited for.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import lmdb

from trunkline.store.errors import StoreBroken, StoreError, StoreFull, translate
from trunkline.store.keys import DATABASES

if TYPE_CHECKING:
    from lmdb import _Database as Handle

DATABASES_MAX = 16
READERS_MAX = 512
PAGE_BYTES = 4096
RESERVE_BYTES_MAX = 4 * 1024 * 1024
"""What a quota keeps back for commits that delete: LMDB needs new pages to free old ones."""

_SPARE_TRANSACTIONS = 8  # reads that are begun again instead of anew: 0.3 instead of 1 us
_FILE = "data.mdb"
_FILE_MODE = 0o600


class MemoryMap:
    """One open LMDB environment. Any thread may read; only the journal's thread may write."""

    def __init__(self, path: Path, *, size_bytes: int, size_max_bytes: int | None, read_only: bool) -> None:
        if size_max_bytes is not None:
            self.reserve_bytes = _pages(min(size_max_bytes // 8, RESERVE_BYTES_MAX))
            self.size_max_bytes: int | None = _pages(size_max_bytes)
            size_bytes = min(size_bytes, self.size_max_bytes - self.reserve_bytes)
        else:
            self.reserve_bytes = 0
            self.size_max_bytes = None
        self.path = path
        self.env = _open(path, _pages(size_bytes), read_only)
        try:
            self.handles = _handles(self.env, read_only)
        except lmdb.Error as error:
            self.env.close()
            raise translate(error, f"opening of {path}") from error
        self._lock = threading.Condition()
        self._open_reads = 0
        self._held = False
        self._on_idle: Callable[[], None] | None = None

    # Transactions.

    def begin_read(self, *, wait: bool) -> lmdb.Transaction[bytes]:
        """Open a read transaction that the caller ends with `end_read`.

        `wait` (worker threads only) lets a growth of the map go first.
        """
        with self._lock:
            if wait:
                self._lock.wait_for(lambda: not self._held)
            self._open_reads += 1
        try:
            return self.env.begin()
        except lmdb.Error as error:
            self._ended()
            raise translate(error, "read") from error

    def end_read(self, transaction: lmdb.Transaction[bytes]) -> None:
        """End a transaction of `begin_read`, in any thread."""
        try:
            transaction.abort()
        finally:
            self._ended()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the map where it is while LMDB itself reads (as a copy does)."""
        with self._lock:
            self._open_reads += 1
        try:
            yield
        finally:
            self._ended()

    def _ended(self) -> None:
        with self._lock:
            self._open_reads -= 1
            if self._open_reads == 0 and self._held:
                self._lock.notify_all()
                if self._on_idle is not None:
                    self._on_idle()

    @property
    def open_reads(self) -> int:
        """Read transactions that are open now."""
        return self._open_reads

    # Failures.

    def commit_error(self, error: Exception, written_bytes: int) -> StoreError:
        """Say why a commit of about so many bytes failed.

        A write that the system cut short, which is how a disk becomes full, LMDB reports as an I/O error. So
        the system is asked whether it has room before the disk is called broken.
        """
        told = translate(error, "commit")
        if isinstance(told, StoreFull) or self._has_room(2 * written_bytes + RESERVE_BYTES_MAX):
            return told
        return StoreFull(f"The disk is full, so the commit failed: {str(error).rstrip('.')}.")

    def _has_room(self, more_bytes: int) -> bool:
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            if limit != resource.RLIM_INFINITY and (self.path / _FILE).stat().st_size + more_bytes > limit:
                return False
            with tempfile.TemporaryFile(dir=self.path) as probe:
                os.posix_fallocate(probe.fileno(), 0, more_bytes)
        except OSError as failure:
            return not isinstance(translate(failure, "probe"), StoreFull)
        return True

    # Growth.

    @property
    def size_bytes(self) -> int:
        """The size of the map: how large the file may become before the map must grow."""
        return self.env.info()["map_size"]

    @property
    def used_bytes(self) -> int:
        """The part of the file that was ever used; pages that are free again count."""
        return (self.env.info()["last_pgno"] + 1) * self.env.stat()["psize"]

    def larger_size(self, *, reserve: bool) -> int:
        """Return twice the present size, or what the quota leaves of that. Raises StoreFull at the quota.

        `reserve`: the quota's reserve may be used as well.
        """
        size = self.size_bytes
        larger = 2 * size
        if self.size_max_bytes is not None:
            larger = min(larger, self.size_max_bytes - (0 if reserve else self.reserve_bytes))
        if larger <= size:
            raise StoreFull(f"The store has reached its quota of {self.size_max_bytes} bytes.")
        return larger

    def close_reserve(self) -> bool:
        """Take the reserve away from ordinary commits again. False where a read is open."""
        if self.size_max_bytes is None:
            return True
        ordinary = self.size_max_bytes - self.reserve_bytes
        return self.size_bytes <= ordinary or self.resize(ordinary)

    def hold_reads(self, on_idle: Callable[[], None] | None = None) -> None:
        """Hold new reads in worker threads; call `on_idle` (in any thread) whenever no read is open."""
        with self._lock:
            self._held = True
            self._on_idle = on_idle

    def release_reads(self) -> None:
        """Let the held reads go on."""
        with self._lock:
            self._held = False
            self._on_idle = None
            self._lock.notify_all()

    def wait_idle(self, timeout_s: float) -> bool:
        """Block this thread until no read is open, after `hold_reads`. False where some still are."""
        with self._lock:
            return self._lock.wait_for(lambda: self._open_reads == 0, timeout_s)

    def resize(self, size_bytes: int) -> bool:
        """Give the map another size now; False where a read is open. LMDB never goes below what is used."""
        with self._lock:
            if self._open_reads:
                return False
            _probe(size_bytes - self.size_bytes)
            try:
                self.env.set_mapsize(size_bytes)
            except lmdb.Error as error:
                raise translate(error, "growth of the memory map") from error
            return True

    def close(self, timeout_s: float) -> bool:
        """Close the file. False where reads stay open: then it is left to the end of the process."""
        self.hold_reads()
        if not self.wait_idle(timeout_s):
            self.release_reads()
            return False
        self.env.close()
        return True


def _open(path: Path, size_bytes: int, read_only: bool) -> lmdb.Environment:
    try:
        if not read_only:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return lmdb.open(
            str(path),
            map_size=size_bytes,
            subdir=True,
            readonly=read_only,
            create=not read_only,
            mode=_FILE_MODE,
            max_dbs=DATABASES_MAX,
            max_readers=READERS_MAX,
            max_spare_txns=_SPARE_TRANSACTIONS,
            sync=True,
            metasync=True,
            writemap=False,
            meminit=False,
            readahead=True,
            lock=True,
        )
    except (lmdb.Error, OSError) as error:
        raise translate(error, f"opening of {path}") from error


def _handles(env: lmdb.Environment, read_only: bool) -> dict[str, Handle]:
    """Open the named databases; a reader of an older file does without those that are not there."""
    handles: dict[str, Handle] = {}
    for name in DATABASES:
        try:
            handles[name] = env.open_db(name.encode(), create=not read_only)
        except lmdb.NotFoundError:
            continue
    return handles


def _pages(size_bytes: int) -> int:
    """Whole pages, at least what an empty store needs."""
    return max(16, -(-size_bytes // PAGE_BYTES)) * PAGE_BYTES


def _probe(more_bytes: int) -> None:
    """Ask for the address space first: LMDB gives up the old map before it asks, and can not go back."""
    if more_bytes <= 0:
        return
    try:
        mmap.mmap(-1, more_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
    except (OSError, ValueError, OverflowError) as error:
        raise StoreBroken(f"There is no address space for a larger memory map: {error}.") from error
