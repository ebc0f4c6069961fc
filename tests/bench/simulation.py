"""A simulation for a load, without sockets and without a clock: time advances only when nothing else can happen.

``World`` replaces the reactor, ``SimulatedConnection`` a connection whose server answers after ``world.answer``
seconds with ``world.status``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from trunkline.bench.errors import ConnectionBroken
from trunkline.bench.framing import Response
from trunkline.bench.load import Caller, Tally


class World:
    """Timers in order; ``now_s`` jumps to the next one."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.answer: Callable[[float], float] = lambda now_s: 0.0
        self.respond: Callable[[float], Response | None] = lambda now_s: Response(200, b"", b"{}")
        self.opened = 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._stopped = False

    def clock(self) -> float:
        return self.now_s

    def call_at(self, at_s: float, callback: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._timers, (at_s, self._number, callback))

    def stop(self) -> None:
        self._stopped = True

    def run(self, end_s: float) -> bool:
        self._stopped = False
        while not self._stopped:
            if not self._timers or self._timers[0][0] >= end_s:
                self.now_s = max(self.now_s, end_s)
                return False
            at_s, _, callback = heapq.heappop(self._timers)
            self.now_s = max(self.now_s, at_s)
            callback()
        return True


class SimulatedConnection:
    """A connection: opens at once, and answers each request after the world's time for it."""

    def __init__(self, load: Any) -> None:
        self.load = load
        self.world: World = load.reactor
        self.protocol = self
        self.caller: Caller | None = None
        self.intended_s = self.sent_s = 0.0

    def encode(self, request: bytes) -> bytes:
        return request

    def open(self) -> None:
        self.world.opened += 1
        self.world.call_at(self.world.now_s, lambda: self.load.connected(self))

    def close(self) -> None:
        self.caller = None

    def fail(self, problem: Any) -> None:
        self.load.disconnected(self, problem)

    def send(self, data: bytes) -> None:
        sent_s, caller = self.world.now_s, self.caller

        def answer() -> None:
            if self.caller is not caller:
                return
            response = self.world.respond(sent_s)
            if response is None:
                self.fail(ConnectionBroken("Cut.", maybe_done=True))
            else:
                self.load.answered(self, caller, response)

        self.world.call_at(sent_s + self.world.answer(sent_s), answer)


class Knock(Caller):
    """A minimal caller; ``times`` holds the times of its calls."""

    def __init__(self, tally: Tally, world: World) -> None:
        super().__init__(tally)
        self.times: list[float] = []
        self.refusals = 0
        self._world = world

    def request(self) -> bytes:
        self.times.append(self._world.now_s)
        return b"knock"

    def refused(self) -> None:
        self.refusals += 1
