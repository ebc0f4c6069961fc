"""The overlay: the outcome of all batches that wait for the same commit.

Owns how batches merge, how pending writes shadow stored values, and how they are written into a
transaction. Does not own when that happens (`journal.py`).

Per database it is one dict of key to value, so merging a batch is a `dict.update` in C, ten reports of one
device become one put, and the sorted items go to LMDB in one `putmulti` that walks the tree from left to
right.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import lmdb

from trunkline.store.batch import Batch
from trunkline.store.sums import merge_sums, stored_sums

if TYPE_CHECKING:
    from lmdb import _Database as Handle

_BY_KEY: Final = itemgetter(0)


class Written(NamedTuple):
    """How many keys a commit put and deleted, and the bytes of the keys and values that it put."""

    puts: int
    deletes: int
    size_bytes: int


class Overlay:
    """Merged batches. `size_bytes` is what they cost in memory, `batches` how many they are."""

    __slots__ = ("batches", "deletes", "size_bytes", "sums", "writes")

    def __init__(self) -> None:
        self.writes: dict[str, dict[bytes, bytes | None]] = {}
        self.sums: dict[str, dict[bytes, dict[str, int]]] = {}
        self.deletes = False
        self.size_bytes = 0
        self.batches = 0

    def merge(self, batch: Batch) -> None:
        """Let `batch` take effect after all that is here. It is only read."""
        all_sums = self.sums
        for db, writes in batch.writes.items():
            pending = self.writes.get(db)
            if pending is None:
                self.writes[db] = writes.copy()
            else:
                pending.update(writes)
            sums = all_sums.get(db)
            if sums and not sums.keys().isdisjoint(writes):
                for key in sums.keys() & writes.keys():
                    del sums[key]  # what is put or deleted now no longer counts on from before
        for db, added in batch.sums.items():
            sums = all_sums.get(db)
            if sums is None:
                sums = all_sums[db] = {}
            for key, counts in added.items():
                merge_sums(sums, key, counts)
        if batch.deletes:
            self.deletes = True
        self.size_bytes += batch.size_bytes
        self.batches += 1

    def get(self, db: str, key: bytes, transaction: lmdb.Transaction[bytes], handle: Handle) -> bytes | None:
        """The value at `key` as it would be if the overlay were written on top of what `transaction` sees."""
        writes = self.writes.get(db)
        raw = writes[key] if writes is not None and key in writes else transaction.get(key, db=handle)
        sums = self.sums.get(db)
        if sums and key in sums:
            return stored_sums(raw, sums[key])
        return raw

    def range(
        self, db: str, lo: bytes, hi: bytes, transaction: lmdb.Transaction[bytes], handle: Handle
    ) -> list[tuple[bytes, bytes]]:
        """The entries with lo <= key < hi as they would be, in order. See `get`."""
        keys = {key for pending in (self.writes, self.sums) for key in pending.get(db, ()) if lo <= key < hi}
        with transaction.cursor(handle) as cursor:
            if cursor.set_range(lo):
                for key in cursor.iternext(values=False):
                    if key >= hi:
                        break
                    keys.add(key)
        values = ((key, self.get(db, key, transaction, handle)) for key in sorted(keys))
        return [(key, value) for key, value in values if value is not None]

    def write(self, transaction: lmdb.Transaction[bytes], handles: Mapping[str, Handle]) -> Written:
        """Write everything into `transaction`. The overlay stays as it is, so it can be written again."""
        puts = deletes = size = 0
        for db in self.writes.keys() | self.sums.keys():
            handle = handles[db]
            writes = self.writes.get(db, {})
            sums = self.sums.get(db)
            if sums:
                writes = writes.copy()
                for key, counts in sums.items():
                    raw = writes[key] if key in writes else transaction.get(key, db=handle)
                    writes[key] = stored_sums(raw, counts)
            items: list[Any] = sorted(writes.items(), key=_BY_KEY)
            if self.deletes:
                for key, value in items:
                    if value is None:
                        transaction.delete(key, db=handle)
                        deletes += 1
                items = [item for item in items if item[1] is not None]
            if items:
                with transaction.cursor(handle) as cursor:
                    cursor.putmulti(items)
                puts += len(items)
                size += sum([len(key) + len(value) for key, value in items])
        return Written(puts, deletes, size)
