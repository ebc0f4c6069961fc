"""A snapshot: the committed state of the store at one moment, for reading.

Owns point reads and range scans over one LMDB read transaction. A snapshot sees every commit that was complete
when it was opened, and nothing later. It does not see what waits in the journal (`Journal.get` does).

A snapshot prevents old pages from being reused, so it should be short; one in the event loop must not be
held over an `await`. It may move between threads, but only one thread at a time may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final
from zlib import crc32

import lmdb

from trunkline.store.checksums import BYTES, RESIDUE
from trunkline.store.errors import translate
from trunkline.store.keys import CELLS, INDEXES, UNIQUE
from trunkline.store.memory_map import MemoryMap

STEP_ENTRIES = 256
"""After this many entries, a scan in a worker thread checks whether it was cancelled."""


_SHORT: Final = frozenset({INDEXES, UNIQUE, CELLS})


class Snapshot:
    """A read transaction. Use it as a context manager.

    `on_step` is called after every STEP_ENTRIES entries of a scan and may raise to end it.
    """

    __slots__ = ("_map", "_on_step", "_transaction")

    def __init__(
        self, memory_map: MemoryMap, *, wait: bool = False, on_step: Callable[[], None] | None = None
    ) -> None:
        self._map = memory_map
        self._on_step = on_step
        self._transaction: lmdb.Transaction[bytes] | None = memory_map.begin_read(wait=wait)

    def get(self, db: str, key: bytes) -> bytes | None:
        """Return the value at `key`, None if there is none. Raises StoreDamaged if it is not what was written."""
        try:
            return self._map.read(self._open(), db, key)
        except lmdb.Error as error:
            raise translate(error, "read") from error

    def range(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value for lo <= key < hi in the order of the keys, without the first `skip` entries.

        `hi` None: to the end of the database. `reverse`: from the last key to the first. Raises StoreDamaged at a
        value that is not what was written.
        """
        try:
            with self._open().cursor(self._map.handles[db]) as cursor:
                if not _place(cursor, lo, hi, reverse=reverse) or not self._skip(
                    cursor, skip, reverse=reverse
                ):
                    return
                left = STEP_ENTRIES
                for key, value in cursor.iterprev() if reverse else cursor.iternext():
                    if key < lo if reverse else hi is not None and key >= hi:
                        return
                    if crc32(value, crc32(key)) != RESIDUE:
                        raise self._map.damaged(db, key)
                    yield key, value[:-BYTES]
                    left -= 1
                    if not left:
                        left = STEP_ENTRIES
                        self._step()
        except lmdb.Error as error:
            raise translate(error, "read") from error

    def stored(self, db: str, lo: bytes, hi: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Like `range`, but each value still has its checksum, which is not verified."""
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
        if db in _SHORT:
            for key, _ in self.range(db, lo, hi, reverse=reverse, skip=skip):
                yield key
        else:
            yield from self._bare_keys(db, lo, hi, reverse=reverse, skip=skip)

    def _bare_keys(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        try:
            with self._open().cursor(self._map.handles[db]) as cursor:
                if not _place(cursor, lo, hi, reverse=reverse) or not self._skip(
                    cursor, skip, reverse=reverse
                ):
                    return
                left = STEP_ENTRIES
                for key in cursor.iterprev(values=False) if reverse else cursor.iternext(values=False):
                    if key < lo if reverse else hi is not None and key >= hi:
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
        if not lo and hi is None:
            try:
                return self._open().stat(self._map.handles[db])["entries"]
            except lmdb.Error as error:
                raise translate(error, "read") from error
        return sum(1 for _ in self._bare_keys(db, lo, hi))

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

    def _skip(self, cursor: lmdb.Cursor[bytes], entries: int, *, reverse: bool) -> bool:
        """Advance the cursor by this many entries; False if the database ends first."""
        move = cursor.prev if reverse else cursor.next
        for number in range(1, entries + 1):
            if not move():
                return False
            if number % STEP_ENTRIES == 0:
                self._step()
        return True


def _place(cursor: lmdb.Cursor[bytes], lo: bytes, hi: bytes | None, *, reverse: bool) -> bool:
    """Put the cursor on the first entry of the range (`reverse`: the last).

    False if there is no entry from there on in that direction.
    """
    if not reverse:
        return cursor.set_range(lo) if lo else cursor.first()
    if hi is None or not cursor.set_range(hi):
        return cursor.last()
    return cursor.prev()
