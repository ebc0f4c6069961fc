"""The lengths of the entries of a store, without reading the values: LMDB's index has them.

A value longer than half a page lies on pages of its own, which are not touched: a store of gigabytes takes a second.
"""

from __future__ import annotations

from collections.abc import Iterator

import lmdb

from trunkline.store.errors import translate
from trunkline.store.memory_map import MemoryMap


def lengths(memory_map: MemoryMap, db: str, head_bytes: int) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield the key of each entry of a database, the first bytes of its value, and the length of both together."""
    try:
        with (
            memory_map.env.begin(buffers=True) as transaction,
            transaction.cursor(memory_map.handles[db]) as cursor,
        ):
            for key, value in cursor.iternext():
                yield bytes(key), bytes(value[:head_bytes]), len(key) + len(value)
    except lmdb.Error as error:
        raise translate(error, "read") from error
