"""The event loop of a load: one epoll and timers.

Owns waiting. Does not own connections (``load_connection``) or the calls on them (``load``).

Why not Trio, as everywhere else: a call costs 7 us here and 18 us with a Trio task for each connection, and a load
generator that is nearly as slow as the server measures itself. So a load runs in a thread of its own, while the
Trio thread, which does preparation and audit, waits.
"""

from __future__ import annotations

import gc
import heapq
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

clock = time.monotonic
"""Seconds; the clock of all measurements of a load."""

READABLE, WRITABLE = select.EPOLLIN, select.EPOLLOUT

EVENTS_PER_WAKE_MAX = 512
"""Events: taken from the kernel at once; more would delay timers."""

_FINE_WAIT_S = 0.004
_SELECT_FD_MAX = 1024


class Reactor:
    """Runs callbacks for ready descriptors and expired timers, in the thread that calls ``run``."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timer_number = 0
        self._stopped = False

    def close(self) -> None:
        """Close the epoll descriptor."""
        self._epoll.close()

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call ``callback`` with the ready events of a descriptor, until ``forget``."""
        self._watched[fd] = callback
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        """Change the events of a watched descriptor."""
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching a descriptor; call this before closing it."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_at(self, at_s: float, callback: Callable[[], None]) -> None:
        """Call ``callback`` once at this time of ``clock``, or in the next round if it has passed."""
        self._timer_number += 1
        heapq.heappush(self._timers, (at_s, self._timer_number, callback))

    def stop(self) -> None:
        """Make ``run`` return at the next event or timer; may be called from any thread."""
        self._stopped = True

    def run(self, end_s: float) -> bool:
        """Run until ``end_s`` or ``stop``; return whether it was stopped before ``end_s``."""
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
                # The callback of an earlier event may have closed this connection.
                if (callback := watched.get(fd)) is not None:
                    callback(events)
        return True

    def _wait(self, wait_s: float) -> list[tuple[int, int]]:
        if 0 < wait_s < _FINE_WAIT_S and self._epoll.fileno() < _SELECT_FD_MAX:
            # The time-out of epoll is in milliseconds: too coarse for the starts of an open loop.
            select.select([self._epoll], [], [], wait_s)
            wait_s = 0
        return self._epoll.poll(max(wait_s, 0), EVENTS_PER_WAKE_MAX)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable Python's garbage collector during a measurement: its pauses would be counted as the server's."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
