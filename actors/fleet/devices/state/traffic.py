"""What the devices of each application have sent since the start, and what was refused: counters in memory.

Owns the counts and the latest refusals and connection changes, for the overview of an application, and the states of
the last hour, for who balances partitions. The device counts what is stored, right after its commit; the edge counts
what it answers with a refusal. Nothing of it is stored.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Invalid,
    Overloaded,
    PayloadTooLarge,
    StorageFull,
    TooManyRequests,
)

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

RECENT_MAX: Final = 10
"""Refusals and connection changes of an application that are remembered."""
INTERVAL_MS: Final = 10_000
INTERVALS_MAX: Final = 60
"""The history of an application: so many intervals of this length, of which the last is in progress."""
HOUR_INTERVALS: Final = 30
"""So many intervals are a slot of the last hour."""
HOUR_SLOTS: Final = 12
_SENTENCE_CHARS_MAX: Final = 500
_SERIES: Final = 3
_NOTHING: Final = array("Q", bytes(8 * _SERIES))


class Refusal(NamedTuple):
    """A call or a frame that was refused. `device` is None if it was for no single device."""

    time_ms: int
    operation: str
    device: bytes | None
    reason: str
    message: str


class Change(NamedTuple):
    """A change of the connection of a device. `entry` is what its log has."""

    time_ms: int
    device: bytes
    entry: dict[str, Any]


class History(NamedTuple):
    """How much there was in each interval since `start_ms`, oldest first; the last interval is in progress."""

    start_ms: int
    states: list[int]
    commands: list[int]
    refused: list[int]


class StatesOfHour:
    """How many states there were in the last hour, of which the slot in progress is a part: 55 to 60 minutes."""

    __slots__ = ("_counts", "_slot")

    def __init__(self, slot: int) -> None:
        self._counts = array("Q", bytes(8 * HOUR_SLOTS))
        self._slot = slot

    def add(self, slot: int, number: int) -> None:
        """Count states of this slot, which is not before the last one that was named."""
        for passed in range(max(self._slot, slot - HOUR_SLOTS) + 1, slot + 1):
            self._counts[passed % HOUR_SLOTS] = 0
        self._slot = slot
        self._counts[slot % HOUR_SLOTS] += number

    def total(self) -> int:
        """The number of states."""
        return sum(self._counts)


class ApplicationTraffic:
    """The counts of one application since `started_ms`. `refused` is by reason; the latest entries come last.

    The history is a ring with a slot for each interval. What is counted in the interval in progress is the difference
    to the counts at its begin, and goes into the ring when a later interval begins. While the clock is set back, this
    stays the interval in progress.
    """

    __slots__ = (
        "_before",
        "_hour",
        "_interval",
        "_ring",
        "_until_ms",
        "changes",
        "commands",
        "refusals",
        "refused",
        "started_ms",
        "states",
    )

    def __init__(self, started_ms: int) -> None:
        self.started_ms = started_ms
        self.states = 0
        self.commands = 0
        self.refused: Counter[str] = Counter()
        self.refusals: deque[Refusal] = deque(maxlen=RECENT_MAX)
        self.changes: deque[Change] = deque(maxlen=RECENT_MAX)
        self._ring = array("Q", bytes(8 * _SERIES * INTERVALS_MAX))
        self._hour = StatesOfHour(started_ms // INTERVAL_MS // HOUR_INTERVALS)
        self._begin(started_ms // INTERVAL_MS)

    def count_states(self, number: int, now_ms: int) -> None:
        """Count states that were stored."""
        if now_ms >= self._until_ms:
            self._advance(now_ms)
        self.states += number

    def count_command(self, now_ms: int) -> None:
        """Count a command that was stored."""
        if now_ms >= self._until_ms:
            self._advance(now_ms)
        self.commands += 1

    def count_refusal(self, refusal: Refusal) -> None:
        """Count a refusal, and remember it."""
        if refusal.time_ms >= self._until_ms:
            self._advance(refusal.time_ms)
        self.refused[refusal.reason] += 1
        self.refusals.append(refusal)

    def history(self, now_ms: int) -> History:
        """The counts of the last intervals, from the one of `started_ms` on."""
        if now_ms >= self._until_ms:
            self._advance(now_ms)
        self._store()
        last = self._interval
        first = max(last - INTERVALS_MAX + 1, self.started_ms // INTERVAL_MS)
        slots = [_slot(interval) for interval in range(first, last + 1)]
        columns = ([self._ring[slot + series] for slot in slots] for series in range(_SERIES))
        return History(first * INTERVAL_MS, *columns)

    def states_of_hour(self, now_ms: int) -> int:
        """The states of the last hour, or since `started_ms`."""
        if now_ms >= self._until_ms:
            self._advance(now_ms)
        return self._hour.total() + self.states - self._before[0]

    def _begin(self, interval: int) -> None:
        """From now on this is the interval in progress."""
        self._interval = interval
        self._until_ms = (interval + 1) * INTERVAL_MS
        self._before = self._totals()

    def _advance(self, now_ms: int) -> None:
        """End the interval in progress, because its end has come. Those between it and now have no counts."""
        self._store()
        interval = now_ms // INTERVAL_MS
        self._hour.add(self._interval // HOUR_INTERVALS, self.states - self._before[0])
        self._hour.add(interval // HOUR_INTERVALS, 0)
        for passed in range(max(self._interval, interval - INTERVALS_MAX) + 1, interval + 1):
            slot = _slot(passed)
            self._ring[slot : slot + _SERIES] = _NOTHING
        self._begin(interval)

    def _store(self) -> None:
        """Write what the interval in progress has counted into the ring."""
        counts = [total - before for total, before in zip(self._totals(), self._before, strict=True)]
        slot = _slot(self._interval)
        self._ring[slot : slot + _SERIES] = array("Q", counts)

    def _totals(self) -> tuple[int, int, int]:
        return self.states, self.commands, self.refused.total()


def _slot(interval: int) -> int:
    """Where the counts of an interval begin in the ring."""
    return interval % INTERVALS_MAX * _SERIES


class Traffic:
    """The traffic of all applications: a component.

    At `traffic_applications_max` the application that has been counted for longest is forgotten; its counts begin
    again with its next call.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._applications: dict[bytes, ApplicationTraffic] = {}
        system.forgotten.append(self._forget)

    def of(self, application: bytes) -> ApplicationTraffic:
        """The counts of an application."""
        return self._applications.get(application) or self._begin(application)

    def refuse(self, application: bytes, device: bytes | None, operation: str, refusal: DomainError) -> None:
        """Count a call or a frame that is answered with a refusal, if that is one of traffic (`reason_of`)."""
        reason = reason_of(refusal)
        if reason is None:
            return
        now_ms, sentence = self._system.clock.wall_ms(), refusal.message[:_SENTENCE_CHARS_MAX]
        self.of(application).count_refusal(Refusal(now_ms, operation, device, reason, sentence))

    def applications(self) -> dict[bytes, ApplicationTraffic]:
        """The counts of all applications that are counted."""
        return dict(self._applications)

    def _forget(self, application: bytes) -> None:
        self._applications.pop(application, None)

    def _begin(self, application: bytes) -> ApplicationTraffic:
        if len(self._applications) >= self._system.limits.traffic_applications_max:
            del self._applications[next(iter(self._applications))]
        traffic = self._applications[application] = ApplicationTraffic(self._system.clock.wall_ms())
        return traffic


_REASONS: Final[dict[type[DomainError], str]] = {
    StorageFull: "storage",
    Invalid: "invalid",
    PayloadTooLarge: "invalid",
    Crashed: "fault",
}


def reason_of(refusal: DomainError) -> str | None:
    """Why traffic was refused, in one word; None for errors that are no refusal of traffic (no access, no device)."""
    match refusal:
        case TooManyRequests():
            return refusal.bucket
        case Overloaded():
            return refusal.reason
    return next((reason for error, reason in _REASONS.items() if isinstance(refusal, error)), None)
