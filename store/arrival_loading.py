"""Loading of the arrivals from the store: at a start, and by readers that are not part of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import lmdb

from trunkline.store import keys
from trunkline.store.arrival_chunks import Chunk, unpacked
from trunkline.store.arrivals import Arrivals
from trunkline.store.checksums import opened
from trunkline.store.errors import StoreDamaged, translate

if TYPE_CHECKING:
    from trunkline.store.memory_map import MemoryMap


def load_arrivals(memory_map: MemoryMap, transaction: lmdb.Transaction[bytes], window_bytes: int) -> Arrivals:
    """Read all segments and chunks of the state that `transaction` reads. Raises StoreDamaged."""
    arrivals = Arrivals(window_bytes)
    chunks: list[Chunk] = []
    size_bytes = 0
    try:
        for chunk in _stored_chunks(memory_map, transaction, keys.SEGMENTS):
            if size_bytes >= window_bytes:
                arrivals.load(chunks)
                arrivals.close_window()
                chunks, size_bytes = [], 0
            chunks.append(chunk)
            size_bytes += len(chunk.value)
        for chunk in _stored_chunks(memory_map, transaction, keys.ARRIVALS):
            chunks.append(chunk)
            arrivals.keep(chunk)
        arrivals.load(chunks)
    except lmdb.Error as error:
        raise translate(error, "read") from error
    return arrivals


def _stored_chunks(memory_map: MemoryMap, transaction: lmdb.Transaction[bytes], db: str) -> Iterator[Chunk]:
    """Yield the chunks of SEGMENTS or ARRIVALS in the order of their commits. Raises StoreDamaged."""
    if db not in memory_map.handles:
        return
    with transaction.cursor(memory_map.handles[db]) as cursor:
        for key, stored in cursor.iternext():
            if db == keys.ARRIVALS and key >= keys.LATEST_COUNTS:
                return
            value = opened(key, stored)
            if value is None:
                raise memory_map.damaged(db, key)
            if db == keys.ARRIVALS:
                yield Chunk(int.from_bytes(key, "big"), value)
                continue
            try:
                yield from unpacked(value)
            except ValueError as error:
                raise StoreDamaged(f"{db} {key.hex()}: {error}.") from error
