"""Hypercorn's own protocols: TLS, HTTP/2 and WebSocket.

Owns what the stock `TCPServer` is given, and what it lacks: bytes that were received before it began, a write time-out,
the end of a connection whose client has left, and a turn for the other tasks when an application sends without pause.
Does not own what the protocols make of the bytes.

Why the stock protocols: these connections are few, and their protocols are long. TLS is what the operator configured
(`certfile`, `keyfile`, `ca_certs`); ALPN chooses HTTP/2 or HTTP/1.1.
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

from trunkline.http.wire.protocol_switch import ProtocolSwitch
from trunkline.http.wire.transport import ClientGone


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

    async def serve(self, sock: socket.socket, switch: ProtocolSwitch) -> None:
        """Serve a cleartext connection that has begun already. Closes it."""
        stream = _Stream(sock, switch, self._write_timeout_s)
        await self._serve(stream, stream)

    async def serve_tls(self, sock: socket.socket) -> None:
        """Serve a connection that begins with a TLS handshake. Closes it."""
        assert self._tls is not None
        stream = _Stream(sock, ProtocolSwitch(b"", None), self._write_timeout_s)
        tls = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
        await self._serve(stream, tls)

    async def _serve(self, cleartext: _Stream, stream: Any) -> None:
        state = ConnectionState(self._state.copy())
        app = _raising_when_gone(self._app, cleartext)
        await _Server(app, self._config, self._context, state, stream)


def _raising_when_gone(app: AppWrapper, stream: _Stream) -> AppWrapper:
    """The application with a `send` that is a checkpoint and raises when the client is gone.

    The stock `send` returns at once when the client is gone. So an application that sends in a loop would never
    end, and no other task would run again, not even the one that would cancel it.
    """

    async def wrapped(scope: Any, receive: Any, send: Any, sync_spawn: Any, call_soon: Any) -> None:
        async def send_or_raise(message: Any) -> None:
            await trio.lowlevel.checkpoint()
            if stream.gone:
                raise ClientGone("the client closed its connection")
            await send(message)

        try:
            await app(scope, receive, send_or_raise, sync_spawn, call_soon)
        except ClientGone:
            return
        except BaseExceptionGroup as group:
            _, rest = group.split(ClientGone)
            if rest is not None:
                raise rest from None

    return wrapped


class _Server(TCPServer):
    async def _read_data(self) -> None:
        await super()._read_data()
        # The stock class would keep the connection of a client that has left until its idle time-out.
        await self.idle_task.stop()


class _Stream(trio.abc.HalfCloseableStream):
    """A socket as the stock server expects it."""

    def __init__(self, sock: socket.socket, switch: ProtocolSwitch, write_timeout_s: float) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._first, self._after_handshake = switch
        self._write_timeout_s = write_timeout_s
        self._handshake_answered = trio.Event()
        self.gone = False
        """The client has left, or was given up."""
        if self._after_handshake is None:
            self._handshake_answered.set()
        self.socket = self._stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._first:
            first, self._first = self._first, b""
            return first
        # The stock protocol fails for a client that sends before it has the response to its handshake.
        await self._handshake_answered.wait()
        if self._after_handshake:
            data, self._after_handshake = self._after_handshake, b""
            return data
        received: bytes | bytearray = b""
        try:
            received = await self._stream.receive_some(max_bytes)
        finally:
            self.gone = self.gone or not received
        return received

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or give up the connection: the stock server would wait forever for a client that never reads."""
        sent = False
        try:
            with trio.move_on_after(self._write_timeout_s):
                await self._stream.send_all(data)
                sent = True
        finally:
            self.gone = self.gone or not sent
        self._handshake_answered.set()
        if not sent:
            # This also ends a `receive_some` that waits for the client.
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError("the client does not read")

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        self.gone = True
        await self._stream.aclose()
