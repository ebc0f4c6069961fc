"""What the stores of a data directory hold, read from the first key to the last before applications are divided anew.

Owns what is counted: the bytes of each application, and a fingerprint of all entries with which the new stores are
compared. The fingerprint does not depend on which store has an entry, nor on the numbers that runs and triggers get
when stores become one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.key_owners import KeyOwners
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import StoreDamaged
from trunkline.store.offline_store import SPECIAL, OfflineStore, verified_entries

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

TOTAL_KEY: Final = keys.total_key(APPLICATION.name, ROOT)
"""The key in COUNTS of the number of applications: each store counts its own."""
_SEVERAL: Final = tuple(
    keys.TOTAL_PREFIX + keys.kind_prefix(kind.name)
    for kind in KINDS.values()
    if kind is APPLICATION or kind.home == "root"
)
"""What the keys of numbers begin with that several stores may have: each has written entries of an audit log."""
_HASH_BYTES: Final = 16
_NUMBER_BYTES: Final = 8

Told = Callable[[int], None]
"""Is told how many bytes were read or written."""


class Fingerprint:
    """The number of entries of each database, and a sum of the hashes of all of them, in any order."""

    def __init__(self) -> None:
        self.entries: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()

    def add(self, db: str, key: bytes, value: bytes) -> None:
        """Count an entry."""
        if db == keys.TRIGGERS:
            key = key[_NUMBER_BYTES:]
        text = len(key).to_bytes(2, "big") + key + value
        self.entries[db] += 1
        self.sums[db] += int.from_bytes(hashlib.blake2b(text, digest_size=_HASH_BYTES).digest(), "big")

    def differences(self, other: Fingerprint) -> list[str]:
        """The databases that are not the same in the other one."""
        return [
            db
            for db in keys.DATABASES
            if (self.entries[db], self.sums[db]) != (other.entries[db], other.sums[db])
        ]


def entries(snapshot: Snapshot, db: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield what a database holds, without what a store says of itself. Raises StoreDamaged."""
    for key, value in verified_entries(snapshot, db):
        if not (db == keys.META and key in SPECIAL) and not (db == keys.COUNTS and key.startswith(_SEVERAL)):
            yield key, value


def totals(snapshot: Snapshot) -> dict[bytes, Counter[str]]:
    """The numbers of records that several stores may have. They are added."""
    return {
        bytes(key): Counter(decode(value))
        for prefix in _SEVERAL
        for key, value in snapshot.range(keys.COUNTS, prefix, keys.prefix_end(prefix))
    }


def added(*several: Mapping[bytes, Counter[str]]) -> dict[bytes, Counter[str]]:
    """The sums of numbers, without those that are zero."""
    sums: dict[bytes, Counter[str]] = {}
    for each in several:
        for key, numbers in each.items():
            sums.setdefault(key, Counter()).update(numbers)
    return {key: +numbers for key, numbers in sums.items() if +numbers}


class Source:
    """A store that is divided: its number, and the numbers that its runs get, from 1 in the order of their age.

    The oldest runs of all stores become the oldest run of a new store, and so on: each device is in one store only.
    """

    def __init__(self, number: int, store: OfflineStore) -> None:
        self.number = number
        self.store = store
        self._runs = {
            run.number.to_bytes(4, "big"): at.to_bytes(4, "big") for at, run in enumerate(store.runs(), 1)
        }

    def entries(self, snapshot: Snapshot, db: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield what a database holds, in the order of the keys, with the new numbers of runs. Raises StoreDamaged."""
        for key, value in entries(snapshot, db):
            if db != keys.RUNS:
                yield key, value
            elif key[:4] in self._runs:
                yield self._runs[key[:4]] + key[4:], value
            else:
                raise StoreDamaged(f"{db} {key.hex()} is in a run that is not listed.")


class Survey:
    """What the sources hold. `read` each database of each of them."""

    def __init__(self, sources: Sequence[Source], told: Told) -> None:
        self.owners = KeyOwners()
        self.sizes: Counter[bytes] = Counter()
        """The bytes of each application."""
        self.rest: Counter[int] = Counter()
        """By number of a partition: the bytes of what belongs to no application that may move, and stays in it."""
        self.fingerprint = Fingerprint()
        self.totals: dict[bytes, Counter[str]] = {}
        """What all sources have counted of what several of them have."""
        for source in sources:
            with source.store.snapshot() as snapshot:
                self.owners.learn(source.number, snapshot)
                self.totals = added(self.totals, totals(snapshot))
        for source in sources:
            with source.store.snapshot() as snapshot:
                for db in keys.DATABASES:
                    self._read(source, snapshot, db, told)

    def _read(self, source: Source, snapshot: Snapshot, db: str, told: Told) -> None:
        for key, value in source.entries(snapshot, db):
            if db == keys.SEGMENTS or (db == keys.ARRIVALS and not key.startswith(keys.LATEST_COUNTS)):
                raise StoreDamaged(f"{db} {key.hex()}: what devices reported is not in the runs.")
            size = len(key) + len(value)
            application = self.owners.of(db, key, value)
            if application is None or application in self.owners.fixed:
                self.rest[source.number] += size
            elif application == ROOT:
                self.rest[0] += size
            else:
                self.sizes[application] += size
            self.fingerprint.add(db, key, value)
            told(size)
