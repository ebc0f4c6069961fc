"""A WebSocket session that sends back what it gets, an application that accepts with it, and its clients.

Owns no test.
"""

from __future__ import annotations

import trio

from tests.http.raw_wire import Receive, Scope, Send, Wired, echo
from tests.http.websocket_peer import Peer
from tests.patience import PATIENCE_S
from trunkline.http.wire.asgi import WEBSOCKET
from trunkline.http.wire.websocket import SocketBounds, WebSocket
from trunkline.http.wire.websocket_frames import accept_of

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = (
    b"GET /chat?room=1 HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Key: " + KEY + b"\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
MESSAGE_BYTES_MAX = 100_000
BOUNDS = SocketBounds(MESSAGE_BYTES_MAX, 1 << 18, 60, 30)


class Echo:
    """Sends back what it gets. A text is a wish: `close`, `pour` or `fail`."""

    def __init__(self) -> None:
        self.socket: WebSocket | None = None
        self.ends: list[tuple[int, str]] = []
        self.over = trio.Event()

    def opened(self, socket: WebSocket) -> None:
        self.socket = socket

    def received(self, data: bytes, *, text: bool) -> None:
        assert self.socket is not None
        if text and data == b"close":
            self.socket.close(4000, "as you wish")
        elif text and data == b"pour":
            while self.socket.open:
                self.socket.send(bytes(10_000))
        elif text and data == b"fail":
            raise RuntimeError("a bug of the session")
        else:
            self.socket.send(data, text=text)

    def received_all(self) -> None:
        pass

    def flushed(self) -> None:
        pass

    def drain(self) -> None:
        assert self.socket is not None
        self.socket.close(1001, "the server stops")

    def closed(self, code: int, reason: str) -> None:
        self.ends.append((code, reason))
        self.over.set()


class Accepting:
    """An application that accepts every offer, and echoes other requests."""

    def __init__(self, bounds: SocketBounds = BOUNDS) -> None:
        self.sessions: list[Echo] = []
        self.bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        offer = scope["extensions"].get(WEBSOCKET)
        if offer is None or scope["path"] == "/plain":
            await echo(scope, receive, send)
            return
        self.sessions.append(Echo())
        offer.accept(self.sessions[-1], next(iter(offer.protocols), None), self.bounds)


async def opened(wired: Wired, behind: bytes = b"") -> Peer:
    """A client whose handshake was accepted; `behind` is sent in the same segment."""
    stream = (await wired.connect()).stream
    await stream.send_all(UPGRADE + behind)
    head = b""
    with trio.fail_after(PATIENCE_S):
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some(65_536)
    head, _, rest = head.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 "), head
    assert b"sec-websocket-accept: " + accept_of(KEY) in head
    peer = Peer(stream)
    peer.wire.receive_data(rest) if rest else None
    return peer
