"""One request and its response on an HTTP/1.1 connection, as the two ASGI callables `receive` and `send`.

Owns the message: what has come of the request so far, and how the body of the response is framed (lengths,
chunks, and that nothing but one response is sent). Does not own the bytes of the head (`response_head.py`),
the socket (`transport.py`) or the parser (`request_parser.py`).

Why the head waits for the first part of the body: a short response is then sent with one system call.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

import trio

from trunkline.http.wire.headers import Fields, Headers
from trunkline.http.wire.request_context import Work, given_id_line, id_of_line, line_of_id, new_id_lines
from trunkline.http.wire.request_heads import KnownHead
from trunkline.http.wire.response_head import cached_field_lines, date_line, field_lines, status_line
from trunkline.http.wire.websocket import Offer

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n"
BODILESS = frozenset({204, 304})
"""Statuses of responses without a body."""


class Connection(Protocol):
    """What an exchange needs of its connection."""

    draining: bool
    """The server is stopping: each response is the last of its connection."""

    def send(self, data: bytes) -> Awaitable[None]:
        """Send all of `data`. Raises OSError where the client is gone."""
        ...

    async def read_body(self, exchange: Exchange) -> bool:
        """Parse more of the body; False where no more of it will come."""
        ...

    async def wait_disconnected(self, exchange: Exchange) -> None:
        """Return when the client has left or the response is complete."""
        ...

    def response_complete(self) -> None:
        """Called with the last part of a response: ends `wait_disconnected`."""
        ...


class Exchange:
    """One request and its response."""

    __slots__ = (
        "_body_end_received",
        "_chunked",
        "_connection",
        "_id_line",
        "_left_bytes",
        "body",
        "complete",
        "expects",
        "finished",
        "headers",
        "keep_alive",
        "known",
        "method",
        "offer",
        "response_headers",
        "sent_bytes",
        "started",
        "status",
        "target",
        "upgrade",
        "version",
        "work",
    )

    def __init__(self, connection: Connection, known: KnownHead | None = None, body: bytes = b"") -> None:
        """A request that has begun; with `known`, one that is complete and needs no parsing."""
        self._connection = connection
        self.known = known
        """What its head was parsed to when it came before; None where it was parsed now."""
        if known is None:
            self.method = ""
            self.target = b""
            self.headers: Headers = []
            self.body: list[bytes] = []
            self.complete = False
            """The request was parsed to its end."""
        else:
            self.method = known.method
            self.target = known.target
            self.headers = known.headers
            self.body = [body] if body else []
            self.complete = True
        self._id_line: bytes | None = None
        self.work: Work | None = None
        """What it is and who sent it, once the application has said so."""
        self.version = "1.1"
        self.keep_alive = True
        """Another request may follow on the connection."""
        self.expects = False
        """The client waits for `100 Continue` before it sends the body."""
        self.upgrade = b""
        self.offer: Offer | None = None
        """The request asks for WebSocket; its connection ends with it, if the offer is not accepted."""
        self.status = 0
        self.response_headers: Any = ()
        self.started = False
        """The head of the response was handed to the connection; a response that is finished has started."""
        self.finished = False
        """The last part of the response was sent."""
        self.sent_bytes = 0
        """Bytes of the response's body."""
        self._chunked = False
        self._left_bytes: int | None = None
        self._body_end_received = False

    @property
    def path(self) -> str:
        """The path as it was sent, for a log: without the query, which may hold secrets."""
        return self.target.partition(b"?")[0].decode("ascii")

    @property
    def request_id(self) -> bytes:
        """The id of the request: the client's, or a new one."""
        return id_of_line(self._request_id_line())

    def _request_id_line(self) -> bytes:
        line = self._id_line
        if line is None:
            given = given_id_line(self.headers) if self.known is None else self.known.id_line
            self._id_line = line = given or next(new_id_lines)
        return line

    def take_id(self, id: bytes) -> None:
        """Use the id that the request has elsewhere, unless it has one already."""
        self._id_line = self._id_line or line_of_id(id)

    def whole_body(self) -> bytes:
        """The body of a complete request. It stays where it is: `receive` returns it all the same."""
        body = self.body
        if len(body) > 1:
            body[:] = [b"".join(body)]
        return body[0] if body else b""

    def whole_response(self, status: int, headers: Fields, body: bytes, *, with_id: bool = True) -> bytes:
        """The bytes of a whole response, which the caller sends: the same that `send` would send.

        Without `with_id` it names the id of the request only if the client gave one, or it was logged meanwhile.
        Raises ValueError for a response that cannot be framed.
        """
        self.status = status
        self.response_headers = headers
        data = self._head(body, more=False, with_id=with_id)
        if self.method != "HEAD" and status not in BODILESS:
            self.sent_bytes = len(body)
            data += body
        self.started = self.finished = True
        return data

    def switching_protocols(self) -> bytes:
        """The head that accepts the offer."""
        assert self.offer is not None
        self.status = 101
        self.started = self.finished = True
        lines, _, _ = field_lines(self.offer.response_fields())
        return b"".join((_SWITCHING, lines, self._request_id_line(), date_line()))

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body as it arrives; after its end, wait for the end of the exchange."""
        body = self.body
        while not body and (self._body_end_received or not self.complete):
            if self.finished:
                return {"type": "http.disconnect"}
            if self.complete:
                await self._connection.wait_disconnected(self)
                return {"type": "http.disconnect"}
            if self.expects:
                self.expects = False
                if not self.started:
                    await self._connection.send(_CONTINUE)
            if not await self._connection.read_body(self):
                return {"type": "http.disconnect"}
        piece = body[0] if len(body) == 1 else b"".join(body)
        body.clear()
        self.expects = False
        self._body_end_received = self.complete
        return {"type": "http.request", "body": piece, "more_body": not self.complete}

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the response.

        Raises OSError where the client is gone, and ValueError for a response that cannot be framed; if that
        is its first part, nothing of it was sent.
        """
        if message["type"] == "http.response.start":
            if not self.started:
                self.status = message["status"]
                self.response_headers = message.get("headers", ())
            return
        if message["type"] != "http.response.body":
            return
        more: bool = message.get("more_body", False)
        if not self.finished:
            body: bytes = message.get("body", b"")
            data = b"" if self.started else self._head(body, more=more)
            if self.method != "HEAD" and self.status not in BODILESS:
                data += self._framed(body, more=more)
            self.started = True
            # A body of a known length ends with its last byte, whether or not the application says so yet; but
            # not before that byte is sent: `receive` would report a disconnect while it is being sent.
            last = not more or self._left_bytes == 0
            if data:
                await self._connection.send(data)
            self.finished = last
        if more:
            # A stream into a fast reader must let the other tasks have their turn.
            await trio.lowlevel.checkpoint()
        else:
            self._connection.response_complete()

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        """A part of the body as it is sent."""
        self.sent_bytes += len(body)
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return data if more else data + b"0\r\n\r\n"
        if self._left_bytes is not None:
            self._left_bytes -= len(body)
            if self._left_bytes < 0 or (self._left_bytes and not more):
                # A client would take the beginning of the next response for the rest of this one, or the
                # reverse.
                raise ValueError("the body of a response is not as long as its head says")
        return body

    def _head(self, body: bytes, *, more: bool, with_id: bool = True) -> bytes:
        headers = self.response_headers
        lines, length, closes = (
            cached_field_lines(headers) if type(headers) is tuple else field_lines(headers)
        )
        if closes:
            self.keep_alive = False
        framing = self._length_line(length, body, more=more)
        if self._connection.draining or not self.complete:
            # A body that was not read to its end leaves the connection in the middle of a message.
            self.keep_alive = False
        if not self.keep_alive:
            framing += b"connection: close\r\n"
        elif self.version == "1.0":
            framing += b"connection: keep-alive\r\n"
        id_line = self._id_line
        if id_line is None:
            known = self.known
            named = with_id or known is None or known.id_line is not None
            id_line = self._request_id_line() if named else b""
        return b"".join((status_line(self.status), lines, id_line, framing, date_line()))

    def _length_line(self, length: bytes | None, body: bytes, *, more: bool) -> bytes:
        """The field that says where the body ends. `length` is what the application announces."""
        if self.status in BODILESS:
            return b""
        if not more and (length is None or self.method != "HEAD"):
            if length is not None and length != b"%d" % len(body):
                raise ValueError("the body of a response is not as long as its head says")
            return b"content-length: %d\r\n" % len(body)
        if length is not None:
            self._left_bytes = int(length)
            return b"content-length: %d\r\n" % self._left_bytes
        if self.version == "1.1":
            self._chunked = True
            return b"transfer-encoding: chunked\r\n"
        self.keep_alive = False
        return b""
