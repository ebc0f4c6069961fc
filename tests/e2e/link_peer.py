"""A client of the link that checks each frame, of both sides, against the document. Owns no test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import cbor2
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url
from wsproto.events import BytesMessage

from tests.e2e.conftest import Server
from tests.http.link.link_document import check_frame
from tests.patience import PATIENCE_S

CBOR = "trunkline.link.v1+cbor"
JSON = "trunkline.link.v1+json"


class LinkPeer:
    """One connection."""

    def __init__(self, socket: WebSocketConnection, *, text: bool) -> None:
        self.socket = socket
        self.text = text

    async def send(self, *frame: Any, checked: bool = True) -> None:
        data = cbor2.dumps(list(frame))
        if checked:
            check_frame("client", data)
        await self.socket.send_message(json.dumps(frame) if self.text else data)

    async def send_at_once(self, *frames: list[Any]) -> None:
        """Send frames that the server receives together, so that they share a commit."""
        written = [self.socket._wsproto.send(BytesMessage(data=cbor2.dumps(frame))) for frame in frames]
        await self.socket._stream.send_all(b"".join(written))

    async def send_raw(self, message: bytes | str) -> None:
        await self.socket.send_message(message)

    async def next(self) -> list[Any]:
        """The next frame of the server."""
        with trio.fail_after(PATIENCE_S):
            message = await self.socket.get_message()
        assert isinstance(message, str) is self.text
        frame: list[Any] = json.loads(message) if isinstance(message, str) else cbor2.loads(message)
        check_frame("server", cbor2.dumps(frame))
        return frame

    async def until_stored(self, n: int) -> list[list[Any]]:
        """Wait until frame `n` is acknowledged; return the frames before that."""
        others: list[list[Any]] = []
        while True:
            frame = await self.next()
            if frame[0] == 1 and frame[1] >= n and len(frame) == 2:
                return others
            if frame[0] != 1:
                others.append(frame)

    async def close_code(self) -> tuple[int, str]:
        """Wait for the close frame; what comes before it is dropped."""
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    await self.socket.get_message()
                except ConnectionClosed as closed:
                    reason = closed.reason
                    return (1006, "") if reason is None else (reason.code, reason.reason or "")


@asynccontextmanager
async def connected(
    server: Server, device: str, token: str | None, *, protocol: str = CBOR, connect_s: float = PATIENCE_S
) -> AsyncIterator[LinkPeer]:
    """A connection before its hello; without `token` the hello has to bring one.

    The library does not notice a connection that ends before it is open: it waits for `connect_s`.
    """
    url = f"{server.url.replace('http', 'ws', 1)}{device}/link"
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    async with open_websocket_url(
        url, subprotocols=[protocol], extra_headers=headers, connect_timeout=connect_s
    ) as socket:
        assert socket.subprotocol == protocol
        yield LinkPeer(socket, text=protocol == JSON)


@asynccontextmanager
async def linked(
    server: Server,
    device: str,
    token: str,
    *,
    session: int = 7,
    protocol: str = CBOR,
    connect_s: float = PATIENCE_S,
) -> AsyncIterator[tuple[LinkPeer, dict[str, Any]]]:
    """An open link, and its welcome."""
    async with connected(server, device, token, protocol=protocol, connect_s=connect_s) as peer:
        await peer.send(0, {"session": session})
        kind, facts = await peer.next()
        assert kind == 0
        yield peer, facts
