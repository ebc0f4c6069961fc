"""One request and its answer on an HTTP/1.1 connection, as the two ASGI callables `receive` and `send`.

Owns the message: what came in so far, and how the answer is framed (head, lengths, chunks, and that nothing
but one answer leaves). Does not own the socket (`wire/http1.py`) nor the parser (`wire/request_parser.py`).

Why the head waits for the first part of the body: a short answer then leaves in one send.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

import trio

if TYPE_CHECKING:
    from trunkline.http.wire.request_heads import KnownHead

Headers = list[tuple[bytes, bytes]]
Fields = Headers | tuple[tuple[bytes, bytes], ...]
"""The fields of an answer; a tuple where the same ones come often, so that they are checked once."""

Delivery = Callable[[int, Fields, bytes], None]
"""Takes an answer: status, fields, body."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode("ascii")
    for status in HTTPStatus
    if status >= 200
}
_BODILESS = frozenset({204, 304})
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class Wire(Protocol):
    """What an exchange needs of its connection."""

    draining: bool
    waiting: trio.CancelScope | None

    async def write(self, data: bytes) -> None:
        """Send all of `data`; raises OSError where the client is gone."""
        ...

    async def read_body(self, exchange: Exchange) -> bool:
        """Parse more of the body; False where there will be no more of it."""
        ...

    async def wait_gone(self, exchange: Exchange) -> None:
        """Return when the client has left or the answer is complete."""
        ...


class Exchange:
    """One request and its answer."""

    __slots__ = (
        "_chunked",
        "_left_bytes",
        "_told_end",
        "_wire",
        "after_upgrade",
        "body",
        "complete",
        "expects",
        "finished",
        "headers",
        "is_handshake",
        "keep_alive",
        "known",
        "method",
        "response_headers",
        "sent_bytes",
        "started",
        "status",
        "target",
        "upgrade",
        "version",
    )

    def __init__(self, wire: Wire, known: KnownHead | None = None, body: bytes = b"") -> None:
        """Of a request that has begun; with `known`, one that is complete and needs no parsing."""
        self._wire = wire
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
        self.version = "1.1"
        self.keep_alive = True
        self.expects = False
        self.upgrade = b""
        self.is_handshake = False
        """It asks for a WebSocket; `after_upgrade` holds the bytes behind its head."""
        self.after_upgrade = b""
        self.status = 0
        self.response_headers: Any = ()
        self.started = False
        self.finished = False
        self.sent_bytes = 0
        self._chunked = False
        self._left_bytes: int | None = None
        self._told_end = False

    @property
    def path(self) -> str:
        """The path as it was sent, for a log: the query is left out, as it may hold what no log should."""
        return self.target.partition(b"?")[0].decode("ascii")

    def handshake(self) -> bytes:
        """The head of a request for a WebSocket, for the protocol that begins with it."""
        fields = b"".join(b"%b: %b\r\n" % field for field in self.headers)
        return b"GET %b HTTP/1.1\r\n%b\r\n" % (self.target, fields)

    def whole_body(self) -> bytes:
        """The body of a complete request. It is not taken: `receive` gives it all the same."""
        body = self.body
        if len(body) > 1:
            body[:] = [b"".join(body)]
        return body[0] if body else b""

    def answer(self, status: int, headers: Fields, body: bytes) -> bytes:
        """The bytes of a whole answer, which the caller sends: the same that two `send`s would."""
        self.status = status
        self.response_headers = headers
        data = self._head(body, more=False)
        if self.method != "HEAD" and status not in _BODILESS:
            data += self._framed(body, more=False)
        self.started = self.finished = True
        return data

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body as it arrives; when all was given, wait for the end of the exchange."""
        body = self.body
        while not body and (self._told_end or not self.complete):
            if self.finished:
                return {"type": "http.disconnect"}
            if self.complete:
                await self._wire.wait_gone(self)
                return {"type": "http.disconnect"}
            if self.expects:
                self.expects = False
                if not self.started:
                    await self._wire.write(_CONTINUE)
            if not await self._wire.read_body(self):
                return {"type": "http.disconnect"}
        piece = body[0] if len(body) == 1 else b"".join(body)
        body.clear()
        self.expects = False
        self._told_end = self.complete
        return {"type": "http.request", "body": piece, "more_body": not self.complete}

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the answer.

        Raises OSError where the client is gone, and ValueError for an answer that can not be framed; if that
        is its first part, nothing of it has left.
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
            if self.method != "HEAD" and self.status not in _BODILESS:
                data += self._framed(body, more=more)
            self.started = True
            # A body of a known length ends with its last byte, whether or not the application says so yet; but not
            # before that byte is written: `receive` would say that the client is gone, in the midst of the write.
            last = not more or self._left_bytes == 0
            if data:
                await self._wire.write(data)
            self.finished = last
        if more:
            # A stream into a fast reader must let the other tasks have their turn.
            await trio.lowlevel.checkpoint()
        elif self._wire.waiting is not None:
            self._wire.waiting.cancel()

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        """A part of the body as it goes over the wire."""
        self.sent_bytes += len(body)
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return data if more else data + b"0\r\n\r\n"
        if self._left_bytes is not None:
            self._left_bytes -= len(body)
            if self._left_bytes < 0 or (self._left_bytes and not more):
                # A client would take the beginning of the next answer for the rest of this one, or the reverse.
                raise ValueError("the body of an answer is not as long as its head says")
        return body

    def _head(self, body: bytes, *, more: bool) -> bytes:
        headers = self.response_headers
        given, length, closes = _given_often(headers) if type(headers) is tuple else _given(headers)
        if closes:
            self.keep_alive = False
        framing = self._length_line(length, body, more=more)
        if self._wire.draining or not self.complete:
            # A body that was not read to its end leaves the connection in the middle of a message.
            self.keep_alive = False
        if not self.keep_alive:
            framing += b"connection: close\r\n"
        elif self.version == "1.0":
            framing += b"connection: keep-alive\r\n"
        return b"".join((_status_line(self.status), given, framing, _date_line()))

    def _length_line(self, length: bytes | None, body: bytes, *, more: bool) -> bytes:
        """The field that says where the body ends. `length` is what the application says of it."""
        if self.status in _BODILESS:
            return b""
        if not more and (length is None or self.method != "HEAD"):
            own = b"%d" % len(body)
            if length is not None and length != own:
                raise ValueError("the body of an answer is not as long as its head says")
            return b"content-length: %b\r\n" % own
        if length is not None:
            self._left_bytes = int(length)
            return b"content-length: %d\r\n" % self._left_bytes
        if self.version == "1.1":
            self._chunked = True
            return b"transfer-encoding: chunked\r\n"
        self.keep_alive = False
        return b""


def _given(headers: Fields) -> tuple[bytes, bytes | None, bool]:
    """The lines of an application's fields, the length that it says, and whether it ends the connection.

    Raises ValueError for fields that would break the head.
    """
    fields: list[bytes] = []
    length, closes = None, False
    for name, value in headers:
        prefix = _prefixes.get(name) or _prefix(name)
        if prefix not in _OURS:
            fields += (prefix, value, b"\r\n")
        elif prefix == b"content-length: ":
            length = value
        elif prefix == b"connection: " and b"close" in value.lower():
            closes = True
    given = b"".join(fields)
    if given.count(b"\n") * 3 != len(fields) or given.count(b"\r") * 3 != len(fields) or b"\0" in given:
        raise ValueError("a field of an answer holds a line break or NUL")
    return given, length, closes


_given_often = lru_cache(4096)(_given)


_OURS = frozenset({b"content-length: ", b"connection: ", b"transfer-encoding: ", b"date: "})
"""Fields that the connection writes itself, as only it knows what is true."""

_prefixes: dict[bytes, bytes] = {}
_PREFIXES_LENGTH_MAX = 256
"""Names of fields of answers that are remembered as checked; an application has a few dozen."""


def _prefix(name: bytes) -> bytes:
    """A name as it stands before a value. Raises ValueError where it is no name."""
    if not _NAME.fullmatch(name):
        raise ValueError("a field of an answer has a name that is none")
    prefix = name.lower() + b": "
    if len(_prefixes) < _PREFIXES_LENGTH_MAX:
        _prefixes[bytes(name)] = prefix
    return prefix


def _status_line(status: int) -> bytes:
    line = _STATUS_LINES.get(status)
    if line is not None:
        return line
    if not 200 <= status <= 999:
        raise ValueError(f"{status} is no status of an answer")
    return b"HTTP/1.1 %d \r\n" % status


def last_answer(status: int, headers: Headers, body: bytes, *, bodiless: bool) -> bytes:
    """An answer that the server gives without its application, and after which the connection ends."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    framing = b"content-length: %d\r\nconnection: close\r\n" % len(body)
    return b"".join((_status_line(status), lines, framing, _date_line(), b"" if bodiless else body))


_date_of = (0, b"")


def _date_line() -> bytes:
    """The Date field and the end of the head, made once a second."""
    global _date_of
    second = int(time.time())
    if _date_of[0] != second:
        _date_of = (second, b"date: " + formatdate(second, usegmt=True).encode("ascii") + b"\r\n\r\n")
    return _date_of[1]
