"""The HTTP engine: accepts connections and serves HTTP/1.1 itself; Hypercorn serves everything else.

Stock Hypercorn spends about 290 us on a request, spread over its parser, tasks, timers and event objects,
so no single fix helps. This engine keeps Hypercorn's configuration, lifespan and protocols, and replaces
the two parts that every request goes through: the accept loop, and the connection class for cleartext
HTTP/1.1 (`http1.py`). TLS, HTTP/2 with prior knowledge and WebSocket are handed to Hypercorn's own
`TCPServer`, with the bytes that were read so far.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
import trio
from hypercorn.config import Config
from hypercorn.trio.lifespan import Lifespan
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from trunkline.http.http1 import Application, Bounds, Http1Connection, Refuse
from trunkline.limits.table import Limits

REAP_S = 0.5
"""How often time-outs are looked at; a time-out may come this much late."""

_TRY_AGAIN = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_log = structlog.get_logger("trunkline.http")


class Engine:
    """Serves one application on the sockets of a Hypercorn configuration."""

    def __init__(self, app: Application, config: Config, limits: Limits, refuse: Refuse) -> None:
        self._app = app
        self._config = config
        self._limits = limits
        self._refuse = refuse
        self._bounds = Bounds(
            header_bytes_max=limits.header_bytes_max,
            headers_length_max=limits.headers_length_max,
            pipelined_requests_max=limits.pipelined_requests_max,
            head_timeout_s=limits.head_timeout_s,
            body_timeout_s=limits.body_timeout_s,
            write_timeout_s=limits.write_timeout_s,
            idle_s=limits.connection_idle_s,
        )
        self._connections: set[Http1Connection] = set()
        self._draining = False
        self._empty = trio.Event()
        self._context = WorkerContext(None)
        self._wrapped = wrap_app(app, config.wsgi_max_body_size, "asgi")
        self.accepted = 0
        self.refused = 0
        self.timed_out = 0

    @property
    def connections(self) -> int:
        """Open connections of HTTP/1.1."""
        return len(self._connections)

    async def serve(
        self,
        shutdown: Callable[[], Awaitable[None]],
        *,
        task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen until `shutdown` returns, then let calls in flight end within the configured grace.

        `task_status` gets the addresses that were bound. Raises OSError where one can not be bound.
        """
        state: dict[str, Any] = {}
        lifespan = Lifespan(self._wrapped, self._config, state)
        async with trio.open_nursery() as lifespan_nursery:
            await lifespan_nursery.start(lifespan.handle_lifespan)
            await lifespan.wait_for_startup()
            sockets = self._config.create_sockets()
            async with trio.open_nursery() as connections:
                async with trio.open_nursery() as accepting:
                    for sock in sockets.insecure_sockets:
                        sock.listen(self._config.backlog)
                        sock.setblocking(False)
                        accepting.start_soon(self._accept, sock, connections)
                    connections.start_soon(self._reap)
                    task_status.started([_address(sock) for sock in sockets.insecure_sockets])
                    await shutdown()
                    accepting.cancel_scope.cancel()
                for sock in sockets.insecure_sockets:
                    sock.close()
                await self._drain(connections)
            await lifespan.wait_for_shutdown()
            lifespan_nursery.cancel_scope.cancel()

    async def _drain(self, connections: trio.Nursery) -> None:
        """Idle connections end now, the others after the answer they are at; none lasts past the grace."""
        self._draining = True
        await self._context.terminated.set()
        for connection in self._connections:
            connection.draining = True
            if connection.idle:
                connection.scope.cancel()
        with trio.move_on_after(self._config.graceful_timeout):
            if self._connections:
                await self._empty.wait()
        connections.cancel_scope.cancel()

    # Accepting.

    async def _accept(self, listening: socket.socket, nursery: trio.Nursery) -> None:
        """Take all connections that wait, up to a bound a wake-up, so that a storm neither waits nor starves."""
        while True:
            await trio.lowlevel.wait_readable(listening)
            for _ in range(self._limits.accept_batch_connections_max):
                try:
                    sock, address = listening.accept()
                except OSError as error:
                    if error.errno in _NO_DESCRIPTORS:
                        _log.warning("no descriptor is left for a new connection", errno=error.errno)
                        await trio.sleep(0.1)
                    if error.errno in _TRY_AGAIN or error.errno in _NO_DESCRIPTORS:
                        break
                    continue
                sock.setblocking(False)
                self.accepted += 1
                nursery.start_soon(self._connection, sock, address)

    async def _connection(self, sock: socket.socket, address: Any) -> None:
        client = (str(address[0]), int(address[1])) if isinstance(address, tuple) else None
        try:
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = sock.getsockname()
        except OSError:
            sock.close()
            return
        connection = Http1Connection(
            sock, self._app, self._bounds, self._refuse, client, server[:2] if client else None
        )
        if len(self._connections) >= self._limits.connections_max:
            self.refused += 1
            _send_last(sock, connection.refusal(503, "The server has as many connections as it takes."))
            return
        connection.draining = self._draining
        self._connections.add(connection)
        first: bytes | None = None
        try:
            with connection.scope:
                first = await connection.run()
        finally:
            self._connections.discard(connection)
            if self._draining and not self._connections:
                self._empty.set()
            if first is None:
                sock.close()
        if first is not None:
            await self._hand_over(sock, first)

    async def _hand_over(self, sock: socket.socket, first: bytes) -> None:
        """Let the stock protocol go on with a connection, beginning with the bytes that were read."""
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        begun: Any = _Begun(stream, first)
        await TCPServer(self._wrapped, self._config, self._context, ConnectionState({}), begun)

    async def _reap(self) -> None:
        """The one timer of all connections: cancels those whose time has passed."""
        while True:
            await trio.sleep(REAP_S)
            now_s = trio.current_time()
            for connection in list(self._connections):
                if now_s >= connection.read_deadline or now_s >= connection.write_deadline:
                    self.timed_out += 1
                    connection.scope.cancel()


class _Begun:
    """A stream whose first bytes were read already."""

    def __init__(self, stream: trio.SocketStream, first: bytes) -> None:
        self._stream = stream
        self._first = first
        self.socket = stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._first:
            first, self._first = self._first, b""
            return first
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _send_last(sock: socket.socket, data: bytes) -> None:
    """Say why a connection ends, if it can be said without waiting, and end it."""
    try:
        sock.send(data)
    except OSError:
        pass
    finally:
        sock.close()


def _address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
