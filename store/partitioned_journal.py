"""The journal of a partition of several: its turns read what other partitions have as it is on disk."""

from __future__ import annotations

from typing import Any

from trunkline.store import keys
from trunkline.store.commit_group import Group
from trunkline.store.errors import StoreError
from trunkline.store.journal import Journal
from trunkline.store.overlay import Overlay
from trunkline.store.partitioned import Partitions
from trunkline.store.placing import EVERYWHERE


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
        if place == EVERYWHERE:
            value = partitions.own_value(db, value)
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

    def _complete(self, overlay: Overlay, group: Group, error: StoreError | None) -> None:
        if error is None and keys.RECORDS in overlay.writes:
            self._partitions.numbers.note_change()  # before whoever waits for the commit hears of it
        self._partitions.release_names(group)
        super()._complete(overlay, group, error)
