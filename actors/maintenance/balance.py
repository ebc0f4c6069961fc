"""Which applications to move so that the owners of partitions are about equally busy. Pure: numbers in, numbers out.

The load of a partition is the share of the last hour in which the event loop of its owner has worked. A part of it is
that of its applications, and moves with them; the rest stays: what is for no application, and in the root also users
and organizations.

A plan has few moves: each is the one after which the busiest partition is least busy, and those that turn out not to
be needed are left out. If two moves would do where these are more, or do not do, those two are the plan. So it has the
fewest moves where one or two are enough, of which each helps by itself. No application moves twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

TOLERANCE: Final = 0.10
"""Partitions are balanced while none is busier than the mean by more than this part of it."""
WORTH_SHARE: Final = 0.01
"""Nothing is moved while every owner works for less of the time."""
PLAN_SHARE: Final = 0.05
"""A plan that does not balance is worth its moves if the busiest partition gets less busy by this part of the mean."""
MOVE_SHARE: Final = 0.005
"""A move is worth it if the busier of both partitions gets less busy by this part of the mean, or if it is all that it
takes."""
SPARED_SHARE: Final = 0.02
"""Moves without which the busiest partition would be busier by no more than this part of the mean are left out."""
MOVES_MAX: Final = 32
"""The moves of a plan: after those it is better to look again."""
_PAIR_APPLICATIONS_MAX: Final = 32
_PAIR_TARGETS_MAX: Final = 6
"""Of so many applications, the busiest, and so many partitions, the least busy, all pairs of moves are looked at."""
SMALL_BYTES: Final = 1 << 30
"""The size of a partition does not matter up to this."""
DISK_LEFT_SHARE: Final = 0.10
"""So much of a disk a move leaves free."""
_EQUAL: Final = 1e-9


class Partition(NamedTuple):
    """A partition: the load of its owner, all in all, its bytes, and how many its quota and its disk have room for.

    Partitions on the same `disk` share its room.
    """

    load: float
    size_bytes: int
    quota_room_bytes: float
    disk: int
    disk_room_bytes: float


class Application(NamedTuple):
    """An application: the partition that it is in, what it adds to the load there, and its bytes."""

    partition: int
    load: float
    size_bytes: int = 0


class Move(NamedTuple):
    """A move of an application. `loads` are those of both partitions before it and after it."""

    application: str
    source: int
    target: int
    load: float
    before: tuple[float, float]
    after: tuple[float, float]


class Plan(NamedTuple):
    """The moves, in their order, and the loads of all partitions after them.

    `too_large` are applications that are busier than a balanced partition may be: no move balances them, so they stay,
    and what is beside them goes.
    """

    moves: Sequence[Move]
    loads: Sequence[float]
    too_large: Sequence[str]


def mean_of(loads: Sequence[float]) -> float:
    """The load that each partition would have if all were equal."""
    return sum(loads) / len(loads)


def is_balanced(loads: Sequence[float]) -> bool:
    """Whether no partition is busier than the mean by more than the tolerance."""
    return max(loads) <= mean_of(loads) * (1 + TOLERANCE) + _EQUAL


def plan(partitions: Sequence[Partition], applications: Mapping[str, Application]) -> Plan:
    """The moves that balance partitions, or come as near to that as moves can."""
    loads = [each.load for each in partitions]
    most = mean_of(loads) * (1 + TOLERANCE)
    too_large = sorted(id for id, each in applications.items() if each.load > most + _EQUAL)
    if max(loads) < WORTH_SHARE or is_balanced(loads):
        return Plan((), loads, too_large if max(loads) >= WORTH_SHARE else ())
    state = _State(partitions, applications)
    chosen: list[tuple[str, int]] = []
    while len(chosen) < MOVES_MAX and not is_balanced(state.loads):
        best = state.best()
        if best is None:
            break
        state.move(*best)
        chosen.append(best)
    moves, after = _needed(partitions, applications, chosen)
    if len(moves) > 2 or not is_balanced(after):
        moves, after = _best_pair(partitions, applications) or (moves, after)
    if not is_balanced(after) and max(after) > max(loads) - PLAN_SHARE * mean_of(loads):
        return Plan((), loads, too_large)
    return Plan(moves, after, too_large)


class _State:
    """Partitions between moves."""

    def __init__(self, partitions: Sequence[Partition], applications: Mapping[str, Application]) -> None:
        self.loads = [each.load for each in partitions]
        self.sizes = [each.size_bytes for each in partitions]
        self._quota_room = [each.quota_room_bytes for each in partitions]
        self._disk = [each.disk for each in partitions]
        self._disk_room = {each.disk: each.disk_room_bytes for each in partitions}
        self._applications = applications
        self._mean = mean_of(self.loads)
        most = self._mean * (1 + TOLERANCE) + _EQUAL
        self.left = {id for id, each in applications.items() if _EQUAL < each.load <= most}
        mean_bytes = sum(self.sizes) / len(self.sizes)
        self._most_bytes = max(*self.sizes, round(mean_bytes * (1 + TOLERANCE)), SMALL_BYTES)

    def best(self) -> tuple[str, int] | None:
        """The application of the busiest partition whose move helps most, and where to; None if no move helps."""
        busiest = max(range(len(self.loads)), key=lambda number: (self.loads[number], -number))
        found = min(self._helpful(busiest), default=None)
        return None if found is None else (found[-1], found[2])

    def _helpful(self, source: int) -> Iterator[tuple[float, int, int, str]]:
        """Yield the moves out of a partition that make the busier of both less busy: the load of that, the bytes."""
        high = self.loads[source]
        least = min(MOVE_SHARE * self._mean, high - self._mean * (1 + TOLERANCE))
        for id in self.left:
            partition, load, size_bytes = self._applications[id]
            if partition != source:
                continue
            for target, low in enumerate(self.loads):
                worst = max(high - load, low + load)
                is_worth_it = worst < high - _EQUAL and worst <= high - least + _EQUAL
                if target != source and is_worth_it and self._has_room(target, size_bytes):
                    yield worst, size_bytes, target, id

    def _has_room(self, target: int, size_bytes: int) -> bool:
        """Whether a partition may have so much more: the largest must not grow by it, nor a disk become full."""
        room_bytes = min(self._quota_room[target], self._disk_room[self._disk[target]])
        return size_bytes <= room_bytes and self.sizes[target] + size_bytes <= self._most_bytes

    def move(self, id: str, target: int) -> Move | None:
        """Move an application, which then stays. None if that would not help, or has no room."""
        source, load, size_bytes = self._applications[id]
        helps = max(self.loads[source] - load, self.loads[target] + load) < self.loads[source]
        if not helps or not self._has_room(target, size_bytes):
            return None
        before = self.loads[source], self.loads[target]
        self.left.discard(id)
        self.loads[source] -= load
        self.loads[target] += load
        self.sizes[source] -= size_bytes
        self.sizes[target] += size_bytes
        self._quota_room[target] -= size_bytes
        self._disk_room[self._disk[target]] -= size_bytes
        return Move(id, source, target, load, before, (self.loads[source], self.loads[target]))


def _needed(
    partitions: Sequence[Partition], applications: Mapping[str, Application], chosen: list[tuple[str, int]]
) -> tuple[list[Move], list[float]]:
    """The moves without those that are not needed, the smallest tried first, and the loads after them."""
    moves, loads = _after(partitions, applications, chosen)
    most = max(loads) + SPARED_SHARE * mean_of(loads)
    for each in sorted(chosen, key=lambda one: (applications[one[0]].load, one)):
        fewer = [other for other in chosen if other != each]
        fewer_moves, fewer_loads = _after(partitions, applications, fewer)
        is_as_good = is_balanced(fewer_loads) or (max(fewer_loads) <= most and not is_balanced(loads))
        if is_as_good and len(fewer_moves) == len(fewer):
            chosen, moves, loads = fewer, fewer_moves, fewer_loads
    return moves, loads


def _after(
    partitions: Sequence[Partition],
    applications: Mapping[str, Application],
    chosen: Sequence[tuple[str, int]],
) -> tuple[list[Move], list[float]]:
    """The moves, without those that cannot be made so, and the loads after them."""
    state = _State(partitions, applications)
    moves = [state.move(*each) for each in chosen]
    return [move for move in moves if move is not None], state.loads


def _best_pair(
    partitions: Sequence[Partition], applications: Mapping[str, Application]
) -> tuple[list[Move], list[float]] | None:
    """The two moves that balance, of those the ones with the least load; None if there are none."""
    for _, *pair in sorted(_pairs(partitions, applications)):
        moves, loads = _after(partitions, applications, pair)
        if len(moves) == len(pair):
            return moves, loads
    return None


def _pairs(
    partitions: Sequence[Partition], applications: Mapping[str, Application]
) -> Iterator[tuple[float, tuple[str, int], tuple[str, int]]]:
    """Yield two moves that balance, where the bytes do not matter, behind the load that they move."""
    state = _State(partitions, applications)
    before = state.loads
    ids = sorted(state.left, key=lambda each: (-applications[each].load, each))[:_PAIR_APPLICATIONS_MAX]
    targets = sorted(range(len(before)), key=lambda number: (before[number], number))[:_PAIR_TARGETS_MAX]
    for first in _moves(before, ids, targets, applications):
        between = _loads_after(before, first, applications)
        for second in _moves(between, ids, targets, applications):
            if second[0] != first[0] and is_balanced(_loads_after(between, second, applications)):
                yield applications[first[0]].load + applications[second[0]].load, first, second


def _moves(
    loads: Sequence[float],
    ids: Sequence[str],
    targets: Sequence[int],
    applications: Mapping[str, Application],
) -> Iterator[tuple[str, int]]:
    """Yield the moves of these applications that make the busier of both partitions less busy."""
    for id in ids:
        source, load, _ = applications[id]
        for target in targets:
            if target != source and loads[target] + load < loads[source]:
                yield id, target


def _loads_after(
    loads: Sequence[float], move: tuple[str, int], applications: Mapping[str, Application]
) -> list[float]:
    id, target = move
    after = [*loads]
    after[applications[id].partition] -= applications[id].load
    after[target] += applications[id].load
    return after
