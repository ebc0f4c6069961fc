"""Connections between the processes of a server, in memory: what stands for their Unix sockets.

Both ends are sockets of the server. Bytes go in pieces, each after a seeded while, in order, as on the wires of clients
(`wires.py`), but none of these connections is cut: one ends when a process at its ends closes it, or dies. What that
process has sent before still arrives, as the kernel has it. Only one between two machines may be severed.

Owns these sockets, and those on which processes listen for each other. Does not own who waits for them (`network.py`).
"""

from __future__ import annotations

import select
import socket
from collections import deque
from random import Random
from typing import Final

from tests.simulation.pipes import Below, Pipe

_HOLDS_BYTES: Final = 1 << 18
"""What a pipe holds: hardly ever is one full, as with the kernel's."""


class InnerWire:
    """A connection between two processes. `ends` are its sockets: of who has connected, and of who accepts."""

    stalls_s = (0.1, 0.4)

    def __init__(self, network: Below, numbers: tuple[int, int], chance: Random) -> None:
        self.network = network
        there, back = Pipe(self, chance), Pipe(self, chance)
        there.holds_bytes = back.holds_bytes = _HOLDS_BYTES
        self.ends = InnerSocket(self, numbers[0], back, there), InnerSocket(self, numbers[1], there, back)
        self.has_stalled = False

    @property
    def is_moving(self) -> bool:
        """Whether something may still arrive or be taken."""
        return any(end.taken.is_moving and not end.is_closed for end in self.ends)

    def has_arrived(self, pipe: Pipe) -> None:
        """Something has come through a pipe."""
        for end in self.ends:
            if end.taken is pipe:
                end.changed(select.EPOLLIN | (select.EPOLLRDHUP if pipe.ended else 0))

    def has_room(self, pipe: Pipe) -> None:
        """Something was taken from a pipe."""
        for end in self.ends:
            if end.given is pipe:
                end.changed(select.EPOLLOUT)

    def cut(self, _how: str) -> None:
        """It is never cut."""

    def sever(self) -> None:
        """Whoever passes the bytes on between two machines ends: what is under way is lost."""
        for end in self.ends:
            end.end_here()

    def other(self, end: InnerSocket) -> InnerSocket:
        return self.ends[1] if end is self.ends[0] else self.ends[0]


class InnerSocket:
    """An end of a connection, as a non-blocking socket. It receives from `taken`, and sends through `given`."""

    family = socket.AF_UNIX

    def __init__(self, wire: InnerWire, number: int, taken: Pipe, given: Pipe) -> None:
        self.wire = wire
        self.taken = taken
        self.given = given
        self.process: int | None = None
        """The process whose socket it is."""
        self.is_closed = False
        self.is_reset = False
        """The other end was closed before it had read everything."""
        self._number = number
        self._has_ended = self._is_severed = False

    def fileno(self) -> int:
        return self._number

    def getsockname(self) -> str:
        return ""

    def setblocking(self, _flag: bool) -> None:
        """It never blocks."""

    def recv(self, count: int, flags: int = 0) -> bytes:
        if self.is_closed:
            raise OSError("the socket is closed")
        if self.taken.arrived:
            return bytes(self.taken.arrived[:count]) if flags & socket.MSG_PEEK else self.taken.take(count)
        if self.taken.ended:
            if self.is_reset:
                raise ConnectionResetError
            return b""
        raise BlockingIOError

    def recv_into(self, room: memoryview) -> int:
        data = self.recv(len(room))
        room[: len(data)] = data
        return len(data)

    def send(self, data: bytes | memoryview) -> int:
        if self.is_closed or self._has_ended or self._is_severed or self.wire.other(self).is_closed:
            raise BrokenPipeError
        sent = self.given.put(data)
        if not sent and data:
            raise BlockingIOError
        return sent

    def shutdown(self, _how: int) -> None:
        if not self._has_ended:
            self._has_ended = True
            self.given.end()

    def close(self) -> None:
        """The other end may still take what was sent; then it sees the end, or an error if something was not read."""
        if self.is_closed:
            return
        self.is_closed = True
        other = self.wire.other(self)
        other.is_reset = bool(self.taken.arrived)
        self.taken.die()
        self.taken.arrived.clear()
        self.shutdown(socket.SHUT_RDWR)
        other.changed(select.EPOLLOUT)
        self.wire.network.forget(self)

    def end_here(self) -> None:
        """See the end of what comes; what is sent from now on is lost."""
        if not self.is_closed and not self._is_severed:
            self._is_severed = self.taken.ended = True
            self.taken.die()
            self.changed(select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLOUT)

    def events(self) -> int:
        """What of the events of `epoll` is so now."""
        if self.is_closed:
            return select.EPOLLIN | select.EPOLLHUP
        found = select.EPOLLIN if self.taken.arrived or self.taken.ended else 0
        found |= select.EPOLLOUT if self.given.room > 0 or self.wire.other(self).is_closed else 0
        return found | (select.EPOLLRDHUP if self.taken.ended else 0)

    def changed(self, events: int) -> None:
        """These events have come."""
        self.wire.network.changed(self._number, events)


class InnerListener:
    """A socket on which a process listens for others."""

    family = socket.AF_UNIX

    def __init__(self, network: Below, number: int, process: int | None) -> None:
        self.process = process
        self._network = network
        self._number = number
        self._waiting: deque[InnerSocket] = deque()

    def fileno(self) -> int:
        return self._number

    def getsockname(self) -> str:
        return ""

    def setblocking(self, _flag: bool) -> None:
        """It never blocks."""

    def listen(self, _backlog: int) -> None:
        """It listens."""

    def connect(self, socket: InnerSocket) -> None:
        """Let a connection wait, whose end for this process is `socket`."""
        socket.process = self.process
        self._waiting.append(socket)
        self._network.changed(self._number, select.EPOLLIN)

    def accept(self) -> tuple[InnerSocket, str]:
        if not self._waiting:
            raise BlockingIOError
        return self._waiting.popleft(), ""

    def events(self) -> int:
        return select.EPOLLIN if self._waiting else 0

    def close(self) -> None:
        """Who waits is told so."""
        for each in self._waiting:
            each.close()
        self._waiting.clear()

    def __enter__(self) -> InnerListener:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
