"""One HTTP/1.1 connection: llhttp in front, the application awaited in the connection's own task.

Owns the wire: parsing, bounds, bodies with backpressure, keep-alive, pipelining, 100-continue, and one
coalesced send for each short answer. Knows ASGI and nothing of the application.

Why it is fast: there is no task, no timer, no channel and no event object for a request. Reading and
sending go straight to the socket; time-outs are two numbers that one reaper looks at for all connections.
"""

from __future__ import annotations

import math
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httptools
import structlog
import trio

Application = Callable[..., Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Refuse = Callable[[int, str], tuple[Headers, bytes]]
"""`(status, sentence) -> headers and body` of an answer that the connection gives by itself."""

RECEIVE_BYTES = 65_536
BACKLOG_BYTES_MAX = 65_536
"""Pipelined bytes that are taken off the socket while a request is being answered."""
LINGER_S = 1.0
LINGER_BYTES_MAX = 1 << 20

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode("ascii") for status in HTTPStatus
}
_BODILESS = frozenset({204, 304})
_log = structlog.get_logger("trunkline.http")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The numbers of a connection, from `limits/table.py`."""

    header_bytes_max: int
    headers_length_max: int
    pipelined_requests_max: int
    head_timeout_s: float
    body_timeout_s: float
    write_timeout_s: float
    idle_s: float


class Malformed(Exception):
    """The bytes on the wire are no acceptable request: answered with `status`, then the connection ends."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Exchange:
    """One request and its answer, as the two ASGI callables `receive` and `send`."""

    __slots__ = (
        "_chunked",
        "_conn",
        "_told_end",
        "body",
        "complete",
        "expects",
        "finished",
        "headers",
        "keep_alive",
        "method",
        "response_headers",
        "started",
        "status",
        "target",
        "upgrade",
        "version",
    )

    def __init__(self, conn: Http1Connection) -> None:
        self._conn = conn
        self.method = ""
        self.target = b""
        self.version = "1.1"
        self.headers: Headers = []
        self.body: list[bytes] = []
        self.complete = False
        self.keep_alive = True
        self.expects = False
        self.upgrade = b""
        self.status = 0
        self.response_headers: Headers = []
        self.started = False
        self.finished = False
        self._chunked = False
        self._told_end = False

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body as it arrives; when it has all been given, wait for the client to leave."""
        while True:
            if self.body or (self.complete and not self._told_end):
                piece = b"".join(self.body) if len(self.body) != 1 else self.body[0]
                self.body.clear()
                self._told_end = self.complete
                return {"type": "http.request", "body": piece, "more_body": not self.complete}
            if self.complete:
                await self._conn.wait_gone()
                return {"type": "http.disconnect"}
            if self.expects:
                self.expects = False
                if not self.started:
                    await self._conn.write(_CONTINUE)
            if not await self._conn.read_body(self):
                return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the answer. The head waits for the first part of the body and leaves with it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.response_headers = list(message.get("headers", ()))
            return
        if message["type"] != "http.response.body" or self.finished:
            return
        body = message.get("body", b"")
        more = message.get("more_body", False)
        bodiless = self.method == "HEAD" or self.status in _BODILESS
        parts: list[bytes] = []
        if not self.started:
            self.started = True
            parts.append(self._head(body, more=more))
        if body and not bodiless:
            parts += (b"%x\r\n" % len(body), body, b"\r\n") if self._chunked else (body,)
        if not more:
            self.finished = True
            if self._chunked and not bodiless:
                parts.append(b"0\r\n\r\n")
        if parts:
            await self._conn.write(b"".join(parts) if len(parts) > 1 else parts[0])

    def _head(self, body: bytes, *, more: bool) -> bytes:
        conn = self._conn
        lines = [_STATUS_LINES.get(self.status) or b"HTTP/1.1 %d \r\n" % self.status]
        sized = False
        for name, value in self.response_headers:
            if b"\n" in value or b"\r" in value or b"\n" in name:
                raise ValueError("a header of the answer holds a line break")
            lower = name.lower()
            if lower == b"content-length":
                sized = True
            elif lower in (b"connection", b"transfer-encoding", b"date"):
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        if not sized and self.status not in _BODILESS:
            if not more:
                lines.append(b"content-length: %d\r\n" % len(body))
            elif self.version == "1.1":
                self._chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self.keep_alive = False
        lines.append(_date_line())
        if conn.draining or not self.complete:
            # A body that was not read to its end leaves the connection in the middle of a message.
            self.keep_alive = False
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        elif self.version == "1.0":
            lines.append(b"connection: keep-alive\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)


class Http1Connection:
    """A cleartext connection. `run` serves it to its end, or gives the bytes back that are for another protocol.

    `scope` is cancelled by the reaper when `read_deadline` or `write_deadline` has passed.
    """

    __slots__ = (
        "_backlog",
        "_began",
        "_bounds",
        "_client",
        "_exchange",
        "_failure",
        "_head_bytes",
        "_parser",
        "_partial_bytes",
        "_raw",
        "_refuse",
        "_requests",
        "_server",
        "_sock",
        "app",
        "draining",
        "gone",
        "handover",
        "idle",
        "read_deadline",
        "scope",
        "write_deadline",
    )

    def __init__(
        self,
        sock: socket.socket,
        app: Application,
        bounds: Bounds,
        refuse: Refuse,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
    ) -> None:
        self.app = app
        self.scope = trio.CancelScope()
        self.draining = False
        self.gone = False
        self.idle = True
        self.handover: bytes | None = None
        self.write_deadline = math.inf
        self.read_deadline = trio.current_time() + bounds.head_timeout_s
        self._sock = sock
        self._bounds = bounds
        self._refuse = refuse
        self._client = client
        self._server = server
        self._requests: deque[Exchange] = deque()
        self._exchange: Exchange | None = None
        self._failure: Malformed | None = None
        self._began = False
        self._head_bytes = 0
        self._partial_bytes = 0
        self._raw = b""
        self._backlog = b""
        self._parser: Any = httptools.HttpRequestParser(self)

    # The life of a connection.

    async def run(self) -> bytes | None:
        """Answer requests until either side ends. Returns bytes that HTTP/2 or WebSocket must begin with."""
        bounds = self._bounds
        while True:
            while not self._requests and self._failure is None:
                data = await self._next_bytes()
                if not data:
                    return None
                self._feed(data)
                if self.handover is not None:
                    return self.handover
            if not self._requests:
                assert self._failure is not None
                await self._answer_by_ourselves(self._failure.status, self._failure.message)
                return None
            exchange = self._requests.popleft()
            await self._respond(exchange)
            if self.gone:
                return None
            if not exchange.keep_alive or self.draining:
                await self._linger()
                return None
            self.idle = not (self._requests or self._backlog or self._exchange is not None)
            wait_s = bounds.idle_s if self.idle else bounds.head_timeout_s
            self.read_deadline = trio.current_time() + wait_s

    async def _next_bytes(self) -> bytes:
        """Bytes of the next head: what was taken off the socket already, or what comes in time."""
        if self._backlog:
            data, self._backlog = self._backlog, b""
            return data
        data = await self._receive()
        if self.idle:
            # The first bytes of a head are here: from now on it has to come to its end in time.
            self.idle = False
            self.read_deadline = trio.current_time() + self._bounds.head_timeout_s
            if data.startswith(b"PRI "):
                self.handover = data
        return data

    async def _respond(self, exchange: Exchange) -> None:
        self.idle = False
        self.read_deadline = math.inf
        try:
            await self.app(self._asgi_scope(exchange), exchange.receive, exchange.send)
        except OSError:
            self.gone = True
        except Exception as bug:  # noqa: BLE001 - this connection gets its answer, the others never notice
            _log.error("request failed", method=exchange.method, exc_info=bug)
        if self.gone:
            return
        if not exchange.started:
            failure = self._failure or Malformed(500, "The server failed to answer; the fault is logged.")
            exchange.keep_alive = False
            await self._answer_by_ourselves(failure.status, failure.message)
        elif not exchange.finished:
            exchange.keep_alive = False
        exchange.keep_alive = exchange.keep_alive and exchange.complete

    def _asgi_scope(self, exchange: Exchange) -> dict[str, Any]:
        raw_path, _, query = exchange.target.partition(b"?")
        path = raw_path.decode("ascii", "replace")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": exchange.version,
            "method": exchange.method,
            "scheme": "http",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": exchange.headers,
            "client": self._client,
            "server": self._server,
            "extensions": {},
        }

    # Reading.

    async def _receive(self) -> bytes:
        sock = self._sock
        while True:
            await trio.lowlevel.wait_readable(sock)
            try:
                return sock.recv(RECEIVE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    async def read_body(self, exchange: Exchange) -> bool:
        """Take more of the body off the socket. False where the client left or what it sent is no body."""
        if self.read_deadline == math.inf:
            self.read_deadline = trio.current_time() + self._bounds.body_timeout_s
        data = await self._receive()
        if not data:
            self.gone = True
            return False
        self._feed(data)
        if exchange.complete:
            self.read_deadline = math.inf
        return self._failure is None

    async def wait_gone(self) -> None:
        """Return when the client has left. Pipelined bytes are kept for later, up to a bound."""
        while len(self._backlog) < BACKLOG_BYTES_MAX:
            data = await self._receive()
            if not data:
                self.gone = True
                return
            self._backlog += data
        await trio.sleep_forever()

    # Writing.

    async def write(self, data: bytes) -> None:
        """Send all of `data`. Raises OSError where the client is gone."""
        sock = self._sock
        try:
            sent = sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return
        self.write_deadline = trio.current_time() + self._bounds.write_timeout_s
        rest = memoryview(data)[sent:]
        while rest:
            await trio.lowlevel.wait_writable(sock)
            try:
                rest = rest[sock.send(rest) :]
            except BlockingIOError:
                continue
        self.write_deadline = math.inf

    async def _answer_by_ourselves(self, status: int, message: str) -> None:
        """An answer without the application, after which the connection ends."""
        try:
            await self.write(self.refusal(status, message))
        except OSError:
            return
        await self._linger()

    def refusal(self, status: int, message: str) -> bytes:
        """The whole answer of a refusal, as bytes."""
        headers, body = self._refuse(status, message)
        lines = [_STATUS_LINES[status], b"content-length: %d\r\n" % len(body), _date_line()]
        lines += [b"%b: %b\r\n" % header for header in headers]
        return b"".join((*lines, b"connection: close\r\n\r\n", body))

    async def _linger(self) -> None:
        """Close so that the client sees the answer: closing with unread bytes would reset the connection."""
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            return
        self.read_deadline = trio.current_time() + LINGER_S
        taken = 0
        while taken < LINGER_BYTES_MAX:
            data = await self._receive()
            if not data:
                return
            taken += len(data)

    # Parsing: callbacks of llhttp.

    def _feed(self, data: bytes) -> None:
        """Parse `data`; what is wrong with it is answered after the requests that came before it."""
        if self._exchange is None:
            self._raw = data
        elif not self._exchange.method:
            self._raw += data
        self._began = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgraded(data, upgrade.args[0])
        except httptools.HttpParserCallbackError as wrapped:
            cause = wrapped.__cause__ or wrapped.__context__
            self._failure = (
                cause if isinstance(cause, Malformed) else Malformed(400, "The request is malformed.")
            )
        except httptools.HttpParserInvalidMethodError:
            self._failure = Malformed(501, "The method of the request is not one that this server knows.")
        except httptools.HttpParserError as error:
            self._failure = Malformed(400, f"The request is malformed: {error}.")
        if self._exchange is not None and not self._exchange.method and self._failure is None:
            # llhttp keeps an unfinished field to itself: what it holds counts as well.
            self._partial_bytes = 0 if self._began else self._partial_bytes + len(data)
            if self._partial_bytes > self._bounds.header_bytes_max:
                self._failure = self._too_large()

    def on_message_begin(self) -> None:
        if len(self._requests) >= self._bounds.pipelined_requests_max:
            raise Malformed(429, "Too many requests at once on one connection; wait for their answers.")
        self._exchange = Exchange(self)
        self._began = True
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        assert self._exchange is not None
        self._exchange.target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        exchange = self._exchange
        if exchange is None or exchange.method:
            return  # a trailer: nothing here reads them
        self._count(len(name) + len(value) + 4)
        if len(exchange.headers) >= self._bounds.headers_length_max:
            raise self._too_large()
        name = name.lower()
        exchange.headers.append((name, value))
        if name == b"expect":
            if value.lower() != b"100-continue":
                raise Malformed(417, "Expect: only 100-continue is known here.")
            exchange.expects = True
        elif name == b"upgrade":
            exchange.upgrade = value.lower()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._bounds.header_bytes_max:
            raise self._too_large()

    def _too_large(self) -> Malformed:
        bounds = self._bounds
        return Malformed(
            431,
            f"The head of the request is too large: it takes at most {bounds.header_bytes_max} bytes "
            f"and {bounds.headers_length_max} header fields.",
        )

    def on_headers_complete(self) -> None:
        exchange, parser = self._exchange, self._parser
        assert exchange is not None
        exchange.version = parser.get_http_version()
        if exchange.version not in ("1.0", "1.1"):
            raise Malformed(505, f"HTTP/{exchange.version} is not spoken here; use HTTP/1.1.")
        exchange.method = parser.get_method().decode("ascii")
        exchange.keep_alive = parser.should_keep_alive()
        hosts = [value for name, value in exchange.headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and exchange.version == "1.1"):
            raise Malformed(400, "The request needs exactly one Host field.")
        if exchange.method == "CONNECT":
            raise Malformed(405, "CONNECT is not a method of this server.")
        if exchange.version == "1.0" and any(name == b"transfer-encoding" for name, _ in exchange.headers):
            raise Malformed(400, "Transfer-Encoding is not part of HTTP/1.0.")
        exchange.target = _origin_form(exchange.target)
        if not (exchange.upgrade == b"websocket" and parser.should_upgrade()):
            self._requests.append(exchange)

    def on_body(self, piece: bytes) -> None:
        assert self._exchange is not None
        self._exchange.body.append(piece)

    def on_message_complete(self) -> None:
        assert self._exchange is not None
        self._exchange.complete = True
        if not (self._parser.should_upgrade() and self._exchange.upgrade == b"websocket"):
            self._exchange = None

    def _upgraded(self, data: bytes, offset: int) -> None:
        """llhttp stops at an upgrade: WebSocket is for the stock protocol, others are ignored."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and exchange.upgrade == b"websocket":
            if self._requests or not self._raw.startswith(b"GET "):
                self._failure = Malformed(400, "A WebSocket can not begin behind a pipelined request.")
            else:
                self.handover = self._raw
            return
        self._parser = httptools.HttpRequestParser(self)
        rest = bytes(data[offset:])
        if rest:
            self._feed(rest)


def _origin_form(target: bytes) -> bytes:
    """`/path?query` of a request target; the authority of an absolute form says nothing here."""
    if target.startswith(b"/"):
        return target.partition(b"#")[0]
    if target == b"*":
        return target
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        raise Malformed(400, "The target of the request is neither a path nor an address.")
    _, slash, path = rest.partition(b"/")
    return (slash + path).partition(b"#")[0] or b"/"


_date_of = (0, b"")


def _date_line() -> bytes:
    """The Date field, made once a second."""
    global _date_of
    second = int(time.time())
    if _date_of[0] != second:
        _date_of = (second, b"date: " + formatdate(second, usegmt=True).encode("ascii") + b"\r\n")
    return _date_of[1]
