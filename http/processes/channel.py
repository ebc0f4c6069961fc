"""A channel: the connection between a door and the owner, on which all calls of the door travel in batches.

Owns that what is sent in one turn of the event loop goes in one batch, and the connections that a process makes itself.
Does not own what the messages mean (`door.py`, `owner.py`).

Why batches: a message by itself would cost two system calls and a turn of each loop, some 80 us; among others of the
same turn it costs 4.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog
import trio

from trunkline.http.processes.batches import BatchReader, Message, encode
from trunkline.http.wire.byte_connection import ByteConnection
from trunkline.http.wire.byte_session import ByteBounds, Bytes, ByteSession
from trunkline.http.wire.faults import place_of
from trunkline.http.wire.places import Place, Places
from trunkline.http.wire.readiness import Readiness
from trunkline.http.wire.socket_transport import SocketTransport

SOCKET_NAME: Final = "processes.sock"
"""The Unix socket in the data directory on which the owner takes connections that doors pass on, and their channels."""
PROTOCOL: Final = "channel"
OWNERS_PROTOCOL: Final = "owners-channel"
"""Of another owner: what comes on it is answered here, and not passed on."""
BOUNDS: Final = ByteBounds(unsent_bytes_max=256 * 1024 * 1024, established_s=60.0, write_timeout_s=60.0)
"""What may wait is bounded by the calls that are under way: of each one part of a body at most, and whole answers."""

_log = structlog.get_logger("trunkline.processes")


class Flushes:
    """Sends what channels have gathered, once in each turn of the event loop. `run` it in a nursery."""

    def __init__(self) -> None:
        self._due: list[Channel] = []
        self._some = trio.Event()

    def add(self, channel: Channel) -> None:
        """Send what `channel` has gathered in the next turn."""
        self._due.append(channel)
        self._some.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._some.wait()
            self._some = trio.Event()
            due, self._due = self._due, []
            for channel in due:
                channel.flush()


class Channel:
    """One end of a channel, the session of its connection.

    `begun` is called when messages can be sent, `take` with each message, `ended` when no more will come.
    """

    def __init__(
        self,
        flushes: Flushes,
        begun: Callable[[], None],
        take: Callable[[Message], None],
        ended: Callable[[], None],
        drained: Callable[[], None] = lambda: None,
    ) -> None:
        """`drained` is called when this process drains, if it has accepted the connection."""
        self._flushes = flushes
        self._begun = begun
        self._take = take
        self._ended = ended
        self._drained = drained
        self.is_leaving = False
        """What is under way is answered, and nothing begins any more."""
        self._reader = BatchReader()
        self._waiting: list[tuple[Any, ...]] = []
        self._connection: Bytes | None = None

    @property
    def open(self) -> bool:
        """Whether anything can begin on it."""
        return self._connection is not None and not self.is_leaving

    @property
    def unsent_bytes(self) -> int:
        """What waits because the other end has not taken it."""
        return 0 if self._connection is None else self._connection.unsent_bytes

    def send(self, kind: int, *fields: Any) -> None:
        """Send a message behind those before it. Nothing is sent once the channel is closed."""
        if self._connection is None:
            return
        self._waiting.append((kind, *fields))
        if len(self._waiting) == 1:
            self._flushes.add(self)

    def flush(self) -> None:
        """Send what was gathered."""
        waiting, self._waiting = self._waiting, []
        if waiting and self._connection is not None:
            self._connection.send(encode(waiting))

    def close(self) -> None:
        """Close the channel, behind what was sent."""
        self.flush()
        if self._connection is not None:
            self._connection.close("left")

    # For the connection.

    def opened(self, connection: Bytes) -> None:
        self._connection = connection
        connection.established()
        self._begun()

    def received(self, data: bytes) -> None:
        self._reader.feed(data)

    def received_all(self) -> None:
        for message in self._reader.messages():
            self._take(message)

    def flushed(self) -> None:
        pass

    def drain(self) -> None:
        """It stays open for the calls that are under way, and is closed by the door."""
        self._drained()

    def closed(self, reason: str) -> None:
        _log.debug("channel closed", reason=reason)
        self._connection = None
        self._ended()


class OwnConnections:
    """Connections of bytes that this process makes itself, to the owner. `run` it in a nursery before any is opened."""

    def __init__(self) -> None:
        self._readiness = Readiness()
        self._places = Places(0, by_address=False)
        self._nursery: trio.Nursery | None = None
        self._open: dict[ByteConnection, socket.socket] = {}

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve them until cancelled, then close them."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started()
                try:
                    await self._readiness.run()
                finally:
                    for connection in [*self._open]:
                        connection.wake()  # those without a task get one, which is cancelled
        finally:
            self._nursery = None
            for connection in [*self._open]:
                self._ended(connection)
            self._readiness.close()

    def open(self, sock: socket.socket, session: ByteSession, bounds: ByteBounds) -> None:
        """Open a connection on a socket that is connected and does not block; the socket is closed with it."""
        assert self._nursery is not None
        transport = SocketTransport(sock, self._readiness, bounds.write_timeout_s)
        connection = ByteConnection(transport, session, bounds, self._places, Place())
        self._open[connection] = sock
        self._nursery.start_soon(self._serve, connection, name="OwnConnections")

    def _ended(self, connection: ByteConnection) -> None:
        sock = self._open.pop(connection, None)
        if sock is not None:
            connection.over()
            sock.close()

    async def _serve(self, connection: ByteConnection) -> None:
        goes_on = False
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            nursery = self._nursery
            assert nursery is not None
            again = partial(self._serve, connection)
            goes_on = await connection.run(partial(nursery.start_soon, again, name="OwnConnections"))
        except OSError:
            return
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            _log.error("a connection between processes failed", fault=place_of(bug))
        finally:
            if not goes_on:
                self._ended(connection)
