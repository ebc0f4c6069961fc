"""The memory-mapped file: opening LMDB, and growing its map.

Owns the LMDB environment, the handles of the named databases, and the count of open read transactions; opens the
file again where LMDB gives it up. Does not own what is written or when (`journal.py`).

LMDB reads through one map of fixed size, and a write beyond it fails. The map may grow only while no
transaction is open in this process: it moves in memory, and a transaction that still reads would crash the
process. So every read is counted here, and while the journal waits to grow the map, new reads in worker
threads wait. Reads in the event loop do not: they could not be waited for.
"""

from __future__ import annotations

import mmap
import os
import resource
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

import lmdb

from trunkline.store.checksums import RESIDUE, opened
from trunkline.store.directory import DATA_FILE
from trunkline.store.errors import StoreBroken, StoreDamaged, StoreError, StoreFull, StoreLost, translate
from trunkline.store.keys import ARRIVALS, ARRIVALS_END, DATABASES
from trunkline.store.mapped_file import make_lock_file

if TYPE_CHECKING:
    from lmdb import _Database as Handle

    from trunkline.store.arrivals import Arrivals

DATABASES_MAX = 32
READERS_MAX = 512
PAGE_BYTES = 4096
ROOM_BYTES_MAX = 4 * 1024 * 1024
"""The free space that has to be on the disk beside a failed commit: with less, it failed because the disk is full."""

_SPARE_TRANSACTIONS = 8  # read transactions kept for reuse: 0.3 us instead of 1 us for a new one
_FILE_MODE = 0o600
_CHANGED_BITS_MAX = 8
"""A key in which more bits have changed, and which is in order nevertheless, is not taken for the one that it was."""


_OPEN: Final[dict[Path, MemoryMap]] = {}


def opened_here(path: Path) -> MemoryMap | None:
    """The store at `path`, which is resolved, if this process has it open already: LMDB opens a file only once."""
    return _OPEN.get(path)


class MemoryMap:
    """One open LMDB environment. Any thread may read; only the journal's thread may write."""

    def __init__(self, path: Path, *, size_bytes: int, size_max_bytes: int | None, read_only: bool) -> None:
        self.size_max_bytes = None if size_max_bytes is None else _pages(size_max_bytes)
        if self.size_max_bytes is not None:
            size_bytes = min(size_bytes, self.size_max_bytes)
        self.path = path = path.resolve()
        self.read_only = read_only
        earlier = opened_here(path)
        if earlier is not None and earlier.read_only:
            earlier.close(0)  # a reader in this process finds this one in its place
        self.env = _open(path, _pages(size_bytes), read_only)
        try:
            self.handles = _handles(self.env, read_only)
        except lmdb.Error as error:
            self.env.close()
            operation = f"opening of {path}"
            raise (
                translate(error, operation) if read_only else self.commit_error(error, 0, operation)
            ) from error
        self.arrivals: Arrivals | None = None
        """What devices reported and is not in the runs yet; None if each snapshot reads it for itself (`check`)."""
        self._lock = threading.Condition()
        self._open_reads = 0
        self._reads_held = False
        self._on_idle: Callable[[], None] | None = None
        _OPEN[path] = self

    # Transactions.

    def begin_read(self, *, wait: bool) -> lmdb.Transaction[bytes]:
        """Open a read transaction that the caller ends with `end_read`.

        `wait` (only in worker threads) waits while `hold_reads` is in force, so that the map can grow.
        """
        with self._lock:
            if wait:
                self._lock.wait_for(lambda: not self._reads_held)
            self._open_reads += 1
        try:
            return self.env.begin()
        except lmdb.Error as error:
            self._read_ended()
            raise translate(error, "read") from error

    def end_read(self, transaction: lmdb.Transaction[bytes]) -> None:
        """End a transaction of `begin_read`, in any thread."""
        try:
            transaction.abort()
        finally:
            self._read_ended()

    def read(self, transaction: lmdb.Transaction[bytes], db: str, key: bytes) -> bytes | None:
        """Return the value at `key`, None if there is none. Raises StoreDamaged if it is not what was written."""
        stored = transaction.get(key, db=self.handles[db])
        if stored is None:
            self._verify_absence(transaction, db, key)
            return None
        value = opened(key, stored)
        if value is None:
            raise self.damaged(db, key)
        return value

    def _verify_absence(self, transaction: lmdb.Transaction[bytes], db: str, key: bytes) -> None:
        """Raise StoreDamaged if an entry beside the place of `key` is damaged, and its key may have been `key`.

        Of an entry whose key has changed a start finds that its length has changed, or that it is out of order. So it
        is as long as `key`, and stands where it stood.
        """
        with transaction.cursor(self.handles[db]) as cursor:
            found = cursor.set_range(key)
            if found and len(cursor.key()) == len(key) and _is_near(cursor.key(), key):
                self._verify(db, cursor)
            found = cursor.prev() if found else cursor.last()
            if found and len(cursor.key()) == len(key) and _is_near(cursor.key(), key):
                self._verify(db, cursor)

    def verify_edge(
        self, db: str, cursor: lmdb.Cursor[bytes], lo: bytes, hi: bytes | None, *, below: bool
    ) -> None:
        """Raise StoreDamaged if the entry before the range is damaged, and may have been in it. Moves the cursor.

        That is the last one before `lo`, or (not `below`) the first one from `hi` on.
        """
        if below:
            found = bool(lo) and (cursor.prev() if cursor.set_range(lo) else cursor.last())
        else:
            found = hi is not None and cursor.set_range(hi)
        if found:
            self.verify_outside(db, cursor, lo, hi)

    def verify_outside(self, db: str, cursor: lmdb.Cursor[bytes], lo: bytes, hi: bytes | None) -> None:
        """Raise StoreDamaged if the entry at the cursor, beside the range, is damaged, and may have been in it."""
        common = 0
        if hi is not None:
            size = min(len(lo), len(hi))
            differs = int.from_bytes(lo[:size]) ^ int.from_bytes(hi[:size])
            common = size - (differs.bit_length() + 7) // 8
        if _is_near(cursor.key(), lo[:common]):
            self._verify(db, cursor)

    def _verify(self, db: str, cursor: lmdb.Cursor[bytes]) -> None:
        """Raise StoreDamaged if the entry at the cursor is not what was written.

        What follows ARRIVALS is LMDB's own: the roots of the other databases, which a start verifies.
        """
        key, stored = cursor.item()
        if crc32(stored, crc32(key)) != RESIDUE and not (db == ARRIVALS and key >= ARRIVALS_END):
            raise self.damaged(db, key)

    def damaged(self, db: str, key: bytes) -> StoreDamaged:
        """The error for a value that is not what was written."""
        return StoreDamaged(
            f"{self.path / DATA_FILE} is damaged: {db} {key.hex()} is not what was written. "
            f"`trunkline check --data {self.path.parent}` lists everything that is damaged; restore a backup."
        )

    def _read_ended(self) -> None:
        with self._lock:
            self._open_reads -= 1
            if self._open_reads == 0 and self._reads_held:
                self._lock.notify_all()
                if self._on_idle is not None:
                    self._on_idle()

    def has_unknown_databases(self) -> bool:
        """Whether there is a database with a name that this program does not know, as after damage of a name."""
        with self.env.begin() as transaction, transaction.cursor(self.handles[ARRIVALS]) as cursor:
            names = {name.encode() for name in DATABASES}
            return cursor.set_range(ARRIVALS_END) and any(
                key not in names for key in cursor.iternext(values=False)
            )

    def oldest_read(self) -> int | None:
        """The transaction that the oldest open read sees, None if none is open. Reads that just ended may count."""
        lines = self.env.readers().splitlines()[1:]  # a table: process, thread, transaction
        seen = [int(line.split()[2]) for line in lines if line.split()[2:3] not in ([], ["-"])]
        return min(seen, default=None)

    # Failures.

    def commit_error(self, error: Exception, written_bytes: int = 0, operation: str = "commit") -> StoreError:
        """Return the `StoreError` for a failed commit of about `written_bytes` bytes, which is a part of `operation`.

        A disk that becomes full cuts a write short, which LMDB reports as an I/O error. So the file system is
        probed for free space before the disk is reported as broken.
        """
        translated = translate(error, operation)
        if isinstance(translated, StoreFull) or self._has_room(2 * written_bytes + ROOM_BYTES_MAX):
            return translated
        return StoreFull(f"The disk is full, so the {operation} failed: {str(error).rstrip('.')}.")

    def _has_room(self, more_bytes: int) -> bool:
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            if (
                limit != resource.RLIM_INFINITY
                and (self.path / DATA_FILE).stat().st_size + more_bytes > limit
            ):
                return False
            with tempfile.TemporaryFile(dir=self.path) as probe:
                os.posix_fallocate(probe.fileno(), 0, more_bytes)
        except OSError as failure:
            return not isinstance(translate(failure, "probe"), StoreFull)
        return True

    def recover(self, refused: int | None, timeout_s: float) -> None:
        """After a failed commit with the number `refused`: open the file again if LMDB has given it up.

        If the disk fails at the page that makes a commit valid, LMDB refuses every transaction from then on, and it
        cannot say whether that page is on the disk. Opened again, the file shows it. Blocks until no read is open.
        Raises StoreLost if reads stay open for `timeout_s`, the file cannot be opened, or the commit is in it.
        """
        try:
            self.env.begin().abort()
            return
        except lmdb.PanicError:
            self.hold_reads()
        try:
            if not self.wait_idle(timeout_s):
                raise StoreLost(
                    f"{self.path} must be opened again after a failed commit, but reads stayed open."
                )
            self._open_again(self.size_bytes)
            if refused is not None and self.env.info()["last_txnid"] >= refused:
                raise StoreLost(
                    f"The disk has refused a commit and yet has it in {self.path}. Whoever waited has no answer."
                )
        finally:
            self.release_reads()

    def _open_again(self, size_bytes: int) -> None:
        """Close the file and open it with a map of this size. No read may be open. Raises StoreLost."""
        self.env.close()
        try:
            self.env = _open(self.path, size_bytes, read_only=False)
            self.handles = _handles(self.env, read_only=False)
        except (lmdb.Error, StoreError) as error:
            self.env.close()
            raise StoreLost(str(translate(error, f"opening of {self.path} after a failure"))) from error

    # Growth.

    @property
    def size_bytes(self) -> int:
        """The size of the map: the file can become this large before the map must grow."""
        return self.env.info()["map_size"]

    @property
    def used_bytes(self) -> int:
        """The bytes of all pages of the file that were ever used, including freed ones."""
        return (self.env.info()["last_pgno"] + 1) * self.env.stat()["psize"]

    def larger_size(self) -> int:
        """Return twice the current size, or less if the quota requires it. Raises StoreFull at the quota."""
        size = self.size_bytes
        larger = 2 * size
        if self.size_max_bytes is not None:
            larger = min(larger, self.size_max_bytes)
        if larger <= size:
            raise StoreFull(f"The store has reached its quota of {self.size_max_bytes} bytes.")
        return larger

    def hold_reads(self, on_idle: Callable[[], None] | None = None) -> None:
        """Make new reads in worker threads wait; call `on_idle` (in any thread) whenever the last open read ends."""
        with self._lock:
            self._reads_held = True
            self._on_idle = on_idle

    def release_reads(self) -> None:
        """End `hold_reads`: the waiting reads continue."""
        with self._lock:
            self._reads_held = False
            self._on_idle = None
            self._lock.notify_all()

    def wait_idle(self, timeout_s: float) -> bool:
        """Block this thread until no read is open, after `hold_reads`. False if some are still open."""
        with self._lock:
            return self._lock.wait_for(lambda: self._open_reads == 0, timeout_s)

    def resize(self, size_bytes: int) -> bool:
        """Change the size of the map now; False if a read is open. LMDB never goes below the used size."""
        with self._lock:
            if self._open_reads:
                return False
            _check_address_space(size_bytes - self.size_bytes)
            before_bytes = self.size_bytes
            try:
                self.env.set_mapsize(size_bytes)
            except lmdb.Error as error:
                self._open_again(before_bytes)  # without a map LMDB would read nowhere
                raise translate(error, "growth of the memory map") from error
            return True

    def close(self, timeout_s: float) -> bool:
        """Close the file. False if reads stay open: then it is closed only by the end of the process."""
        self.hold_reads()
        if not self.wait_idle(timeout_s):
            self.release_reads()
            return False
        _OPEN.pop(self.path, None)
        self.env.close()
        self.release_reads()  # a thread that waits for its read is told that the file is closed
        return True


def _open(path: Path, size_bytes: int, read_only: bool) -> lmdb.Environment:
    try:
        if not read_only:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_lock_file(path, READERS_MAX)
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
            # Uninitialized pages would hold what was in memory before: tokens and passwords.
            meminit=True,
            readahead=True,
            lock=True,
        )
    except (lmdb.MemoryError, OverflowError) as error:
        raise StoreBroken(
            f"There is no address space for the memory map of {path}, {size_bytes} bytes ({error}). Give a smaller "
            "map_size_bytes, or lift the limit of this process (ulimit -v)."
        ) from error
    except (lmdb.Error, OSError) as error:
        raise translate(error, f"opening of {path}") from error


def _handles(env: lmdb.Environment, read_only: bool) -> dict[str, Handle]:
    """Open the databases. Read-only, those that an older file does not have are left out."""
    handles: dict[str, Handle] = {ARRIVALS: env.open_db()}
    for name in DATABASES:
        if name == ARRIVALS:
            continue
        try:
            handles[name] = env.open_db(name.encode(), create=not read_only)
        except lmdb.NotFoundError:
            continue
    return handles


def _is_near(key: bytes, prefix: bytes) -> bool:
    """Whether a key begins with `prefix`, but for a few bits."""
    size = len(prefix)
    return (int.from_bytes(key[:size]) ^ int.from_bytes(prefix)).bit_count() <= _CHANGED_BITS_MAX


def _pages(size_bytes: int) -> int:
    """Round up to whole pages; at least the pages of an empty store."""
    return max(16, -(-size_bytes // PAGE_BYTES)) * PAGE_BYTES


def _check_address_space(more_bytes: int) -> None:
    """Map and unmap this much, because LMDB unmaps the old map before the new one and cannot go back.

    Raises StoreBroken if there is not enough address space.
    """
    if more_bytes <= 0:
        return
    try:
        mmap.mmap(-1, more_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
    except (OSError, ValueError, OverflowError) as error:
        raise StoreBroken(f"There is no address space for a larger memory map: {error}.") from error
