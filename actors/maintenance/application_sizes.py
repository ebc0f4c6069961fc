"""How many bytes each application has in a store, which a server may be using.

Owns that they are added up by application. What devices reported and was not flushed yet is left out; it is little.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from trunkline.actors.maintenance.key_owners import KeyOwners
from trunkline.store import keys
from trunkline.store.lengths import lengths
from trunkline.store.snapshot import Snapshot
from trunkline.store.store_files import opened_read_only


class Sizes(NamedTuple):
    """The bytes of each application of a store. Those of `fixed` are being made or deleted, and cannot be moved."""

    applications: dict[bytes, int]
    fixed: set[bytes]


def sizes_in(place: Path, number: int) -> Sizes:
    """Those of the store of a partition, in its directory. Raises StoreError."""
    owners, sizes = KeyOwners(), Counter[bytes]()
    with opened_read_only(place) as memory_map:
        with Snapshot(memory_map) as snapshot:
            owners.learn(number, snapshot)
        for db in keys.DATABASES:
            # Only in UNIQUE the value says whose it is; for all others no page of values is read.
            head_bytes = keys.ID_BYTES if db == keys.UNIQUE else 0
            for key, head, size_bytes in lengths(memory_map, db, head_bytes):
                application = owners.of(db, key, head)
                if application in owners.applications:
                    sizes[application] += size_bytes
    return Sizes({id: sizes[id] for id in owners.applications}, owners.fixed)
