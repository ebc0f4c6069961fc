"""The stores of all partitions, as the owner of one of them sees them: it writes its own, and reads the others.

Owns which store a key is read from. Which partition has a key is said by the domain (`Placing`): one, or `EVERYWHERE`
for what each partition has a part of, as lists of applications and names that are unique in the server. Such a key is
looked for in all of them, numbers of records are added, and ranges are merged if the reader asks for it (`wide`).

The own store is of one moment, as in `Snapshot`; each other one is of the moment when the snapshot first reads it. All
that was acknowledged before is in both. What devices reported is read from the own store alone: it waits in the memory
of its owner.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Protocol

from trunkline.store import codec, keys
from trunkline.store.counters import apply_increments
from trunkline.store.directory import STORE
from trunkline.store.errors import StoreError
from trunkline.store.journal import Journal
from trunkline.store.memory_map import MemoryMap, opened_here
from trunkline.store.partitions import FOLDER, SHARED, partition_count, partition_directory
from trunkline.store.shared_numbers import SharedNumbers
from trunkline.store.snapshot import Snapshot

EVERYWHERE: Final = -1
NAMES: Final = "names"
"""The file that is locked by the process that claims a name."""
FOREIGN_MAP_BYTES: Final = 1 << 40
"""The map of a store that another process writes: only address space, and larger than it grows."""
_BY_KEY: Final = itemgetter(0)
_OF_TABLES: Final = frozenset({keys.ROWS, keys.CELLS})
"""Their keys do not say which application they belong to, so `wide` reads look for them everywhere."""


class Placing(Protocol):
    """Which partition has what: its number, or `EVERYWHERE`."""

    def of_key(self, db: str, key: bytes) -> int:
        """The one with a key of a database."""
        ...

    def of_range(self, db: str, lo: bytes, hi: bytes | None) -> int:
        """The one with the keys from `lo` to `hi`."""
        ...


class _Own:
    """Everything is in the own partition, until the domain says better."""

    def __init__(self, own: int) -> None:
        self._own = own

    def of_key(self, _db: str, _key: bytes) -> int:
        return self._own

    def of_range(self, _db: str, _lo: bytes, _hi: bytes | None) -> int:
        return self._own


class Partitions:
    """All partitions of a data directory. `own` is the number of the one that this process serves; None: of none."""

    def __init__(self, directory: Path, own: int | None) -> None:
        self.directory = directory
        self.own = own
        self.count = partition_count(directory)
        self.numbers = SharedNumbers(directory / FOLDER / SHARED, own, self.count)
        self.placing: Placing = _Own(0 if own is None else own)
        self._paths = [(partition_directory(directory, each) / STORE).resolve() for each in range(self.count)]
        self._opened: list[MemoryMap] = []
        self._names: int | None = None

    @property
    def others(self) -> tuple[int, ...]:
        """The numbers of the other partitions."""
        return tuple(number for number in range(self.count) if number != self.own)

    def map_of(self, number: int) -> MemoryMap:
        """The store of a partition, for reading. Raises StoreError."""
        path = self._paths[number]
        found = opened_here(path)
        if found is None:
            found = MemoryMap(path, size_bytes=FOREIGN_MAP_BYTES, size_max_bytes=None, read_only=True)
            self._opened.append(found)
        return found

    def snapshot_of(self, number: int) -> Snapshot:
        """The committed state of a partition at this moment. Raises StoreError."""
        return Snapshot(self.map_of(number))

    def with_others(self, db: str, key: bytes, value: bytes | None) -> bytes | None:
        """What is at a key that may be in any partition, of which the own one has `value`: numbers are added."""
        for number in self.others:
            with self.snapshot_of(number) as snapshot:
                value = _together(db, value, snapshot.get(db, key))
        return value

    # Names that are unique in the server.

    def hold_names(self) -> bool:
        """Keep other processes from claiming names until the next commit; False if one of them does that just now.

        Whoever claims a name looks first whether it is free, and a claim can be seen by others only when it is on disk.
        """
        if self._names is not None:
            return True
        names = os.open(self.directory / FOLDER / NAMES, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(names, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(names)
            return False
        self._names = names
        return True

    def release_names(self) -> None:
        """Let others claim names. No error if they may already."""
        if self._names is not None:
            names, self._names = self._names, None
            os.close(names)

    def close(self) -> None:
        """Close the stores of the other partitions, unless they are still read."""
        for memory_map in self._opened:
            if opened_here(memory_map.path) is memory_map:
                memory_map.close(0)


class PartitionedSnapshot(Snapshot):
    """A read transaction on the own store, and on each other one that has what is read."""

    __slots__ = ("_others", "_partitions", "_steps", "_wide")

    def __init__(
        self,
        memory_map: MemoryMap,
        partitions: Partitions,
        *,
        wide: bool,
        wait: bool = False,
        on_step: Callable[[], None] | None = None,
        on_large: Callable[[int], None] | None = None,
    ) -> None:
        """`wide`: ranges of what is everywhere are those of all partitions, merged in the order of their keys."""
        self._others: dict[int, Snapshot] = {}
        self._partitions = partitions
        self._wide = wide
        self._steps: dict[str, Any] = {"on_step": on_step, "on_large": on_large}
        super().__init__(memory_map, wait=wait, on_step=on_step, on_large=on_large)

    def _of(self, number: int) -> Snapshot:
        found = self._others.get(number)
        if found is None:
            found = self._others[number] = Snapshot(self._partitions.map_of(number), **self._steps)
        return found

    def get(self, db: str, key: bytes) -> bytes | None:
        partitions = self._partitions
        place = EVERYWHERE if self._wide and db in _OF_TABLES else partitions.placing.of_key(db, key)
        if place == partitions.own:
            return super().get(db, key)
        if place != EVERYWHERE:
            return self._of(place).get(db, key)
        value = super().get(db, key)
        if db == keys.COUNTS and not self._wide:
            return value
        for number in partitions.others:
            if value is None or db == keys.COUNTS:
                value = _together(db, value, self._of(number).get(db, key))
        return value

    def range(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        parts = self._parts(db, lo, hi)
        if len(parts) == 1:
            if parts[0] is self:
                return super().range(db, lo, hi, reverse=reverse, skip=skip)
            return parts[0].range(db, lo, hi, reverse=reverse, skip=skip)
        own = super().range(db, lo, hi, reverse=reverse)
        others = [part.range(db, lo, hi, reverse=reverse) for part in parts[1:]]
        return islice(merge(_kept(own), *map(_kept, others), key=_BY_KEY, reverse=reverse), skip, None)

    def keys(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        parts = self._parts(db, lo, hi)
        if len(parts) == 1:
            if parts[0] is self:
                return super().keys(db, lo, hi, reverse=reverse, skip=skip)
            return parts[0].keys(db, lo, hi, reverse=reverse, skip=skip)
        return (key for key, _ in self.range(db, lo, hi, reverse=reverse, skip=skip))

    def count(self, db: str, lo: bytes, hi: bytes | None) -> int:
        parts = self._parts(db, lo, hi)
        return sum(part.count(db, lo, hi) for part in parts if part is not self) + (
            super().count(db, lo, hi) if self in parts else 0
        )

    def _parts(self, db: str, lo: bytes, hi: bytes | None) -> list[Snapshot]:
        """The snapshots that have the entries of a range; the own one first."""
        partitions = self._partitions
        is_of_table = self._wide and db in _OF_TABLES
        place = EVERYWHERE if is_of_table else partitions.placing.of_range(db, lo, hi)
        if place == partitions.own or (place == EVERYWHERE and not self._wide):
            return [self]
        if place != EVERYWHERE:
            return [self._of(place)]
        return [self, *(self._of(number) for number in partitions.others)]

    def close(self) -> None:
        others, self._others = self._others, {}
        for snapshot in others.values():
            snapshot.close()
        super().close()


def _together(db: str, value: bytes | None, more: bytes | None) -> bytes | None:
    """What two partitions have at a key: counters are added, anything else only one of them has."""
    if value is None or more is None:
        return more if value is None else value
    return apply_increments(value, codec.decode(more)) if db == keys.COUNTS else value


def _kept(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The entries as bytes that stay when their cursor moves on."""
    return ((bytes(key), bytes(value)) for key, value in entries)


class PartitionedJournal(Journal):
    """The journal of the own partition. What another one has is read as it is on disk."""

    def __init__(self, *arguments: Any, partitions: Partitions, **options: Any) -> None:
        self._partitions = partitions
        self._own_changes = 0
        super().__init__(*arguments, **options)

    @property
    def record_changes(self) -> int:
        """Rises whenever a record of any partition may have changed."""
        return self._own_changes + self._partitions.numbers.changes()

    @record_changes.setter
    def record_changes(self, number: int) -> None:
        """Count a change of this partition."""
        self._own_changes += bool(number != self.record_changes)

    def get(self, db: str, key: bytes) -> bytes | None:
        partitions = self._partitions
        place = partitions.placing.of_key(db, key)
        if place not in (partitions.own, EVERYWHERE):
            with partitions.snapshot_of(place) as snapshot:
                return snapshot.get(db, key)
        value = super().get(db, key)
        if place == EVERYWHERE and (value is None or db == keys.COUNTS):
            return partitions.with_others(db, key, value)
        return value

    def range(self, db: str, lo: bytes, hi: bytes) -> list[tuple[bytes, bytes]]:
        partitions = self._partitions
        place = partitions.placing.of_range(db, lo, hi)
        if place in (partitions.own, EVERYWHERE):
            return super().range(db, lo, hi)
        with partitions.snapshot_of(place) as snapshot:
            return [(bytes(key), bytes(value)) for key, value in snapshot.range(db, lo, hi)]

    def _finish(self, error: StoreError | None) -> None:
        if error is None and keys.RECORDS in self._overlay.writes:
            self._partitions.numbers.note_change()  # before whoever waits for the commit hears of it
        self._partitions.release_names()
        super()._finish(error)
