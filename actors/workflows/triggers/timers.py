"""Timers: a task that waits for the first due time, and lets the workflow fire, or press the buttons that are due.

Owns the waiting, and what a run is told of its timer. A firing is one turn of the workflow: the record of the trigger
and the next due time are in one batch, so each due time is queued once, also when the server is killed.

While the server was down due times pass: then a timer fires once, and says how many it missed. The wall clock is looked
at every few seconds, because somebody may set it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.workflows.flows.due_times import TIMER, DueTimes, Firing, Place
from trunkline.actors.workflows.flows.messages import FireTimers
from trunkline.actors.workflows.triggers.alarm import Alarm
from trunkline.actors.workflows.triggers.index import Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.actors.workflows.triggers.scheduled import scheduled_ref
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

_AT_ONCE: Final = 256
"""Workflows whose timers fire together: their batches are in one commit."""
_RETRY_MS: Final = 1_000

_log = structlog.get_logger("trunkline.flows")


class Timers(Moved):
    """Fires the timers of one system. A component; run `run` in a nursery for as long as it is used."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._due = system.component(DueTimes)
        self.alarm = Alarm(system.clock, self._due, _AT_ONCE, self._ring, self._prepare)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Fire what is due, until cancelled."""
        await self._load(self._system.clock.wall_ms())
        task_status.started()
        await self.alarm.run()

    async def _ring(self, places: list[Place], _now_ms: int) -> None:
        async with trio.open_nursery() as nursery:
            for place in places:
                nursery.start_soon(self._fire, place)

    async def _prepare(self, now_ms: int, was_set_back: bool) -> None:
        if was_set_back:
            await self._load(now_ms)

    async def come(self, application: bytes) -> None:
        """Look at the due times of an application."""
        await self._load(self._system.clock.wall_ms(), application)

    async def _load(self, now_ms: int, application: bytes = b"") -> None:
        """Let each workflow with timers look at its due times, and correct those that a clock set back has changed.

        Each application with scheduled presses looks at them as well. All applications are meant, or one.
        """
        for place in await self._system.store.read(partial(_stored, application)):
            self._due.set(place, now_ms)

    async def _fire(self, place: Place) -> None:
        application, flow = place
        ref = scheduled_ref(application) if application == flow else Ref("flow", application, flow)

        def stamp(actor: Actor, firings: list[Firing]) -> None:
            for each in firings:
                watcher = Watcher(flow, each.position, TIMER, each.key, {}, {}, "", None)
                stage(actor, (watcher,), _cause(each, self._system.clock.wall_ms()))

        try:
            await self._system.ask(ref, FireTimers(), stamp)
        except NotFound:
            return  # deleted meanwhile
        except DomainError as refusal:
            _log.warning("timer postponed", flow=flow.hex(), reason=refusal.message)
            self._due.set(place, self._system.clock.wall_ms() + _RETRY_MS)


def _stored(application: bytes, snapshot: Snapshot) -> set[Place]:
    """The workflows with timers, and the applications with scheduled presses: their ids twice."""

    def ids(prefix: bytes) -> Iterator[bytes]:
        first = prefix + application
        return (bytes(key[len(prefix) :]) for key in snapshot.keys(keys.META, first, keys.prefix_end(first)))

    places = {(each[: keys.ID_BYTES], each[keys.ID_BYTES :]) for each in ids(keys.FLOW_TIMERS_PREFIX)}
    return places | {(each[: keys.ID_BYTES],) * 2 for each in ids(keys.SCHEDULED_PREFIX)}


def _cause(firing: Firing, now_ms: int) -> Cause:
    told = {"dueTime": iso(firing.due_ms), "missedCount": firing.missed}
    return Cause(firing.key, {}, now_ms, {"timer": told})
