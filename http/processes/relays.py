"""Relays: connections whose bytes a door passes on to the owner as they are, and back.

For what is not one request and its answer: MQTT, and WebSocket, from the request that asks for it on. Each has a
connection to the owner of its own, on which the owner speaks as if it had accepted the client itself. A door takes TLS
off, and bounds what waits in each direction: while one end takes nothing, nothing is read from the other.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from trunkline.http.processes.channel import OwnConnections
from trunkline.http.wire.byte_session import ByteBounds, Bytes

BUFFER_BYTES: Final = 1024 * 1024
"""Some reads: a relay reads nothing while anything waits for the other end."""
NO_OWNER: Final = "the process that owns the data is not there"


class Half:
    """One end of a relay, the session of its connection: what comes is sent on `other`."""

    def __init__(self) -> None:
        self.other: Half | None = None
        self.connection: Bytes | None = None

    def opened(self, connection: Bytes) -> None:
        self.connection = connection
        connection.established()

    def received(self, data: bytes) -> None:
        other = self.other
        if other is None or other.connection is None:
            return
        other.connection.send(data)
        if not other.connection.has_room and self.connection is not None:
            self.connection.pause()

    def received_all(self) -> None:
        pass

    def flushed(self) -> None:
        if self.other is not None and self.other.connection is not None:
            self.other.connection.resume()

    def drain(self) -> None:
        """The owner closes the connection: it drains at the same time."""

    def closed(self, reason: str) -> None:
        self.connection = None
        other, self.other = self.other, None
        if other is not None:
            other.other = None
            if other.connection is not None:
                other.connection.close(reason)


class ClientHalf(Half):
    """The end of a relay at the client. It connects the other one when it is opened."""

    def __init__(
        self,
        connections: OwnConnections,
        connect: Callable[[], socket.socket],
        bounds: ByteBounds,
        first: bytes,
    ) -> None:
        """`connect` makes the connection to the owner, or raises OSError. `first` is sent on it first."""
        super().__init__()
        self._connections = connections
        self._connect = connect
        self._bounds = bounds
        self._first = first

    def opened(self, connection: Bytes) -> None:
        super().opened(connection)
        try:
            sock = self._connect()
        except OSError:
            connection.close(NO_OWNER)
            return
        owner = Half()
        owner.other, self.other = self, owner
        self._connections.open(sock, owner, self._bounds)
        first, self._first = self._first, b""
        self.received(first)
