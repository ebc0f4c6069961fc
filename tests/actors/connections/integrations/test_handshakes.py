"""Handshakes of WebSocket that cannot be sent, from records that are older than the checks of them."""

from __future__ import annotations

import socket

import pytest
import trio

from trunkline.actors.connections.integrations.session import Failed
from trunkline.actors.connections.integrations.websocket import shake_hands


@pytest.mark.parametrize(
    ("resource", "name", "said"),
    [
        ("/pa th", b"X-A", "The path has characters that no request can have"),
        ("/ü", b"X-A", "The path has characters that no request can have"),
        ("/x\r\nX: y", b"X-A", "The path has characters that no request can have"),
        ("/", b"Host", "The header Host belongs to the handshake, which has its own"),
        ("/", b"Content-Length", "The header Content-Length belongs to the handshake, which has its own"),
        (
            "/",
            b"transfer-encoding",
            "The header transfer-encoding belongs to the handshake, which has its own",
        ),
    ],
)
async def test_what_cannot_be_sent_is_told_in_a_sentence(resource: str, name: bytes, said: str) -> None:
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    async with trio.SocketStream(trio.socket.from_stdlib_socket(theirs)), trio.open_nursery() as nursery:
        with pytest.raises(Failed, match=said):
            await shake_hands(nursery, stream, "h", resource, [(name, b"x")], bytes_max=1)
        await stream.aclose()
