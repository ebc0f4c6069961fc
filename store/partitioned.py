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
from contextlib import contextmanager
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import trio

from trunkline.store import codec, keys
from trunkline.store.arrived_copies import arrived, belongs, is_given
from trunkline.store.commit_group import Group
from trunkline.store.counters import apply_increments
from trunkline.store.directory import DATA_FILE, STORE
from trunkline.store.errors import CopyOutdated
from trunkline.store.freshness import Freshness
from trunkline.store.memory_map import MemoryMap, opened_here
from trunkline.store.partitions import FOLDER, SHARED, partition_count, partition_directory
from trunkline.store.placing import EVERYWHERE, OwnPlacing, Placing
from trunkline.store.shared_numbers import SharedNumbers
from trunkline.store.snapshot import Snapshot

NAMES: Final = "names"
"""The file that is locked by the process that claims a name."""
SETTLE: Final = "settle"
FOREIGN_MAP_BYTES: Final = 1 << 40
"""The map of a store that another process writes: only address space, and larger than it grows."""
_BY_KEY: Final = itemgetter(0)


class MovedMeanwhile(Exception):
    """An application was moved while a snapshot of several partitions was opened, which may show it twice or not at
    all. Whoever reads begins again with another one (`Store.look`)."""


class Partitions:
    """All partitions of a data directory. `own` is the number of the one that this process serves; None: of none."""

    def __init__(self, directory: Path, own: int | None) -> None:
        self.directory = directory
        self.own = own
        self.count = partition_count(directory)
        self.numbers = SharedNumbers(directory / FOLDER / SHARED, own, self.count)
        self.placing: Placing = OwnPlacing(0 if own is None else own)
        self.arriving: set[bytes] = set()
        """Applications that are being copied into the own partition."""
        self.freshness: Freshness | None = None
        """Until when the stores of this machine are fresh, if other machines may own some."""
        self._paths = [(partition_directory(directory, each) / STORE).resolve() for each in range(self.count)]
        self._opened: list[tuple[MemoryMap, int]] = []
        """The stores that were opened here, and what told their files from others."""
        self._names: int | None = None
        self._named_by: Group | None = None
        self.may_name = False
        """Other machines may own some partitions, and this process may claim names (`actors/core/records/names.py`)."""
        self._is_naming = False
        self._named = trio.Event()
        """Set, and replaced, when names were committed."""

    @property
    def others(self) -> tuple[int, ...]:
        """The numbers of the other partitions."""
        return tuple(number for number in range(self.count) if number != self.own)

    def outdated(self, number: int) -> CopyOutdated:
        """What is raised where a partition shall be read whose copy may be old."""
        return CopyOutdated(f"The copy of partition {number} may be old, as its owner is not heard.")

    @property
    def are_fresh(self) -> bool:
        """Whether all partitions can be read here."""
        return self.freshness is None or self.freshness.are_fresh_but(self.own)

    def use_freshness(self, freshness: Freshness) -> None:
        """From now on other machines may own some partitions."""
        self.freshness = freshness
        self.numbers.use_freshness(freshness)

    def map_of(self, number: int) -> MemoryMap:
        """The store of a partition, for reading from now on.

        Raises StoreError, CopyOutdated if this machine may lack what the owner of the partition has acknowledged.
        """
        if self.freshness is not None and number != self.own and not self.freshness.is_fresh(number):
            raise self.outdated(number)
        path = self._paths[number]
        found = opened_here(path)
        if found is None:
            file = _number_of_file(path)
            found = MemoryMap(path, size_bytes=FOREIGN_MAP_BYTES, size_max_bytes=None, read_only=True)
            self._opened.append((found, file))
        return found

    def close_replaced(self) -> bool:
        """Close each store in whose place there is a copy now (`store_copy.py`): the next read opens that. False if
        there is none. Nobody reads meanwhile."""
        replaced = [each for each in self._opened if _number_of_file(each[0].path) != each[1]]
        for each in replaced:
            each[0].close(0)
            self._opened.remove(each)
        return bool(replaced)

    def snapshot_of(self, number: int) -> Snapshot:
        """The committed state of a partition at this moment. Raises StoreError."""
        return Snapshot(self.map_of(number))

    def with_others(self, db: str, key: bytes, value: bytes | None) -> bytes | None:
        """What is at a key that may be in any partition, of which the own one has `value`: numbers are added."""
        for number in self.others:
            with self.snapshot_of(number) as snapshot:
                found = self.without_void(number, snapshot, db, snapshot.get(db, key))
                value = _together(db, value, found)
        return value

    def own_value(self, db: str, value: bytes | None) -> bytes | None:
        """A value of the own partition that any may have; None for a unique text of what does not belong here."""
        if not self.arriving or self.own is None or db != keys.UNIQUE:
            return value
        with self.snapshot_of(self.own) as snapshot:
            return self.without_void(self.own, snapshot, db, value)

    def without_void(self, number: int, part: Snapshot, db: str, value: bytes | None) -> bytes | None:
        """A value of a partition; None for a unique text of an application that does not belong there."""
        if value is None or db != keys.UNIQUE:
            return value
        for id, source in arrived(part):
            if self.placing.holds(part, id, value):
                record = self.placing.record_of(id)
                return value if belongs(self.snapshot_of, id, record, source, number) else None
        return value

    # Names that are unique in the server.

    def hold_names(self, group: Group | None = None) -> bool:
        """Keep other processes from claiming names until `group` is committed; False if one of them does so just now.

        Whoever claims a name looks first whether it is free, and a claim can be seen by others only when it is on disk.
        Where other machines may own some partitions, it is False unless this process may (`may_name`).
        """
        if self.freshness is not None:
            if self.may_name:
                self._named_by, self._is_naming = group, True
            return self.may_name
        if self._names is not None:
            self._named_by = group
            return True
        names = os.open(self.directory / FOLDER / NAMES, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(names, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(names)
            return False
        self._names, self._named_by = names, group
        return True

    def release_names(self, group: Group | None = None) -> None:
        """Let others claim names, unless those are held for another group. No error if they may already."""
        if self.freshness is not None and (group is None or self._named_by in (None, group)):
            self._is_naming, self._named_by = False, None
            named, self._named = self._named, trio.Event()
            named.set()
        if self._names is not None and (group is None or self._named_by in (None, group)):
            names, self._names = self._names, None
            os.close(names)

    async def names_committed(self) -> None:
        """Return when the names that this process has claimed are committed."""
        while self._is_naming:
            await self._named.wait()

    # Moves of applications.

    @contextmanager
    def locked(self, name: str, *, waits: bool = False) -> Iterator[bool]:
        """Keep what all processes of the server do one after the other; False if another process does that just now.

        `MOVE` is a move of an application, or a backup; `SETTLE` the decision where an application belongs that is in
        two partitions, which takes a commit.
        """
        file = os.open(self.directory / FOLDER / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(file)
            yield False
            return
        try:
            yield True
        finally:
            os.close(file)

    def close(self) -> None:
        """Close the stores of the other partitions, unless they are still read."""
        for memory_map, _ in self._opened:
            if opened_here(memory_map.path) is memory_map:
                memory_map.close(0)


class PartitionedSnapshot(Snapshot):
    """A read transaction on the own store, and on each other one that has what is read."""

    __slots__ = ("_moves", "_others", "_partitions", "_steps", "_void", "_wide")

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
        self._moves = partitions.numbers.moves()
        self._void: dict[int, dict[bytes, bytes]] | None = None
        super().__init__(memory_map, wait=wait, on_step=on_step, on_large=on_large)

    def _of(self, number: int) -> Snapshot:
        found = self._others.get(number)
        if found is None:
            found = self._others[number] = Snapshot(self._partitions.map_of(number), **self._steps)
        return found

    def _all(self) -> list[tuple[int, Snapshot]]:
        """Those of all partitions, the own one first. Raises `MovedMeanwhile`."""
        partitions = self._partitions
        own = 0 if partitions.own is None else partitions.own
        found: list[tuple[int, Snapshot]] = [
            (own, self),
            *((each, self._of(each)) for each in partitions.others),
        ]
        if partitions.numbers.moves() != self._moves:
            raise MovedMeanwhile
        if self._void is None:
            self._void = {}
            for number, part in found:
                self._void[number] = self._arrived(number, part)
        return found

    def _arrived(self, number: int, part: Snapshot) -> dict[bytes, bytes]:
        """The records of applications that have arrived in a partition and were not given away to it.

        Raises `MovedMeanwhile`.
        """
        partitions, found = self._partitions, {}
        for id, source in arrived(part):
            record = partitions.placing.record_of(id)
            there = self if source == partitions.own else self._of(source)
            if is_given(there, id, number):
                continue
            is_there = Snapshot.get(there, keys.RECORDS, record) is not None
            if not is_there and belongs(partitions.snapshot_of, id, record, source, number):
                raise MovedMeanwhile  # between the moments of both snapshots
            copy = Snapshot.get(part, keys.RECORDS, record)
            if copy is not None:
                found[id] = copy
        return found

    def of_application(self, application: bytes) -> Snapshot:
        place = self._partitions.placing.of_key(keys.EVENTS, application)
        return self if place == self._partitions.own else self._of(place)

    def get(self, db: str, key: bytes) -> bytes | None:
        partitions = self._partitions
        place = partitions.placing.of_key(db, key)
        if place == partitions.own:
            return super().get(db, key)
        if place != EVERYWHERE:
            return self._of(place).get(db, key)
        value = super().get(db, key)
        if db == keys.COUNTS and not self._wide:
            return value
        if db == keys.COUNTS:
            return self._sum(key)
        value = partitions.own_value(db, value)
        for number in partitions.others:
            if value is None:
                part = self._of(number)
                value = partitions.without_void(number, part, db, part.get(db, key))
        return value

    def _sum(self, key: bytes) -> bytes | None:
        """The counters of all partitions at a key, without what does not count."""
        value: bytes | None = None
        for number, part in self._all():
            value = _together(keys.COUNTS, value, Snapshot.get(part, keys.COUNTS, key))
            assert self._void is not None
            for record in self._void[number].values() if value is not None else ():
                counted = self._partitions.placing.counted(key, record)
                if counted and value is not None:
                    value = apply_increments(value, {name: -each for name, each in counted.items()})
        return value

    def range(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        place = self._place(db, lo, hi)
        if place != EVERYWHERE:
            part = self if place == self._partitions.own else self._of(place)
            return Snapshot.range(part, db, lo, hi, reverse=reverse, skip=skip)
        parts = [self._counting(*part, db, lo, hi, reverse=reverse) for part in self._all()]
        return islice(merge(*parts, key=_BY_KEY, reverse=reverse), skip, None)

    def _counting(
        self, number: int, part: Snapshot, db: str, lo: bytes, hi: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries of a range of a part, without those of applications that do not count there."""
        assert self._void is not None
        entries, void = _kept(Snapshot.range(part, db, lo, hi, reverse=reverse)), self._void[number]
        if not void or db not in (keys.RECORDS, keys.INDEXES):
            return entries
        return (entry for entry in entries if entry[0][-keys.ID_BYTES :] not in void)

    def keys(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        place = self._place(db, lo, hi)
        if place != EVERYWHERE:
            part = self if place == self._partitions.own else self._of(place)
            return Snapshot.keys(part, db, lo, hi, reverse=reverse, skip=skip)
        return (key for key, _ in self.range(db, lo, hi, reverse=reverse, skip=skip))

    def count(self, db: str, lo: bytes, hi: bytes | None) -> int:
        place = self._place(db, lo, hi)
        if place != EVERYWHERE:
            part = self if place == self._partitions.own else self._of(place)
            return Snapshot.count(part, db, lo, hi)
        return sum(1 for _ in self.range(db, lo, hi))

    def _place(self, db: str, lo: bytes, hi: bytes | None) -> int:
        """The partition that has the entries of a range, `EVERYWHERE` if all have some."""
        place = self._partitions.placing.of_range(db, lo, hi)
        own = self._partitions.own
        return own if own is not None and place == EVERYWHERE and not self._wide else place

    def close(self) -> None:
        others, self._others = self._others, {}
        for snapshot in others.values():
            snapshot.close()
        super().close()


def _number_of_file(path: Path) -> int:
    """What tells the file of a store from another one in its place; 0 if there is none."""
    try:
        return (path / DATA_FILE).stat().st_ino
    except OSError:
        return 0


def _together(db: str, value: bytes | None, more: bytes | None) -> bytes | None:
    """What two partitions have at a key: counters are added, anything else only one of them has."""
    if value is None or more is None:
        return more if value is None else value
    return apply_increments(value, codec.decode(more)) if db == keys.COUNTS else value


def _kept(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The entries as bytes that stay when their cursor moves on."""
    return ((bytes(key), bytes(value)) for key, value in entries)
