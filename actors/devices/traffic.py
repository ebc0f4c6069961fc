"""What the devices of each application have sent since the start, and what was refused: counters in memory.

Owns the counts and the latest refusals and connection changes, for the overview of an application. The device counts
what is stored, right after its commit; the edge counts what it answers with a refusal. Nothing of it is stored.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunkline.actors.values.errors import (
    Crashed,
    DomainError,
    Invalid,
    Overloaded,
    PayloadTooLarge,
    StorageFull,
    TooManyRequests,
)

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System

RECENT_MAX: Final = 10
"""Refusals and connection changes of an application that are remembered."""
_SENTENCE_CHARS_MAX: Final = 500


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


class ApplicationTraffic:
    """The counts of one application since `started_ms`. `refused` is by reason; the latest entries come last."""

    __slots__ = ("changes", "commands", "refusals", "refused", "started_ms", "states")

    def __init__(self, started_ms: int) -> None:
        self.started_ms = started_ms
        self.states = 0
        self.commands = 0
        self.refused: Counter[str] = Counter()
        self.refusals: deque[Refusal] = deque(maxlen=RECENT_MAX)
        self.changes: deque[Change] = deque(maxlen=RECENT_MAX)


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
        traffic = self.of(application)
        traffic.refused[reason] += 1
        now_ms, sentence = self._system.clock.wall_ms(), refusal.message[:_SENTENCE_CHARS_MAX]
        traffic.refusals.append(Refusal(now_ms, operation, device, reason, sentence))

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
