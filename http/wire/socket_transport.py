"""A cleartext connection's transport: a non-blocking socket, straight to the system calls.

Owns what is sent and received on the socket, the part of a message that could not be sent yet, the write deadline,
and how the sending half is closed. Does not own what the bytes mean, nor closing the socket, which may go on under
another protocol.

Why it does not use Trio's streams: a send that succeeds at once needs neither a checkpoint nor a lock, and reading
goes through one registration for the whole connection (`readiness.py`).
"""

from __future__ import annotations

import math
import socket
from collections.abc import Awaitable, Callable

import trio

from trunkline.http.wire.readiness import RECEIVE_BYTES, OnReadable, Readiness
from trunkline.http.wire.transport import ClientGone

WRITE_STEP_BYTES = 65_536
"""A send that has to wait must get on by this much within the write time-out: a slow reader is served, one that
takes a byte now and then is not. The system holds no more than this of what it has not sent yet, so that progress
is seen, and so that a client that never reads does not cost the megabytes of a whole send buffer."""
LINGER_S = 1.0
LINGER_BYTES_MAX = 1 << 24


class SocketTransport:
    """Implements `Transport` on a non-blocking socket. Watches it until `detach`."""

    __slots__ = (
        "_descriptor",
        "_readiness",
        "_sock",
        "_unsent",
        "_write_timeout_s",
        "gone",
        "input_ended",
        "read_deadline_s",
        "write_deadline_s",
    )

    def __init__(self, sock: socket.socket, readiness: Readiness, write_timeout_s: float) -> None:
        self.read_deadline_s = math.inf
        self.write_deadline_s = math.inf
        self.input_ended = False
        self.gone = False
        self._sock = sock
        self._descriptor = sock.fileno()
        self._readiness = readiness
        self._write_timeout_s = write_timeout_s
        self._unsent: bytes | memoryview = b""
        readiness.add(self._descriptor)

    def detach(self) -> None:
        self._readiness.discard(self._descriptor)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def unsent_bytes(self) -> int:
        return len(self._unsent)

    # Receiving.

    def receive_nowait(self) -> bytes | None:
        try:
            size = self._sock.recv_into(self._readiness.room)
        except BlockingIOError:
            return None
        except OSError:
            self.gone = self.input_ended = True
            return b""
        if not size:
            self.input_ended = True
        elif size == RECEIVE_BYTES or self._descriptor in self._readiness.ended:
            self._readiness.mark_readable(self._descriptor)  # there may be more, of which no event will tell
        return bytes(self._readiness.room[:size])

    async def receive(self) -> bytes:
        if self.input_ended:
            await trio.lowlevel.checkpoint()
            return b""
        while True:
            await self._readiness.wait(self._descriptor)
            data = self.receive_nowait()
            if data is not None:
                return data

    def wait(self, on_readable: OnReadable) -> Awaitable[None]:
        return self._readiness.wait(self._descriptor, on_readable)

    def sleep(self, on_readable: OnReadable, awake: Callable[[], None]) -> bool:
        return self._readiness.sleep(self._descriptor, on_readable, awake)

    def read_again(self, on_readable: OnReadable) -> Awaitable[None]:
        return self._readiness.read_again(self._descriptor, on_readable)

    def wake(self) -> None:
        self._readiness.wake(self._descriptor)

    def mark_readable(self) -> None:
        self._readiness.mark_readable(self._descriptor)

    def has_input(self) -> bool:
        return has_input(self._sock)

    # Sending.

    def send_nowait(self, data: bytes) -> bool:
        assert not self._unsent, "bytes would be sent in the middle of a message"
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            raise self._client_gone() from None
        if sent == len(data):
            return True
        self._unsent = memoryview(data)[sent:]
        return False

    def flush_nowait(self) -> bool:
        if self._unsent:
            try:
                sent = self._sock.send(self._unsent)
            except BlockingIOError:
                return False
            except OSError:
                raise self._client_gone() from None
            # An empty view would keep the whole message in memory.
            self._unsent = memoryview(self._unsent)[sent:] if sent < len(self._unsent) else b""
        return not self._unsent

    def watch_writable(self) -> None:
        self._readiness.watch_writable(self._descriptor)

    async def send(self, data: bytes) -> None:
        if self._unsent:
            self._unsent = b"".join((self._unsent, data))
        elif self.send_nowait(data):
            return
        await self.flush()

    async def flush(self) -> None:
        try:
            while self._unsent:
                goal = max(0, len(self._unsent) - WRITE_STEP_BYTES)
                self.write_deadline_s = trio.current_time() + self._write_timeout_s
                while len(self._unsent) > goal:
                    await trio.lowlevel.wait_writable(self._sock)
                    try:
                        sent = self._sock.send(self._unsent)
                    except BlockingIOError:
                        continue
                    except OSError:
                        raise self._client_gone() from None
                    self._unsent = memoryview(self._unsent)[sent:]
            self._unsent = b""  # an empty view would keep the whole message in memory
        finally:
            self.write_deadline_s = math.inf

    def _client_gone(self) -> ClientGone:
        self.gone = True
        return ClientGone("the client closed its connection")

    # Ending.

    async def linger(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            return
        # Closing with unread bytes would reset the connection, and the client might lose the last response.
        self.read_deadline_s = trio.current_time() + LINGER_S
        self.mark_readable()
        taken_bytes = 0
        while taken_bytes < LINGER_BYTES_MAX:
            data = await self.receive()
            if not data:
                return
            taken_bytes += len(data)

    def send_last(self, data: bytes) -> None:
        send_last(self._sock, data)


def has_input(sock: socket.socket) -> bool:
    """Whether bytes wait to be received from a non-blocking socket."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def send_last(sock: socket.socket, data: bytes) -> None:
    """Send the last bytes of a connection as far as that is possible without waiting; then it is to be closed.

    What the client has sent is read, as closing with unread bytes would reset the connection and the client might
    not see the response.
    """
    try:
        if data:
            sock.send(data)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(RECEIVE_BYTES)
    except OSError:
        return
