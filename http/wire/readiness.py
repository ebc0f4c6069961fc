"""Which connections can be read: one registration at the kernel for the whole life of each.

Trio's own `wait_readable` changes the registration with each wait, because anybody may wait for anything; a
connection here only ever waits for the same thing, so it is registered once, for edges. Trio in turn waits for
this object's one descriptor. That saves a system call and half of the time around it for each request.

The price of edges: they tell of what has come since the last one only. Who did not read until there was nothing
left has to say so (`more`), or it would wait for an edge that never comes. The end of a stream may share its
edge with the last bytes, so after an edge that tells of it there always is more.
"""

from __future__ import annotations

import select
from collections.abc import Callable

import trio

_EVENTS_MIN = 64
_ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


class Readiness:
    """Waits for many sockets at once. `run` has to run for as long as anybody waits."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._waiting: dict[int, tuple[trio.lowlevel.Task, Callable[[], bool] | None]] = {}
        self._readable: set[int] = set()

    def add(self, descriptor: int) -> None:
        """Watch a socket from now on; what it holds already counts as come."""
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)

    def discard(self, descriptor: int) -> None:
        """Watch it no longer. Before it is closed, and while nobody waits for it."""
        self._readable.discard(descriptor)
        self._epoll.unregister(descriptor)

    def more(self, descriptor: int) -> None:
        """The socket may hold more than was read: the next wait for it ends at once."""
        self._readable.add(descriptor)

    def wake(self, descriptor: int) -> None:
        """End the wait for a socket, if there is one, although there may be nothing to read."""
        waiting = self._waiting.pop(descriptor, None)
        if waiting is not None:
            trio.lowlevel.reschedule(waiting[0])

    async def wait(self, descriptor: int, instead: Callable[[], bool] | None = None) -> None:
        """Return when the socket can be read, has ended, or was woken. Always a checkpoint; one task for each.

        `instead` is asked first when it can be read: where it says True, it did what there was to do, and the
        wait goes on. It must not raise.
        """
        if descriptor in self._readable:
            self._readable.discard(descriptor)
            await trio.lowlevel.checkpoint()
            return
        waiting = self._waiting
        waiting[descriptor] = (trio.lowlevel.current_task(), instead)

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            del waiting[descriptor]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def run(self) -> None:
        """Wake whoever waits for what has become readable, until cancelled.

        All of them each time: what has come must be seen as soon as it is too much, to be refused at once. What
        waits unread in sockets waits for as long as the crowd lasts.
        """
        epoll, waiting = self._epoll, self._waiting
        while True:
            await trio.lowlevel.wait_readable(epoll.fileno())
            for descriptor, events in epoll.poll(0, max(len(waiting), _EVENTS_MIN)):
                waiter = waiting.get(descriptor)
                if waiter is None or events & _ENDED:
                    self._readable.add(descriptor)
                if waiter is not None:
                    instead = waiter[1]
                    if instead is None or events & _ENDED or not instead():
                        self.wake(descriptor)  # if that did not happen in between

    def close(self) -> None:
        """Give the descriptor back, when nobody waits any more."""
        self._epoll.close()
