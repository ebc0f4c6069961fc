"""Handshakes that cannot be sent, from records older than the checks of them, and answers that are no handshakes."""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial

import pytest
import trio
import trio.testing

from tests.patience import PATIENCE_S
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


ACCEPTED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ACCEPTED + b"\r\n", "Bad accept token"),
        (ACCEPTED + b"Sec-WebSocket-Accept: x\r\n\r\n", "Bad accept token"),
        (b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\n\r\n", "Missing header, 'Upgrade: websocket'"),
        (b"SSH-2.0-x\r\n\r\n", "illegal status line"),
        (b"\x16\x03\x01\r\n", "illegal request line"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, "Receive buffer too long"),
        (b"HTTP/1.1 401 No\r\nContent-Length: -1\r\n\r\n", "bad Content-Length"),
        (b"HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "illegal chunk header"),
    ],
    ids=["none", "wrong", "upgrade", "ssh", "tls", "large", "length", "chunk"],
)
async def test_an_answer_that_is_no_handshake_is_told_as_the_fault_of_the_server(
    answer: bytes, said: str
) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.receive_some()
            await stream.send_all(answer)
            await stream.receive_some()

    async with trio.open_nursery() as servers:
        (listener,) = await servers.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        stream = await trio.testing.open_stream_to_socket_listener(listener)
        with trio.fail_after(PATIENCE_S), pytest.RaisesGroup(pytest.RaisesExc(Failed, match=said)) as told:
            async with trio.open_nursery() as nursery:
                await shake_hands(nursery, stream, "h", "/", [], bytes_max=1)
        await stream.aclose()
        servers.cancel_scope.cancel()
    assert str(told.value.exceptions[0]).startswith("The server sent what is not valid WebSocket (")
