"""An alarm: waits for the first of many due times, and looks at the wall clock every few seconds, as it may be set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from trunkline.actors.core.values.clock import Clock
from trunkline.actors.workflows.flows.due_times import DueTimes, Place

_LOOK_S: Final = 10.0


class Alarm:
    """Calls `ring` with what is due, at most `at_once` places. Before each look it calls `prepare` with the time and
    whether the clock was set back since the look before.
    """

    def __init__(
        self,
        clock: Clock,
        due: DueTimes,
        at_once: int,
        ring: Callable[[list[Place], int], Awaitable[None]],
        prepare: Callable[[int, bool], Awaitable[None]],
    ) -> None:
        self._clock = clock
        self._due = due
        self._at_once = at_once
        self._ring = ring
        self._prepare = prepare
        self._changed = trio.Event()
        self.is_waiting = False
        """Whether all that was due at the last look has been rung for."""

    async def run(self) -> None:
        """Ring until cancelled."""
        self._due.on_earlier = self.look
        looked_ms = self._clock.wall_ms()
        while True:
            now_ms = self._clock.wall_ms()
            self._changed = trio.Event()
            await self._prepare(now_ms, now_ms < looked_ms)
            looked_ms = now_ms
            if places := self._due.take(now_ms, self._at_once):
                await self._ring(places, now_ms)
                await trio.lowlevel.checkpoint()
                continue
            first_ms = self._due.first_ms
            wait_s = _LOOK_S if first_ms is None else min(_LOOK_S, (first_ms - now_ms) / 1000)
            self.is_waiting = not self._changed.is_set()
            with trio.move_on_after(wait_s):
                await self._changed.wait()

    def look(self) -> None:
        """Look at the clock now."""
        self.is_waiting = False
        self._changed.set()
