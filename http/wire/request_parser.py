"""Parses bytes into requests: llhttp, with the bounds and the rules that it leaves to its user.

Owns which bytes are an acceptable request. Does not own receiving, waiting or responding: others call `feed`, and
find the result in `requests` and `failure`.

Why there are rules beside llhttp: it is strict about line ends, names, lengths and chunks, but it accepts transfer
codings other than chunked, more or less than one Host field, targets that are not a path, and heads, trailers and
chunk extensions of any size. These are refused here. A request that asks for another protocol makes llhttp stop before
the body. Only a GET that asks for WebSocket has no body, and what follows it waits in `behind_offer`; any other such
request is ignored, as any server may, so the body has to be parsed all the same.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import httptools
import structlog

from trunkline.http.wire.exchange import Connection, Exchange
from trunkline.http.wire.request_heads import RequestHeads
from trunkline.http.wire.websocket import Offer

_FRAMING_BYTES_PER_BODY_BYTE_MAX = 16
"""A chunk of one byte takes six bytes. A client that needs more than this per byte only wants to keep us busy."""
HOST_CHARS = b"!$%&'()*+,-.:;=[]_~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CHECKED = frozenset({b"host", b"transfer-encoding", b"expect", b"upgrade"})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_METHODS = {name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}
_log = structlog.get_logger("trunkline.http")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one connection, from `limits/table.py`."""

    header_bytes_max: int
    headers_length_max: int
    pipelined_requests_max: int
    head_timeout_s: float
    body_timeout_s: float
    write_timeout_s: float
    idle_s: float
    http2_streams_max: int
    http2_answers_max: int


class Malformed(Exception):
    """The bytes are not an acceptable request: the response has `status`, and ends the connection."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def head_too_large(bounds: Bounds) -> Malformed:
    """The refusal of a head that is over a bound."""
    return Malformed(
        431,
        f"The fields of the request are too large: it takes at most {bounds.header_bytes_max} bytes of head "
        f"and {bounds.headers_length_max} fields, and no more than that in trailers.",
    )


class RequestParser:
    """Parses the requests of one connection.

    `requests` are those whose head is complete, in their order; whoever begins one takes it out. `failure` is what is
    wrong with the bytes behind them; `feed` must not be called after it.
    """

    __slots__ = (
        "_bounds",
        "_codings",
        "_connection",
        "_head_bytes",
        "_head_bytes_max",
        "_headers_length_max",
        "_heads",
        "_hosts",
        "_parser",
        "_unseen_bytes",
        "behind_offer",
        "failure",
        "partial",
        "requests",
    )

    def __init__(self, connection: Connection, bounds: Bounds, heads: RequestHeads) -> None:
        self.requests: deque[Exchange] = deque()
        self.failure: Malformed | None = None
        self.behind_offer = b""
        """What has come behind a request that offers WebSocket: no HTTP, if the offer is accepted."""
        self._connection = connection
        self._heads = heads
        self._bounds = bounds
        self._head_bytes_max = bounds.header_bytes_max
        self._headers_length_max = bounds.headers_length_max
        self.partial: Exchange | None = None
        """The request that has begun and is not complete."""
        self._head_bytes = 0
        self._unseen_bytes = 0
        self._hosts = 0
        self._codings = 0
        self._parser: Any = httptools.HttpRequestParser(self)

    def close(self) -> None:
        """Drop everything that refers to this object."""
        self._parser = self.partial = None
        self.requests.clear()
        del self._connection

    def feed(self, data: bytes) -> Exchange | None:
        """Parse `data`. If it is not acceptable, `failure` is set.

        Returns the request if exactly one waits in `requests`, it is complete, and nothing else was begun behind it;
        else None.
        """
        if self.partial is None and not self.requests and (found := self._heads.find(data)) is not None:
            # llhttp is between two requests, so it need not see one that is whole.
            known, body = found
            exchange = Exchange(self._connection, known, body)
            self.requests.append(exchange)
            return exchange
        while data:
            partial = self.partial
            had = -1 if partial is None or not partial.method else len(partial.body)
            rest = b""
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                rest = self._after_upgrade(data[upgrade.args[0] :])
            except httptools.HttpParserCallbackError as wrapped:
                self.failure = _cause(wrapped)
            except httptools.HttpParserInvalidMethodError:
                self.failure = Malformed(501, "This server does not know the method of the request.")
            except httptools.HttpParserError as error:
                self.failure = Malformed(400, f"The request is malformed: {error}.")
            if self.failure is not None:
                return None
            if self.partial is not None:
                self._bound_unfinished(partial, had, len(data))
            data = rest
        if len(self.requests) != 1 or self.partial is not None:
            return None
        return self.requests[0]

    def _bound_unfinished(self, before: Exchange | None, had: int, fed_bytes: int) -> None:
        """Bound what llhttp has consumed without a callback: half a field, a trailer, a chunk extension."""
        exchange = self.partial
        assert exchange is not None
        if exchange is not before or (had < 0) != (not exchange.method):
            # A head or a body began in these bytes, whose number is bounded itself.
            self._unseen_bytes = 0
            return
        seen = 0 if had < 0 else sum(map(len, exchange.body[had:])) * _FRAMING_BYTES_PER_BODY_BYTE_MAX
        self._unseen_bytes = max(0, self._unseen_bytes + fed_bytes - seen)
        if self._unseen_bytes > self._head_bytes_max:
            self.failure = self._too_large()

    def _after_upgrade(self, rest: bytes) -> bytes:
        """llhttp stops at an upgrade. Returns the bytes that still have to be parsed."""
        exchange = self.partial
        assert exchange is not None
        if exchange.offer is not None:
            self.behind_offer = rest
            exchange.complete, self.partial = True, None
            return b""
        self._parser = httptools.HttpRequestParser(self)
        # A new parser expects a head before a body. This one is not seen by anybody: the exchange has its own.
        framing = b"".join(b"%b: %b\r\n" % field for field in exchange.headers if field[0] in _FRAMING)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n")
        return rest

    # Callbacks of llhttp.

    def on_message_begin(self) -> None:
        if self.partial is not None:
            return  # the head that `_after_upgrade` made
        if len(self.requests) >= self._bounds.pipelined_requests_max:
            raise Malformed(429, "Too many requests at once on one connection; wait for their responses.")
        self.partial = Exchange(self._connection)
        self._head_bytes = self._hosts = self._codings = 0

    def on_url(self, url: bytes) -> None:
        exchange = self.partial
        assert exchange is not None
        if exchange.method:
            return
        exchange.target += url
        self._head_bytes += len(url)
        if self._head_bytes > self._head_bytes_max:
            raise Malformed(414, f"The target of the request is longer than {self._head_bytes_max} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        exchange = self.partial
        assert exchange is not None
        if exchange.method:
            return  # a trailer, which nothing here reads
        self._head_bytes += len(name) + len(value) + 4
        headers = exchange.headers
        if self._head_bytes > self._head_bytes_max or len(headers) >= self._headers_length_max:
            raise self._too_large()
        name, value = name.lower(), value.rstrip()
        headers.append((name, value))
        if name in _CHECKED:
            self._check_field(exchange, name, value)

    def _check_field(self, exchange: Exchange, name: bytes, value: bytes) -> None:
        if name == b"host":
            self._hosts += 1
            if value.translate(None, HOST_CHARS):
                raise Malformed(400, "The Host field of the request is not a valid host.")
        elif name == b"upgrade":
            exchange.upgrade = value.lower()
        elif name == b"expect":
            exchange.expects = True
            if value.lower() != b"100-continue":
                raise Malformed(417, "Expect: this server knows only 100-continue.")
        else:
            self._codings += 1
            if value.lower() != b"chunked" or self._codings > 1:
                raise Malformed(501, "Transfer-Encoding: this server knows only chunked, and only once.")

    def _too_large(self) -> Malformed:
        return head_too_large(self._bounds)

    def on_headers_complete(self) -> None:
        exchange, parser = self.partial, self._parser
        assert exchange is not None
        if exchange.method:
            return
        version = parser.get_http_version()
        if version == "1.0":
            if self._codings:
                raise Malformed(400, "Transfer-Encoding is not part of HTTP/1.0.")
            exchange.expects = False
        elif version != "1.1":
            raise Malformed(505, f"This server does not speak HTTP/{version}; use HTTP/1.1.")
        if self._hosts != 1 and (self._hosts or version == "1.1"):
            raise Malformed(400, "The request needs exactly one Host field.")
        exchange.version = version
        exchange.keep_alive = parser.should_keep_alive()
        if not exchange.keep_alive:
            self._heads = _NO_HEADS  # llhttp refuses whatever follows, so it has to see it
        method = parser.get_method()
        name = _METHODS.get(method) or _rare_method(method)
        if exchange.target[:1] != b"/" or b"#" in exchange.target:
            _to_origin_form(exchange, name)
        if name == "GET" and exchange.upgrade == b"websocket" and parser.should_upgrade():
            if any(field in _FRAMING for field, _ in exchange.headers):
                raise Malformed(400, "A request for WebSocket has no body.")
            exchange.offer = Offer(exchange.headers)
            exchange.keep_alive = False
            self._heads = _NO_HEADS
        exchange.method = name
        self.requests.append(exchange)

    def on_body(self, piece: bytes) -> None:
        assert self.partial is not None
        self.partial.body.append(piece)

    def on_message_complete(self) -> None:
        exchange = self.partial
        assert exchange is not None
        if exchange.upgrade and self._parser.should_upgrade():
            return  # llhttp has skipped the body: `_after_upgrade` follows
        exchange.complete = True
        self.partial = None


_NO_HEADS = RequestHeads(0)


def _cause(wrapped: httptools.HttpParserCallbackError) -> Malformed:
    """The refusal that a callback raised; any other exception is a bug."""
    cause = wrapped.__cause__ or wrapped.__context__
    if isinstance(cause, Malformed):
        return cause
    _log.error("parsing failed", exc_info=cause)
    return Malformed(500, "The server failed to read the request; the fault is logged.")


def _rare_method(method: bytes) -> str:
    if method == b"CONNECT":
        raise Malformed(501, "CONNECT is not a method of this server.")
    return method.decode("ascii")


def _to_origin_form(exchange: Exchange, method: str) -> None:
    """Turn a target that is not a path into one (RFC 9112, 3.2), or raise Malformed.

    The authority of an absolute form replaces the Host field, as the RFC requires.
    """
    target = exchange.target
    if b"#" in target:
        raise Malformed(400, "The target of the request has a fragment, which must not be sent.")
    if target == b"*" and method == "OPTIONS":
        return
    scheme, separator, rest = target.partition(b"://")
    authority, slash, path = rest.partition(b"/")
    authority, question, query = authority.partition(b"?")
    if not separator or scheme.lower() not in (b"http", b"https") or not authority:
        raise Malformed(400, "The target of the request is neither a path nor a URL.")
    if authority.translate(None, HOST_CHARS):
        raise Malformed(400, "The target of the request has no valid host.")
    exchange.target = b"/" + question + query + slash + path if question else b"/" + path
    exchange.headers = [(name, authority if name == b"host" else value) for name, value in exchange.headers]
