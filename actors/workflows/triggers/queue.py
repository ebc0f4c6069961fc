"""The queue: what workflows are still to be run for, in memory; on disk it is in TRIGGERS.

Owns the order. Owners take turns, for each owner its applications, and in an application its workflows, so a long queue
of one delays no other. What has the same workflow and the same trigger id (such as that of a device) is run one after
the other, in the order of the causes. An owner has at most half of the places for runs, less where others have some
(`core/runtime/owner_shares.py`): runs may wait for a minute, and a new owner finds a place meanwhile.

Bounded for each workflow: if it is full, its oldest trigger is dropped, because the newest state is worth more. If all
queues together are full, that is the oldest of the longest queue of the owner for whom most triggers wait. What is
dropped is kept in `dropped` until the runner has told of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from trunkline.actors.core.runtime.held_back import HeldBack
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.values.clock import Clock
from trunkline.limits.table import Limits

_MS_SHIFT: Final = 20
"""A number begins with the time in ms, so numbers rise also across starts that leave nothing behind."""

_KEPT_BYTES: Final = 2_048
"""Larger records are read from the store when their turn comes."""


class Queued:
    """A trigger that waits, or is run. `raw` is its record, None if it is to be read from the store.

    `attempts` is how often a run of it was ended by a crash; `gone` if it was dropped. `owner` is who is
    charged for its place, once it is taken.
    """

    __slots__ = (
        "application",
        "attempts",
        "flow",
        "gone",
        "key",
        "number",
        "owner",
        "raw",
        "taken",
        "trigger_id",
    )

    def __init__(
        self, number: int, key: bytes, application: bytes, flow: bytes, trigger_id: str, raw: bytes
    ) -> None:
        self.number = number
        self.key = key
        self.application = application
        self.flow = flow
        self.trigger_id = trigger_id
        self.owner = application
        self.raw: bytes | None = raw if len(raw) <= _KEPT_BYTES else None
        self.attempts = 0
        self.gone = False
        self.taken = False

    @property
    def queued_ms(self) -> int:
        """When the trigger was numbered."""
        return self.number >> _MS_SHIFT


class Dropped(NamedTuple):
    """A trigger that will not be run. `key` is that of its record, None if it has none."""

    application: bytes
    flow: bytes
    key: bytes | None
    reason: str


class _FlowQueue:
    """What waits for one workflow: a lane for each trigger id, and the lanes whose turn may come."""

    __slots__ = ("in_turn", "lanes", "order", "owner", "ready", "running", "waiting")

    def __init__(self, owner: bytes) -> None:
        self.owner = owner
        self.lanes: dict[str, deque[Queued]] = {}
        self.ready: deque[str] = deque()
        self.running: set[str] = set()
        self.order: deque[Queued] = deque()
        self.waiting = 0
        self.in_turn = False


class TriggerQueue:
    """The triggers of all workflows of one system. A component. `owner_of` finds who owns an application."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        owner_of: Callable[[bytes], bytes] = lambda application: application,
    ) -> None:
        self.dropped: list[Dropped] = []
        self.passed_over: dict[tuple[bytes, bytes, str | None], int] = {}
        """Causes that needed no run, by application, workflow and name of the version, until the runner counts them."""
        self.waiting = 0
        """Triggers that wait, of all workflows."""
        self.dropped_count = 0
        self._limits = limits
        self._clock = clock
        self._last = 0
        self._flows: dict[tuple[bytes, bytes], _FlowQueue] = {}
        self._turns: dict[bytes, deque[bytes]] = {}
        self._rows: dict[bytes, deque[bytes]] = {}
        """By owner, in the order of their turns: the applications whose turn may come."""
        self._places = OwnerShares("runs", limits.flow_runs_max, leaves=1)
        self._owner_of = owner_of
        self._lengths: dict[bytes, int] = {}
        self._chosen: tuple[_FlowQueue | None, int] = (None, 0)
        """The queue that was found to be the longest, and at how many it is looked for again."""
        self._in_row: set[bytes] = set()
        self._running: dict[bytes, int] = {}
        self._long: dict[bytes, dict[bytes, _FlowQueue]] = {}
        self.held = HeldBack[Queued]()
        self.on_work: Callable[[], None] = lambda: None
        """Called when there is something to take, or to tell of."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to take, or to tell of."""
        return bool(self._rows or self.dropped)

    # Numbers.

    def next_number(self, now_ms: int | None = None) -> int:
        """The number of a new trigger, which begins with the time, by default read now. Later ones are larger."""
        if now_ms is None:
            now_ms = self._clock.wall_ms()
        self._last = max(self._last + 1, now_ms << _MS_SHIFT)
        return self._last

    def begin_after(self, number: int) -> None:
        """Numbers from now on are larger than this one."""
        self._last = max(self._last, number)

    # Adding.

    def add(self, entries: Iterable[Queued]) -> None:
        """Add triggers whose causes are on disk."""
        for entry in entries:
            if self.held and self.held.takes(entry.application, entry):
                continue
            place = (entry.application, entry.flow)
            queue = self._flows.get(place)
            if queue is None:
                queue = self._flows[place] = _FlowQueue(self._owner_of(entry.application))
            lane = queue.lanes.get(entry.trigger_id)
            if lane is None:
                lane = queue.lanes[entry.trigger_id] = deque()
            if not lane and entry.trigger_id not in queue.running:
                queue.ready.append(entry.trigger_id)
            lane.append(entry)
            queue.order.append(entry)
            self._count_waiting(queue, 1)
            if queue.waiting > self._limits.flow_queue_length_max:
                self._drop_oldest(queue, "The queue of the workflow", self._limits.flow_queue_length_max)
            elif self.waiting > self._limits.trigger_queue_length_max:
                longest = self._longest(queue)
                self._drop_oldest(longest, "The queue of the server", self._limits.trigger_queue_length_max)
            if queue.waiting > self._limits.flow_queue_length_max // 2:
                self._long.setdefault(entry.application, {})[entry.flow] = queue
            self._give_turn(entry.application, entry.flow, queue)
        self.on_work()

    def forget(self, application: bytes) -> None:
        """Forget what waits for an application, which stays in the store. What is run is not touched."""
        self._turns.pop(application, None)
        self._long.pop(application, None)
        if application in self._in_row:
            self._in_row.discard(application)
            owner = next(owner for owner, row in self._rows.items() if application in row)
            self._rows[owner].remove(application)
            if not self._rows[owner]:
                del self._rows[owner]
        for place in [place for place in self._flows if place[0] == application]:
            queue = self._flows[place]
            self._count_waiting(queue, -queue.waiting)
            queue.lanes.clear()
            queue.ready.clear()
            queue.order.clear()
            queue.in_turn = False
            self._forget(*place, queue)

    def drop(self, dropped: Dropped) -> None:
        """Note a trigger that will not be run."""
        self.dropped.append(dropped)
        self.dropped_count += 1
        self.on_work()

    def pass_over(self, application: bytes, flow: bytes, version: str | None) -> None:
        """Note a cause that needs no run."""
        place = (application, flow, version)
        self.passed_over[place] = self.passed_over.get(place, 0) + 1

    def _count_waiting(self, queue: _FlowQueue, more: int) -> None:
        queue.waiting += more
        self.waiting += more
        left = self._lengths.get(queue.owner, 0) + more
        if left:
            self._lengths[queue.owner] = left
        else:
            self._lengths.pop(queue.owner, None)

    def _longest(self, added: _FlowQueue) -> _FlowQueue:
        """The queue that loses a trigger for one that was added: one of the owner for whom most triggers wait."""
        most = max(self._lengths, key=self._lengths.__getitem__)
        if self._lengths[added.owner] == self._lengths[most]:
            return added
        known, least = self._chosen
        if known is None or known.owner != most or known.waiting <= least:
            of_owner = (queue for queue in self._flows.values() if queue.owner == most)
            known = max(of_owner, key=lambda queue: queue.waiting)
            self._chosen = known, known.waiting // 2
        return known

    def _drop_oldest(self, queue: _FlowQueue, what: str, most: int) -> None:
        while queue.order:
            oldest = queue.order.popleft()
            if oldest.taken:
                continue
            oldest.gone = True
            self._count_waiting(queue, -1)
            self.drop(
                Dropped(
                    oldest.application,
                    oldest.flow,
                    oldest.key,
                    f"{what} is full ({most} triggers); the oldest is dropped.",
                )
            )
            return

    # Taking.

    def take(self) -> Queued | None:
        """The next trigger to run; None if there is none that may run now. It is followed by `done`."""
        while (found := self._next()) is not None:
            owner, application = found
            self._in_row.discard(application)
            flow = self._turns[application].popleft()
            queue = self._flows[application, flow]
            queue.in_turn = False
            entry = self._take_of(queue)
            if entry is None:
                self._forget(application, flow, queue)
                self._line_up(application)
                continue
            self._places.take_at_once(owner)
            entry.owner = owner
            self._running[application] = self._running.get(application, 0) + 1
            if queue.ready and len(queue.running) < self._limits.concurrent_flow_runs_max:
                queue.in_turn = True
                self._turns[application].append(flow)
            self._line_up(application)
            return entry
        return None

    def done(self, entry: Queued) -> None:
        """A taken trigger was run; the next one with its trigger id may be taken."""
        application = entry.application
        self._running[application] -= 1
        if not self._running[application]:
            del self._running[application]
        queue, trigger_id = self._flows[application, entry.flow], entry.trigger_id
        self._places.leave(entry.owner)
        queue.running.discard(trigger_id)
        if queue.lanes.get(trigger_id):
            queue.ready.append(trigger_id)
        else:
            queue.lanes.pop(trigger_id, None)
        if not queue.in_turn:
            self._give_turn(application, entry.flow, queue)
            self._forget(application, entry.flow, queue)
        if application not in self._in_row:
            self._line_up(application)

    def is_half_full(self, application: bytes) -> bool:
        """Whether more than half as much waits as may: for a workflow of the application, or for all of its owner.

        For an owner may wait what all owners together leave free.
        """
        if self.waiting > self._limits.trigger_queue_length_max // 2:
            own = self._lengths.get(self._owner_of(application), 0)
            if own > self._limits.trigger_queue_length_max - self.waiting:
                return True
        half = self._limits.flow_queue_length_max // 2
        long = self._long.get(application, {})
        for flow in [flow for flow, queue in long.items() if queue.waiting <= half]:
            self._note_short(application, flow)
        return application in self._long

    def _note_short(self, application: bytes, flow: bytes) -> None:
        """The queue of a workflow is not half full any more."""
        long = self._long.get(application)
        if long is not None:
            long.pop(flow, None)
            if not long:
                del self._long[application]

    def waiting_of(self, application: bytes, flow: bytes) -> int:
        """The triggers that wait for a workflow."""
        queue = self._flows.get((application, flow))
        return 0 if queue is None else queue.waiting

    def oldest_of_all_ms(self) -> int | None:
        """When the oldest trigger that waits for any workflow was queued."""
        oldest = [self.oldest_ms(*place) for place in self._flows]
        return min((each for each in oldest if each is not None), default=None)

    def oldest_ms(self, application: bytes, flow: bytes) -> int | None:
        """When the oldest trigger that waits for a workflow was queued."""
        queue = self._flows.get((application, flow))
        if queue is None:
            return None
        _drop_taken(queue.order)
        return queue.order[0].queued_ms if queue.order else None

    def _next(self) -> tuple[bytes, bytes] | None:
        """The owner and the application whose turn it is. The owner comes behind the others then."""
        for owner, row in self._rows.items():
            if self._places.has_place(owner):
                application = row.popleft()
                del self._rows[owner]
                if row:
                    self._rows[owner] = row
                return owner, application
        return None

    def _take_of(self, queue: _FlowQueue) -> Queued | None:
        while queue.ready:
            trigger_id = queue.ready.popleft()
            lane = queue.lanes[trigger_id]
            while lane and lane[0].gone:
                lane.popleft()
            if not lane:
                del queue.lanes[trigger_id]
                continue
            entry = lane.popleft()
            entry.taken = True
            queue.running.add(trigger_id)
            self._count_waiting(queue, -1)
            order = queue.order
            while order and (order[0].taken or order[0].gone):
                order.popleft()
            return entry
        return None

    def _line_up(self, application: bytes) -> None:
        """Put an application in the row, if one of its workflows may run."""
        flows = self._turns.get(application)
        if not flows:
            self._turns.pop(application, None)
            return
        most = self._limits.concurrent_application_runs_max
        if application not in self._in_row and self._running.get(application, 0) < most:
            self._in_row.add(application)
            self._rows.setdefault(self._owner_of(application), deque()).append(application)

    def _give_turn(self, application: bytes, flow: bytes, queue: _FlowQueue) -> None:
        if queue.in_turn or not queue.ready or len(queue.running) >= self._limits.concurrent_flow_runs_max:
            return
        queue.in_turn = True
        self._turns.setdefault(application, deque()).append(flow)
        self._line_up(application)

    def _forget(self, application: bytes, flow: bytes, queue: _FlowQueue) -> None:
        if not queue.lanes and not queue.running and not queue.in_turn:
            self._flows.pop((application, flow), None)
            self._note_short(application, flow)


def _drop_taken(order: deque[Queued]) -> None:
    while order and (order[0].taken or order[0].gone):
        order.popleft()
