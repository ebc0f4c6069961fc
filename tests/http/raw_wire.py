"""Raw connections and small applications for the tests of the HTTP engine.

Owns a client that sends exactly the given bytes and reads responses strictly, and a server of one ASGI application on
either engine with the configuration of the product. Owns no test.
"""

from __future__ import annotations

import dataclasses
import json
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio
from hypercorn.trio import serve as hypercorn_serve

from tests.http.tls_client import Secured, TlsStream
from tests.patience import PATIENCE_S
from trunkline.http.calls.errors import protocol_error
from trunkline.http.hosting.logs import access_log_of
from trunkline.http.hosting.sockets import bind, engine_config
from trunkline.http.hosting.tls_files import TlsConfig
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.engine import Engine
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import FastPath, Respond
from trunkline.http.wire.stock_requests import with_request_ids
from trunkline.limits.settings import Settings

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

over_tls: Secured | None = None
"""With what `serving` and `Wired.connect` use TLS; set by the fixture `both_transports`."""


# Applications.


def application(http: Handler, websocket: Handler | None = None) -> Handler:
    """An ASGI application that gives its requests to `http` and its WebSockets to `websocket`."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "websocket":
            assert websocket is not None
            await websocket(scope, receive, send)
        else:
            await http(scope, receive, send)

    return app


class Fast(ABC):
    """An application with a fast path: subclasses say what `begin` takes, the rest goes to `http`."""

    def __init__(self, http: Handler) -> None:
        self._app = application(http)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @abstractmethod
    def begin(self, exchange: Exchange, respond: Respond, again: Callable[[], None] | None) -> bool:
        """Take the request, or leave it (False)."""


async def whole_body(receive: Receive) -> bytes | None:
    """The body; None if the client disconnected before its end."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message["body"])
        if not message["more_body"]:
            return b"".join(pieces)


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def until_disconnect(receive: Receive) -> None:
    """Return when the application gets `http.disconnect`: the client has disconnected, or the response is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def reply(
    send: Send, body: bytes = b"", status: int = 200, headers: Any = (), *, more: bool = False
) -> None:
    """Send a response in one piece, or its beginning."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with the request as it was parsed: method, target, headers and body."""
    body = await whole_body(receive)
    if body is None:
        return
    understood = {
        "method": scope["method"],
        "version": scope["http_version"],
        "path": scope["path"],
        "query": scope["query_string"].decode("latin1"),
        "headers": [[name.decode("latin1"), value.decode("latin1")] for name, value in scope["headers"]],
        "body": body.decode("latin1"),
    }
    await reply(send, json.dumps(understood).encode(), headers=[(b"content-type", b"application/json")])


# The client.


@dataclass(frozen=True)
class Answer:
    """A response as it was received."""

    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        lines = self.head.removesuffix(b"\r\n\r\n").split(b"\r\n")[1:]
        return [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)]

    def header(self, name: bytes) -> bytes | None:
        """The only value of a header; None if it is missing."""
        values = [value for given, value in self.headers if given.lower() == name]
        assert len(values) < 2, f"{name!r} stands there {len(values)} times"
        return values[0] if values else None

    def json(self) -> Any:
        return json.loads(self.body)

    def error(self) -> tuple[int, str]:
        """Status and type of an error response, whose form is checked."""
        assert self.header(b"content-type") == b"application/json"
        body = self.json()
        assert set(body) == {"type", "message"}
        assert body["message"].endswith(".")
        return self.status, body["type"]


class Peer:
    """A client that sends the given bytes. Reading is strict: a response ends where its head says."""

    def __init__(self, stream: Any) -> None:
        """`stream` is a socket stream, or has the same methods."""
        self.stream = stream
        self._buffer = bytearray()

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            await self.stream.send_all(piece)

    async def send_until_refused(self, piece: bytes, pieces_max: int) -> int:
        """Send `piece` repeatedly; returns the number of bytes accepted before the server closed the connection."""
        sent = 0
        try:
            for _ in range(pieces_max):
                await self.send(piece)
                sent += len(piece)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        return sent

    async def answer(self, method: str = "GET") -> Answer | None:
        """The next response; None if the connection ends before it. Interim responses are skipped."""
        while True:
            head = await self.head()
            if head is None:
                return None
            if not head.startswith(b"HTTP/1.1 1"):
                return Answer(head, await self._body(Answer(head, b""), method))

    async def head(self) -> bytes | None:
        """The next head, also that of an interim response."""
        with trio.fail_after(PATIENCE_S):
            while b"\r\n\r\n" not in self._buffer:
                if not await self._more():
                    assert not self._buffer, f"half a head: {self._buffer[:200]!r}"
                    return None
        return self._first(self._buffer.index(b"\r\n\r\n") + 4)

    async def _body(self, answer: Answer, method: str) -> bytes:
        if method == "HEAD" or answer.status in (204, 304):
            return b""
        if answer.header(b"transfer-encoding") is not None:
            return await self._chunked()
        length = answer.header(b"content-length")
        return await self.rest() if length is None else await self._take(int(length))

    async def _chunked(self) -> bytes:
        body = b""
        while True:
            size = int((await self._line()).removesuffix(b"\r\n"), 16)
            body += await self._take(size)
            assert await self._take(2) == b"\r\n"
            if not size:
                return body

    async def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            assert await self._more(), "the connection ended inside a body"
        return self._first(self._buffer.index(b"\r\n") + 2)

    async def _take(self, size: int) -> bytes:
        with trio.fail_after(PATIENCE_S):
            while len(self._buffer) < size:
                assert await self._more(), "the connection ended inside a body"
        return self._first(size)

    def _first(self, size: int) -> bytes:
        taken, self._buffer = bytes(self._buffer[:size]), self._buffer[size:]
        return taken

    async def _more(self) -> bool:
        try:
            data = await self.stream.receive_some(65_536)
        except trio.BrokenResourceError:
            return False
        self._buffer += data
        return bool(data)

    async def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        with trio.fail_after(PATIENCE_S):
            while await self._more():
                pass
        return self._first(len(self._buffer))

    async def exchange(self, *pieces: bytes, method: str = "GET") -> Answer:
        """Send a request and return its response."""
        await self.send(*pieces)
        answer = await self.answer(method)
        assert answer is not None, "the connection ended without an answer"
        return answer

    async def half_close(self) -> None:
        await self.stream.send_eof()

    async def reset(self) -> None:
        """Close the connection with a reset."""
        self.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.stream.aclose()

    async def close(self) -> None:
        await self.stream.aclose()


# The server.


@dataclass
class Wired:
    """A running server: its address, its engine if that is ours, and how its raw connections use TLS."""

    url: str
    _engine: Engine | None
    config: TlsConfig
    _tls: Secured | None
    _stopping: trio.Event
    stopped: trio.Event
    peers: list[Peer] = field(default_factory=list)

    @property
    def engine(self) -> Engine:
        assert self._engine is not None
        return self._engine

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def connect(
        self, *, receive_buffer_bytes: int | None = None, segment_bytes: int | None = None
    ) -> Peer:
        sock = trio.socket.socket()
        if segment_bytes is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment_bytes)
        if receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        await sock.connect(("127.0.0.1", self.port))
        peer = Peer(trio.SocketStream(sock))
        self.peers.append(peer)
        if self._tls is not None:
            peer.stream = TlsStream(peer.stream, self._tls.context)
            await peer.stream.do_handshake()
        return peer

    async def ask(self, *pieces: bytes, method: str = "GET") -> Answer:
        """Send one request on a new connection."""
        peer = await self.connect()
        answer = await peer.exchange(*pieces, method=method)
        await peer.close()
        return answer

    def drain(self) -> None:
        """Start the shutdown."""
        self._stopping.set()

    async def stop(self) -> None:
        self.drain()
        with trio.fail_after(PATIENCE_S):
            await self.stopped.wait()

    async def deserted(self) -> None:
        """Wait until no connection is left."""
        with trio.fail_after(PATIENCE_S):
            while self.engine.connections:
                await trio.lowlevel.checkpoint()


@asynccontextmanager
async def serving(
    app: Handler,
    engine: str = "fast",
    *,
    fast_path: FastPath | None = None,
    limits: dict[str, Any] | None = None,
    at_the_end: Callable[[], None] = lambda: None,
    listeners: Sequence[Listener] = (),
    **settings: Any,
) -> AsyncIterator[Wired]:
    """Serve an application like the product. `limits` overrides single limits, the rest are settings.

    `fast_path` is asked by our own engine; the stock one has none. `listeners` are further ones of our own engine.
    `at_the_end` is called when the server is told to stop, before anything else runs.
    """
    tls = over_tls
    if tls is not None:
        settings = {**tls.settings, **settings}
    chosen = Settings(engine=engine, log_level="error", **settings)
    chosen = dataclasses.replace(chosen, limits=chosen.limits.override(limits or {}))
    config = engine_config(chosen)
    config.bind = [f"fd://{bind('127.0.0.1', 0).detach()}"]
    stopping, stopped = trio.Event(), trio.Event()
    ours: Engine | None = None

    async def told_to_stop() -> None:
        await stopping.wait()
        at_the_end()

    log_access = access_log_of(chosen)
    if engine == "stock":
        wrapped = with_request_ids(app, log_access)
        run: Any = partial(hypercorn_serve, wrapped, config, shutdown_trigger=told_to_stop, mode="asgi")
    else:
        ours = Engine(
            app,
            config,
            chosen.limits,
            protocol_error,
            fast_path=fast_path,
            log_access=log_access,
            http2_prior_knowledge=chosen.http2_prior_knowledge,
            behind_proxy=chosen.trust_forwarded_for,
            listeners=listeners,
        )
        run = partial(ours.serve, told_to_stop)

    async def served(task_status: trio.TaskStatus[list[str]]) -> None:
        await run(task_status=task_status)
        stopped.set()

    async with trio.open_nursery() as nursery:
        (url,) = await nursery.start(served)
        wired = Wired(url, ours, config, tls, stopping, stopped)
        try:
            yield wired
        finally:
            for peer in wired.peers:
                await trio.aclose_forcefully(peer.stream)
            stopping.set()
            if ours is None:
                # The stock engine waits for the connections of clients that have disconnected.
                nursery.cancel_scope.cancel()
