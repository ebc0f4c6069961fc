"""The share of the event loop that runs have: one run works at a time, for about a millisecond.

Owns whose turn it is. A run that waits for something leaves its turn to the next one. So the rest of the server waits
for runs at most about a millisecond in each turn of the loop, however many there are.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from trunkline.actors.runtime.yielding import yield_loop

WORK_NS: Final = 1_000_000
"""After so much work in nanoseconds the event loop belongs to others."""
OTHERS_NS: Final = 4 * WORK_NS
"""So long the loop belongs to others, if they have so much to do."""


class Share:
    """Whose turn it is. `on_free` is called when nobody has it."""

    __slots__ = ("_held", "_waiting", "began_s", "ends_ns", "on_free")

    def __init__(self) -> None:
        self._held = False
        self._waiting: deque[trio.lowlevel.Task] = deque()
        self.began_s = 0.0
        """When the turn began, by the clock of the event loop."""
        self.ends_ns = 0
        """When the turn has lasted long enough, by `time.perf_counter_ns`."""
        self.on_free: Callable[[], None] = lambda: None

    async def enter(self) -> None:
        """Wait for the turn. If this is cancelled, the turn is not taken."""
        if self._held or self._waiting:
            task = trio.lowlevel.current_task()
            self._waiting.append(task)

            def abort(_raise: object) -> trio.lowlevel.Abort:
                self._waiting.remove(task)
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        self._held = True
        self.began_s = trio.current_time()
        self.ends_ns = time.perf_counter_ns() + WORK_NS

    def leave(self) -> None:
        """End the turn."""
        self._pass_on()
        if not self._held:
            self.on_free()

    def _pass_on(self) -> None:
        """Give the turn to the one who has waited longest, if there is one: nobody may enter before."""
        self._held = bool(self._waiting)
        if self._held:
            trio.lowlevel.reschedule(self._waiting.popleft())

    @property
    def is_used_up(self) -> bool:
        """Whether the turn has lasted long enough."""
        return time.perf_counter_ns() > self.ends_ns

    async def pause(self) -> None:
        """Let the rest of the server work, and the other runs.

        While the rest is busy, runs get a fifth of the time: what devices send goes first.
        """
        self._pass_on()
        await yield_loop(OTHERS_NS)
        await self.enter()
