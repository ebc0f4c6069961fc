"""A session of bytes over WebSocket: the same session, with the same promises."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked
from wsproto.events import BytesMessage, CloseConnection, TextMessage

from tests.http.raw_wire import Receive, Scope, Send, Wired, application, serving
from tests.http.websocket_peer import Peer
from tests.http.wire.byte_sessions import Echo, over, passes
from tests.patience import PATIENCE_S
from trunkline.http.wire.asgi import WEBSOCKET
from trunkline.http.wire.byte_connection import CLIENT_CLOSED, CLIENT_LOST, CLIENT_SLOW, NOT_ESTABLISHED
from trunkline.http.wire.byte_websocket import ByteWebSocket
from trunkline.http.wire.websocket import SocketBounds

pytestmark = pytest.mark.usefixtures("silent", "both_transports")

BOUNDS = SocketBounds(100_000, 1 << 18, 600, 30)
ESTABLISHED_S = 10
UPGRADE = (
    b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)
LARGE = 4 << 20


@dataclass
class Speaking:
    wired: Wired
    acts: dict[str, Callable[[Echo], Any]]
    sessions: list[Echo] = field(default_factory=list)

    async def connect(self) -> tuple[Peer, Echo]:
        stream = (await self.wired.connect()).stream
        await stream.send_all(UPGRADE)
        head = b""
        with trio.fail_after(PATIENCE_S):
            while b"\r\n\r\n" not in head:
                head += await stream.receive_some(1)
        assert b"\r\nsec-websocket-protocol: mqtt\r\n" in head
        with trio.fail_after(PATIENCE_S):
            while not self.sessions[-1].calls:
                await trio.lowlevel.checkpoint()
        return Peer(stream), self.sessions[-1]


@asynccontextmanager
async def speaking(**acts: Callable[[Echo], Any]) -> AsyncIterator[Speaking]:
    async def accept(scope: Scope, receive: Receive, send: Send) -> None:
        served.sessions.append(Echo(None, **acts))
        adapter = ByteWebSocket(served.sessions[-1], ESTABLISHED_S)
        scope["extensions"][WEBSOCKET].accept(adapter, "mqtt", BOUNDS)

    async with serving(application(accept)) as wired:
        served = Speaking(wired, acts)
        yield served


async def test_bytes_come_back() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        for data in (b"a", bytes(70_000)):
            await peer.send(BytesMessage(data=data))
            assert (await peer.next()).data == data
        assert session.calls[:3] == ["opened", "received", "received_all"]
        assert (session.wire.open, session.wire.has_room, session.wire.unsent_bytes) == (True, True, 0)


async def test_a_text_is_refused() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        await peer.send(TextMessage(data="hello"))
        event = await peer.next()
        assert isinstance(event, CloseConnection)
        assert (event.code, event.reason) == (1003, "messages have to be binary")
        assert session.ends == ["messages have to be binary"]
        assert not session.got
        session.wire.send(b"late")
        session.wire.close()
        assert (session.wire.open, session.wire.has_room, session.wire.unsent_bytes) == (False, False, 0)


async def test_the_session_closes() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        session.wire.send(b"last")
        session.wire.close("as agreed")
        assert session.ends == ["as agreed"]
        assert (await peer.next()).data == b"last"
        event = await peer.next()
        assert (event.code, event.reason) == (1000, "as agreed")


async def test_the_client_closes_or_is_lost() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        await peer.send(CloseConnection(code=1000))
        assert await over(session) == [CLIENT_CLOSED]
        peer, session = await served.connect()
        await peer.stream.aclose()
        assert await over(session) == [CLIENT_LOST]


async def test_a_client_for_whom_too_much_waits_is_closed() -> None:
    def pour(session: Echo) -> None:
        while session.wire.open:
            session.wire.send(bytes(10_000))

    async with speaking(received=pour) as served:
        peer, session = await served.connect()
        await peer.send(BytesMessage(data=b"!"))
        assert await over(session) == [CLIENT_SLOW]


async def test_a_session_is_told_when_the_client_has_taken_what_waited() -> None:
    async with speaking(opened=lambda session: session.wire.send(bytes(LARGE))) as served:
        peer, session = await served.connect()
        session.acts = {}
        await wait_all_tasks_blocked()
        assert 0 < session.wire.unsent_bytes < LARGE
        assert (await peer.next()).data == bytes(LARGE)
        await wait_all_tasks_blocked()
        assert session.calls == ["opened", "flushed"]


async def test_a_client_that_does_not_say_who_it_is_is_closed(mock_clock: MockClock) -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        session.wire.close_at(trio.current_time() + 3_600, "much later")
        await peer.send(BytesMessage(data=b"whatever"))
        await passes(mock_clock, ESTABLISHED_S - 1)
        assert session.wire.open
        await passes(mock_clock, 1)
        assert session.ends == [NOT_ESTABLISHED]


async def test_a_session_sets_its_end(mock_clock: MockClock) -> None:
    async with speaking() as served:
        early_peer, early = await served.connect()
        early.wire.close_at(trio.current_time() + 5, "early", b"bye")
        await passes(mock_clock, 5)
        assert early.ends == ["early"]
        assert (await early_peer.next()).data == b"bye"
        _, session = await served.connect()
        session.wire.close_at(trio.current_time() + 60, "silent for too long")
        session.wire.established()
        await passes(mock_clock, 59)
        assert session.wire.open
        await passes(mock_clock, 1)
        assert session.ends == ["silent for too long"]


async def test_a_stop_of_the_server_is_told_to_the_session() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        served.wired.drain()
        assert (await peer.next()).reason == "the server stops"
        assert session.ends == ["the server stops"]
