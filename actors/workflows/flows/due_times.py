"""Due times: when the timers of a workflow are due, as they are stored and as they are known in memory.

Owns the form of the stored value and how it follows a change of the workflow: a timer that did not change keeps its due
time. The actor of the workflow writes it, `workflows/triggers/timers.py` waits for it. Beside the timers are the
watches: the triggers of inactivity, with the time since which they count.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.workflows.flows.schedules import Schedule, schedule_of
from trunkline.store.codec import decode, encode

TIMER: Final = "timer"
INACTIVITY: Final = ("deviceIdInactivity", "deviceTagInactivity")
_TIMED: Final = frozenset({TIMER, *INACTIVITY})


class Timer(NamedTuple):
    """A timer of the version that runs. `position` is that of its trigger, `since_ms` when `due_ms` was determined."""

    position: int
    key: str
    seconds: int | float | None
    cron: str | None
    zone: str | None
    since_ms: int
    due_ms: int

    @property
    def schedule(self) -> Schedule:
        """When it is due."""
        found = schedule_of({"seconds": self.seconds, "cron": self.cron, "tz": self.zone})
        assert found is not None
        return found


class Watch(NamedTuple):
    """A trigger of inactivity of the version that runs, which counts from `since_ms`."""

    position: int
    type: str
    key: str
    seconds: int | float
    since_ms: int


class Timed(NamedTuple):
    """What of a workflow depends on time."""

    timers: list[Timer]
    watches: list[Watch]

    def encoded(self) -> bytes:
        """The stored bytes."""
        return encode([[list(each) for each in part] for part in self])

    @classmethod
    def decoded(cls, raw: bytes | None) -> Timed:
        """That of which `raw` are the stored bytes. None, and an empty list, stand for nothing."""
        timers, watches = (None if raw is None else decode(raw)) or ([], [])
        return cls([Timer(*each) for each in timers], [Watch(*each) for each in watches])


class Firing(msgspec.Struct, frozen=True):
    """A timer that was due. `missed` due times after this one are over as well, and are not made up."""

    position: int
    key: str
    due_ms: int
    missed: int


def is_timed(triggers: Iterable[Iterable[str]]) -> bool:
    """Whether one of these triggers, of which each has a type and a key, depends on time."""
    return any(type in _TIMED for type, _ in triggers)


def aligned(triggers: list[Doc], before: Timed, now_ms: int) -> Timed:
    """What of a definition depends on time. What was there `before` goes on, all else begins now."""
    return Timed(
        _aligned_timers(triggers, before.timers, now_ms), _aligned_watches(triggers, before.watches, now_ms)
    )


def _aligned_watches(triggers: list[Doc], before: list[Watch], now_ms: int) -> list[Watch]:
    known = {each[1:4]: each.since_ms for each in before}
    watches: list[Watch] = []
    for position, trigger in enumerate(triggers):
        seconds = (trigger.get("config") or {}).get("seconds")
        if trigger["type"] in INACTIVITY and seconds is not None:
            names = (trigger["type"], trigger.get("key", ""), seconds)
            watches.append(Watch(position, *names, known.get(names, now_ms)))
    return watches


def _aligned_timers(triggers: list[Doc], before: list[Timer], now_ms: int) -> list[Timer]:
    known: dict[tuple[Any, ...], list[Timer]] = {}
    for each in before:
        known.setdefault(each[1:5], []).append(each)
    timers: list[Timer] = []
    for position, trigger in enumerate(triggers):
        if trigger["type"] != TIMER:
            continue
        config = trigger.get("config") or {}
        try:
            schedule = schedule_of(config)
        except Invalid:
            continue  # stored before timers were checked; the next save tells of it
        if schedule is None:
            continue
        names = (trigger.get("key", ""), config.get("seconds"), config.get("cron"), config.get("tz"))
        same = known.get(names)
        if same:
            timers.append(same.pop(0)._replace(position=position))
        else:
            timers.append(Timer(position, *names, now_ms, schedule.first(now_ms)))
    return timers


def fire(timers: list[Timer], now_ms: int) -> tuple[list[Timer], list[Firing]]:
    """The timers after those that are due have fired, and the firings. Due times follow a clock that was set back."""
    after: list[Timer] = []
    firings: list[Firing] = []
    for each in timers:
        due_ms = each.due_ms
        if due_ms <= now_ms:
            next_ms, missed = each.schedule.after(due_ms, now_ms)
            firings.append(Firing(each.position, each.key, due_ms, missed))
        elif now_ms < each.since_ms:
            next_ms = each.schedule.corrected(due_ms, each.since_ms, now_ms)
        else:
            next_ms = due_ms
        after.append(each if next_ms == due_ms else each._replace(since_ms=now_ms, due_ms=next_ms))
    return after, firings


def corrected(watches: list[Watch], now_ms: int) -> list[Watch]:
    """The watches; those that count from a time to come, because the clock was set back, count from now."""
    return [each if each.since_ms <= now_ms else each._replace(since_ms=now_ms) for each in watches]


Place = tuple[bytes, bytes]
"""An application and a workflow of it."""


Since = dict[tuple[bytes, int], int]
"""Of watches of an application, by workflow and position: the time since which they count."""


class Watches:
    """The watches of all workflows, of what is on disk. A component of the system."""

    def __init__(self) -> None:
        self._flows: dict[bytes, dict[bytes, list[Watch]]] = {}
        self._since: dict[bytes, Since] = {}
        self.on_change: Callable[[bytes], None] = _ignore
        """Called with the application when its watches have changed."""

    @property
    def applications(self) -> list[bytes]:
        """The applications with watches."""
        return list(self._since)

    def since(self, application: bytes) -> Since:
        """The watches of an application."""
        return self._since.get(application, {})

    def set(self, place: Place, watches: list[Watch]) -> None:
        """Note the watches of a workflow."""
        application, flow = place
        flows = self._flows.setdefault(application, {})
        if flows.get(flow, []) == watches:
            return
        flows[flow] = watches
        since = {(id, each.position): each.since_ms for id, of_flow in flows.items() for each in of_flow}
        if since:
            self._since[application] = since
        else:
            self._flows.pop(application, None)
            self._since.pop(application, None)
        self.on_change(application)

    def forget(self, application: bytes) -> None:
        """An application is deleted."""
        self._flows.pop(application, None)
        self._since.pop(application, None)


def _ignore(_application: bytes) -> None:
    pass


class DueTimes:
    """The first due time of each workflow, of what is on disk. A component of the system.

    Nothing is due of applications that are `away` in another process.
    """

    def __init__(self, away: Collection[bytes] = ()) -> None:
        self._away = away
        self._first: dict[Place, int] = {}
        self._heap: list[tuple[int, Place]] = []
        self.on_earlier: Callable[[], None] = lambda: None
        """Called when the first of all due times is earlier than before."""

    def set(self, place: Place, due_ms: int | None) -> None:
        """Note the first due time of a workflow; None if it has no timers (any more)."""
        if due_ms is None:
            self._first.pop(place, None)
            return
        if self._first.get(place) == due_ms or place[0] in self._away:
            return
        self._first[place] = due_ms
        heapq.heappush(self._heap, (due_ms, place))
        if len(self._heap) > 2 * len(self._first) + 64:
            self._heap = [(at_ms, each) for each, at_ms in self._first.items()]
            heapq.heapify(self._heap)
        if self._heap[0] == (due_ms, place):
            self.on_earlier()

    def forget(self, application: bytes) -> int:
        """Forget all due times of an application. Returns how many there were."""
        gone = [place for place in self._first if place[0] == application]
        for place in gone:
            del self._first[place]
        return len(gone)

    def get(self, place: Place) -> int | None:
        """The first due time of a workflow; None if it has no timers."""
        return self._first.get(place)

    def __len__(self) -> int:
        return len(self._first)

    def __contains__(self, place: Place) -> bool:
        return place in self._first

    @property
    def first(self) -> tuple[int, Place] | None:
        """The first of all due times, and whose it is."""
        heap = self._heap
        while heap and self._first.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0] if heap else None

    @property
    def first_ms(self) -> int | None:
        """The first of all due times."""
        first = self.first
        return None if first is None else first[0]

    def take(self, now_ms: int, most: int) -> list[Place]:
        """Remove and return workflows with due timers, those that are due for the longest time first."""
        found: list[Place] = []
        while len(found) < most and (first_ms := self.first_ms) is not None and first_ms <= now_ms:
            place = heapq.heappop(self._heap)[1]
            del self._first[place]
            found.append(place)
        return found
