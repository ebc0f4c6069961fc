"""The way to Hypercorn's own protocols: TLS, HTTP/2 and WebSocket.

Owns the streams that the stock `TCPServer` is given: bytes that were read before it came, and the time-out of
a write, which the stock protocols lack. Does not own what they make of the bytes.

TLS is what the operator configured (`certfile`, `keyfile`, `ca_certs`); ALPN chooses HTTP/2 or HTTP/1.1.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState


class Stock:
    """Serves connections with the stock protocols."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        state: dict[str, Any],
        write_timeout_s: float,
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._state = state
        self._write_timeout_s = write_timeout_s
        self._tls: ssl.SSLContext | None = config.create_ssl_context()

    async def serve(self, sock: socket.socket, first: bytes = b"") -> None:
        """Serve a cleartext connection of which `first` was read already. Closes it."""
        await self._serve(_Stream(sock, first, self._write_timeout_s))

    async def serve_tls(self, sock: socket.socket) -> None:
        """Serve a connection that begins with a TLS handshake. Closes it."""
        assert self._tls is not None
        stream: Any = _Stream(sock, b"", self._write_timeout_s)
        await self._serve(trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True))

    async def _serve(self, stream: Any) -> None:
        state = ConnectionState(self._state.copy())
        await TCPServer(self._app, self._config, self._context, state, stream)


class _Stream(trio.abc.HalfCloseableStream):
    """A socket as the stock server wants it."""

    def __init__(self, sock: socket.socket, first: bytes, write_timeout_s: float) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._first = first
        self._write_timeout_s = write_timeout_s
        self.socket = self._stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._first:
            first, self._first = self._first, b""
            return first
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or give the connection up: the stock server waits without end for a client that never reads."""
        with trio.move_on_after(self._write_timeout_s) as timer:
            await self._stream.send_all(data)
        if timer.cancelled_caught:
            raise trio.BrokenResourceError("the client takes nothing")

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
