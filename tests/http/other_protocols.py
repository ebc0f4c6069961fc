"""Applications and clients for the protocols that Hypercorn implements: WebSocket and HTTP/2.

Owns no test.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h2.config
import h2.connection
import h2.events
import trio
from trio_websocket import WebSocketConnection, open_websocket_url

from tests.http.raw_wire import Peer, Receive, Scope, Send, Wired, application, echo, reply
from tests.patience import PATIENCE_S

UPGRADE = (
    b"GET /chat?room=1 HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nX-Own: 1\r\n\r\n"
)


async def chat(scope: Scope, receive: Receive, send: Send) -> None:
    """Send a description of the request, then echo."""
    assert (await receive())["type"] == "websocket.connect"
    if scope["path"] == "/refused":
        await send({"type": "websocket.close", "code": 1000})
        return
    await send({"type": "websocket.accept"})
    own = dict(scope["headers"]).get(b"x-own", b"").decode()
    await send({"type": "websocket.send", "text": f"{scope['path']}?{scope['query_string'].decode()} {own}"})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        await send(
            {"type": "websocket.send", **{key: message[key] for key in ("bytes", "text") if message.get(key)}}
        )


APP = application(echo, chat)


async def pour(scope: Scope, receive: Receive, send: Send) -> None:
    """Send without end, ignoring the client."""
    await receive()
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        while True:
            await send({"type": "websocket.send", "bytes": bytes(1 << 16)})
    await reply(send, b"", more=True)
    while True:
        await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})


@asynccontextmanager
async def talking(
    wired: Wired, path: str, tls: ssl.SSLContext | None = None
) -> AsyncIterator[WebSocketConnection]:
    url = wired.url.replace("http", "ws").replace("127.0.0.1", "localhost") + path
    async with open_websocket_url(url, tls, extra_headers=[(b"x-own", b"1")]) as connection:
        yield connection


class H2Peer:
    """An HTTP/2 client over a raw connection."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()

    async def flush(self, size: int = 1 << 20) -> None:
        data = self.h2.data_to_send()
        for i in range(0, len(data), size):
            await self.peer.send(data[i : i + size])
            await trio.lowlevel.checkpoint()

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[str, bytes]:
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x")]
        self.h2.send_headers(stream, head, end_stream=not body)
        if body:
            for i in range(0, len(body), 16_384):
                self.h2.send_data(stream, body[i : i + 16_384], end_stream=i + 16_384 >= len(body))
        await self.flush()
        status, received = "", b""
        with trio.fail_after(PATIENCE_S):
            while True:
                data = await self.peer.stream.receive_some(65_536)
                assert data, "the connection ended"
                for event in self.h2.receive_data(bytes(data)):
                    if isinstance(event, h2.events.ResponseReceived):
                        status = dict(event.headers)[b":status"].decode()
                    elif isinstance(event, h2.events.DataReceived):
                        received += event.data or b""
                        self.h2.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                    elif isinstance(event, h2.events.StreamEnded):
                        return status, received
                await self.flush()
