"""A session with a WebSocket server, and the stream of an MQTT broker behind WebSocket."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, wrap_client_stream

from trunkline.actors.connections.integrations.checks import FRAMING, is_target
from trunkline.actors.connections.integrations.session import Arrived, Failed, Unsent
from trunkline.actors.core.outgoing.dialing import Connection

_PING_S: Final = 30
_HANDSHAKE_BYTES_MAX: Final = 65_536
"""A server that refuses may explain itself; this much of it is read."""
_READ_BYTES: Final = 512
"""Read at once: up to 256 frames of 10 us each; then it is the turn of others."""
_CLOSE_S: Final = 1
_REASON_CHARS_MAX: Final = 200
_NO_HANDSHAKE: Final = "The server ended the handshake of WebSocket"
Rejected = ConnectionRejected
"""How the nursery of a handshake fails if the server refuses."""

Headers = list[tuple[bytes, bytes]]


class WebsocketSession:
    """An open session. Made by `open_websocket`."""

    def __init__(self, socket: WebSocketConnection, *, timeout_s: float, now_ms: Callable[[], int]) -> None:
        self._socket = socket
        self._timeout_s = timeout_s
        self._now_ms = now_ms
        self._headers = {
            name.decode("latin1").lower(): value.decode("latin1") for name, value in socket.handshake_headers
        }
        self.connected: dict[str, Any] = {"type": "connect", "headers": self._headers}
        self.heard_ms = now_ms()
        self._is_silent = False

    async def receive(self) -> list[Arrived]:
        try:
            message = await self._socket.get_message()
        except ConnectionClosed as closed:
            reason = closed.reason
            if self._is_silent or reason is None:
                raise Failed("No answer to a ping" if self._is_silent else "Connection Lost") from None
            raise Failed(reason.reason or "Connection Lost", reason.code) from None
        self.heard_ms = self._now_ms()
        content = message.encode() if isinstance(message, str) else message
        told = {"data": content.decode("utf-8", "replace"), "length": len(content)}
        return [Arrived({"type": "message", "headers": self._headers, "message": told})]

    async def acknowledge(self, arrived: list[Arrived]) -> None:
        """WebSocket has no acknowledgements."""

    async def publish(self, topic: str, message: str) -> None:  # noqa: ARG002
        raise Unsent("this integration is not an MQTT broker, and messages can be published only to one.")

    async def send(self, content: bytes, *, is_text: bool) -> None:
        with trio.move_on_after(self._timeout_s) as waiting:
            try:
                await self._socket.send_message(content.decode() if is_text else content)
            except ConnectionClosed:
                raise Unsent("the connection has ended.") from None
        if waiting.cancelled_caught:
            await self._end()  # what comes next would follow a part of a message
            raise Unsent(f"the server has not taken it within {self._timeout_s:g} seconds.")

    async def keep_alive(self) -> None:
        """Send pings; end the connection if there is no answer, so that `receive` fails."""
        try:
            while True:
                await trio.sleep(_PING_S)
                with trio.fail_after(self._timeout_s):
                    await self._socket.ping()
                self.heard_ms = self._now_ms()
        except ConnectionClosed:
            return
        except trio.TooSlowError:
            self._is_silent = True
            await self._end()

    async def _end(self) -> None:
        """End the connection without a word, so that `receive` fails."""
        with trio.move_on_after(0):
            await self._socket.aclose()

    async def close(self) -> None:
        with trio.move_on_after(_CLOSE_S, shield=True):
            await self._socket.aclose()


class WebsocketStream(trio.abc.Stream):
    """The bytes of a WebSocket connection, for MQTT."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self._socket = socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes:  # noqa: ARG002 - one message
        try:
            message = await self._socket.get_message()
        except ConnectionClosed:
            return b""
        return message.encode() if isinstance(message, str) else message

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            await self._socket.send_message(bytes(data))
        except ConnectionClosed:
            raise trio.BrokenResourceError from None

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await self._socket.aclose()


class _Bounded(trio.abc.Stream):
    """A stream on which a handshake neither ends early nor has too many bytes. `left` is None after it."""

    def __init__(self, stream: Connection) -> None:
        self._stream = stream
        self.left: int | None = _HANDSHAKE_BYTES_MAX

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(min(max_bytes or _READ_BYTES, _READ_BYTES))
        if self.left is not None:
            self.left -= len(data)
            if not data or self.left < 0:
                raise Failed(_NO_HANDSHAKE)
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()
        if self.left is not None:  # the other side speaks something else
            raise Failed(_NO_HANDSHAKE)


class _Reading:
    """Starts the reader of a connection in a nursery. What the library makes of bytes that are no WebSocket is the
    fault of the other side, and fails the nursery as that: in a handshake it raises whatever its state machine does."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def start_soon(self, read: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(self._run, read)

    async def _run(self, read: Callable[[], Awaitable[None]]) -> None:
        try:
            await read()
        except (Rejected, Failed):
            raise
        except Exception as error:  # noqa: BLE001
            first: BaseException = error
            while first.__context__ is not None:
                first = first.__context__
            raise Failed(
                f"The server sent what is not valid WebSocket ({str(first)[:_REASON_CHARS_MAX]})"
            ) from None


def basic_auth(username: str | None, password: str | None) -> Headers:
    """The header of a user name and a password; none without them."""
    if username is None and password is None:
        return []
    both = base64.b64encode(f"{username or ''}:{password or ''}".encode())
    return [(b"authorization", b"Basic " + both)]


async def shake_hands(
    nursery: trio.Nursery,
    stream: Connection,
    host: str,
    resource: str,
    headers: Headers,
    *,
    bytes_max: int,
    subprotocols: list[str] | None = None,
) -> WebSocketConnection:
    """Begin WebSocket on a stream. The nursery reads it, and fails with `Rejected`, or
    with `Failed`. Raises `Failed` for what no request can have, which was stored before it was refused. The caller
    sets a deadline."""
    if not is_target(resource):
        raise Failed("The path has characters that no request can have")
    for name, _ in headers:
        if name.decode().lower() in FRAMING:
            raise Failed(f"The header {name.decode()} belongs to the handshake, which has its own")
    bounded = _Bounded(stream)
    socket = await wrap_client_stream(
        _Reading(nursery),  # type: ignore[arg-type]
        bounded,  # type: ignore[arg-type]
        host,
        resource,
        subprotocols=subprotocols,
        extra_headers=headers,
        message_queue_size=1,
        max_message_size=bytes_max,
    )
    bounded.left = None
    return socket


async def open_websocket(
    nursery: trio.Nursery,
    stream: Connection,
    host: str,
    resource: str,
    headers: Headers,
    *,
    bytes_max: int,
    timeout_s: float,
    now_ms: Callable[[], int],
) -> WebsocketSession:
    """Open a session on a stream; the nursery keeps it alive. Raises as `shake_hands`."""
    socket = await shake_hands(nursery, stream, host, resource, headers, bytes_max=bytes_max)
    session = WebsocketSession(socket, timeout_s=timeout_s, now_ms=now_ms)
    nursery.start_soon(session.keep_alive)
    return session
