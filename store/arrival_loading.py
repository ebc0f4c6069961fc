"""Loading of the arrivals from the store: at a start, and by readers that are not part of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import lmdb

from trunkline.store import keys
from trunkline.store.arrival_chunks import Chunk, unpacked
from trunkline.store.arrivals import Arrivals
from trunkline.store.checksums import opened
from trunkline.store.codec import decode
from trunkline.store.errors import StoreDamaged, translate

if TYPE_CHECKING:
    from trunkline.store.memory_map import MemoryMap


def load_arrivals(memory_map: MemoryMap, transaction: lmdb.Transaction[bytes], window_bytes: int) -> Arrivals:
    """Read the segments and chunks that are not flushed, of the state that `transaction` reads. Raises StoreDamaged."""
    chunks: list[Chunk] = []
    size_bytes = 0
    try:
        flushed = memory_map.read(transaction, keys.META, keys.FLUSHED_KEY)
        flushed_seq = 0 if flushed is None else decode(flushed)
        arrivals = Arrivals(window_bytes, flushed_seq)
        for chunk in _stored_chunks(memory_map, transaction, keys.SEGMENTS, flushed_seq):
            if size_bytes >= window_bytes:
                arrivals.load(chunks)
                arrivals.close_window()
                chunks, size_bytes = [], 0
            chunks.append(chunk)
            size_bytes += len(chunk.value)
        for chunk in _stored_chunks(memory_map, transaction, keys.ARRIVALS, flushed_seq):
            chunks.append(chunk)
            arrivals.keep(chunk)
        arrivals.load(chunks)
        skipped = memory_map.read(transaction, keys.META, keys.SKIPPED_KEY)
        if skipped is not None:
            arrivals.skip_to(decode(skipped))
    except lmdb.Error as error:
        raise translate(error, "read") from error
    return arrivals


def _stored_chunks(
    memory_map: MemoryMap, transaction: lmdb.Transaction[bytes], db: str, flushed_seq: int
) -> Iterator[Chunk]:
    """Yield the chunks of SEGMENTS or ARRIVALS after a commit, in the order of their commits. Raises StoreDamaged."""
    if db not in memory_map.handles:
        return
    with transaction.cursor(memory_map.handles[db]) as cursor:
        first = keys.arrival_key(flushed_seq + 1)
        memory_map.verify_edge(db, cursor, first, keys.LATEST_COUNTS, below=True)
        if not cursor.set_range(first):
            return
        for key, stored in cursor.iternext():
            if db == keys.ARRIVALS and key >= keys.LATEST_COUNTS:
                memory_map.verify_outside(db, cursor, first, keys.LATEST_COUNTS)
                return
            value = opened(key, stored)
            if value is None:
                raise memory_map.damaged(db, key)
            if db == keys.ARRIVALS:
                yield Chunk(int.from_bytes(key, "big"), value)
                continue
            try:
                yield from (chunk for chunk in unpacked(value) if chunk.seq > flushed_seq)
            except ValueError as error:
                raise StoreDamaged(f"{db} {key.hex()}: {error}.") from error
