"""One cleartext HTTP/1.1 connection: read, parse, await the application, send, until either side ends.

Owns the socket of the connection and its two deadlines. Knows ASGI and nothing of the application; what a
request is says `wire/request_parser.py`, what an answer is says `wire/exchange.py`.

Why it is fast: there is no task, no timer, no channel and no event object for a request. The application is
awaited in the connection's own task, reading and sending go straight to the socket, and time-outs are two
numbers that one reaper looks at for all connections. An application that need not be awaited is not (`FastPath`): its
request is begun by who sees that it has come, and its answer sent by whoever has it; the task sleeps on.

Long because reading, writing and both ways of answering share the state of one socket.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote

import structlog
import trio

from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import FastPath
from trunkline.http.wire.headers import Fields, Headers
from trunkline.http.wire.readiness import Readiness
from trunkline.http.wire.request_heads import RequestHeads
from trunkline.http.wire.request_parser import Bounds, Malformed, RequestParser
from trunkline.http.wire.response_head import final_response

Application = Callable[..., Awaitable[None]]
Address = tuple[str, int] | None
Refuse = Callable[[int, str], tuple[Headers, bytes]]
"""`(status, sentence) -> headers and body` of an answer that the connection gives by itself."""
Access = Callable[[Exchange, Address, float], None]
"""Told of each answer: the exchange, the client, and the seconds that the answer took."""


RECEIVE_BYTES = 65_536
BACKLOG_BYTES_MAX = 65_536
"""Pipelined bytes that are taken off the socket while a request is being answered."""
WRITE_STEP_BYTES = 65_536
"""A write that blocks gets on by this much within the write time-out: a slow reader is served, one that
takes a byte now and then is not. The system holds no more than this of what it has not sent yet, so that it
is seen how a reader gets on, and one that never reads does not cost the megabytes of a whole send buffer."""
BODY_STEP_BYTES = 1 << 20
"""The same for reading: each MiB of a body has the body time-out to itself."""
LINGER_S = 1.0
LINGER_BYTES_MAX = 1 << 24
HALF_CLOSED_S = 1.0
"""How long a client that has closed its sending half may wait for an answer that has not begun."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

EXTENSIONS: dict[str, dict[str, Any]] = {"trunkline.deadlines": {}}
"""What the ASGI scope says of this connection: the time of a body is bounded here. The stock protocol has no
such bound, so an application that waits for a body there has to bound it itself."""
_ASGI = {"version": "3.0", "spec_version": "2.4"}
_log = structlog.get_logger("trunkline.http")


class Handover(NamedTuple):
    """The bytes of a connection that another protocol goes on with."""

    first: bytes
    behind: bytes | None
    """For a WebSocket: what came behind its handshake. None for HTTP/2, where `first` is all."""


class ClientGone(OSError):
    """The client took its connection away; ASGI wants an OSError for it."""


class Http1Connection:
    """`run` serves the connection to its end, or until another protocol has to go on with it.

    `scope` is cancelled by the reaper when `read_deadline` or `write_deadline` has passed, and by a drain.
    """

    __slots__ = (
        "_access",
        "_app",
        "_backlog",
        "_began_s",
        "_body_bytes",
        "_body_left_s",
        "_body_of",
        "_bounds",
        "_client",
        "_current",
        "_delivered",
        "_descriptor",
        "_fast_path",
        "_fed",
        "_fresh",
        "_half_closed",
        "_heads",
        "_instead",
        "_parser",
        "_pending",
        "_readiness",
        "_refuse",
        "_rest",
        "_server",
        "_sock",
        "_state",
        "_torn",
        "draining",
        "gone",
        "idle",
        "read_deadline",
        "scope",
        "waiting",
        "write_deadline",
    )

    def __init__(
        self,
        sock: socket.socket,
        app: Application,
        bounds: Bounds,
        refuse: Refuse,
        readiness: Readiness,
        heads: RequestHeads,
        client: Address,
        server: Address,
        *,
        fast_path: FastPath | None,
        access: Access | None = None,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.scope = trio.CancelScope()
        self.waiting: trio.CancelScope | None = None
        self.draining = False
        self.gone = False
        self.idle = True
        self.write_deadline = math.inf
        self.read_deadline = trio.current_time() + bounds.head_timeout_s
        self._app = app
        self._readiness = readiness
        self._heads = heads
        self._descriptor = sock.fileno()
        self._fast_path = fast_path
        self._instead = None if self._fast_path is None else self._took_request
        self._fed = False
        self._pending = False
        self._delivered: trio.Event | None = None
        self._rest = b""
        self._began_s = 0.0
        self._sock = sock
        self._bounds = bounds
        self._refuse = refuse
        self._access = access
        self._state = state
        self._client = client
        self._server = server
        self._current: Exchange | None = None
        self._fresh = True
        self._half_closed = False
        self._torn = False
        self._backlog = b""
        self._body_of: Exchange | None = None
        self._body_left_s = 0.0
        self._body_bytes = 0
        self._parser = RequestParser(self, bounds, heads)

    # The life of a connection.

    async def run(self) -> Handover | None:
        """Answer requests until either side ends. Returns what HTTP/2 or WebSocket must begin with."""
        parser = self._parser
        try:
            while True:
                while not parser.requests:
                    if parser.failure is not None:
                        await self._settled()
                        await self.send(self.refusal(parser.failure.status, parser.failure.message))
                        await self._linger()
                        return None
                    if preface := await self._read_head():
                        return Handover(preface, None)
                    if self.gone:
                        return None
                await self._settled()
                if self.gone:
                    return None
                if parser.requests[0].is_handshake:
                    exchange = parser.requests.popleft()
                    return Handover(exchange.handshake(), exchange.after_upgrade + self._backlog)
                # No name is kept for the exchange: a connection that idles must not hold a request.
                if not await self._respond(parser.requests.popleft()):
                    return None
                if not self._pending:
                    self._wait_for_next()
        except ClientGone:
            return None

    def _wait_for_next(self) -> None:
        """An answer is complete: from now on the next request is waited for."""
        self.idle = not (self._parser.requests or self._backlog or self._parser.amid)
        wait_s = self._bounds.idle_s if self.idle else self._bounds.head_timeout_s
        self.read_deadline = trio.current_time() + wait_s

    def close(self) -> None:
        """Let go of the request and the parser: they hold this object, which else waits for the collector."""
        self._current = self._instead = None
        self._parser.close()

    async def _respond(self, exchange: Exchange) -> bool:
        """Await the application's answer. Whether the connection goes on afterwards."""
        # `_took_request` may have asked already, in vain.
        if self._current is not exchange and self._begins(exchange):
            return True
        access, began_s = self._access, self._began_s
        crashed = False
        try:
            await self._app(self._asgi_scope(exchange), exchange.receive, exchange.send)
        except Exception as bug:  # noqa: BLE001 - this connection ends, the others never notice
            crashed = True
            _log_crash(exchange, bug)
        if self._torn or (self._half_closed and not exchange.finished):
            self.gone = True
        if not exchange.started and not self.gone:
            await self._answer_instead(exchange, crashed=crashed)
        if access is not None:
            access(exchange, self._client, time.perf_counter() - began_s)
        if self.gone:
            return False
        self._current = None
        if exchange.finished and exchange.complete and exchange.keep_alive and not self.draining:
            return True
        await self._linger()
        return False

    async def _answer_instead(self, exchange: Exchange, *, crashed: bool) -> None:
        """The answer where the application gave none: the body was no body, or the application failed."""
        failure = None if exchange.complete else self._parser.failure
        if failure is None:
            if not crashed:
                _log.error("request not answered", method=exchange.method, path=exchange.path)
            failure = Malformed(500, "The server failed to answer; the fault is logged.")
        exchange.started, exchange.status, exchange.keep_alive = True, failure.status, False
        bodiless = exchange.method == "HEAD"
        try:
            await self.send(self.refusal(failure.status, failure.message, bodiless=bodiless))
        except ClientGone:
            return

    def _asgi_scope(self, exchange: Exchange) -> dict[str, Any]:
        raw_path, _, query = exchange.target.partition(b"?")
        path = raw_path.decode("ascii")
        scope = {
            "type": "http",
            "asgi": _ASGI,
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
            "extensions": EXTENSIONS,
        }
        if self._state:
            scope["state"] = self._state.copy()
        return scope

    # Answers that come by themselves.

    def _begins(self, exchange: Exchange) -> bool:
        """Begin to answer a request. True where the answer comes, or has come, by itself."""
        self.idle = False
        self.read_deadline = math.inf
        self._current = exchange
        if self._access is not None:
            self._began_s = time.perf_counter()
        if self._fast_path is None or not exchange.complete or not exchange.keep_alive or self.draining:
            return False
        self._pending = True
        if self._fast_path.begin(exchange, self._deliver):
            return True
        self._pending = False
        return False

    def _took_request(self) -> bool:
        """Read and begin the next request while the task waits for it, if it is one that needs no task.

        That is nearly every request of a busy device, and a task that wakes, asks and sleeps again costs as
        much as parsing it. What was read and is more, or less, or something else is left to the task (`_fed`).
        """
        parser = self._parser
        if self._pending or self._fresh or self.gone or parser.amid:
            return False
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not 0 < len(data) < RECEIVE_BYTES:
            self._readiness.more(self._descriptor)
            if not data:
                return False
        self._fed = True
        parser.feed(data)
        exchange = parser.only
        if exchange is None:
            return False
        try:
            begun = self._begins(exchange)
        except Exception as bug:  # noqa: BLE001 - this connection ends, the others never notice
            _log_crash(exchange, bug)
            self.scope.cancel()
            return True
        if begun:
            parser.requests.popleft()
            if exchange.known is None:
                self._heads.keep(data, exchange)
            self._fed = False
        return begun

    def _deliver(self, status: int, headers: Fields, body: bytes) -> None:
        """Send an answer now, as the request's task waits for the next request already.

        What the socket does not take at once is left to that task.
        """
        exchange = self._current
        if self._delivered is not None:
            self._delivered.set()
        if self.gone or exchange is None:
            self._pending = False
            return
        try:
            data = exchange.whole_response(status, headers, body)
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.gone = True
            sent = len(data)
        except ValueError as bug:
            _log_crash(exchange, bug)
            self.gone = True
            data, sent = b"", 0
            self.scope.cancel()
        if self._access is not None:
            self._access(exchange, self._client, time.perf_counter() - self._began_s)
        if sent < len(data):
            self._rest = data[sent:]
            self._torn = True
            self._readiness.wake(self._descriptor)
        else:
            self._pending = False
            self._after_delivery(exchange)

    def _after_delivery(self, exchange: Exchange) -> None:
        self._current = None
        if exchange.keep_alive or self.gone:
            self._wait_for_next()
            return
        # It said that the connection ends, as a drain has begun since: the client closes it, or time does.
        self.gone = True
        self.read_deadline = trio.current_time() + LINGER_S
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    async def _settled(self) -> None:
        """Wait until the answer that is pending has left."""
        while self._pending:
            if self._rest:
                rest, self._rest = self._rest, b""
                exchange = self._current
                assert exchange is not None
                await self._write_rest(memoryview(rest))
                self._pending = False
                self._after_delivery(exchange)
            else:
                self._delivered = trio.Event()
                await self._delivered.wait()
                self._delivered = None

    # Reading.

    async def _receive(self, instead: Callable[[], bool] | None = None) -> bytes:
        """What comes next; b"" where the client has closed its sending half or is gone, or where `_fed`."""
        sock = self._sock
        while True:
            await self._readiness.wait(self._descriptor, instead)
            if self._rest:
                await self._settled()
            if self._fed:
                return b""
            try:
                data = sock.recv(RECEIVE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                self.gone = True
                data = b""
            if not 0 < len(data) < RECEIVE_BYTES:
                self._readiness.more(self._descriptor)  # there is more, or the end, which stays readable
            return data

    async def _read_head(self) -> bytes:
        """Give the parser what was taken off the socket already, or what comes in time.

        Returns the bytes if they are the beginning of HTTP/2, else b"".
        """
        if self._backlog:
            data, self._backlog = self._backlog, b""
        else:
            data = await self._receive(self._instead)
            if self._fed:
                # What came is in the parser already.
                self._fed = False
                if self.idle:
                    self.idle = False
                    self.read_deadline = trio.current_time() + self._bounds.head_timeout_s
                return b""
            if not data:
                await self._settled()  # who closes only its sending half still gets the answer
                self.gone = True
                return b""
            if self.idle:
                # The first bytes of a head are here: from now on it has to come to its end in time.
                self.idle = False
                self.read_deadline = trio.current_time() + self._bounds.head_timeout_s
            if self._fresh:
                self._fresh = False
                while len(data) < 4 and PREFACE.startswith(data):
                    more = await self._receive()
                    if not more:
                        self.gone = True
                        return b""
                    data += more
                if data.startswith(b"PRI "):
                    return data
        self._parser.feed(data)
        return b""

    async def read_body(self, exchange: Exchange) -> bool:
        """Parse more of the body; False where there will be no more of it.

        The deadline runs only while the client is waited for: an application may take its time.
        """
        if self._parser.failure is not None:
            return False
        if self._body_of is not exchange or self._body_bytes >= BODY_STEP_BYTES:
            self._body_of = exchange
            self._body_left_s = self._bounds.body_timeout_s
            self._body_bytes = 0
        deadline = self.read_deadline = trio.current_time() + self._body_left_s
        try:
            data = await self._receive()
        finally:
            self.read_deadline = math.inf
        self._body_left_s = deadline - trio.current_time()
        self._body_bytes += len(data)
        if not data:
            self.gone = True
            return False
        self._parser.feed(data)
        return exchange.complete or self._parser.failure is None

    async def wait_disconnected(self, exchange: Exchange) -> None:
        """Return when the client has left or the answer is complete.

        A client that closes only its sending half looks the same as one that leaves, so it gets a moment for
        an answer that has not begun. Pipelined bytes are kept for later, up to a bound; who sends more than
        that is noticed to have left only when something is sent to it.
        """
        with trio.CancelScope() as scope:
            self.waiting = scope
            try:
                while len(self._backlog) < BACKLOG_BYTES_MAX:
                    data = await self._receive()
                    if not data:
                        self._half_closed = True
                        if not (self.gone or exchange.started):
                            await trio.sleep(HALF_CLOSED_S)
                        return
                    self._backlog += data
                await trio.sleep_forever()
            finally:
                self.waiting = None

    def response_complete(self) -> None:
        """End `wait_disconnected`."""
        if self.waiting is not None:
            self.waiting.cancel()

    def has_input(self) -> bool:
        """Whether bytes wait on the socket."""
        try:
            return bool(self._sock.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    # Writing.

    async def send(self, data: bytes) -> None:
        """Send all of `data`. Raises ClientGone where there is nobody to send to."""
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.gone = True
            raise ClientGone("the client closed its connection") from None
        if sent != len(data):
            await self._write_rest(memoryview(data)[sent:])

    async def _write_rest(self, rest: memoryview) -> None:
        # Until all of it has left, whoever cancels this leaves half an answer on the wire.
        self._torn = True
        while rest:
            goal = max(0, len(rest) - WRITE_STEP_BYTES)
            self.write_deadline = trio.current_time() + self._bounds.write_timeout_s
            while len(rest) > goal:
                await trio.lowlevel.wait_writable(self._sock)
                try:
                    rest = rest[self._sock.send(rest) :]
                except BlockingIOError:
                    continue
                except OSError:
                    self.gone = True
                    raise ClientGone("the client closed its connection") from None
        self.write_deadline = math.inf
        self._torn = False

    def refusal(self, status: int, message: str, *, bodiless: bool = False) -> bytes:
        """The whole of an answer that this side gives by itself."""
        return final_response(status, *self._refuse(status, message), bodiless=bodiless)

    def last_words(self) -> bytes:
        """What a client is told whose request did not come in time; b"" where there is nothing to tell."""
        unanswered = self._current is None or not self._current.started
        if self.idle or self.gone or self._torn or not unanswered:
            return b""
        part = "head" if self._current is None else "body"
        return self.refusal(408, f"The {part} came too slowly.")

    async def _linger(self) -> None:
        """Close so that the client sees the answer: closing with unread bytes would reset the connection."""
        self.gone = True
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            return
        self.read_deadline = trio.current_time() + LINGER_S
        taken_bytes = 0
        while taken_bytes < LINGER_BYTES_MAX:
            data = await self._receive()
            if not data:
                return
            taken_bytes += len(data)


def _log_crash(exchange: Exchange, bug: Exception) -> None:
    """Log what an application raised, unless it is only that the client has left."""
    rest: BaseException | None = bug
    if isinstance(bug, BaseExceptionGroup):
        _, rest = bug.split(ClientGone)
    elif isinstance(bug, ClientGone):
        rest = None
    if rest is not None:
        _log.error("request failed", method=exchange.method, path=exchange.path, exc_info=rest)
