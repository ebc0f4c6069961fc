"""Places: in which partition each key and each actor is, of a data directory with several.

An application is in the partition that has its record, with all that belongs to it; everything else is in the root.
Where an application is, is remembered until one is moved (`follow`). What is not found is looked for again when a
record has changed. While an application is moved two partitions have its record for a moment: then it is in that one
which does not say that it has arrived. What says so counts as soon as it was given away (`store/arrived_copies.py`).

Some keys are `EVERYWHERE`: the lists and numbers of applications, the entries of audit logs, which each partition
writes for its own calls, and names that are unique in the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio

from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION, ORGANIZATION_NAME, USER
from trunkline.actors.core.records.placement import APPLICATION_PREFIXES
from trunkline.actors.core.records.records import counted_of
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.arrived_copies import arrived, belongs, foreign
from trunkline.store.codec import decode
from trunkline.store.errors import BackupRefused, StoreError
from trunkline.store.partitioned import Partitions
from trunkline.store.partitions import stored_count
from trunkline.store.placing import EVERYWHERE
from trunkline.store.snapshot import Snapshot
from trunkline.store.store_files import snapshot_of_partition

ROOT_PARTITION: Final = 0
KNOWN_MAX: Final = 65_536
_BY_APPLICATION: Final = frozenset({keys.EVENTS, keys.FLOWS, keys.MESSAGES})
_KIND_KEYS: Final = frozenset({keys.RECORDS, keys.INDEXES})
_BY_OWNER: Final = _BY_APPLICATION | _KIND_KEYS | {keys.COUNTS, keys.META}
_OF_ROOT: Final = frozenset({"user", "org", "userJobs"})
_OWNERS: Final = (USER.name, ORGANIZATION_NAME)
"""The kinds of records in the root that own records as applications do, such as API tokens."""


def void_copies(part: Snapshot, directory: Path, number: int) -> frozenset[bytes]:
    """The applications that partition `number` of a data directory or a backup, which `part` reads, has the records of
    and were not given away to it. None of a data directory that is not divided. Raises StoreError."""
    if stored_count(directory) == 1:
        return frozenset()
    look = partial(snapshot_of_partition, directory)
    return frozenset(id for id, at in arrived(part) if not belongs(look, id, _record_of(id), at, number))


def check_given(copy: Path) -> None:
    """Raise BackupRefused if in the copy of a divided data directory a partition has given an application to one that
    does not know it.

    A machine that follows both partitions may be behind with one of them. It is also so where the application was
    deleted soon after it was moved, for as long as what was left of it is removed.
    """
    for number in range(stored_count(copy)):
        with snapshot_of_partition(copy, number) as part:
            if part.get(keys.META, keys.LOG_KEY) is None:
                return
            given = [(id, part.get(keys.META, keys.foreign_key(id))) for id in foreign(part)]
        for id, marker in given:
            assert marker is not None
            with snapshot_of_partition(copy, decode(marker)["partition"]) as to:
                notes = (to.get(keys.META, each) for each in (keys.foreign_key(id), keys.arrived_key(id)))
                if to.get(keys.RECORDS, _record_of(id)) is None and not any(notes):
                    raise BackupRefused(
                        "An application was moved just now, and this machine may not have all of it yet. Make the "
                        "backup again."
                    )


def _record_of(application: bytes) -> bytes:
    return keys.record_key(APPLICATION.name, ROOT, application)


class Places:
    """Where things are, as the process that serves partition `own` sees it."""

    def __init__(self, partitions: Partitions, kinds: Mapping[str, Kind]) -> None:
        self.own = ROOT_PARTITION if partitions.own is None else partitions.own
        self._partitions = partitions
        self._kinds = {kind.name.encode(): kind for kind in kinds.values()}
        self._known: dict[bytes, int] = {}
        self._unknown: set[bytes] = set()
        self._changes = -1
        self._moves = partitions.numbers.moves()
        self.arriving = partitions.arriving
        self.has_left = trio.Event()
        """An application was moved from the own partition, which has something to remove."""
        self.epoch = 0
        """Rises with each move that was noticed."""

    @classmethod
    def seen_by_door(cls, directory: Path) -> Places:
        """Where the applications of a data directory are, for a process that owns nothing."""
        return cls(Partitions(directory, None), {})

    @property
    def directory(self) -> Path:
        """The data directory."""
        return self._partitions.directory

    @property
    def others(self) -> tuple[int, ...]:
        """The numbers of the other partitions."""
        return self._partitions.others

    @property
    def count(self) -> int:
        """How many partitions there are."""
        return self._partitions.count

    def of_application(self, id: bytes) -> int:
        """The partition of an application; the root for the id of anything else.

        Raises StoreError if it is in none that can be read, and another one cannot be read.
        """
        if len(id) != keys.ID_BYTES:
            return ROOT_PARTITION
        self.follow()
        known = self._known.get(id)
        return self._looked_up(id) if known is None else known

    def _looked_up(self, id: bytes) -> int:
        changes = self._partitions.numbers.changes()
        if changes != self._changes or len(self._unknown) >= KNOWN_MAX:
            self._changes = changes
            self._unknown.clear()
        if id in self._unknown:
            return ROOT_PARTITION
        number = self.find(id)
        if number is None:
            self._unknown.add(id)
            return ROOT_PARTITION
        self.place(id, number)
        return number

    def find(self, id: bytes) -> int | None:
        """The partition that has an application now; None if it is in none.

        Raises StoreError if it is in none that can be read, and another one cannot be read.
        """
        key, arrived_key = self.record_of(id), keys.arrived_key(id)
        arrived: list[tuple[int, int]] = []
        broken: StoreError | None = None
        for number in range(self._partitions.count):
            try:
                with self._partitions.snapshot_of(number) as snapshot:
                    if snapshot.get(keys.RECORDS, key) is None:
                        continue
                    marker = snapshot.get(keys.META, arrived_key)
                    if marker is None:
                        return number
                    arrived.append((number, decode(marker)["from"]))
            except StoreError as error:
                broken = error
        if broken is not None:
            if self._is_of_root(id):
                return None
            raise broken
        for number, source in arrived:
            if belongs(self._partitions.snapshot_of, id, key, source, number):
                return number
        return None

    def _is_of_root(self, id: bytes) -> bool:
        """Whether an id is that of a user or an organization, for sure: then no partition has it as an application."""
        try:
            with self._partitions.snapshot_of(ROOT_PARTITION) as root:
                return any(
                    root.get(keys.RECORDS, keys.record_key(kind, ROOT, id)) is not None for kind in _OWNERS
                )
        except StoreError:
            return False

    def record_of(self, application: bytes) -> bytes:
        """The key of the record of an application."""
        return _record_of(application)

    def counted(self, key: bytes, application: bytes) -> Mapping[str, int]:
        """What the record of an application adds to the numbers at a key of COUNTS."""
        is_total = key == keys.total_key(APPLICATION.name, ROOT)
        return counted_of(APPLICATION, decode(application)) if is_total else {}

    def holds(self, part: Snapshot, application: bytes, holder: bytes) -> bool:
        """Whether a value of UNIQUE is that of an application, or of one of its records in a partition."""
        if holder[: keys.ID_BYTES] == application:
            return True
        return len(holder) == keys.ID_BYTES and any(
            Snapshot.get(part, keys.RECORDS, keys.record_key(kind.name, application, holder)) is not None
            for kind in self._kinds.values()
            if kind.unique and kind.unique_in == "parent"
        )

    def reopen(self) -> None:
        """Read the stores of today, where a machine that follows a log has got a copy of one."""
        if self._partitions.close_replaced():
            self.forget()

    def follow(self) -> None:
        """Forget where applications are if one was moved since the last call."""
        moves = self._partitions.numbers.moves()
        if moves != self._moves:
            self._moves = moves
            self.forget()

    def forget(self) -> None:
        """Look again where applications are."""
        self.epoch += 1
        self._known.clear()
        self._unknown.clear()

    def moved(self, application: bytes, number: int) -> None:
        """An application was moved to a partition, from the own one or to it: all processes look again."""
        self._partitions.numbers.note_move()
        self.follow()
        self.place(application, number)
        if number != self.own:
            self.has_left.set()

    def place(self, application: bytes, number: int) -> None:
        """Remember where an application is, or will be when it is created."""
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[application] = number

    def place_new(self, application: bytes) -> None:
        """Choose where a new application will be."""
        self.place(application, self.emptiest())

    def emptiest(self) -> int:
        """The last one of those partitions that have the fewest applications, and can be read."""
        key, fewest, chosen = keys.total_key(APPLICATION.name, ROOT), -1, ROOT_PARTITION
        for number in range(self._partitions.count):
            try:
                with self._partitions.snapshot_of(number) as snapshot:
                    raw = snapshot.get(keys.COUNTS, key)
            except StoreError:
                continue
            total = 0 if raw is None else decode(raw).get("n", 0)
            if fewest < 0 or total <= fewest:
                fewest, chosen = total, number
        return chosen

    def of_ref(self, ref: Ref) -> int:
        """The partition of an actor."""
        if ref.kind == "auditLog":
            return self.own
        if ref.kind in _OF_ROOT:
            return ROOT_PARTITION
        return self.of_application(ref.id if ref.kind == APPLICATION.name else ref.parent)

    def of_range(self, db: str, lo: bytes, hi: bytes | None) -> int:
        """The partition that has the keys from `lo` to `hi`, `EVERYWHERE` if they may belong to several owners."""
        place = self.of_key(db, lo)
        if place == self.own and db not in _BY_OWNER:
            return place
        if db in _KIND_KEYS:
            end = lo.find(b"\x00") + 1 + keys.ID_BYTES
        elif db == keys.META:
            end = lo.find(b"\x00") + 1 + keys.ID_BYTES if lo.startswith(APPLICATION_PREFIXES) else 0
            if not end:
                return place
        else:
            end = keys.ID_BYTES
        owner = lo[:end]
        if len(owner) == end and hi is not None and (hi[:end] == owner or hi == keys.prefix_end(owner)):
            return place
        return EVERYWHERE

    def of_key(self, db: str, key: bytes) -> int:
        """The partition that has a key, `EVERYWHERE` if any may have it."""
        if db in _KIND_KEYS:
            return self._of_kind(db, key)
        if db == keys.UNIQUE:
            return EVERYWHERE  # these keys are hashes
        if db in _BY_APPLICATION:
            return self.own if len(key) < keys.ID_BYTES else self.of_application(bytes(key[: keys.ID_BYTES]))
        if db == keys.COUNTS:
            if key.startswith(keys.TOTAL_PREFIX):
                return self._of_kind(db, key[len(keys.TOTAL_PREFIX) :])
            return self.own if len(key) < keys.ID_BYTES else self.of_application(bytes(key[: keys.ID_BYTES]))
        if db == keys.META and key.startswith(APPLICATION_PREFIXES):
            start = key.index(b"\x00") + 1
            id = bytes(key[start : start + keys.ID_BYTES])
            return self.own if len(id) < keys.ID_BYTES else self.of_application(id)
        return self.own

    def _of_kind(self, db: str, key: bytes) -> int:
        name, _, rest = key.partition(b"\x00")
        kind, parent = self._kinds.get(name), bytes(rest[: keys.ID_BYTES])
        if kind is None or len(parent) < keys.ID_BYTES:
            return self.own
        if kind is APPLICATION:
            is_record = db == keys.RECORDS and len(rest) == 2 * keys.ID_BYTES
            return self.of_application(bytes(rest[keys.ID_BYTES :])) if is_record else EVERYWHERE
        if kind.name == "auditLog":
            return EVERYWHERE
        if kind.home == "root":
            return ROOT_PARTITION
        if parent == ROOT:
            return EVERYWHERE
        return self.of_application(parent)
