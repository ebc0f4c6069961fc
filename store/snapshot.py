"""A snapshot: the committed state of the store at one moment, for reading.

Owns point reads and range scans over one LMDB read transaction. A snapshot sees every commit that was complete
when it was opened, and nothing later. It does not see what waits in the journal (`Journal.get` does).

What devices reported is read by `head` and `points`: from the arrivals (`arrivals.py`) and the runs (`sorted_runs.py`).
The payload counts of applications in COUNTS are shown with their latest increments, which are stored in ARRIVALS.

A snapshot prevents old pages from being reused, so it should be short; one in the event loop must not be
held over an `await`. It may move between threads, but only one thread at a time may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter
from types import TracebackType
from typing import Final
from zlib import crc32

import lmdb

from trunkline.store import codec, keys
from trunkline.store.arrival_loading import load_arrivals
from trunkline.store.arrival_window import Window
from trunkline.store.checksums import BYTES, RESIDUE
from trunkline.store.columns import Points
from trunkline.store.counters import apply_increments
from trunkline.store.device_arrivals import DeviceArrivals, Seen
from trunkline.store.errors import translate
from trunkline.store.keys import CELLS, COUNTS, INDEXES, TIME_MS_MAX, UNIQUE
from trunkline.store.memory_map import MemoryMap
from trunkline.store.report_items import Ahead, Item, decoded_items, head_of
from trunkline.store.sorted_runs import newest_point, read_series

STEP_ENTRIES = 256
"""After this many entries, a scan in a worker thread checks whether it was cancelled."""

LARGE_BYTES = 2048
"""A larger value counts for itself, because decoding it takes long."""


_SHORT: Final = frozenset({INDEXES, UNIQUE, CELLS})
_SHOWN_TOGETHER: Final = frozenset({COUNTS})
_BY_KEY: Final = itemgetter(0)


class Snapshot:
    """A read transaction. Use it as a context manager.

    `on_step` is called after every STEP_ENTRIES entries of a scan, `on_large` with the length of each value of more
    than LARGE_BYTES before it is returned. Both may raise to end the read.
    """

    __slots__ = ("_arrivals", "_last_seq", "_map", "_on_large", "_on_step", "_transaction", "_windows")

    def __init__(
        self,
        memory_map: MemoryMap,
        *,
        wait: bool = False,
        on_step: Callable[[], None] | None = None,
        on_large: Callable[[int], None] | None = None,
    ) -> None:
        self._map = memory_map
        self._on_step = on_step
        self._on_large = on_large
        self._arrivals = memory_map.arrivals
        self._last_seq: int | None = None
        while True:
            # The windows first: those that are dropped later are in the runs that the transaction sees.
            self._windows = () if self._arrivals is None else self._arrivals.windows
            self._transaction: lmdb.Transaction[bytes] | None = memory_map.begin_read(wait=wait)
            if self._arrivals is None or self._arrivals.windows is self._windows:
                break
            # A window was added, which the transaction may see already.
            memory_map.end_read(self._transaction)
        if self._arrivals is not None and not wait:
            self._last_seq = self._arrivals.seq

    def of_application(self, _application: bytes) -> Snapshot:
        """Where what belongs to an application is read whose keys do not name it, as rows. Open as long as this is."""
        return self

    def get(self, db: str, key: bytes) -> bytes | None:
        """Return the value at `key`, None if there is none. Raises StoreDamaged if it is not what was written."""
        try:
            value = self._map.read(self._open(), db, key)
            if db == COUNTS and len(key) == keys.HOUR_KEY_BYTES:
                latest = self._map.read(self._open(), keys.ARRIVALS, keys.latest_counts_key(key))
                if latest is not None:
                    return apply_increments(value, codec.decode(latest))
            if value is not None and len(value) > LARGE_BYTES and self._on_large is not None:
                self._on_large(len(value))
            return value
        except lmdb.Error as error:
            raise translate(error, "read") from error

    def range(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value for lo <= key < hi in the order of the keys, without the first `skip` entries.

        `hi` None: to the end of the database. `reverse`: from the last key to the first. Raises StoreDamaged at a
        value that is not what was written.
        """
        if db not in _SHOWN_TOGETHER:
            return self._entries(db, lo, hi, reverse=reverse, skip=skip)
        return islice(self._counts(lo, hi, reverse=reverse), skip, None)

    def _counts(self, lo: bytes, hi: bytes | None, *, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """The entries of COUNTS with the latest increments."""
        latest_lo = keys.latest_counts_key(lo)
        latest_hi = None if hi is None else keys.latest_counts_key(hi)
        stored = self._entries(COUNTS, lo, hi, reverse=reverse)
        found = self._entries(keys.ARRIVALS, latest_lo, latest_hi, reverse=reverse)
        latest = ((key[len(keys.LATEST_COUNTS) :], value) for key, value in found)
        before: tuple[bytes, bytes] | None = None
        for key, value in merge(stored, latest, key=_BY_KEY, reverse=reverse):
            if before is not None and before[0] == key:
                yield key, apply_increments(before[1], codec.decode(value))
                before = None
                continue
            if before is not None:
                yield before
            before = bytes(key), value
        if before is not None:
            yield before

    def _entries(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        hi = _end(db, hi)
        try:
            with self._open().cursor(self._map.handles[db]) as cursor:
                if not self._begin(db, cursor, lo, hi, reverse=reverse, skip=skip):
                    return
                left = STEP_ENTRIES
                for key, value in cursor.iterprev() if reverse else cursor.iternext():
                    if key < lo if reverse else hi is not None and key >= hi:
                        self._map.verify_outside(db, cursor, lo, hi)
                        return
                    if crc32(value, crc32(key)) != RESIDUE:
                        raise self._map.damaged(db, key)
                    if len(value) > LARGE_BYTES and self._on_large is not None:
                        self._on_large(len(value))
                    yield key, value[:-BYTES]
                    left -= 1
                    if not left:
                        left = STEP_ENTRIES
                        self._step()
        except lmdb.Error as error:
            raise translate(error, "read") from error

    def stored(self, db: str, lo: bytes, hi: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Like `range`, but each value still has its checksum, which is not verified."""
        hi = _end(db, hi)
        try:
            with self._open().cursor(self._map.handles[db]) as cursor:
                if _place(cursor, lo, hi, reverse=False):
                    for key, value in cursor.iternext():
                        if hi is not None and key >= hi:
                            return
                        yield key, value
        except lmdb.Error as error:
            raise translate(error, "read") from error

    def keys(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        """Like `range`, but yield only the keys. Values are read only where they are short, to verify the keys."""
        if db in _SHORT or db in _SHOWN_TOGETHER:
            for key, _ in self.range(db, lo, hi, reverse=reverse, skip=skip):
                yield key
        else:
            yield from self._bare_keys(db, lo, hi, reverse=reverse, skip=skip)

    def _bare_keys(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        hi = _end(db, hi)
        try:
            with self._open().cursor(self._map.handles[db]) as cursor:
                if not self._begin(db, cursor, lo, hi, reverse=reverse, skip=skip):
                    return
                left = STEP_ENTRIES
                for key in cursor.iterprev(values=False) if reverse else cursor.iternext(values=False):
                    if key < lo if reverse else hi is not None and key >= hi:
                        self._map.verify_outside(db, cursor, lo, hi)
                        return
                    yield key
                    left -= 1
                    if not left:
                        left = STEP_ENTRIES
                        self._step()
        except lmdb.Error as error:
            raise translate(error, "read") from error

    def count(self, db: str, lo: bytes, hi: bytes | None) -> int:
        """The number of keys with lo <= key < hi. LMDB knows that of a whole database; a part is scanned."""
        if not lo and hi is None and db != keys.ARRIVALS:
            try:
                return self._open().stat(self._map.handles[db])["entries"]
            except lmdb.Error as error:
                raise translate(error, "read") from error
        return sum(1 for _ in self._bare_keys(db, lo, hi))

    # What devices reported.

    def head(self, device: bytes, waiting: bytes = b"") -> Ahead:
        """Return the head of a device and the reports after it. `waiting` are items that wait for a commit."""
        later: list[Item] = []
        is_found = False
        if waiting:
            head, later, is_found = head_of([decoded_items(waiting)])
        if not is_found:
            head, before, is_found = head_of(self._items_back(device))
            later = before + later
        if not is_found:
            head = self.get(keys.TIMELINE, keys.head_key(device))
        return Ahead.of(head, later)

    def points(
        self,
        device: bytes,
        low_ms: int = 0,
        high_ms: int = TIME_MS_MAX,
        *,
        reverse: bool = False,
        numbers: Container[int] | None = None,
        rows: int | None = None,
        waiting: bytes = b"",
    ) -> Iterator[Points]:
        """Yield the points of a device from `low_ms` to `high_ms`, both included, as parts that are disjoint in time.

        The parts ascend in time (`reverse`: descend); the rows in a part always ascend. `numbers` are the attributes
        whose columns are read, None for all; points without a value of them are yielded as well. `rows`: so many
        points are wanted; those after them are there as well, but take longer. `waiting` are items that wait for a
        commit. Raises StoreDamaged.
        """
        seen = [*self._seen(device)]
        if rows == 1 and reverse and not seen and not waiting:
            newest = newest_point(self, device, low_ms, high_ms)
            if newest is not None:
                yield newest
                if newest.first_ms <= low_ms:
                    return
                high_ms = newest.first_ms - 1
        arrivals = DeviceArrivals(seen, waiting, numbers)
        arrived, is_wiped = arrivals.points(low_ms, high_ms, reverse=reverse, rows=rows)
        parts = read_series(
            self,
            device,
            low_ms,
            high_ms,
            arrived=arrived,
            with_runs=not is_wiped,
            reverse=reverse,
            numbers=numbers,
        )
        for part in parts:
            yield part
            self._step()

    def _seen(self, device: bytes) -> Iterator[Seen]:
        """Yield what this snapshot sees of the buffers of a device, the oldest first."""
        for window in self._loaded_windows():
            buffer = window.buffers.get(device)
            if buffer is not None:
                end = buffer.end(window.base, self.newest_seq())
                if end:
                    yield Seen(buffer, end)

    def _items_back(self, device: bytes) -> Iterator[list[Item]]:
        """Yield what has arrived of a device, a list for each window, the newest first.

        A list may begin with the last head in its window.
        """
        for window in reversed(self._loaded_windows()):
            buffer = window.buffers.get(device)
            if buffer is not None:
                last_seq = self.newest_seq()
                start = max(0, buffer.head_at)
                yield buffer.items(window.base, last_seq, start) or buffer.items(window.base, last_seq) or []

    def _loaded_windows(self) -> tuple[Window, ...]:
        if self._arrivals is None:
            self._arrivals = load_arrivals(self._map, self._open(), 1 << 62)
            self._windows = self._arrivals.windows
        return self._windows

    def newest_seq(self) -> int:
        """The number of the last commit with reports that this snapshot sees, or that is in the runs."""
        if self._last_seq is None:
            flushed = self.get(keys.META, keys.FLUSHED_KEY)
            self._last_seq = 0 if flushed is None else codec.decode(flushed)
            for db in (keys.ARRIVALS, keys.SEGMENTS):
                with self._open().cursor(self._map.handles[db]) as cursor:
                    if _place(cursor, b"", keys.LATEST_COUNTS, reverse=True):
                        self._last_seq = int.from_bytes(cursor.key(), "big")
                        break
            skipped = self.get(keys.META, keys.SKIPPED_KEY)
            if skipped is not None:
                self._last_seq = max(self._last_seq, codec.decode(skipped))
        return self._last_seq

    def databases(self) -> tuple[str, ...]:
        """The names of the databases in this store (one of an older format may lack some)."""
        return tuple(self._map.handles)

    def close(self) -> None:
        """End the snapshot. Idempotent. Unfinished scans of it fail."""
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            self._map.end_read(transaction)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> lmdb.Transaction[bytes]:
        if self._transaction is None:
            raise ValueError("the snapshot is closed")
        return self._transaction

    def _step(self) -> None:
        if self._on_step is not None:
            self._on_step()

    def _begin(
        self, db: str, cursor: lmdb.Cursor[bytes], lo: bytes, hi: bytes | None, *, reverse: bool, skip: int
    ) -> bool:
        """Put the cursor on the first entry that a scan yields; False if there is none.

        Raises StoreDamaged if the entry before the first one is damaged, and may be one of the range.
        """
        self._map.verify_edge(db, cursor, lo, hi, below=not reverse)
        if not _place(cursor, lo, hi, reverse=reverse):
            return False
        move = cursor.prev if reverse else cursor.next
        for number in range(1, skip + 1):
            if not move():
                return False
            if number % STEP_ENTRIES == 0:
                self._step()
        return True


def _end(db: str, hi: bytes | None) -> bytes | None:
    """Where a scan up to `hi` ends: ARRIVALS is only a part of LMDB's unnamed database."""
    return keys.ARRIVALS_END if hi is None and db == keys.ARRIVALS else hi


def _place(cursor: lmdb.Cursor[bytes], lo: bytes, hi: bytes | None, *, reverse: bool) -> bool:
    """Put the cursor on the first entry of the range (`reverse`: the last).

    False if there is no entry from there on in that direction.
    """
    if not reverse:
        return cursor.set_range(lo) if lo else cursor.first()
    if hi is None or not cursor.set_range(hi):
        return cursor.last()
    return cursor.prev()
