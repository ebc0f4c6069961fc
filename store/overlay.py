"""The overlay: the merged writes of all batches that wait for the same commit.

Owns how batches are merged, how pending writes replace stored values in reads, and how they are written into a
transaction. Does not own when that happens (`journal.py`).

Each database has one dict of key to value, so a batch is merged by a `dict.update` in C, ten reports of one
device become one put, and the sorted items go to LMDB in one `putmulti` that walks the tree from left to
right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import lmdb

from trunkline.store import codec, keys
from trunkline.store.arrival_chunks import Chunk, padded
from trunkline.store.batch import Batch
from trunkline.store.checksums import opened, sealed, sealed_items
from trunkline.store.counters import apply_increments, merge_increments
from trunkline.store.memory_map import MemoryMap
from trunkline.store.report_items import Reports

if TYPE_CHECKING:
    from lmdb import _Database as Handle

_BY_KEY: Final = itemgetter(0)


class Written(NamedTuple):
    """The numbers of keys that a commit put and deleted, and the bytes of the keys and values it put."""

    puts: int
    deletes: int
    size_bytes: int


class Overlay:
    """Merged batches. `size_bytes` is the memory they use, `batches` their number."""

    __slots__ = (
        "batches",
        "deletes",
        "increments",
        "moves_counts",
        "removals",
        "reports",
        "size_bytes",
        "writes",
    )

    def __init__(self) -> None:
        self.reports: dict[bytes, Reports] = {}
        self.moves_counts = False
        self.removals = 0
        self.writes: dict[str, dict[bytes, bytes | None]] = {}
        self.increments: dict[str, dict[bytes, dict[str, int]]] = {}
        self.deletes = False
        self.size_bytes = 0
        self.batches = 0

    def merge(self, batch: Batch) -> None:
        """Apply `batch` after the batches merged so far. `batch` is not changed."""
        all_increments = self.increments
        for db, writes in batch.writes.items():
            pending = self.writes.get(db)
            if pending is None:
                self.writes[db] = writes.copy()
            else:
                pending.update(writes)
            increments = all_increments.get(db)
            if increments and not increments.keys().isdisjoint(writes):
                for key in increments.keys() & writes.keys():
                    del increments[key]  # a put or delete replaces earlier increments
        for db, added in batch.increments.items():
            increments = all_increments.get(db)
            if increments is None:
                increments = all_increments[db] = {}
            for key, counts in added.items():
                merge_increments(increments, key, counts)
        reports = self.reports
        for device, more in batch.reports.items():
            waiting = reports.get(device)
            if waiting is None:
                waiting = reports[device] = Reports()
            waiting.extend(more)
        if batch.deletes:
            self.deletes = True
            self.removals += batch.removals
        if batch.moves_counts:
            self.moves_counts = True
        self.size_bytes += batch.size_bytes
        self.batches += 1

    def get(
        self,
        db: str,
        key: bytes,
        transaction: lmdb.Transaction[bytes],
        memory_map: MemoryMap,
        earlier: Sequence[Overlay] = (),
    ) -> bytes | None:
        """The value at `key` as if the overlay had been written into the data that `transaction` reads, behind those
        that are `earlier`.

        Raises StoreDamaged if the stored value is not what was written.
        """
        writes = self.writes.get(db)
        if writes is not None and key in writes:
            raw = writes[key]
        elif earlier:
            raw = earlier[-1].get(db, key, transaction, memory_map, earlier[:-1])
        else:
            raw = memory_map.read(transaction, db, key)
        increments = self.increments.get(db)
        if increments and key in increments:
            return apply_increments(raw, increments[key])
        return raw

    def range(
        self,
        db: str,
        lo: bytes,
        hi: bytes,
        transaction: lmdb.Transaction[bytes],
        memory_map: MemoryMap,
        earlier: Sequence[Overlay] = (),
    ) -> list[tuple[bytes, bytes]]:
        """The entries with lo <= key < hi, in order, each with its value as `get` returns it."""
        keys = {
            key
            for overlay in (*earlier, self)
            for pending in (overlay.writes, overlay.increments)
            for key in pending.get(db, ())
            if lo <= key < hi
        }
        with transaction.cursor(memory_map.handles[db]) as cursor:
            memory_map.verify_edge(db, cursor, lo, hi, below=True)
            if cursor.set_range(lo):
                for key in cursor.iternext(values=False):
                    if key >= hi:
                        memory_map.verify_outside(db, cursor, lo, hi)
                        break
                    keys.add(key)
        values = ((key, self.get(db, key, transaction, memory_map, earlier)) for key in sorted(keys))
        return [(key, value) for key, value in values if value is not None]

    def write(
        self,
        transaction: lmdb.Transaction[bytes],
        handles: Mapping[str, Handle],
        chunk: Chunk | None,
        mark: bytes | None = None,
    ) -> Written:
        """Write everything into `transaction`, the reports as `chunk`, and the mark of a log.

        The overlay is not changed, so it can be written again.
        """
        puts = size = 0
        deletes = self.removals
        if chunk is not None:
            key = keys.arrival_key(chunk.seq)
            transaction.put(key, sealed(key, padded(chunk.value)), db=handles[keys.ARRIVALS])
            puts, size = 1, len(chunk.value)
        for db in self.writes | self.increments:  # in an order that is the same in each process
            handle = handles[db]
            writes = self.writes.get(db, {})
            increments = self.increments.get(db)
            if increments:
                writes = writes.copy()
                latest: dict[bytes, bytes | None] = {}
                for key, counts in increments.items():
                    into, kept = (
                        (latest, keys.latest_counts_key(key))
                        if _is_latest(db, key, writes)
                        else (writes, key)
                    )
                    of = handles[keys.ARRIVALS] if into is latest else handle
                    raw = into[kept] if kept in into else _stored_counters(transaction, of, kept)
                    into[kept] = apply_increments(raw, counts)
                for key, stored in sealed_items(latest.items()):
                    transaction.put(key, stored, db=handles[keys.ARRIVALS])
                    puts, size = puts + 1, size + len(key) + len(stored)
            ordered = sorted(writes.items(), key=_BY_KEY)
            if self.deletes:
                for key, value in ordered:
                    if value is None:
                        transaction.delete(key, db=handle)
                        deletes += 1
                        if db == keys.COUNTS and len(key) == keys.HOUR_KEY_BYTES:
                            transaction.delete(keys.latest_counts_key(key), db=handles[keys.ARRIVALS])
            items = sealed_items(ordered)
            if items:
                with transaction.cursor(handle) as cursor:
                    cursor.putmulti(items)
                puts += len(items)
                size += sum([len(key) + len(value) for key, value in items])
        if self.moves_counts:
            _move_counts(transaction, handles)
        if mark is not None:
            transaction.put(keys.LOG_KEY, sealed(keys.LOG_KEY, mark), db=handles[keys.META])
        return Written(puts, deletes, size)


def _is_latest(db: str, key: bytes, writes: Mapping[bytes, bytes | None]) -> bool:
    """Whether increments are kept in ARRIVALS first: those of the payload counts of applications."""
    return db == keys.COUNTS and len(key) == keys.HOUR_KEY_BYTES and key not in writes


def _move_counts(transaction: lmdb.Transaction[bytes], handles: Mapping[str, Handle]) -> None:
    """Add the latest payload counts of applications to those in COUNTS."""
    with transaction.cursor(handles[keys.ARRIVALS]) as cursor:
        found = cursor.set_range(keys.LATEST_COUNTS)
        while found and cursor.key().startswith(keys.LATEST_COUNTS):
            latest, stored = cursor.item()
            key, value = latest[len(keys.LATEST_COUNTS) :], opened(latest, stored)
            counts = {} if value is None else codec.decode(value)
            before = _stored_counters(transaction, handles[keys.COUNTS], key)
            transaction.put(key, sealed(key, apply_increments(before, counts)), db=handles[keys.COUNTS])
            found = cursor.delete()


def _stored_counters(transaction: lmdb.Transaction[bytes], handle: Handle, key: bytes) -> bytes | None:
    """The stored counters without their checksum. Damaged ones are empty bytes, so they start again from zero."""
    stored = transaction.get(key, db=handle)
    return None if stored is None else opened(key, stored) or b""
