"""The share of the event loop that runs have: one run works at a time, for about a millisecond.

Owns when a turn ends. A run that waits for something leaves its turn to the next one. So the rest of the server waits
for runs at most about a millisecond in each turn of the loop, however many there are. Whose turn it is follows from the
time that each owner has used (`core/runtime/owner_shares.py`), so many runs of one owner do not slow down the only one
of another.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final

import trio

from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.yielding import yield_loop

WORK_NS: Final = 1_000_000
"""After so much work in nanoseconds the event loop belongs to others."""
OTHERS_NS: Final = 4 * WORK_NS
"""So long the loop belongs to others, if they have so much to do."""


class Share:
    """Whose turn it is. `on_free` is called when nobody has it. `payer` says who is charged for a task that enters."""

    __slots__ = ("_began_ns", "_holder", "_payer", "_turns", "began_s", "ends_ns", "on_free")

    def __init__(self, payer: Callable[[], Hashable] = lambda: None) -> None:
        self._payer = payer
        self._turns = OwnerShares("runs", 1, sys.maxsize)
        self._holder: Hashable = None
        self._began_ns = 0
        self.began_s = 0.0
        """When the turn began, by the clock of the event loop."""
        self.ends_ns = 0
        """When the turn has lasted long enough, by `time.perf_counter_ns`."""
        self.on_free: Callable[[], None] = lambda: None

    async def enter(self) -> None:
        """Wait for the turn. If this is cancelled, the turn is not taken."""
        payer = self._payer()
        try:
            await self._turns.take(payer)
        except trio.Cancelled:
            if not self._turns.running:
                self.on_free()
            raise
        self._holder = payer
        self.began_s = trio.current_time()
        self._began_ns = time.perf_counter_ns()
        self.ends_ns = self._began_ns + WORK_NS

    def leave(self) -> None:
        """End the turn."""
        self._pass_on()
        if not self._turns.running:
            self.on_free()

    def _pass_on(self) -> None:
        """Give the turn to who is next, if there is anybody: nobody may enter before."""
        self._turns.leave(self._holder, (time.perf_counter_ns() - self._began_ns) / 1e9)

    @property
    def is_used_up(self) -> bool:
        """Whether the turn has lasted long enough."""
        return time.perf_counter_ns() > self.ends_ns

    async def pause(self) -> None:
        """Let the rest of the server work, and the other runs.

        While the rest is busy, runs get a fifth of the time: what devices send goes first. If this is cancelled, the
        turn is taken again before: it is left where it was entered.
        """
        self._pass_on()
        with trio.CancelScope(shield=True):
            await yield_loop(OTHERS_NS)
            await self.enter()
        await trio.lowlevel.checkpoint_if_cancelled()

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[None]:
        """Leave the turn meanwhile. It is taken again also if the caller is cancelled: it is left where entered."""
        self.leave()
        try:
            yield
        finally:
            with trio.CancelScope(shield=True):
                await self.enter()
