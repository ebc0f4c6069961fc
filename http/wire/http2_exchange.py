"""One request and its response on an HTTP/2 connection, as the two ASGI callables `receive` and `send`.

Owns what has come of the request so far, which requests are acceptable, and that nothing but one response is sent. Does
not own frames and windows (`http2.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.utils import formatdate
from typing import Any, Protocol

import trio

from trunkline.http.wire.exchange import BODILESS
from trunkline.http.wire.exchange_channel import BODY_STEP_BYTES
from trunkline.http.wire.headers import Fields, Headers
from trunkline.http.wire.request_context import REQUEST_ID, Work, given_id_line, id_of_line, new_id_lines
from trunkline.http.wire.request_parser import HOST_CHARS, Bounds, Malformed, head_too_large
from trunkline.http.wire.timeouts import until

_TARGET = re.compile(rb"/[!-\"$-~]*|\*")
_METHOD = re.compile(rb"[A-Z][A-Z-]*")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_OF_CONNECTION = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Fields that HTTP/2 does not have: its frames say the same."""


class Connection(Protocol):
    """What an exchange needs of its connection."""

    def acknowledge(self, stream_id: int, size: int) -> None: ...

    def answer_sent(self, exchange: Http2Exchange) -> None: ...

    async def send_head(self, exchange: Http2Exchange, head: Headers, *, end: bool) -> None: ...

    async def send_body(self, exchange: Http2Exchange, body: bytes, *, end: bool) -> None: ...

    async def flush(self) -> None: ...


class Http2Exchange:
    """One request and its response."""

    version = "2"
    offer = None
    """WebSocket over HTTP/2 (RFC 8441) is not offered by this server."""

    def __init__(self, connection: Connection, stream_id: int, body_timeout_s: float) -> None:
        self.stream_id = stream_id
        self.method = ""
        self.target = b""
        self.headers: Headers = []
        self.expects = False
        """The client waits for an interim response before it sends the body."""
        self.complete = False
        """The request has come to its end."""
        self.gone = False
        """The client has left this request, so nothing can be sent."""
        self.timed_out = False
        """The body came too slowly."""
        self.started = False
        self.finished = False
        self.status = 0
        self.sent_bytes = 0
        self.work: Work | None = None
        """The kind of token with which it was sent, once the application has said so."""
        self.scope = trio.CancelScope()
        self._request_id: bytes | None = None
        self._connection = connection
        self._response_headers: Fields = ()
        self._left_bytes: int | None = None
        self._body: list[bytes] = []
        self._unacknowledged_bytes = 0
        self._body_end_received = False
        self._body_timeout_s = body_timeout_s
        self._body_left_bytes = 0
        self._body_left_s = 0.0
        self._changed = trio.Event()

    @property
    def path(self) -> str:
        """The path as it was sent, for a log: without the query, which may hold secrets."""
        return self.target.partition(b"?")[0].decode("ascii")

    @property
    def request_id(self) -> bytes:
        """The id of the request: the client's, or a new one."""
        if self._request_id is None:
            self._request_id = id_of_line(given_id_line(self.headers) or next(new_id_lines))
        return self._request_id

    def take_id(self, id: bytes) -> None:
        """Use the id that the request has elsewhere, unless it has one already."""
        self._request_id = self._request_id or id

    # From the connection.

    def take(self, data: bytes, flow_bytes: int) -> bool:
        """A piece of the body has come. False where nobody will read it."""
        if self.finished or self.gone:
            return False
        self._body.append(data)
        self._unacknowledged_bytes += flow_bytes
        self.wake()
        return True

    def end(self) -> None:
        """The request has come to its end."""
        self.complete = True
        self.wake()

    def leave(self) -> None:
        """The client has left this request."""
        self.gone = True
        self.wake()

    def wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    # ASGI.

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body as it arrives; after its end, wait for the end of the exchange.

        Nothing is lost if it is cancelled: then the next call returns what this one would have.
        """
        while not self._body and (self._body_end_received or not self.complete):
            if self.finished or self.gone:
                return {"type": "http.disconnect"}
            if self.complete:
                await self._changed.wait()
            else:
                await self._wait_for_body()
        # As of now: more may come while the window is opened.
        count, complete = len(self._body), self.complete
        if self._unacknowledged_bytes:
            size, self._unacknowledged_bytes = self._unacknowledged_bytes, 0
            self._connection.acknowledge(self.stream_id, size)
            await self._connection.flush()
        body = b"".join(self._body[:count])
        del self._body[:count]
        self._body_end_received = complete
        self._body_left_bytes -= len(body)
        return {"type": "http.request", "body": body, "more_body": not complete}

    async def _wait_for_body(self) -> None:
        """Wait for more. Each step of a body has the body time-out to itself, as on HTTP/1.1."""
        if self.expects:
            self.expects = False
            if not self.started:
                await self._connection.send_head(self, [(b":status", b"100")], end=False)
        if self._body_left_bytes <= 0:
            self._body_left_bytes, self._body_left_s = BODY_STEP_BYTES, self._body_timeout_s
        began_s = trio.current_time()
        try:
            await until(began_s + self._body_left_s, self._changed.wait)
        except trio.TooSlowError:
            self.timed_out = True
            self.scope.cancel()
            await trio.lowlevel.checkpoint()
        self._body_left_s -= trio.current_time() - began_s

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the response.

        Raises OSError where the client is gone, and ValueError for a response that cannot be framed.
        """
        if message["type"] == "http.response.start":
            if not self.started:
                self.status = message["status"]
                self._response_headers = message.get("headers", ())
            return
        if message["type"] != "http.response.body" or self.finished:
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        bodiless = self.method == "HEAD" or self.status in BODILESS
        if not self.started:
            head = self._head(None if more else len(body))
            self.started = True
            end = bodiless or not (more or body)
            await self._connection.send_head(self, head, end=end)
            self.finished = end
        if not bodiless and not self.finished:
            self._count(len(body), more=more)
            last = not more or self._left_bytes == 0
            await self._connection.send_body(self, body, end=last)
            self.finished = last
        self._connection.answer_sent(self)
        if self.finished:
            self.wake()

    def _count(self, size: int, *, more: bool) -> None:
        self.sent_bytes += size
        if self._left_bytes is not None:
            self._left_bytes -= size
            if self._left_bytes < 0 or (self._left_bytes and not more):
                raise ValueError("the body of a response is not as long as its head says")

    def _head(self, length: int | None) -> Headers:
        """The fields of the response; `length` is that of its body where all of it is known."""
        head: Headers = [(b":status", b"%d" % self.status)]
        announced, self._left_bytes = False, None
        for given, value in self._response_headers:
            name = given.lower()
            if name in _OF_CONNECTION or name == b"date":
                continue
            if not _NAME.fullmatch(name) or any(char in value for char in b"\r\n\0"):
                raise ValueError("a header field of a response contains a line break or NUL")
            if name == b"content-length":
                announced = True
                if self.status in BODILESS:
                    continue
                self._left_bytes = int(value)
            head.append((name, value))
        if not announced and length is not None and self.status not in BODILESS:
            head.append((b"content-length", b"%d" % length))
        head.append((REQUEST_ID, self.request_id))
        head.append((b"date", formatdate(usegmt=True).encode("ascii")))
        return head


def read_request(exchange: Http2Exchange, fields: Iterable[Any], bounds: Bounds) -> None:
    """Fill an exchange from the fields of its head. Raises Malformed where the request is not acceptable.

    The library has checked what HTTP/2 itself demands of them.
    """
    size, pseudo = 0, dict.fromkeys((b":method", b":path"), b"")
    for name, value in fields:
        size += len(name) + len(value) + 4
        if name[:1] == b":":
            pseudo[bytes(name)] = bytes(value)
        else:
            exchange.headers.append((bytes(name), bytes(value)))
    method, target = pseudo[b":method"], pseudo[b":path"]
    exchange.method = method.decode("ascii", "replace")
    if _TARGET.fullmatch(target):
        exchange.target = target
    if size > bounds.header_bytes_max or len(exchange.headers) > bounds.headers_length_max:
        raise head_too_large(bounds)
    if method == b"CONNECT":
        raise Malformed(501, "CONNECT is not a method of this server.")
    if not _METHOD.fullmatch(method):
        raise Malformed(501, "This server does not know the method of the request.")
    if not exchange.target or (target == b"*" and method != b"OPTIONS"):
        raise Malformed(
            400, "The target of the request is not a path in ASCII; encode other characters as %XX."
        )
    _check_fields(exchange, pseudo.get(b":authority"))


def _check_fields(exchange: Http2Exchange, authority: bytes | None) -> None:
    hosts = [value for name, value in exchange.headers if name == b"host"]
    if authority is not None and not hosts:
        hosts = [authority]
        exchange.headers.insert(0, (b"host", authority))
    if len(hosts) != 1:
        raise Malformed(400, "The request needs exactly one Host field.")
    if hosts[0].translate(None, HOST_CHARS):
        raise Malformed(400, "The Host field of the request is not a valid host.")
    expected = [value.lower() for name, value in exchange.headers if name == b"expect"]
    if any(value != b"100-continue" for value in expected):
        raise Malformed(417, "Expect: this server knows only 100-continue.")
    exchange.expects = bool(expected)
