"""Connections in memory: what stands for TCP between a client of a run and the server.

A wire has two pipes. Bytes go through a pipe in pieces, each after a seeded while, in order; a pipe holds so much that
was not taken, and no more. A wire is cut on purpose at any byte of either pipe, in one of the ways of `CUTS`.

Owns the bytes of connections and the sockets at the server's end of them. Does not own who waits for them
(`network.py`), nor what the bytes mean.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from contextvars import ContextVar
from random import Random
from typing import Any, Final

import trio

from tests.simulation.pipes import Below, Pipe

CUTS: Final = ("reset", "ended", "silent")
"""Both sides are told by an error; the client has ended; nobody is told, and nothing arrives any more."""
_STALLS_S: Final = (0.4, 3.0, 20.0)
_ADDRESS: Final = ("127.0.0.1", 40_000)
PROCESS: Final[ContextVar[int | None]] = ContextVar("PROCESS", default=None)
"""The process of the server whose task this is, if there are several."""


class Lost(Exception):
    """The connection is lost, for the client."""


class Wire:
    """A connection, for its client."""

    stalls_s = _STALLS_S

    def __init__(self, network: Below, number: int, chance: Random) -> None:
        self.network = network
        self.to_server, self.to_client = Pipe(self, chance), Pipe(self, chance)
        self.socket = ServerSocket(self, number)
        self.is_lost = False
        """The client is told so."""
        self.was_cut = ""
        """How it was cut, if it was."""
        self.is_closed = False
        """The client has closed it, or given it up."""
        self.has_stalled = False
        self.sent_s = 0.0
        """When the client has sent something for the last time."""
        self._changed = trio.Event()

    @property
    def is_moving(self) -> bool:
        """Whether something is under way to the server."""
        return self.to_server.is_moving

    # For the client.

    async def send(self, data: bytes) -> None:
        """Send all of it. Raises `Lost`."""
        await trio.lowlevel.checkpoint()
        while data := data[self._put(data) :]:
            await self._wait()

    async def send_some(self, data: bytes) -> int:
        """Send as much as there is room for, at least a byte; who is cancelled has sent nothing. Raises `Lost`."""
        await trio.lowlevel.checkpoint()
        while not (size := self._put(data)):
            await self._wait()
        return size

    def _put(self, data: bytes) -> int:
        if self.is_lost or self.is_closed:
            raise Lost
        self.sent_s = trio.current_time()
        return self.to_server.put(data)

    async def receive(self) -> bytes:
        """What has come; b"" where the server has ended. Raises `Lost`."""
        await trio.lowlevel.checkpoint()
        while True:
            if self.to_client.arrived and not self.is_closed:
                return self.to_client.take(1 << 20)
            if self.is_lost or self.is_closed:
                raise Lost
            if self.to_client.ended:
                return b""
            await self._wait()

    def close(self) -> None:
        """End it, behind what was sent. Nothing is received any more."""
        if not self.is_closed:
            self.is_closed = True
            self.to_server.end()
            self.to_client.die()
            self._notify()
            self.socket.changed(select.EPOLLOUT)

    def abort(self) -> None:
        """Give it up, without what is under way."""
        if not self.is_closed:
            self.is_closed = True
            self.cut("reset")

    def cut(self, how: str) -> None:
        """Cut it now."""
        if self.was_cut:
            return
        self.was_cut = how
        if how == "ended":
            self.to_server.ended = True
            self.socket.changed(select.EPOLLIN | select.EPOLLRDHUP)
        self.to_client.die()
        self.to_server.die()
        if how != "silent":
            self.is_lost = True
        if how == "reset":
            self.socket.is_reset = True
            self.socket.changed(select.EPOLLIN | select.EPOLLERR | select.EPOLLHUP | select.EPOLLOUT)
        self._notify()

    async def _wait(self) -> None:
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # Between the ends.

    def has_arrived(self, pipe: Pipe) -> None:
        if pipe is self.to_client:
            self._notify()
        else:
            self.socket.changed(select.EPOLLIN | (select.EPOLLRDHUP if pipe.ended else 0))

    def has_room(self, pipe: Pipe) -> None:
        if pipe is self.to_server:
            self._notify()
        else:
            self.socket.changed(select.EPOLLOUT)


class ServerSocket:
    """The server's end of a wire, as a non-blocking socket."""

    family = socket.AF_INET

    def __init__(self, wire: Wire, number: int) -> None:
        self._wire = wire
        self._number = number
        self.process: int | None = None
        """The process that has accepted it."""
        self.is_reset = False
        self.is_closed = False
        self._has_ended = False

    @property
    def is_of_ending_process(self) -> bool:
        """Whether its process drains."""
        return self.process in self._wire.network.ending

    def fileno(self) -> int:
        return self._number

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 8080)

    def setblocking(self, _flag: bool) -> None:
        """It never blocks."""

    def recv(self, count: int, flags: int = 0) -> bytes:
        pipe = self._wire.to_server
        if pipe.arrived:
            return bytes(pipe.arrived[:count]) if flags & socket.MSG_PEEK else pipe.take(count)
        if self.is_reset:
            raise ConnectionResetError
        if pipe.ended:
            return b""
        raise BlockingIOError

    def recv_into(self, room: memoryview) -> int:
        data = self.recv(len(room))
        room[: len(data)] = data
        return len(data)

    def send(self, data: bytes | memoryview) -> int:
        if self.is_reset or self._has_ended:
            raise BrokenPipeError
        if self._wire.is_closed or self._wire.was_cut == "ended":
            self.is_reset = True  # the first bytes are answered by a reset
            self.changed(select.EPOLLERR | select.EPOLLHUP)
            return len(data)
        sent = self._wire.to_client.put(data)
        if not sent and data:
            raise BlockingIOError
        return sent

    def shutdown(self, _how: int) -> None:
        if self.is_reset:
            raise OSError("not connected")
        if not self._has_ended:
            self._has_ended = True
            self._wire.to_client.end()

    def close(self) -> None:
        """Closing with bytes that were not read resets the connection."""
        if self.is_closed:
            return
        unread = bool(self._wire.to_server.arrived) and not self._wire.to_server.ended
        self.is_closed = True
        self._wire.network.forget(self._wire)
        if not self._has_ended:
            self._has_ended = True
            self._wire.to_client.end()
        self._wire.to_server.die()
        if unread:
            self._wire.cut("reset")

    def kill(self) -> None:
        """Its process has died: the system closes it, and who still has it finds an error."""
        self.close()
        self._wire.to_server.arrived.clear()
        self.is_reset = True

    def events(self) -> int:
        """What of the events of `epoll` is so now."""
        wire, is_ended = self._wire, self._wire.to_server.ended
        found = select.EPOLLIN if wire.to_server.arrived or is_ended or self.is_reset else 0
        found |= select.EPOLLOUT if wire.to_client.room > 0 or self.is_reset else 0
        found |= select.EPOLLRDHUP if is_ended or self.is_reset else 0
        return found | (select.EPOLLHUP | select.EPOLLERR if self.is_reset else 0)

    def changed(self, events: int) -> None:
        """These events have come."""
        self._wire.network.changed(self._number, events)


class ListeningSocket:
    """A socket on which the server accepts wires."""

    family = socket.AF_INET

    def __init__(self, network: Below, number: int) -> None:
        self._network = network
        self._number = number
        self._waiting: deque[Wire] = deque()

    def fileno(self) -> int:
        return self._number

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 8080)

    def setsockopt(self, *_option: Any) -> None:
        """It has no options."""

    def setblocking(self, _flag: bool) -> None:
        """It never blocks."""

    def listen(self, _backlog: int) -> None:
        """It listens."""

    def close(self) -> None:
        """Nobody connects after the end of a life."""

    def __enter__(self) -> ListeningSocket:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def connect(self) -> Wire:
        """Connect to the server."""
        wire: Wire = self._network.wire()
        self._waiting.append(wire)
        self._network.changed(self._number, select.EPOLLIN)
        return wire

    def accept(self) -> tuple[ServerSocket, tuple[str, int]]:
        if not self._waiting or PROCESS.get() in self._network.dead:
            raise BlockingIOError
        sock = self._waiting.popleft().socket
        sock.process = PROCESS.get()
        return sock, _ADDRESS

    def events(self) -> int:
        return select.EPOLLIN if self._waiting else 0
