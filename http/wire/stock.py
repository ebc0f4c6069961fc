"""The way to Hypercorn's own protocols: TLS, HTTP/2 and WebSocket.

Owns what the stock `TCPServer` is given and what it lacks: bytes that were read before it came, the time-out
of a write, the end of a connection whose client has left, and a turn for the others when an application
sends without pause. Does not own what the protocols make of the bytes.

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
        wire = _Stream(sock, switch, self._write_timeout_s)
        await self._serve(wire, wire)

    async def serve_tls(self, sock: socket.socket) -> None:
        """Serve a connection that begins with a TLS handshake. Closes it."""
        assert self._tls is not None
        wire = _Stream(sock, ProtocolSwitch(b"", None), self._write_timeout_s)
        await self._serve(wire, trio.SSLStream(wire, self._tls, server_side=True, https_compatible=True))

    async def _serve(self, wire: _Stream, stream: Any) -> None:
        state = ConnectionState(self._state.copy())
        await _Server(_told(self._app, wire), self._config, self._context, state, stream)


def _told(app: AppWrapper, wire: _Stream) -> AppWrapper:
    """The application, told by its sends that the client is gone, and with a checkpoint at each.

    The stock `send` returns at once when the client is gone. So an application that sends in a loop would
    never end, and no other task would run again, not even the one that tells it.
    """

    async def told(scope: Any, receive: Any, send: Any, sync_spawn: Any, call_soon: Any) -> None:
        async def send_or_raise(message: Any) -> None:
            await trio.lowlevel.checkpoint()
            if wire.gone:
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

    return told


class _Server(TCPServer):
    async def _read_data(self) -> None:
        await super()._read_data()
        # The stock class would keep the connection of a client that has left until its idle time is over.
        await self.idle_task.stop()


class _Stream(trio.abc.HalfCloseableStream):
    """A socket as the stock server wants it."""

    def __init__(self, sock: socket.socket, switch: ProtocolSwitch, write_timeout_s: float) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._first, self._behind = switch
        self._write_timeout_s = write_timeout_s
        self._answered = trio.Event()
        self.gone = False
        """The client has left, or is not served any more."""
        if self._behind is None:
            self._answered.set()
        self.socket = self._stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._first:
            first, self._first = self._first, b""
            return first
        # A client has to wait for the answer to its handshake; the stock protocol fails where one does not.
        await self._answered.wait()
        if self._behind:
            behind, self._behind = self._behind, b""
            return behind
        data: bytes | bytearray = b""
        try:
            data = await self._stream.receive_some(max_bytes)
        finally:
            self.gone = self.gone or not data
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or give the connection up: the stock server waits without end for a client that never reads."""
        sent = False
        try:
            with trio.move_on_after(self._write_timeout_s):
                await self._stream.send_all(data)
                sent = True
        finally:
            self.gone = self.gone or not sent
        self._answered.set()
        if not sent:
            # Who waits for the client to send something hears of it as well.
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError("the client takes nothing")

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        self.gone = True
        await self._stream.aclose()
