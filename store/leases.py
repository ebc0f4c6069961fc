"""Leases of copies: for how long other machines may read their copies of a partition as if they were its store.

Owns the promise that makes this safe: the owner of the partition answers a commit that other partitions read only when
each copy with a lease has it, or when that lease has ended. So a machine with a lease lacks nothing that was
acknowledged. What was not acknowledged yet may be seen on one machine sooner than on another.

A follower says a few times a second up to where its store has the log, and when it says so, on its own clock
(`log_nodes.Word`). The owner repeats that time in its own word if the store has all that it needs. Then the copy is
fresh for `LEASE_S` from that time on. The owner counts from when it has heard the follower, which is later, and for
longer, as clocks may differ in their pace. So no clock is compared with that of another machine.

An owner grants leases only while it is sure to own the partition. The next one does not know of them: until those have
ended that may still be there, it answers no such commit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from trunkline.store import keys
from trunkline.store.log_nodes import Word
from trunkline.store.overlay import Overlay

LEASE_S: Final = 1.0
"""How long a copy is fresh, from when its follower has said up to where it is."""
HELD_S: Final = 1.25
"""How long the owner takes a lease for held, from when it has heard that: clocks differ by less than a tenth."""
PROVED_S: Final = 1.25
"""For so long, from an entry on, its owner grants leases, at most, on the clock of another machine."""
_READ_ELSEWHERE: Final = frozenset({keys.META, keys.RECORDS, keys.INDEXES, keys.UNIQUE})
"""The databases that processes of other partitions read; of COUNTS they read how many records there are."""


def is_read_elsewhere(overlay: Overlay) -> bool:
    """Whether a commit writes what processes of other partitions read."""
    if not _READ_ELSEWHERE.isdisjoint(overlay.writes):
        return True
    counted = (*overlay.increments.get(keys.COUNTS, ()), *overlay.writes.get(keys.COUNTS, ()))
    return any(key.startswith(keys.TOTAL_PREFIX) for key in counted)


class _Lease(NamedTuple):
    until_s: float
    said_s: float
    place: int


class Leases:
    """The leases that the owner of a partition has granted. `is_sure` says whether it owns it for sure."""

    def __init__(self, place: int, others_until_s: float) -> None:
        """It has claimed the partition at `place`. Leases of the owners before end at `others_until_s`, at the latest,
        on Trio's clock."""
        self.is_sure: Callable[[], bool] = lambda: True
        self._needed = place
        """The place that a copy must have for a lease."""
        self._others_until_s = others_until_s
        self._held: dict[int, _Lease] = {}
        """By number of the process that follows."""
        self._changed = trio.Event()
        self._has_ended = False

    def hear(self, word: Word) -> bool:
        """A follower says where it is, and wants a lease if it says when. Whether it has one that it had not."""
        now_s = trio.current_time()
        before = self._held.get(word.process)
        if word.said_s and word.place >= self._needed and not self._has_ended and self.is_sure():
            said_s = word.said_s if before is None else max(before.said_s, word.said_s)
            self._held[word.process] = _Lease(now_s + HELD_S, said_s, word.place)
        elif before is not None:
            self._held[word.process] = before._replace(place=max(before.place, word.place))
        changed, self._changed = self._changed, trio.Event()
        changed.set()
        return before is None and word.process in self._held

    def told(self) -> dict[int, float]:
        """By process, what it has said when it was granted the lease that it holds."""
        self._forget()
        return {process: each.said_s for process, each in self._held.items()}

    def _forget(self) -> None:
        now_s = trio.current_time()
        self._held = {process: each for process, each in self._held.items() if each.until_s > now_s}

    async def confirmed(self, place: int, wait_s: float) -> bool:
        """Whether each copy that may be read has the log up to `place`, at the latest after `wait_s`. From now on none
        gets a lease without it."""
        self._needed = max(self._needed, place)
        until_s = trio.current_time() + wait_s
        while True:
            self._forget()
            ends_s = [each.until_s for each in self._held.values() if each.place < place]
            if trio.current_time() < self._others_until_s:
                ends_s.append(self._others_until_s)
            if not ends_s:
                return True
            if trio.current_time() >= until_s:
                return False
            with trio.move_on_at(min(until_s, *ends_s)):
                await self._changed.wait()

    def end(self) -> float:
        """Grant no more, and return for how long those may be held that were granted."""
        self._has_ended = True
        ends_s = [self._others_until_s, *(each.until_s for each in self._held.values()), -math.inf]
        return max(0.0, max(ends_s) - trio.current_time())
