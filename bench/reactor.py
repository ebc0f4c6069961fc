"""The event loop of a load: one epoll, timers, and nothing else.

Owns waiting. Does not own connections (``line``) or what is sent over them (``load``).

Why not Trio, as everywhere else: a call costs 7 us here and 18 us with a Trio task for each connection, and
a load generator that is nearly as slow as the server measures itself. So a load runs in a thread of its own,
while the Trio thread, which prepares and audits, sleeps.
"""

from __future__ import annotations

import gc
import heapq
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

clock = time.monotonic
"""Seconds, on the clock of everything that a load measures."""

READABLE, WRITABLE = select.EPOLLIN, select.EPOLLOUT

EVENTS_PER_WAKE_MAX = 512
"""Events: taken from the kernel at once; more of them would let timers wait."""

_FINE_WAIT_S = 0.004
_SELECT_FD_MAX = 1024


class Reactor:
    """Calls back when a descriptor is ready or a time has come, in the one thread that calls ``run``."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timer_number = 0
        self._stopped = False

    def close(self) -> None:
        """Give the epoll back to the system."""
        self._epoll.close()

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call back with the events that are ready, until ``forget``."""
        self._watched[fd] = callback
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        """Wait for other events on a watched descriptor."""
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Watch no more; before the descriptor is closed."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_at(self, at_s: float, callback: Callable[[], None]) -> None:
        """Call back once at this time of ``clock``, or at once where it has passed."""
        self._timer_number += 1
        heapq.heappush(self._timers, (at_s, self._timer_number, callback))

    def stop(self) -> None:
        """Let ``run`` return; may be called from any thread, and takes effect at the next event or timer."""
        self._stopped = True

    def run(self, end_s: float) -> bool:
        """Run until ``end_s``, or until ``stop``; tells whether it was stopped before its time."""
        self._stopped = False
        timers, watched = self._timers, self._watched
        while not self._stopped:
            now_s = clock()
            if now_s >= end_s:
                return False
            while timers and timers[0][0] <= now_s and not self._stopped:
                heapq.heappop(timers)[2]()
            if self._stopped:
                break
            until_s = min(end_s, timers[0][0]) if timers else end_s
            for fd, events in self._wait(until_s - clock()):
                # An event before this one may have closed the line.
                if (callback := watched.get(fd)) is not None:
                    callback(events)
        return True

    def _wait(self, wait_s: float) -> list[tuple[int, int]]:
        if 0 < wait_s < _FINE_WAIT_S and self._epoll.fileno() < _SELECT_FD_MAX:
            # epoll's own time-out counts in milliseconds: too coarse for the starts of an open loop.
            select.select([self._epoll], [], [], wait_s)
            wait_s = 0
        return self._epoll.poll(max(wait_s, 0), EVENTS_PER_WAKE_MAX)


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep Python's cycle collector out of a measurement: its pauses would be told as the server's."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
