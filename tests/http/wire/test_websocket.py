"""WebSocket on the wire: which handshakes are accepted, what frames mean, and how connections end."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import AsyncIterator

import pytest
import trio
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage

from tests.http.raw_wire import Receive, Scope, Send, Wired, application, serving
from tests.http.websocket_peer import masked, talk
from tests.http.wire.websocket_sessions import BOUNDS, KEY, MESSAGE_BYTES_MAX, UPGRADE, Accepting, opened
from tests.patience import PATIENCE_S
from trunkline.http.wire.websocket import SLOW
from trunkline.http.wire.websocket_frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    TEXT,
    accept_of,
    close_payload,
    frame,
)

pytestmark = pytest.mark.usefixtures("silent", "both_transports")


@pytest.fixture
async def accepting() -> Accepting:
    return Accepting()


@pytest.fixture
async def wired(accepting: Accepting) -> AsyncIterator[Wired]:
    async with serving(application(accepting)) as running:
        yield running


# The handshake.


def test_the_accepted_key_is_that_of_the_rfc() -> None:
    assert accept_of(KEY) == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_an_offer_that_is_not_accepted_is_an_ordinary_request(wired: Wired) -> None:
    peer = await wired.connect()
    answer = await peer.exchange(UPGRADE.replace(b"/chat", b"/plain"))
    assert (answer.status, answer.json()["path"]) == (200, "/plain")
    assert await peer.rest() == b""


@pytest.mark.parametrize(
    "ignored",
    [
        UPGRADE.replace(b"keep-alive, Upgrade", b"keep-alive"),
        UPGRADE.replace(b"GET", b"HEAD"),
        UPGRADE.replace(b"WebSocket\r\nConnection", b"h2c\r\nConnection"),
    ],
)
async def test_what_is_no_offer_is_ignored(wired: Wired, accepting: Accepting, ignored: bytes) -> None:
    peer = await wired.connect()
    method = "HEAD" if ignored.startswith(b"HEAD") else "GET"
    assert (await peer.exchange(ignored, method=method)).status == 200
    assert not accepting.sessions


async def test_an_offer_with_a_body_is_refused(wired: Wired) -> None:
    peer = await wired.connect()
    answer = await peer.exchange(UPGRADE.replace(b"Host", b"Content-Length: 2\r\nHost") + b"ab")
    assert answer.status == 400
    assert "no body" in answer.json()["message"]


async def test_the_first_protocol_is_agreed(accepting: Accepting, wired: Wired) -> None:
    stream = (await wired.connect()).stream
    await stream.send_all(UPGRADE.replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Protocol: a , b\r\n\r\n"))
    with trio.fail_after(PATIENCE_S):
        head = await stream.receive_some(65_536)
    assert b"\r\nsec-websocket-protocol: a\r\n" in head


async def test_requests_may_come_before_the_offer(wired: Wired) -> None:
    peer = await wired.connect()
    assert (await peer.exchange(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")).status == 200
    await peer.stream.send_all(b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n" + UPGRADE + masked(BINARY, b"early"))
    received = b""
    with trio.fail_after(PATIENCE_S):
        while frame(BINARY, b"early") not in received:
            received += await peer.stream.receive_some(65_536)
    assert received.index(b'"/b"') < received.index(b"HTTP/1.1 101 ")


# Messages.


async def test_messages_of_every_size(wired: Wired) -> None:
    peer = await opened(wired)
    for size in (0, 1, 125, 126, 127, 65_535, 65_536, MESSAGE_BYTES_MAX):
        payload = os.urandom(size)
        await peer.send(BytesMessage(data=payload))
        assert (await peer.next()).data == payload
    await peer.send(TextMessage(data="Grüße"))
    assert (await peer.next()).data == "Grüße"


async def test_a_message_behind_the_handshake_is_not_lost(wired: Wired) -> None:
    first = masked(TEXT, b"one") + masked(BINARY, b"two")[:3]
    peer = await opened(wired, first)
    assert (await peer.next()).data == "one"


async def test_fragments_make_one_message_with_control_frames_between(wired: Wired) -> None:
    peer = await opened(wired)
    for piece in (
        masked(TEXT, "Gr\u00fc".encode()[:3], last=False),
        masked(PING, b"?"),
        masked(CONTINUATION, "\u00fc".encode()[1:], last=False),
        masked(CONTINUATION, b"", last=True),
    ):
        await peer.stream.send_all(piece)
    assert await peer.next() == Pong(payload=b"?")
    assert (await peer.next()).data == "Grü"


async def test_a_message_may_have_any_number_of_fragments(wired: Wired) -> None:
    peer = await opened(wired)
    pieces = masked(CONTINUATION, b"ab", last=False) * 5_000 + masked(CONTINUATION, b"", last=False) * 5_000
    await peer.stream.send_all(masked(BINARY, b"", last=False) + pieces + masked(CONTINUATION, b"."))
    assert (await peer.next()).data == b"ab" * 5_000 + b"."


async def test_bytes_one_by_one(wired: Wired) -> None:
    peer = await opened(wired)
    for byte in masked(BINARY, bytes(300)):
        await peer.stream.send_all(bytes([byte]))
    assert (await peer.next()).data == bytes(300)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x82\x01a", 1002),
        (masked(BINARY, b"a", first=0x40), 1002),
        (masked(3, b"a"), 1002),
        (masked(11, b"a"), 1002),
        (masked(PING, bytes(126)), 1002),
        (masked(PING, b"", last=False), 1002),
        (masked(CONTINUATION, b"a"), 1002),
        (masked(TEXT, b"a", last=False) + masked(TEXT, b"b"), 1002),
        (masked(TEXT, b"\xff"), 1007),
        (masked(TEXT, b"\xc3", last=False) + masked(CONTINUATION, b""), 1007),
        (masked(CLOSE, b"\x03"), 1002),
        (masked(CLOSE, struct.pack("!H", 1005)), 1002),
        (masked(CLOSE, struct.pack("!H", 2999)), 1002),
        (masked(CLOSE, struct.pack("!H", 1000) + b"\xff"), 1007),
        (masked(BINARY, bytes(MESSAGE_BYTES_MAX + 1))[:20], 1009),
        (masked(BINARY, bytes(MESSAGE_BYTES_MAX), last=False) + masked(CONTINUATION, b"a"), 1009),
        (b"\x82\xff" + b"\xff" * 8 + b"mask", 1009),
    ],
)
async def test_what_a_client_may_not_send_closes_with_a_code(
    wired: Wired, accepting: Accepting, sent: bytes, code: int
) -> None:
    peer = await opened(wired, masked(BINARY, b"before") + sent)
    assert (await peer.next()).data == b"before"
    event = await peer.next()
    assert isinstance(event, CloseConnection)
    assert event.code == code
    assert event.reason
    assert accepting.sessions[0].ends == [(code, event.reason)]


# The end.


async def test_a_close_of_the_client_is_answered(wired: Wired, accepting: Accepting) -> None:
    peer = await opened(wired)
    await peer.send(CloseConnection(code=4123, reason="enough"))
    event = await peer.next()
    assert (event.code, accepting.sessions[0].ends) == (4123, [(4123, "enough")])
    with trio.fail_after(PATIENCE_S):
        assert await peer.stream.receive_some(1) == b""


async def test_a_close_without_a_code(wired: Wired, accepting: Accepting) -> None:
    peer = await opened(wired, masked(CLOSE, b""))
    assert (await peer.next()).code == 1005
    assert accepting.sessions[0].ends == [(1005, "")]


async def test_a_session_closes_and_what_follows_is_dropped(wired: Wired, accepting: Accepting) -> None:
    peer = await opened(wired, masked(TEXT, b"close") + masked(BINARY, b"late"))
    event = await peer.next()
    assert (event.code, event.reason) == (4000, "as you wish")
    await peer.stream.send_all(masked(CLOSE, close_payload(4000, "")))
    with trio.fail_after(PATIENCE_S):
        assert await peer.stream.receive_some(1) == b""
    assert accepting.sessions[0].ends == [(4000, "as you wish")]


async def test_a_client_that_leaves_is_told_to_the_session(wired: Wired, accepting: Accepting) -> None:
    peer = await opened(wired)
    await peer.stream.aclose()
    with trio.fail_after(PATIENCE_S):
        await accepting.sessions[0].over.wait()
    assert accepting.sessions[0].ends == [(1006, "")]


async def test_a_client_that_leaves_before_the_answer_is_told_to_the_session() -> None:
    asked, left = trio.Event(), trio.Event()

    class Late(Accepting):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            asked.set()
            await left.wait()
            await super().__call__(scope, receive, send)

    accepting = Late()
    async with serving(application(accepting)) as running:
        stream = (await running.connect()).stream
        await stream.send_all(UPGRADE)
        with trio.fail_after(PATIENCE_S):
            await asked.wait()
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.socket.close()
            left.set()
            while not accepting.sessions:
                await trio.lowlevel.checkpoint()
            await accepting.sessions[0].over.wait()
        assert accepting.sessions[0].ends == [(1006, "")]


async def test_a_client_that_does_not_read_is_given_up(wired: Wired, accepting: Accepting) -> None:
    await opened(wired, masked(TEXT, b"pour"))
    with trio.fail_after(PATIENCE_S):
        await accepting.sessions[0].over.wait()
    assert accepting.sessions[0].ends[0][0] == SLOW


async def test_a_stop_of_the_server_closes_with_a_code(accepting: Accepting) -> None:
    async with serving(application(accepting)) as running:
        peer = await opened(running)
        running.drain()
        event = await peer.next()
        assert (event.code, event.reason) == (1001, "the server stops")


async def test_a_silent_client_is_pinged_and_then_closed() -> None:
    accepting = Accepting(BOUNDS._replace(ping_interval_s=0, pong_timeout_s=0))
    async with serving(application(accepting)) as running:
        peer = await opened(running)
        assert isinstance(await peer.next(), Ping)
        event = await peer.next()
        assert event.code == 4408
        assert accepting.sessions[0].ends[0][0] == 4408


async def test_a_client_that_answers_pings_stays() -> None:
    accepting = Accepting(BOUNDS._replace(ping_interval_s=0, pong_timeout_s=1e6))
    async with serving(application(accepting)) as running:
        peer = await opened(running)
        for _ in range(2):
            ping = await peer.next()
            await peer.send(ping.response())
        assert not accepting.sessions[0].ends


# Clients of others.


async def test_the_client_of_the_websockets_library(wired: Wired) -> None:
    secured = wired._tls
    url = f"{'ws' if secured is None else 'wss'}://127.0.0.1:{wired.port}/"
    context = None if secured is None else secured.context

    sent = [b"\x00\x01", ["in ", "pieces"]]
    assert await talk(url, context, *sent, compression=None) == [b"\x00\x01", "in pieces"]
