"""The backlog lane: calls with states of the past wait here for their turn, so that live states go first.

Owns the budget of each application (`backlog_states`), the order, and the bounds of waiting. Does not own storing: who
has the turn asks the device (`SendBacklog`), and keeps the turn until the answer. A connection that carries many calls
awaits the turn of one before it reads the next.

Turns are given out in batches of at most `backlog_batch_states_max` states. When all calls of a batch are answered, the
event loop belongs to others for four times as long as the batch took, if they have so much to do; then comes the next
batch. So a live state waits for one batch at most, and backlogs get a fifth of a busy loop.

Owners take turns, for an owner the applications, and in an application the devices. An owner may have as many bytes
waiting as all owners together leave free, so who fills the room is refused. An application waits while its budget is
used up, while its workflows have half as many triggers waiting as may, and while half of the memory for reports that
are not flushed is in use: live states need the other half.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.yielding import yield_loop
from trunkline.actors.core.values.clock import Clock
from trunkline.actors.core.values.errors import Overloaded, PayloadTooLarge, TooManyRequests
from trunkline.actors.workflows.triggers.queue import TriggerQueue
from trunkline.limits.table import Limits
from trunkline.limits.volume_window import VolumeWindow
from trunkline.limits.window import Verdict

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

BUCKET: Final = "backlog_states"
OTHERS_SHARE: Final = 4
"""So many times as long as a batch took the loop belongs to others."""
_SLOW_S: Final = 1.0
"""After so long the next batch does not wait for calls of the one before: a device may be busy."""
_TOOK_NS_MAX: Final = 50_000_000
"""Such a call did not work all the time; no more of it counts."""
_HELD_S: Final = 0.05
"""Applications that wait for anything but their budget are looked at again after this time."""


class _Call:
    """A call that waits, or has its turn. `refusal` if the server stops before."""

    __slots__ = ("batch", "device", "event", "refusal", "size_bytes", "states", "verdict", "waiting")

    def __init__(self, waiting: _Waiting, device: bytes, states: int, size_bytes: int) -> None:
        self.waiting = waiting
        self.device = device
        self.states = states
        self.size_bytes = size_bytes
        self.event = trio.Event()
        self.batch: _Batch | None = None
        self.verdict: Verdict | None = None
        self.refusal: Overloaded | None = None


class _Batch:
    """The calls that have their turn at the same time: how many are not answered yet."""

    __slots__ = ("answered", "open")

    def __init__(self) -> None:
        self.open = 0
        self.answered = trio.Event()


class _Waiting:
    """What waits of one application: the calls of each device, the device first whose turn it is.

    `row` is that of the owner, while anything waits.
    """

    __slots__ = ("application", "devices", "row", "states", "window")

    def __init__(self, application: bytes, window: VolumeWindow | None) -> None:
        self.application = application
        self.window = window
        self.devices: OrderedDict[bytes, deque[_Call]] = OrderedDict()
        self.row: _Row | None = None
        self.states = 0

    @property
    def first(self) -> _Call:
        """The call whose turn it is."""
        return next(iter(self.devices.values()))[0]

    def is_idle(self, now_s: float) -> bool:
        """Whether nothing waits, and nothing counts against the budget."""
        return not self.devices and (self.window is None or self.window.empty(now_s))

    def add(self, call: _Call) -> None:
        self.devices.setdefault(call.device, deque()).append(call)
        self.states += call.states

    def remove(self, call: _Call) -> None:
        """Remove a call; the other calls of its device come after those of the other devices."""
        calls = self.devices[call.device]
        calls.remove(call)
        if calls:
            self.devices.move_to_end(call.device)
        else:
            del self.devices[call.device]
        self.states -= call.states


class _Row:
    """What waits of one owner: the applications, that one first whose turn it is."""

    __slots__ = ("applications", "owner", "size_bytes")

    def __init__(self, owner: Hashable) -> None:
        self.owner = owner
        self.applications: deque[_Waiting] = deque()
        self.size_bytes = 0


class BacklogLane:
    """The lane of one system. A component; run `run` in a nursery for as long as it is used.

    `is_held` says whether the backlog of an application must wait for something else than its budget, `owner_of` who
    owns it.
    """

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        is_held: Callable[[bytes], bool],
        owner_of: Callable[[bytes], Hashable] = lambda application: application,
    ) -> None:
        self.waiting = 0
        """Calls that wait."""
        self.waiting_bytes = 0
        self.states = 0
        """States whose turn came, since the start."""
        self.refused = 0
        self._limits = limits
        self._clock = clock
        self._is_held = is_held
        self._owner_of = owner_of
        self._applications: OrderedDict[bytes, _Waiting] = OrderedDict()
        self._rows: OrderedDict[Hashable, _Row] = OrderedDict()
        """By owner, in the order of their turns: those for whom something waits."""
        self._changed = trio.Event()
        self._stopping = False

    @asynccontextmanager
    async def turn(self, device: Ref, states: int, size_bytes: int) -> AsyncIterator[Verdict | None]:
        """Wait for the turn of a call with so many states, whose body has so many bytes; keep it for the block.

        Yields the verdict of the bucket `backlog_states`, None if that is off. Raises `PayloadTooLarge` for more states
        than one batch may have, `Overloaded` if there is no room to wait, and `TooManyRequests` if the turn does not
        come within `backlog_wait_s`. Raised before the block, so nothing was stored.
        """
        call = self._enter(device, states, size_bytes)
        try:
            with trio.move_on_after(self._limits.backlog_wait_s):
                await call.event.wait()
            if call.refusal is not None:
                raise call.refusal
            if call.batch is None:
                raise self._too_late(call)
            yield call.verdict
        finally:
            self._leave(call)

    def peek(self, application: bytes) -> Verdict | None:
        """What is left of the budget of an application, without spending any; None if there is no budget."""
        waiting, rate = self._applications.get(application), self._limits.backlog_states
        window = waiting.window if waiting is not None else None if rate is None else VolumeWindow(rate)
        return None if window is None else window.peek(self._clock.monotonic_s())

    async def run(self) -> None:
        """Give out turns until cancelled. Then who waits is refused."""
        try:
            while True:
                began_ns = time.perf_counter_ns()
                batch, again_s = self._next_batch()
                if batch.open:
                    with trio.move_on_after(_SLOW_S):
                        await batch.answered.wait()
                    took_ns = min(time.perf_counter_ns() - began_ns, _TOOK_NS_MAX)
                    await yield_loop(OTHERS_SHARE * took_ns)
                else:
                    self._changed = trio.Event()
                    with trio.move_on_after(again_s):
                        await self._changed.wait()
        finally:
            self.stop()

    def stop(self) -> None:
        """Refuse all calls that wait, and those that come."""
        self._stopping = True
        for row in self._rows.values():
            for waiting in row.applications:
                for calls in waiting.devices.values():
                    for call in calls:
                        call.refusal = _stopping()
                        call.event.set()

    # Coming and going.

    def _enter(self, device: Ref, states: int, size_bytes: int) -> _Call:
        limits = self._limits
        if self._stopping:
            raise _stopping()
        states_max = limits.backlog_batch_states_max
        if states > states_max:
            raise PayloadTooLarge(
                f"{states} states in one call; send at most {states_max} of a backlog a call."
            )
        waiting = self._waiting_of(device.parent)
        call = _Call(waiting, device.id, states, size_bytes)
        calls = waiting.devices.get(device.id, ())
        if len(calls) >= limits.backlog_waiting_calls_max:
            raise self._no_room(waiting, f"{len(calls)} calls with a backlog of this device wait already.")
        row = waiting.row or self._row_of(device.parent)
        if row.size_bytes + size_bytes > limits.backlog_waiting_bytes_max - self.waiting_bytes:
            raise self._no_room(waiting, f"{row.size_bytes} bytes of backlogs of this owner wait already.")
        if waiting.row is None:
            waiting.row = row
            row.applications.append(waiting)
            self._rows[row.owner] = row
        waiting.add(call)
        self.waiting += 1
        self.waiting_bytes += size_bytes
        row.size_bytes += size_bytes
        self._changed.set()
        return call

    def _row_of(self, application: bytes) -> _Row:
        """The row of the owner of an application; a new one if nothing waits."""
        owner = self._owner_of(application)
        return self._rows.get(owner) or _Row(owner)

    def _waiting_of(self, application: bytes) -> _Waiting:
        """What waits of an application. Forgets another one where nothing waits or counts any more, if there is one."""
        if self._applications:
            oldest, waiting = next(iter(self._applications.items()))
            if waiting.is_idle(self._clock.monotonic_s()):
                del self._applications[oldest]
            else:
                self._applications.move_to_end(oldest)
        found = self._applications.get(application)
        if found is None:
            rate = self._limits.backlog_states
            window = None if rate is None else VolumeWindow(rate)
            found = self._applications[application] = _Waiting(application, window)
        return found

    def _leave(self, call: _Call) -> None:
        """A call is answered, or does not wait any longer."""
        if call.batch is None:
            waiting = call.waiting
            row = waiting.row
            assert row is not None
            self._remove(call)
            if not waiting.devices:
                row.applications.remove(waiting)
                self._forget_empty(row)
            return
        call.batch.open -= 1
        if not call.batch.open:
            call.batch.answered.set()

    def _remove(self, call: _Call) -> None:
        """A call waits no longer. The application stays in the row of its owner, which the caller looks at."""
        waiting = call.waiting
        row = waiting.row
        assert row is not None
        waiting.remove(call)
        self.waiting -= 1
        self.waiting_bytes -= call.size_bytes
        row.size_bytes -= call.size_bytes
        if not waiting.devices:
            waiting.row = None

    def _forget_empty(self, row: _Row) -> None:
        if not row.applications:
            self._rows.pop(row.owner, None)

    # Turns.

    def _next_batch(self) -> tuple[_Batch, float]:
        """Give out the turns of the next batch; if there are none, the second value is when to look again."""
        now_s, again_s = self._clock.monotonic_s(), math.inf
        batch, room = _Batch(), self._limits.backlog_batch_states_max
        held: list[_Row] = []
        while self._rows:
            owner, row = next(iter(self._rows.items()))
            given, hold_s, is_full = self._give_turns_of_owner(row, batch, room, now_s)
            room -= given
            self.states += given
            again_s = min(again_s, hold_s)
            if is_full and not given:
                break  # the first call that may have its turn needs more than is left of the batch
            del self._rows[owner]
            if is_full:
                self._rows[owner] = row  # behind the others
            elif row.applications:
                held.append(row)
        for row in reversed(held):
            self._rows[row.owner] = row
            self._rows.move_to_end(row.owner, last=False)
        return batch, again_s

    def _give_turns_of_owner(
        self, row: _Row, batch: _Batch, room: int, now_s: float
    ) -> tuple[int, float, bool]:
        """Give turns to an owner for so many states.

        Returns how many, when the applications that are held are looked at again, and whether one that is not held has
        more than there was room for.
        """
        applications, held = row.applications, []
        given, again_s = 0, math.inf
        while applications and applications[0].first.states <= room - given:
            waiting = applications.popleft()
            more, hold_s = self._give_turns(waiting, batch, room - given, now_s)
            given += more
            if hold_s:
                again_s = min(again_s, hold_s)
                held.append(waiting)
            elif waiting.devices:
                applications.append(waiting)
        is_full = bool(applications)
        applications.extendleft(reversed(held))
        return given, again_s, is_full

    def _give_turns(self, waiting: _Waiting, batch: _Batch, room: int, now_s: float) -> tuple[int, float]:
        """Give turns to an application for so many states; return how many, and if it is held, for how long."""
        if self._is_held(waiting.application):
            return 0, _HELD_S
        given = 0
        while waiting.devices and (call := waiting.first).states <= room - given:
            if waiting.window is not None:
                call.verdict = waiting.window.allow(now_s, call.states)
                if not call.verdict.allowed:
                    return given, call.verdict.reset_s
            self._remove(call)
            given += call.states
            batch.open += 1
            call.batch = batch
            call.event.set()
        return given, 0.0

    # Refusals.

    def _no_room(self, waiting: _Waiting, reason: str) -> Overloaded:
        self.refused += 1
        retry_s = self._retry_s(waiting)
        return Overloaded(
            f"{reason} Nothing of this call was stored. Try again in {math.ceil(retry_s)} seconds.",
            retry_after_s=retry_s,
            reason=BUCKET,
        )

    def _too_late(self, call: _Call) -> TooManyRequests:
        self.refused += 1
        window, retry_s = call.waiting.window, self._retry_s(call.waiting)
        verdict = None if window is None else window.peek(self._clock.monotonic_s())
        return TooManyRequests(
            f"The backlog waited for its turn for {self._limits.backlog_wait_s:g} seconds, behind others. "
            f"Nothing of this call was stored. Try again in {math.ceil(retry_s)} seconds.",
            bucket=BUCKET,
            verdict=verdict,
            retry_after_s=retry_s,
        )

    def _retry_s(self, waiting: _Waiting) -> float:
        """How long the budget needs for what waits of an application, at least a second."""
        rate = self._limits.backlog_states
        if rate is None:
            return 1.0
        return max(1.0, waiting.states * rate.window_s / rate.calls)


def _stopping() -> Overloaded:
    return Overloaded("The server is stopping; nothing of this call was stored.")


def holds_backlog(system: System, application: bytes) -> bool:
    """Whether backlogs would take memory or places in queues that live states need."""
    half = system.limits.arrivals_bytes_max // 2
    return system.store.arrivals.size_bytes > half or system.component(TriggerQueue).is_half_full(application)
