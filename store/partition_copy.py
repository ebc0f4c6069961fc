"""The store of a partition as the other processes of this machine read it, told by the process that has it.

That process owns the partition, or follows its log and writes a copy. It tells the others until when the store is fresh
(`freshness.py`), that records have changed, whose access may have ended, and that applications were moved
(`shared_numbers.py`). Used where there are several partitions and a log.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from trunkline.store import keys
from trunkline.store.freshness import Freshness, boot_s
from trunkline.store.leases import LEASE_S, Leases, is_read_elsewhere
from trunkline.store.overlay import Overlay
from trunkline.store.partitions import FOLDER, FRESH, SHARED
from trunkline.store.shared_numbers import SharedNumbers

_OF_MOVES: Final = (keys.ARRIVED_PREFIX, keys.FOREIGN_PREFIX)


class PartitionCopy:
    """The store of partition `number` of `count`. Raises StoreError."""

    def __init__(
        self,
        directory: Path,
        number: int,
        count: int,
        clock_s: Callable[[], float] = boot_s,
        boot: int | None = None,
    ) -> None:
        """`clock_s` and `boot` are those of `Freshness`."""
        self.number = number
        self.freshness = Freshness(directory / FOLDER / FRESH, count, clock_s, boot)
        self.leases: Leases | None = None
        """Those that this process has granted, since it claimed the partition."""
        self._numbers = SharedNumbers(directory / FOLDER / SHARED, number, count)

    @property
    def others_are_fresh(self) -> bool:
        """Whether this process may read the stores of all other partitions."""
        return self.freshness.are_fresh_but(self.number)

    def others_have(self, place: int) -> bool:
        """Whether the stores of all other partitions have the log up to a place, or are those of their owners."""
        fresh = self.freshness
        others = (each for each in range(fresh.count) if each != self.number)
        return all(fresh.is_own(each) or fresh.place(each) >= place for each in others)

    def begin(self) -> None:
        """The store may have changed, and nobody was told."""
        self._numbers.begin()

    def took(self, place: int, overlay: Overlay | None) -> bool:
        """The store has the log up to `place`, with a group of another machine or without. Whether its owner may wait
        for that."""
        self.freshness.say_place(self.number, place)
        if overlay is None:
            return False
        records = overlay.writes.get(keys.RECORDS)
        if records:
            self._numbers.note_change()
            for key in records:
                self._numbers.revoke(key[-keys.ID_BYTES :])
        if any(key.startswith(_OF_MOVES) for key in overlay.writes.get(keys.META, ())):
            self._numbers.note_move()
        return is_read_elsewhere(overlay)

    @property
    def said_s(self) -> float:
        """The time of a word that asks for a lease; 0 if this machine serves nothing, and needs none."""
        return self.freshness.clock_s() if self.freshness.serves() else 0.0

    def granted(self, said_s: float) -> None:
        """The owner has granted the lease that a word asked for."""
        self.freshness.say(self.number, said_s + LEASE_S, is_own=False)

    def proved(self, began_s: float) -> None:
        """This process has owned the partition at a time of the clock of this machine."""
        self.freshness.say(self.number, began_s + LEASE_S, is_own=True)
