"""The byte streams of the HTTP client: plain TCP directly on the socket, TLS through trio.

Owns opening, sending, receiving and the check for a stale connection. Does not own framing or time-outs.

The plain transport sends on the non-blocking socket first and waits only if the kernel's buffer is full, so that
a request and its answer cost one wait in the event loop. The cost of the client matters because a load generator
that is slower than the server reports its own speed.
"""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from urllib.parse import urlsplit

import trio

from trunkline.bench.errors import BenchError, ConnectFailed

RECEIVE_BYTES_MAX = 65_536
"""Bytes: one read; a page of 1,000 states needs two."""

CONNECT_TIMEOUT_S = 10.0
"""Seconds: a server that does not accept within this time is reported as not reachable."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The address of a server: the parts of its base URL that a connection needs."""

    host: str
    port: int
    tls: bool
    prefix: str

    @classmethod
    def parse(cls, url: str) -> Origin:
        """Split a base URL such as ``http://127.0.0.1:8080``; raises BenchError if it is not one."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as problem:
            raise BenchError(f"{url!r} is not a URL: {problem}.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BenchError(f"{url!r} is not a server's address; it should look like http://127.0.0.1:8080.")
        tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


class Transport(Protocol):
    """A byte stream to one peer."""

    async def send_all(self, data: bytes) -> None:
        """Send everything; raises OSError or trio.BrokenResourceError."""

    async def receive_some(self) -> bytes:
        """Return at least one byte, or ``b""`` at the end; raises OSError or trio.BrokenResourceError."""

    def is_stale(self) -> bool:
        """Whether there are bytes, or the end of the stream, although no request is open."""

    def abandon(self) -> None:
        """Close immediately, without a TLS shutdown. Idempotent."""


class PlainTransport:
    """TCP without TLS, directly on the non-blocking socket."""

    __slots__ = ("_socket",)

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    async def send_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self) -> bytes:
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(RECEIVE_BYTES_MAX)
            except BlockingIOError:
                continue

    def is_stale(self) -> bool:
        return _has_unread(self._socket)

    def abandon(self) -> None:
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()


class TlsTransport:
    """TCP with TLS, through trio's own stream."""

    __slots__ = ("_socket", "_stream")

    def __init__(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        self._stream = stream
        self._socket = stream.transport_stream.socket

    async def send_all(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def receive_some(self) -> bytes:
        return bytes(await self._stream.receive_some(RECEIVE_BYTES_MAX))

    def is_stale(self) -> bool:
        probe = socket.socket(fileno=self._socket.fileno())
        try:
            return _has_unread(probe)
        finally:
            probe.detach()

    def abandon(self) -> None:
        self._socket.close()


def tls_context() -> ssl.SSLContext:
    """TLS that trusts the authorities of this machine, or only those in the file that SSL_CERT_FILE names."""
    return _tls_context(os.environ.get("SSL_CERT_FILE"))


@lru_cache(maxsize=1)
def _tls_context(_trusted_file: str | None) -> ssl.SSLContext:
    # Reading the authorities takes as long as opening a hundred connections.
    return ssl.create_default_context()


async def open_transport(origin: Origin) -> Transport:
    """Connect to ``origin``; raises ConnectFailed with a sentence that contains the address."""
    where = f"{origin.host}:{origin.port}"
    try:
        with trio.fail_after(CONNECT_TIMEOUT_S):
            stream = await trio.open_tcp_stream(origin.host, origin.port)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not origin.tls:
                return PlainTransport(socket.socket(fileno=stream.socket.detach()))
            tls = trio.SSLStream(stream, tls_context(), server_hostname=origin.host)
            try:
                await tls.do_handshake()
            except BaseException:
                stream.socket.close()
                raise
            return TlsTransport(tls)
    except trio.TooSlowError:
        raise ConnectFailed(f"{where} did not accept a connection in {CONNECT_TIMEOUT_S:g} s.") from None
    except (OSError, trio.BrokenResourceError) as problem:
        raise ConnectFailed(f"{where} cannot be reached: {_reason(problem)}.") from problem


def _has_unread(sock: socket.socket) -> bool:
    try:
        sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _reason(problem: BaseException) -> str:
    inner: BaseException | None = problem
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        elif isinstance(inner, ssl.SSLCertVerificationError):
            return f"certificate verify failed: {inner.verify_message}"
        elif isinstance(inner, ssl.SSLError):
            return str(inner.reason or inner).replace("_", " ").lower()
        elif isinstance(inner, OSError) and inner.errno is not None and inner.errno > 0:
            return os.strerror(inner.errno).lower()
        else:
            inner = inner.__cause__
    return str(problem)
