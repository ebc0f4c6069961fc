"""Requests and responses as plain values, independent of Quart and of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from trunkline.actors.core.values.errors import DomainError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.origin import Origin
    from trunkline.http.calls.body_stream import BodyStream
    from trunkline.http.wire.websocket import Offer

Headers = list[tuple[bytes, bytes]]


class Request:
    """A request. Header names are lower case; of a header that is sent twice the last one counts.

    `certificate` is that of the client in DER, verified when the connection was made; None if it sent none.
    `stream` is the body of a call that reads it in pieces; then `body` is empty. `origin` is the run of a workflow that
    makes the call. `offer` is that of a client that asks for WebSocket. `machine` is the name of the machine that has
    accepted the connection, if the server has several.
    """

    __slots__ = (
        "address",
        "body",
        "certificate",
        "headers",
        "machine",
        "method",
        "offer",
        "origin",
        "path",
        "query",
        "stream",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes,
        address: str,
        certificate: bytes | None = None,
        stream: BodyStream | None = None,
        origin: Origin | None = None,
        offer: Offer | None = None,
        machine: str = "",
    ) -> None:
        self.machine = machine
        self.offer = offer
        self.certificate = certificate
        self.stream = stream
        self.origin = origin
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.address = address

    def header(self, name: bytes) -> str | None:
        """The value of a header as text, None if it was not sent."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin1")


class Stream(Protocol):
    """A response body that is sent in pieces. `close` is called when the client or the stream has ended."""

    async def next(self) -> bytes | None:
        """The next piece; None at the end."""
        ...

    def close(self) -> None:
        """Release all resources. Idempotent, never waits."""
        ...


class Withheld:
    """The body of a response to HEAD where that to GET is a stream: nothing, and no length that could be announced."""

    __slots__ = ("_is_sent",)

    def __init__(self) -> None:
        self._is_sent = False

    async def next(self) -> bytes | None:
        """A piece without bytes, so that the head is sent before the end is known."""
        if self._is_sent:
            return None
        self._is_sent = True
        return b""

    def close(self) -> None:
        """There is nothing to release."""


class Closing(Protocol):
    """A body that is sent in pieces, of whatever kind."""

    def close(self) -> None:
        """Release all resources."""
        ...


def check_current(system: System, body: Closing | None) -> None:
    """After a read: raise `Overloaded` if it may be old (`System.check_current`). Then nobody gets the body."""
    try:
        system.check_current()
    except DomainError:
        if body is not None:
            body.close()
        raise


class Response:
    """A response: status, headers, and either a whole body or a stream."""

    __slots__ = ("body", "headers", "status", "stream")

    def __init__(
        self, status: int, headers: Headers, body: bytes = b"", stream: Stream | None = None
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.stream = stream

    @property
    def parts(self) -> tuple[int, Headers, bytes]:
        """Status, headers and body of a response that is not a stream."""
        return self.status, self.headers, self.body
