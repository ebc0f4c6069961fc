"""What is spoken on a connection of bytes, and what it has of its connection.

Owns only these agreements. They hold for connections of a listening socket of their own (`byte_connection.py`) and for
those over WebSocket (`byte_websocket.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Bytes(Protocol):
    """What a session has of its connection. No method waits."""

    @property
    def open(self) -> bool:
        """Whether bytes can still be sent."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether the client has taken all that was sent before, so that nothing waits here."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """What waits here because the client has not taken it."""
        ...

    def send(self, data: bytes) -> None:
        """Send bytes after those before them. Nothing is sent once the connection is over.

        If more than a bound waits behind what is under way to a client, it is closed, and the session is told before
        this returns. So one call may send any number of bytes when the connection has room.
        """
        ...

    def close(self, reason: str = "") -> None:
        """Close the connection behind what was sent. The session is told at once, with `reason`."""
        ...

    def close_at(self, time_s: float, reason: str, last: bytes = b"") -> None:
        """Close the connection at a time of Trio's clock, or up to half a second later, behind the bytes `last`.

        Replaces an earlier call; an infinite time takes it back.
        """
        ...

    def pause(self) -> None:
        """Read nothing from now on, until `resume`: what was received has to be worked off first."""
        ...

    def resume(self) -> None:
        """Read again."""
        ...

    def established(self) -> None:
        """The client has said who it is: from now on the connection lasts.

        Before, it has a deadline, and ends if a new connection needs its place.
        """
        ...


class ByteSession(Protocol):
    """What is spoken on a connection of bytes. Its methods must not wait.

    One that raises is logged and ends its connection.
    """

    def opened(self, connection: Bytes) -> None:
        """The connection is open: bytes may be sent."""
        ...

    def received(self, data: bytes) -> None:
        """What has come, in pieces that mean nothing: the session gathers them."""
        ...

    def received_all(self) -> None:
        """All of one read was given: what was gathered can be done at once."""
        ...

    def flushed(self) -> None:
        """The client has taken what had to wait (`Bytes.has_room`)."""
        ...

    def drain(self) -> None:
        """The server is stopping: close the connection soon."""
        ...

    def closed(self, reason: str) -> None:
        """The connection is over. Called exactly once, and nothing else after it.

        Over WebSocket, only this is called where the client has left before it was told that its offer is accepted.
        """
        ...


class Peer(NamedTuple):
    """The other end of a connection, as a session is made for it."""

    address: tuple[str, int] | None
    """Host and port; None for a Unix socket."""
    tls: bool
    certificate: bytes | None
    """The certificate of the client in DER, which TLS has verified; None if it sent none."""
    websocket: bool = False
    """Whether the bytes come in messages of a WebSocket."""
    machine: str = ""
    """The name of the machine that has accepted it, if the server has several."""


class ByteBounds(NamedTuple):
    """The bounds of one connection."""

    unsent_bytes_max: int
    """A client for which more waits, behind what is under way, is closed."""
    established_s: float
    """How long a client has to say who it is."""
    write_timeout_s: float
    """A client that does not take `WRITE_STEP_BYTES`, or what is left, for so long is closed."""


class ByteProtocol(NamedTuple):
    """What is spoken on the connections of a listening socket."""

    session_for: Callable[[Peer], ByteSession]
    bounds: ByteBounds


class GoesOn(NamedTuple):
    """A session that goes on with a connection on which HTTP was spoken."""

    session: ByteSession
    bounds: ByteBounds
