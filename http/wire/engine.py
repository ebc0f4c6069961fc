"""The engine: serves HTTP/1.1, HTTP/2 and WebSocket on connections, and other protocols on those of other listeners.

Owns which connections are over a deadline, and how they end when the server stops. A bug in one connection, ours or the
application's, is logged and ends that connection only. Does not own how they are accepted (`accepting.py`) and how many
there may be (`places.py`), nor what happens on a connection: that is `http1.py`, `http2.py` and `byte_connection.py`.
Over TLS the handshake chooses the version of HTTP (ALPN). HTTP/2 without TLS is only for clients that begin with it,
where the settings allow that.

Why not Hypercorn: it spends about 290 us on a request, spread over its parser, tasks, timers and event objects, so no
single fix helps; and it waits without bounds, for a window, for a body, for the next request. This engine keeps its
configuration and lifespan.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, Protocol

import structlog
import trio
from hypercorn.config import Config
from hypercorn.trio.lifespan import Lifespan
from hypercorn.utils import wrap_app

from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.access_log import LogAccess
from trunkline.http.wire.asgi import CLIENT_CERTIFICATE, MACHINE, Address, Application
from trunkline.http.wire.byte_connection import ByteConnection
from trunkline.http.wire.byte_session import ByteBounds, ByteSession, GoesOn, Peer
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.fast_path import FastPath
from trunkline.http.wire.faults import place_of
from trunkline.http.wire.handshake import Handshake
from trunkline.http.wire.http1 import Following, Http1Connection
from trunkline.http.wire.http2 import Http2Connection
from trunkline.http.wire.http_connections import Ends, HttpConnections
from trunkline.http.wire.passed_on import Passed, receive_passed
from trunkline.http.wire.places import Place, Places
from trunkline.http.wire.readiness import Readiness
from trunkline.http.wire.refusal import Refuse
from trunkline.http.wire.request_heads import RequestHeads
from trunkline.http.wire.request_parser import Bounds
from trunkline.http.wire.response_head import final_response
from trunkline.http.wire.socket_transport import SocketTransport, has_input, send_last
from trunkline.http.wire.tls_transport import TlsTransport
from trunkline.http.wire.transport import ClientGone
from trunkline.http.wire.websocket import WebSocket
from trunkline.limits.networks import plain_address
from trunkline.limits.table import Limits

_TASK = "Engine._connection"
"""The name of the task of a connection. Trio would make one for each, and keep it."""
REAP_S = 0.5
"""How often deadlines are checked; a connection may be ended this much late."""

_log = structlog.get_logger("trunkline.http")


class Connection(Protocol):
    """What the engine asks of a connection from outside of its task, as of an `Occupant` of a place."""

    def expire(self, now_s: float) -> bool: ...

    def drain(self) -> None: ...


class Engine:
    """Serves one application on the sockets of a Hypercorn configuration, and other protocols on further sockets."""

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
        listeners: Sequence[Listener] = (),
        lap: Callable[[], None] = lambda: None,
    ) -> None:
        """`fast_path` is asked for each whole request of HTTP/1.1 before `app`; None where there is none.

        `config` is asked for the TLS context of each connection, as its certificate may be replaced. With
        `behind_proxy`, the addresses of connections are a proxy's. `listeners` are those for other protocols than HTTP;
        they are closed by the engine. `lap` is called after each callback of a socket.
        """
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
            http2_streams_max=limits.http2_streams_max,
            http2_answers_max=limits.http2_answers_max,
        )
        self._state: dict[str, Any] = {}
        self._connections: set[Connection] = set()
        self._handshakes: set[Handshake] = set()
        self.places = Places(limits.connections_max, by_address=not behind_proxy)
        self._readiness = Readiness(lap)
        self.heads = RequestHeads(limits.head_cache_length_max)
        self._http = HttpConnections(
            app,
            self._bounds,
            refuse,
            self.heads,
            fast_path=fast_path,
            log_access=log_access,
            http2_prior_knowledge=http2_prior_knowledge,
        )
        self._listeners = listeners
        self._draining = False
        self._empty = trio.Event()
        self.connections = 0
        """Open connections, those in a handshake among them."""
        self.accepted = 0
        self.refused = 0
        self.timed_out = 0

    def counts(self) -> ConnectionCounts:
        """What is counted, as of now."""
        return ConnectionCounts(
            connections=self.connections,
            accepted=self.accepted,
            refused=self.refused,
            displaced=self.places.displaced,
            timed_out=self.timed_out,
            heads_known=len(self.heads),
            heads_found=self.heads.found,
        )

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
        served = [Listener(sock, tls=True) for sock in created.secure_sockets]
        served += [Listener(sock, tls=False) for sock in created.insecure_sockets]
        addresses = [listener.url for listener in served]
        served += self._listeners
        for listener in served:
            listening.enter_context(listener.sock)
            listener.listen(self._config.backlog, self._limits.write_timeout_s)
        async with trio.open_nursery() as connections:
            connections.start_soon(self._reap)
            connections.start_soon(self._readiness.run)
            take = partial(self._take, connections)
            try:
                async with trio.open_nursery() as accepting:
                    for listener in served:
                        accepting.start_soon(listener.accept, take)
                    task_status.started(addresses)
                    await shutdown()
                    accepting.cancel_scope.cancel()
                self._draining = True
                for listener in served:  # closing it would reset clients that have connected already
                    listener.accept_nowait(take)
                listening.close()
                await self._drain(connections)
            finally:
                for connection in self._connections:
                    if isinstance(connection, ByteConnection):
                        connection.wake()  # those without a task get one, which is cancelled

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

    def _take(self, nursery: trio.Nursery, sock: socket.socket, address: Any, listener: Listener) -> None:
        """Serve a connection that was accepted, in a task of its own. Some go on without it."""
        self.accepted += 1
        self.connections += 1
        if listener.passed_on is not None:
            nursery.start_soon(self._take_passed, nursery, sock, listener, name=_TASK)
            return
        client: Address = None
        server: Address = None
        if isinstance(address, tuple):
            client, server = (plain_address(str(address[0])), int(address[1])), sock.getsockname()[:2]
        place = self._place_for(client)
        origin = Passed("", client, server)
        nursery.start_soon(self._connection, nursery, sock, place, origin, listener, None, name=_TASK)

    async def _take_passed(self, nursery: trio.Nursery, sock: socket.socket, listener: Listener) -> None:
        """Serve a connection that another process has accepted, as if it had been accepted here."""
        assert listener.passed_on is not None
        try:
            origin = await receive_passed(sock)
        except OSError:
            self._ended(sock, None, None)
            return
        protocol = listener.passed_on(origin)
        passed = Listener(sock, tls=False, protocol=protocol)
        place = self._place_for(origin.client)
        await self._connection(nursery, sock, place, origin, passed, None)

    def _place_for(self, client: Address) -> Place | None:
        return self.places.take(None if client is None else client[0], trio.current_time())

    async def _connection(
        self,
        nursery: trio.Nursery,
        sock: socket.socket,
        place: Place | None,
        origin: Passed,
        listener: Listener,
        connection: ByteConnection | None,
    ) -> None:
        """Serve a connection until it ends, or until it goes on without a task; then it gets one again for its end.

        Raises nothing but Cancelled: failures end this connection only.
        """
        goes_on = False
        try:
            if connection is None:
                connection = await self._serve(sock, place, origin, listener)
            else:
                await trio.lowlevel.checkpoint_if_cancelled()
            if connection is not None:
                again = partial(self._connection, nursery, sock, place, origin, listener, connection)
                goes_on = await connection.run(partial(nursery.start_soon, again, name=_TASK))
        except OSError:
            return  # the client is gone
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            _log.error("connection failed", fault=place_of(bug))  # no message: it may quote the client
        except BaseExceptionGroup as group:
            # Cancelled must be raised on; everything else in the group is logged here.
            cancelled, rest = group.split(trio.Cancelled)
            if rest is not None:
                _log.error("connection failed", fault=place_of(rest))
            if cancelled is not None:
                raise cancelled from None
        finally:
            if not goes_on:
                self._ended(sock, place, connection)

    def _ended(self, sock: socket.socket, place: Place | None, connection: ByteConnection | None) -> None:
        if connection is not None:
            self._connections.discard(connection)
            connection.over()
        sock.close()
        if place is not None:
            self.places.leave(place)
        self.connections -= 1
        if self._draining and not self.connections:
            self._empty.set()

    async def _serve(
        self, sock: socket.socket, place: Place | None, origin: Passed, listener: Listener
    ) -> ByteConnection | None:
        """Serve a connection to its end, with HTTP as its client has chosen. One of another protocol is returned."""
        tls, other = listener.tls, listener.protocol
        if place is None:
            self.refused += 1
            self._refuse_connection(sock, listener)
            return None
        if self._draining and (tls or other is not None or not has_input(sock)):
            return None
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
                return None
            client, server, is_tls, certificate = origin.client, origin.server, origin.tls, origin.certificate
            if isinstance(transport, TlsTransport):
                is_tls, certificate = True, transport.client_certificate
            if other is not None:
                session = other.session_for(
                    Peer(client, is_tls, certificate, origin.websocket, origin.machine)
                )
                connection = self._open(transport, session, other.bounds, place)
                transport = None  # it is the connection's
                return connection
            facts = {CLIENT_CERTIFICATE: certificate, MACHINE: origin.machine}
            state = {**self._state, **{name: found for name, found in facts.items() if found}}
            ends = Ends(client, server, "https" if is_tls else "http", state)
            following: Following | None = b""
            if protocol != "h2":
                first = self._http.http1(transport, ends, draining=self._draining)
                following = await self._serve_http(first, place)
            if isinstance(following, GoesOn):
                connection = self._open(transport, following.session, following.bounds, place)
                transport = None
                return connection
            if isinstance(following, WebSocket):
                self.places.exempt(place)
                await self._serve_http(following, place)
            elif protocol == "h2" or following:
                second = self._http.http2(transport, ends, following or b"", draining=self._draining)
                await self._serve_http(second, place)
        finally:
            if transport is not None:
                transport.detach()
        return None

    def _open(
        self, transport: SocketTransport, session: ByteSession, bounds: ByteBounds, place: Place
    ) -> ByteConnection:
        """Open a connection of bytes, whose transport it is from now on."""
        connection = ByteConnection(transport, session, bounds, self.places, place)
        self._connections.add(connection)
        place.occupant = connection
        return connection

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

    async def _serve_http(
        self, connection: Http1Connection | Http2Connection | WebSocket, place: Place
    ) -> Following | None:
        """Serve a connection until it ends, or until HTTP/2 or what is returned has to continue."""
        self._connections.add(connection)
        if not isinstance(connection, WebSocket):
            place.occupant = connection
        try:
            return await connection.run()
        finally:
            self._connections.discard(connection)
            connection.over()

    def _refuse_connection(self, sock: socket.socket, listener: Listener) -> None:
        """Say why, where that is HTTP and needs no TLS handshake."""
        if not listener.tls and listener.protocol is None:
            problem = "The server has reached its maximum number of connections; try again later."
            headers, body = self._refuse(503, problem)
            send_last(sock, final_response(503, headers, body, bodiless=False))

    async def _reap(self) -> None:
        """The one timer of all connections: ends those that are over a deadline. Where the loop was held up, what
        clients have sent meanwhile is read first; where it is held up again and again, each tenth time counts."""
        now_s, late = trio.current_time(), 0
        while True:
            before_s = now_s
            await trio.sleep(REAP_S)
            now_s = trio.current_time()
            late = late + 1 if now_s - before_s > 2 * REAP_S else 0
            if not late % 10:  # a loop variable would keep the last connection in memory until the next time
                self.timed_out += sum([connection.expire(now_s) for connection in self._connections])
