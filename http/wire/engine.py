"""The HTTP engine: accepts connections, and serves HTTP/1.1, HTTP/2 and WebSocket on them, with and without TLS.

Owns which connections are over a deadline, and how they end when the server stops. A bug in one connection, ours or the
application's, is logged and ends that connection only. Does not own how many there may be (`places.py`), nor what
happens on a connection: that is `http1.py` and `http2.py`. Over TLS the handshake chooses one of them (ALPN). HTTP/2
without TLS is only for clients that begin with it, where the settings allow that.

Why not Hypercorn: it spends about 290 us on a request, spread over its parser, tasks, timers and event objects, so no
single fix helps; and it waits without bounds, for a window, for a body, for the next request. This engine keeps its
configuration and lifespan.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from typing import Any, Final, Protocol

import structlog
import trio
from hypercorn.config import Config
from hypercorn.trio.lifespan import Lifespan
from hypercorn.utils import wrap_app

from trunkline.http.wire.access_log import LogAccess
from trunkline.http.wire.asgi import CLIENT_CERTIFICATE, Address, Application
from trunkline.http.wire.descriptors import NO_DESCRIPTORS
from trunkline.http.wire.fast_path import FastPath
from trunkline.http.wire.faults import place_of
from trunkline.http.wire.handshake import Handshake
from trunkline.http.wire.http1 import Http1Connection
from trunkline.http.wire.http2 import Http2Connection
from trunkline.http.wire.places import Place, Places
from trunkline.http.wire.readiness import Readiness
from trunkline.http.wire.refusal import Refuse
from trunkline.http.wire.request_heads import RequestHeads
from trunkline.http.wire.request_parser import Bounds
from trunkline.http.wire.response_head import final_response
from trunkline.http.wire.socket_transport import WRITE_STEP_BYTES, SocketTransport, has_input, send_last
from trunkline.http.wire.tls_transport import TlsTransport
from trunkline.http.wire.transport import ClientGone
from trunkline.http.wire.websocket import WebSocket
from trunkline.limits.table import Limits

_ACCEPTED_AT_ONCE_MAX: Final = 64
"""Connections that are accepted before others have their turn. Measured: p99 690 ms with 1, 17 ms with 64."""
REAP_S = 0.5
"""How often deadlines are checked; a connection may be ended this much late."""
ACCEPT_PAUSE_S = 0.1
"""How long the server waits before it accepts again when no descriptor is left."""

_TRY_AGAIN = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})
_log = structlog.get_logger("trunkline.http")


class Connection(Protocol):
    """What the engine asks of a connection from outside of its task, as of an `Occupant` of a place."""

    def expire(self, now_s: float) -> bool: ...

    def drain(self) -> None: ...


class Engine:
    """Serves one application on the sockets of a Hypercorn configuration."""

    def __init__(
        self,
        app: Application,
        config: Config,
        limits: Limits,
        refuse: Refuse,
        *,
        fast_path: FastPath | None,
        log_access: LogAccess | None = None,
        http2_prior_knowledge: bool = False,
        behind_proxy: bool = False,
        lap: Callable[[], None] = lambda: None,
    ) -> None:
        """`fast_path` is asked for each whole request of HTTP/1.1 before `app`; None where there is none.

        `config` is asked for the TLS context of each connection, as its certificate may be replaced. With
        `behind_proxy`, the addresses of connections are a proxy's. `lap` is called after each callback of a socket.
        """
        self._app = app
        self._fast_path = fast_path
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
            http2_streams_max=limits.http2_streams_max,
            http2_answers_max=limits.http2_answers_max,
        )
        self._log_access = log_access
        self._state: dict[str, Any] = {}
        self._http2_prior_knowledge = http2_prior_knowledge
        self._connections: set[Connection] = set()
        self._handshakes: set[Handshake] = set()
        self.places = Places(limits.connections_max, by_address=not behind_proxy)
        self._readiness = Readiness(lap)
        self.heads = RequestHeads(limits.head_cache_length_max)
        self._draining = False
        self._empty = trio.Event()
        self.connections = 0
        """Open connections, those in a handshake among them."""
        self.accepted = 0
        self.refused = 0
        self.timed_out = 0

    async def serve(
        self,
        shutdown: Callable[[], Awaitable[None]],
        *,
        task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen until `shutdown` returns, then let requests in flight end within the graceful time-out.

        `task_status` gets the addresses that were bound. Raises OSError where one cannot be bound.
        """
        lifespan = Lifespan(wrap_app(self._app, 0, "asgi"), self._config, self._state)
        async with trio.open_nursery() as lifespan_nursery:
            await lifespan_nursery.start(lifespan.handle_lifespan)
            await lifespan.wait_for_startup()
            with closing(self._readiness), ExitStack() as listening:
                await self._listen(listening, shutdown, task_status)
            await lifespan.wait_for_shutdown()
            lifespan_nursery.cancel_scope.cancel()

    async def _listen(
        self,
        listening: ExitStack,
        shutdown: Callable[[], Awaitable[None]],
        task_status: trio.TaskStatus[list[str]],
    ) -> None:
        created = self._config.create_sockets()
        served = [(sock, True) for sock in created.secure_sockets]
        served += [(sock, False) for sock in created.insecure_sockets]
        for sock, _ in served:
            listening.enter_context(sock)
            if sock.family != socket.AF_UNIX:
                # Both are inherited by the connections.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, WRITE_STEP_BYTES)
            sock.listen(self._config.backlog)
            sock.setblocking(False)
        async with trio.open_nursery() as connections:
            connections.start_soon(self._reap)
            connections.start_soon(self._readiness.run)
            async with trio.open_nursery() as accepting:
                for sock, tls in served:
                    accepting.start_soon(self._accept, sock, tls, connections)
                task_status.started([address_of(sock, tls=tls) for sock, tls in served])
                await shutdown()
                accepting.cancel_scope.cancel()
            self._draining = True
            for sock, tls in served:
                # Closing the listening socket would reset clients that have connected already.
                self._accept_nowait(sock, tls, connections)
            listening.close()
            await self._drain(connections)

    async def _drain(self, connections: trio.Nursery) -> None:
        """Idle connections end now, the others after their current response, all within the graceful time-out."""
        for connection in list(self._connections):
            connection.drain()
        for handshake in self._handshakes:
            handshake.give_way()
        with trio.move_on_after(self._config.graceful_timeout):
            if self.connections:
                await self._empty.wait()
        connections.cancel_scope.cancel()

    # Accepting.

    async def _accept(self, listening: socket.socket, tls: bool, nursery: trio.Nursery) -> None:
        logged = False
        while True:
            await trio.lowlevel.wait_readable(listening)
            problem = self._accept_nowait(listening, tls, nursery)
            if problem is None:
                logged = False
                continue
            if not logged:
                _log.warning("no descriptor is left for a new connection", problem=str(problem))
                logged = True
            await trio.sleep(ACCEPT_PAUSE_S)

    def _accept_nowait(self, listening: socket.socket, tls: bool, nursery: trio.Nursery) -> OSError | None:
        """Accept the connections that wait, at most so many at a time that the others get their turn.

        Returns the error where the process or the machine has no descriptor left.
        """
        for _ in range(_ACCEPTED_AT_ONCE_MAX):
            try:
                sock, address = listening.accept()
            except OSError as error:
                if error.errno in NO_DESCRIPTORS:
                    return error
                if error.errno in _TRY_AGAIN:
                    return None
                continue  # the client left before it was accepted
            sock.setblocking(False)
            self.accepted += 1
            self.connections += 1
            host = str(address[0]) if isinstance(address, tuple) else None
            place = self.places.take(host, trio.current_time())
            nursery.start_soon(self._connection, sock, address, tls, place)
        return None

    async def _connection(self, sock: socket.socket, address: Any, tls: bool, place: Place | None) -> None:
        """Serve a connection to its end. Raises nothing but Cancelled: failures end this connection only."""
        try:
            if place is None:
                self.refused += 1
                self._refuse_connection(sock, tls)
            else:
                await self._serve(sock, address, place, tls=tls)
        except OSError:
            return  # the client is gone
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            # Without its message, which may quote what the client has sent.
            _log.error("connection failed", fault=place_of(bug))
        except BaseExceptionGroup as group:
            # Cancelled must be raised on; everything else in the group is logged here.
            cancelled, rest = group.split(trio.Cancelled)
            if rest is not None:
                _log.error("connection failed", fault=place_of(rest))
            if cancelled is not None:
                raise cancelled from None
        finally:
            sock.close()
            if place is not None:
                self.places.leave(place)
            self.connections -= 1
            if self._draining and not self.connections:
                self._empty.set()

    async def _serve(self, sock: socket.socket, address: Any, place: Place, *, tls: bool) -> None:
        """Serve a connection to its end, with the protocol that its client has chosen."""
        if self._draining and (tls or not has_input(sock)):
            return
        transport: SocketTransport | None = None
        try:
            if tls:
                context = self._config.create_ssl_context()
                assert context is not None
                transport = secured = TlsTransport(
                    sock, self._readiness, self._bounds.write_timeout_s, context
                )
                protocol = await self._shake_hands(secured, place)
            else:
                transport = SocketTransport(sock, self._readiness, self._bounds.write_timeout_s)
                protocol = "http/1.1"
            if protocol is None:
                return
            client: Address = None
            server: Address = None
            if isinstance(address, tuple):
                client, server = (str(address[0]), int(address[1])), sock.getsockname()[:2]
            scheme, state = "http", self._state
            if isinstance(transport, TlsTransport):
                scheme, certificate = "https", transport.client_certificate
                if certificate is not None:
                    state = {**(state or {}), CLIENT_CERTIFICATE: certificate}
            following: bytes | WebSocket = b""
            if protocol != "h2":
                following = await self._serve_http1(transport, place, client, server, scheme, state)
            if isinstance(following, WebSocket):
                self.places.exempt(place)
                await self._serve_websocket(following)
            elif protocol == "h2" or following:
                await self._serve_http2(transport, place, client, server, scheme, state, following)
        finally:
            if transport is not None:
                transport.detach()

    async def _shake_hands(self, transport: TlsTransport, place: Place) -> str | None:
        """The protocol that was chosen; None where there was no handshake in time, or it had to give way."""
        with trio.CancelScope() as scope:
            scope.deadline = trio.current_time() + self._bounds.head_timeout_s
            place.occupant = handshake = Handshake(scope)
            self._handshakes.add(handshake)
            try:
                return await transport.handshake() or "http/1.1"
            except ClientGone:
                return None
            finally:
                place.occupant = None
                self._handshakes.discard(handshake)
        self.timed_out += not handshake.gave_way
        return None

    async def _serve_http1(
        self,
        transport: SocketTransport,
        place: Place,
        client: Address,
        server: Address,
        scheme: str,
        state: dict[str, Any] | None,
    ) -> bytes | WebSocket:
        """Serve a connection until it ends, or until HTTP/2 or the WebSocket that is returned has to continue."""
        connection = Http1Connection(
            transport,
            self._app,
            self._bounds,
            self._refuse,
            self.heads,
            client,
            server,
            fast_path=self._fast_path,
            scheme=scheme,
            http2=self._http2_prior_knowledge,
            log_access=self._log_access,
            state=state,
            draining=self._draining,
        )
        self._connections.add(connection)
        place.occupant = connection
        try:
            return await connection.run()
        finally:
            self._connections.discard(connection)
            connection.close()

    async def _serve_websocket(self, websocket: WebSocket) -> None:
        self._connections.add(websocket)
        try:
            await websocket.run()
        finally:
            self._connections.discard(websocket)
            websocket.close_session()

    async def _serve_http2(
        self,
        transport: SocketTransport,
        place: Place,
        client: Address,
        server: Address,
        scheme: str,
        state: dict[str, Any] | None,
        first: bytes,
    ) -> None:
        connection = Http2Connection(
            transport,
            self._app,
            self._bounds,
            self._refuse,
            client,
            server,
            scheme=scheme,
            first=first,
            log_access=self._log_access,
            state=state,
            draining=self._draining,
        )
        self._connections.add(connection)
        place.occupant = connection
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            connection.close()

    def _refuse_connection(self, sock: socket.socket, tls: bool) -> None:
        """Say why, where that needs no TLS handshake."""
        if not tls:
            headers, body = self._refuse(
                503, "The server has reached its maximum number of connections; try again later."
            )
            send_last(sock, final_response(503, headers, body, bodiless=False))

    async def _reap(self) -> None:
        """The one timer of all connections: ends those that are over a deadline."""
        while True:
            await trio.sleep(REAP_S)
            # A loop variable would keep the last connection in memory until the next time.
            now_s = trio.current_time()
            self.timed_out += sum([connection.expire(now_s) for connection in self._connections])


def address_of(sock: socket.socket, *, tls: bool) -> str:
    """The URL at which a listening socket is reached."""
    host, port = sock.getsockname()[:2]
    return f"http{'s' * tls}://[{host}]:{port}" if ":" in host else f"http{'s' * tls}://{host}:{port}"
