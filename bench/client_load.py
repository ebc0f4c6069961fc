"""A load of clients with connections of their own: each keeps something under way, and sends the next as it is done.

Owns how long the load runs and what it counts. Does not own how the clients connect nor what they send
(`link_load.py`, `mqtt_load.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from trunkline.bench.load import CHECK_PERIOD_S, LAST_ANSWERS_S, Tally
from trunkline.bench.reactor import Reactor, clock


class Closable(Protocol):
    """A client."""

    def close(self) -> None:
        """Close its connection."""


class Sender(Closable, Protocol):
    """A client that sends."""

    def fill(self) -> None:
        """Send as much as may be under way."""


class ClientLoad(ABC):
    """The load. ``under_way`` is what was sent and is not answered yet, over all clients."""

    def __init__(self, reactor: Reactor, tally: Tally) -> None:
        self.reactor = reactor
        self.tallies = [tally]
        self.tally = tally
        self.unsent = 0
        self.reconnects = 0
        self.running = False
        self.under_way = 0
        self._closing = False
        self._on_tick: Callable[[], None] | None = None

    @property
    @abstractmethod
    def clients(self) -> Sequence[Closable]:
        """All clients."""

    @property
    @abstractmethod
    def senders(self) -> Sequence[Sender]:
        """Those that send."""

    @property
    def waits(self) -> bool:
        """Whether answers may still come."""
        return self.under_way > 0

    def run(self, duration_s: float, on_tick: Callable[[], None] | None = None) -> float:
        """Send for ``duration_s``, then wait for the last answers; return the seconds that it took."""
        started_s = clock()
        self._on_tick = on_tick
        self.running = True
        for sender in self.senders:
            sender.fill()
        self.reactor.run(started_s + duration_s)
        self.running = False
        if self.waits:
            self.reactor.run(clock() + LAST_ANSWERS_S)
        return clock() - started_s

    def reset(self) -> None:
        """Set all counts to zero."""
        self.reconnects = 0
        self.tally.reset()

    def close(self) -> None:
        """Close all connections; what is under way stays unknown."""
        self._closing = True
        for client in self.clients:
            client.close()

    def settled(self, count: int) -> None:
        """So many are not under way any more."""
        self.under_way -= count
        if not self.running and not self.under_way:
            self.reactor.stop()

    def tick_later(self) -> None:
        """Call what `run` was given, from time to time."""
        self.reactor.call_at(clock() + CHECK_PERIOD_S, self._tick)

    def _tick(self) -> None:
        if self._closing:
            return
        if self.running and self._on_tick is not None:
            self._on_tick()
        self.tick_later()
