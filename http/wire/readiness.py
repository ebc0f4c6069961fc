"""Which sockets can be read: one registration at the kernel for the whole life of each.

Owns the epoll object, who waits for which socket (a task, or a callback alone), and the room into which sockets are
read. Does not own the sockets, and never reads them.

Why not Trio's `wait_readable`: it changes the registration with each wait, because anybody may wait for anything.
A connection only ever waits for the same thing, so it is registered once, edge-triggered, and Trio waits for the
one descriptor of the epoll object. That saves a system call and half of the time around it for each request.

What edge-triggered costs: an event reports only what has come since the last one. A reader that stops before
nothing is left has to say so (`mark_readable`), or it would wait for an event that never comes. The end of a
stream may share its event with bytes before it, so a socket counts as readable after an event that reports its end,
and whoever reads from one in `ended` has to read on until the end itself.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from functools import partial

import trio

RECEIVE_BYTES = 65_536
_EVENTS_MIN = 64
_ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR

OnReadable = Callable[[], bool]
"""Called when a socket may have something to read, or takes more to send where that is watched. Returns True to keep
the wait going. Must not raise."""


class Readiness:
    """Waits for many sockets at once. `run` has to run for as long as anybody waits."""

    def __init__(self, lap: Callable[[], None] = lambda: None) -> None:
        """`lap` is called after each callback: it took a turn of its own."""
        self._lap = lap
        self.room = memoryview(bytearray(RECEIVE_BYTES))
        """Where whoever reads a socket may receive: one after the other, and each copies what has come.

        A `recv` would take a block of this size each time and give the end of it back. What lives long comes to stand
        between such blocks: with them the memory grew twice as fast in an hour of everything (docs/performance.md).
        """
        self._epoll = select.epoll()
        self._waiting: dict[int, tuple[Callable[[], None], OnReadable | None]] = {}
        """By socket: what ends the wait, and what is called when there may be something to read."""
        self._readable: set[int] = set()
        self.ended: set[int] = set()
        """The sockets of which an event has reported the end; there may be bytes before it."""

    def add(self, descriptor: int) -> None:
        """Watch a socket from now on; bytes that it holds already are reported as well."""
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)

    def watch_writable(self, descriptor: int) -> None:
        """Who waits for a socket is also called when it takes more to send, from now on."""
        self._epoll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)

    def discard(self, descriptor: int) -> None:
        """Stop watching a socket: before it is closed, and while nobody waits for it."""
        self._readable.discard(descriptor)
        self.ended.discard(descriptor)
        self._epoll.unregister(descriptor)

    def mark_readable(self, descriptor: int) -> None:
        """The socket may hold more than was read: it counts as readable when it is waited for next."""
        self._readable.add(descriptor)

    def wake(self, descriptor: int) -> None:
        """End the wait for a socket, if there is one, although there may be nothing to read."""
        waiting = self._waiting.pop(descriptor, None)
        if waiting is not None:
            waiting[0]()

    def sleep(self, descriptor: int, on_readable: OnReadable, awake: Callable[[], None]) -> bool:
        """Wait for a socket as `wait` does, but without a task: `awake` is called once, when the wait ends.

        False if the socket counts as readable already; then nothing was done.
        """
        if descriptor in self._readable:
            return False
        self._waiting[descriptor] = (awake, on_readable)
        return True

    async def wait(self, descriptor: int, on_readable: OnReadable | None = None) -> None:
        """Return when the socket may have something to read, has ended, or was woken.

        With `on_readable`, that is called instead when there may be something to read, and the wait goes on for
        as long as it returns True. May also return without a reason. Always a checkpoint. At most one task may
        wait for a socket.
        """
        while descriptor in self._readable:
            await trio.lowlevel.checkpoint()
            self._readable.discard(descriptor)  # not before: a wait that is cancelled has read nothing
            if on_readable is None or not on_readable():
                return
        waiting = self._waiting
        waiting[descriptor] = (partial(trio.lowlevel.reschedule, trio.lowlevel.current_task()), on_readable)

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            del waiting[descriptor]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def read_again(self, descriptor: int, on_readable: OnReadable) -> None:
        """Call `on_readable` once more for a socket that counts as readable, in another turn of the loop."""
        await trio.lowlevel.checkpoint()
        self._readable.discard(descriptor)
        on_readable()

    async def run(self) -> None:
        """Serve those who wait, until cancelled.

        All of them in each turn of the loop: a request that is too much must be read to be refused at once. If
        only some sockets were read, requests would wait in the others for as long as there are many.
        """
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            self._poll()

    def _poll(self) -> None:
        """One turn; a function of its own, so that no name keeps a connection in memory between turns."""
        waiting, lap = self._waiting, self._lap
        for descriptor, events in self._epoll.poll(0, max(len(waiting), _EVENTS_MIN)):
            waiter = waiting.get(descriptor)
            if events & _ENDED:
                self.ended.add(descriptor)
            if waiter is None:
                self._readable.add(descriptor)
                continue
            on_readable = waiter[1]
            if events & _ENDED:
                # Behind these bytes is the end: who waits does so once more, and reads it.
                self._readable.add(descriptor)
                if on_readable is not None:
                    on_readable()
                self.wake(descriptor)
                lap()
                continue
            if on_readable is None or not on_readable() or descriptor in self._readable:
                # Unless `on_readable` did that already. Where it has left something, who waits calls it again.
                self.wake(descriptor)
            lap()

    def close(self) -> None:
        """Close the epoll object, when nobody waits any more."""
        self._epoll.close()
