"""The log of a run with several machines, and the way of a machine to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from tests.simulation.network import Network
from tests.simulation.processes import LATE_S
from tests.store.simulated_log import SimulatedLog
from tests.store.simulated_nodes import Way

T = TypeVar("T")
SLOW_S: Final = 0.5
"""An append that takes longer may be noticed by clients."""


class Log(SimulatedLog):
    """The log. While everything is looked at, nothing of it fails."""

    network: Network

    def fails(self, share: float = 1.0) -> bool:
        return self.network.may_stall and super().fails(share)


class LogWay(Way):
    """The log as a machine reaches it."""

    def __init__(self, log: SimulatedLog) -> None:
        super().__init__(log)
        self.is_cut = False
        self.slow_until_s = -LATE_S
        """When an append took long for the last time."""
        self._began_s: float | None = None
        """When the append that is under way was begun."""

    def cut(self) -> None:
        super().cut()
        self.is_cut = True

    def mend(self) -> None:
        super().mend()
        self.is_cut = False

    def waits(self, seconds: float) -> bool:
        """Whether an append is under way for longer."""
        return self._began_s is not None and trio.current_time() - self._began_s > seconds

    async def append(self, data: bytes, after: int) -> int:
        return await self._timed(lambda: super(LogWay, self).append(data, after))

    async def entry(self, place: int) -> bytes | None:
        return await self._timed(lambda: super(LogWay, self).entry(place))

    async def _timed(self, ask: Callable[[], Awaitable[T]]) -> T:
        began_s = self._began_s = trio.current_time()
        is_done = False
        try:
            found = await ask()
            is_done = True
            return found
        finally:
            self._began_s = None
            if not is_done or trio.current_time() - began_s > SLOW_S:
                self.slow_until_s = trio.current_time()
