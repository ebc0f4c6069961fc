"""An HTTP/2 client that sends what it is told to, and requests for WebSockets.

Owns no test.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import trio

from tests.http.raw_wire import Receive, Scope, Send, Wired, reply
from tests.patience import PATIENCE_S

UPGRADE = (
    b"GET /chat?room=1 HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nX-Own: 1\r\n\r\n"
)
FRAME_BYTES = 16_384


async def pour(scope: Scope, receive: Receive, send: Send) -> None:
    """Send without end, ignoring the client."""
    await receive()
    await reply(send, b"", more=True)
    while True:
        await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})


@dataclass
class Received:
    """What has come of one response."""

    heads: list[dict[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.heads[-1][b":status"])

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


class H2Peer:
    """An HTTP/2 client over a connection. It opens windows only where it is told to."""

    def __init__(self, stream: Any, *, window_bytes: int | None = None, reads: bool = True) -> None:
        """`window_bytes` is the window of each response; `reads` gives back what was received."""
        self.stream = stream
        self.reads = reads
        self.responses: dict[int, Received] = {}
        self.goaway: h2.errors.ErrorCodes | int | None = None
        self.ended = False
        self.settled = False
        """The server has taken the settings of this client."""
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding=None, validate_outbound_headers=False)
        )
        if window_bytes is not None:
            self.h2.local_settings = h2.settings.Settings(
                client=True,
                initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window_bytes},
            )
        self.h2.initiate_connection()

    async def flush(self, size: int = 1 << 20) -> None:
        data = self.h2.data_to_send()
        for i in range(0, len(data), size):
            await self.stream.send_all(data[i : i + size])
            await trio.lowlevel.checkpoint()

    def begin(self, method: str = "GET", path: str = "/a", *fields: tuple[str, str], end: bool = True) -> int:
        """Put the head of a request into what is sent next; returns the number of the request."""
        number = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x"), *fields]
        self.h2.send_headers(number, head, end_stream=end)
        self.responses[number] = Received()
        return number

    async def receive(self) -> bool:
        """Receive once; False where the server has closed the connection."""
        with trio.fail_after(PATIENCE_S):
            try:
                data = bytes(await self.stream.receive_some(65_536))
            except trio.BrokenResourceError:
                data = b""
        if not data:
            self.ended = True
            return False
        for event in self.h2.receive_data(data):
            self._handle(event)
        await self.flush()
        return True

    def _handle(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived | h2.events.InformationalResponseReceived):
            self.responses[event.stream_id].heads.append(dict(event.headers or ()))
        elif isinstance(event, h2.events.DataReceived):
            self.responses[event.stream_id].body += event.data or b""
            if self.reads and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.responses[event.stream_id].ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.responses[event.stream_id].reset = int(event.error_code or 0)
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.settled = True
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.error_code

    async def response(self, number: int) -> Received:
        """The whole response to a request, or what came of it before it was reset."""
        await self.flush()
        while not self.responses[number].over:
            assert await self.receive(), "the connection ended"
        return self.responses[number]

    async def head(self, number: int) -> Received:
        """The response when its head has come."""
        await self.flush()
        while not self.responses[number].heads:
            assert await self.receive(), "the connection ended"
        return self.responses[number]

    async def ask(self, method: str = "GET", path: str = "/a", body: bytes = b"") -> Received:
        number = self.begin(method, path, end=not body)
        for i in range(0, len(body), FRAME_BYTES):
            while self.h2.local_flow_control_window(number) < FRAME_BYTES:
                await self.flush()
                assert await self.receive(), "the connection ended"
            self.h2.send_data(number, body[i : i + FRAME_BYTES], end_stream=i + FRAME_BYTES >= len(body))
        return await self.response(number)

    async def rest(self) -> None:
        """Receive until the server closes the connection."""
        while await self.receive():
            pass


async def h2_peer(wired: Wired, context: ssl.SSLContext | None = None, **options: Any) -> H2Peer:
    """An HTTP/2 connection: over TLS where a context is given, else with prior knowledge."""
    peer = await wired.connect()
    if context is None:
        return H2Peer(peer.stream, **options)
    context.set_alpn_protocols(["h2"])
    tls = trio.SSLStream(peer.stream, context, server_hostname="localhost", https_compatible=True)
    await tls.do_handshake()
    assert tls.selected_alpn_protocol() == "h2"
    return H2Peer(tls, **options)
