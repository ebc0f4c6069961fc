"""One non-blocking connection under load: connecting, TLS, sending, receiving.

Owns the socket and its state. Does not own the protocol: a subclass implements ``opened``, ``received`` and
``broken``. Nothing here blocks, and failures of the peer raise nothing.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from functools import lru_cache

from trunkline.bench.errors import ConnectFailed, ConnectionBroken, WireError
from trunkline.bench.reactor import READABLE, WRITABLE, Reactor
from trunkline.bench.transport import CONNECT_TIMEOUT_S, RECEIVE_BYTES_MAX, Origin, tls_context

_CLOSED, _CONNECTING, _TLS_HANDSHAKE, _OPEN = range(4)


class LoadConnection:
    """A connection to ``origin`` on ``reactor``. It can be opened again after it was closed or broken."""

    __slots__ = ("_outbox", "_socket", "_state", "origin", "reactor")

    def __init__(self, reactor: Reactor, origin: Origin) -> None:
        self.reactor = reactor
        self.origin = origin
        self._socket: socket.socket | None = None
        self._state = _CLOSED
        self._outbox = b""

    # Callbacks for a subclass.

    def opened(self) -> None:
        """The connection is ready for use."""

    def received(self, data: bytes) -> None:
        """The peer sent some bytes."""

    def broken(self, problem: WireError) -> None:
        """The connection failed or was closed by the peer; it is closed here as well."""

    # Methods for a subclass and its owner.

    @property
    def is_open(self) -> bool:
        """Whether bytes can be sent."""
        return self._state == _OPEN

    def open(self) -> None:
        """Start connecting; then ``opened`` or ``broken`` is called."""
        assert self._state == _CLOSED
        family, address = resolve_address(self.origin.host, self.origin.port)
        self._socket = sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._state = _CONNECTING
        code = sock.connect_ex(address)
        self.reactor.watch(sock.fileno(), WRITABLE, self._ready)
        if code not in (0, errno.EINPROGRESS):
            self.fail(
                ConnectFailed(f"{self.origin.authority} cannot be reached: {os.strerror(code).lower()}.")
            )

    def send(self, data: bytes) -> None:
        """Send everything: at once as much as the kernel accepts, the rest when the socket is writable."""
        if self._outbox:
            self._outbox += data
            return
        assert self._socket is not None
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            sent = 0
        except OSError as problem:
            self.fail(ConnectionBroken(f"The connection broke: {problem.strerror}.", maybe_done=True))
            return
        if sent < len(data):
            self._outbox = data[sent:]
            self.reactor.change(self._socket.fileno(), READABLE | WRITABLE)

    def close(self) -> None:
        """Close immediately; no callback is called."""
        if self._socket is not None:
            self.reactor.forget(self._socket.fileno())
            self._socket.close()
        self._socket = None
        self._state = _CLOSED
        self._outbox = b""

    def fail(self, problem: WireError) -> None:
        """Close and call ``broken`` with the reason."""
        self.close()
        self.broken(problem)

    # Callbacks of the reactor.

    def _ready(self, events: int) -> None:
        if self._state == _OPEN:
            if events & ~WRITABLE:
                self._receive()
            if events & WRITABLE and self._outbox and self._state == _OPEN:
                data, self._outbox = self._outbox, b""
                assert self._socket is not None
                self.reactor.change(self._socket.fileno(), READABLE)
                self.send(data)
        elif self._state == _CONNECTING:
            self._connected()
        else:
            self._continue_handshake()

    def _receive(self) -> None:
        while self._socket is not None:
            try:
                data = self._socket.recv(RECEIVE_BYTES_MAX)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as problem:
                self.fail(ConnectionBroken(f"The connection broke: {problem.strerror}.", maybe_done=True))
                return
            if not data:
                self.fail(ConnectionBroken("The server closed the connection.", maybe_done=True))
                return
            self.received(data)
            # epoll reports a plain socket again if it has more. TLS may hold decrypted bytes that epoll does not see.
            if not self.origin.tls:
                return

    def _connected(self) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self.fail(
                ConnectFailed(f"{self.origin.authority} cannot be reached: {os.strerror(code).lower()}.")
            )
            return
        if self.origin.tls:
            self.reactor.forget(self._socket.fileno())
            self._socket = tls_context().wrap_socket(
                self._socket, server_hostname=self.origin.host, do_handshake_on_connect=False
            )
            self._state = _TLS_HANDSHAKE
            self.reactor.watch(self._socket.fileno(), READABLE | WRITABLE, self._ready)
            return
        self._state = _OPEN
        self.reactor.change(self._socket.fileno(), READABLE)
        self.opened()

    def _continue_handshake(self) -> None:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self.reactor.change(self._socket.fileno(), READABLE)
        except ssl.SSLWantWriteError:
            self.reactor.change(self._socket.fileno(), WRITABLE)
        except OSError as problem:
            self.fail(ConnectFailed(f"{self.origin.authority} refused TLS: {problem}."))
        else:
            self._state = _OPEN
            self.reactor.change(self._socket.fileno(), READABLE)
            self.opened()


@lru_cache(maxsize=16)
def resolve_address(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str | int, ...]]:
    """The address at which a host accepts connections, tried once and cached; raises ConnectFailed."""
    try:
        with socket.create_connection((host, port), CONNECT_TIMEOUT_S) as probe:
            return probe.family, probe.getpeername()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise ConnectFailed(f"{host}:{port} cannot be reached: {reason.lower()}.") from None
