"""How connections of bytes end: by either side, by a fault, or because another needs the place."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.raw_wire import Peer
from tests.http.wire.byte_sessions import (
    BOUNDS,
    Echo,
    Speaking,
    over,
    passes,
    speaking,
    take,
)
from tests.patience import PATIENCE_S
from trunkline.http.wire.byte_connection import (
    CLIENT_CLOSED,
    CLIENT_LOST,
    GAVE_WAY,
    SERVER_FAILED,
    SERVER_STOPPED,
)
from trunkline.http.wire.socket_transport import LINGER_S

pytestmark = pytest.mark.usefixtures("silent", "both_transports")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 4 << 20
"""More than the buffers of both sides."""
SMALL_BUFFER: dict[str, Any] = {"receive_buffer_bytes": 16_384}


async def test_what_was_sent_before_the_close_arrives() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        session.wire.send(bytes(LARGE))
        session.wire.send(b"last")
        session.wire.close("as agreed")
        session.wire.send(b"late")
        session.wire.close("again")
        assert session.ends == ["as agreed"]
        await peer.send(b"dropped")
        assert await take(peer, LARGE + 100) == bytes(LARGE) + b"last"
        assert session.got == 0
        await peer.close()
        await served.wired.deserted()


async def test_a_session_that_closes_when_the_client_has_taken_all_gets_nothing_more() -> None:
    acts = {
        "opened": lambda session: session.wire.send(bytes(LARGE)),
        "flushed": lambda session: session.wire.close("done"),
    }
    async with speaking(BOUNDS._replace(unsent_bytes_max=0), acts=acts) as served:
        peer, session = await served.connect(**SMALL_BUFFER)
        await peer.send(b"not read before the client has taken all")
        assert await take(peer, LARGE + 1) == bytes(LARGE)
        assert (session.calls, session.ends) == (["opened", "flushed"], ["done"])


async def test_a_client_that_keeps_a_closed_connection_open_is_not_waited_for(mock_clock: MockClock) -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        session.wire.close_at(trio.current_time() + LINGER_S / 2, "too late")
        session.wire.close()
        assert session.ends == [""]
        assert await take(peer, 1) == b""
        await passes(mock_clock, LINGER_S)
        assert served.wired.engine.connections == 0


async def test_a_client_that_closes_its_half_gets_the_answers() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        await peer.send(b"question")
        await peer.half_close()
        assert await take(peer, 100) == b"question"
        assert await over(session) == [CLIENT_CLOSED]
        await peer.close()
        await served.wired.deserted()


async def test_a_client_that_closes_its_half_and_reads_late_gets_the_answers() -> None:
    async with speaking() as served:
        peer, session = await served.connect(**SMALL_BUFFER)
        session.wire.send(bytes(LARGE))
        await peer.send(b"question")
        await peer.half_close()
        await wait_all_tasks_blocked()
        assert await take(peer, LARGE + 100) == bytes(LARGE) + b"question"
        assert await over(session) == [CLIENT_CLOSED]


async def test_a_client_that_is_lost_is_told_to_the_session() -> None:
    async with speaking() as served:
        for unread in (0, LARGE):
            peer, session = await served.connect()
            session.wire.send(bytes(unread))
            await peer.reset()
            assert await over(session) == [CLIENT_LOST]
        await served.wired.deserted()


async def test_a_stop_of_the_server_is_told_to_the_sessions() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        served.wired.drain()
        assert await over(session) == ["the server stops"]
        assert await peer.rest() == b""
        await peer.close()
        await served.wired.stop()


async def test_a_session_that_does_not_stop_is_ended_after_the_grace(mock_clock: MockClock) -> None:
    async with speaking(acts={"drain": lambda _: None}, limits={"drain_s": 10}) as served:
        peer, session = await served.connect()
        session.wire.established()
        served.wired.drain()
        await passes(mock_clock, 8)
        assert session.wire.open
        await passes(mock_clock, 2)
        assert session.ends == [SERVER_STOPPED]
        assert served.wired.stopped.is_set()
        assert await peer.rest() == b""


# Faults.


def fail(_: Echo) -> None:
    raise RuntimeError("a bug of the session")


async def provoke(served: Speaking, name: str) -> Echo:
    """A session in which the callback of this name raises."""
    served.acts[name] = fail
    if name == "flushed":
        served.acts["opened"] = lambda session: session.wire.send(bytes(LARGE))
    peer, session = await served.connect()
    served.acts.clear()
    if name in ("received", "received_all", "closed"):
        await peer.send(b"!")
    if name == "closed":
        await peer.half_close()
    if name == "drain":
        served.wired.drain()
    await peer.rest()
    await peer.close()
    return session


@pytest.mark.parametrize("name", ["opened", "received", "received_all", "flushed", "drain"])
async def test_a_bug_in_a_session_ends_its_connection_only(name: str, log: list[dict[str, Any]]) -> None:
    async with speaking() as served:
        other, others = await served.connect()
        others.acts = {"drain": lambda _: None}
        session = await provoke(served, name)
        assert await over(session) == [SERVER_FAILED]
        await other.send(b"still there")
        assert await take(other, 11) == b"still there"
        others.wire.close()
    assert [entry["event"] for entry in log] == ["byte connection failed"]
    assert "a bug" not in log[0]["fault"]
    log.clear()


async def test_a_bug_at_the_end_of_a_session_harms_nobody(
    log: list[dict[str, Any]], mock_clock: MockClock
) -> None:
    async with speaking(acts={"closed": fail}) as served:
        await provoke(served, "closed")
        await served.wired.deserted()
        served.acts["closed"] = fail
        await served.connect()
        await passes(mock_clock, BOUNDS.established_s)
        assert served.wired.engine.connections == 0
        served.acts.clear()
        peer, _ = await served.connect()
        await peer.send(b"still there")
        assert await take(peer, 11) == b"still there"
    assert [entry["event"] for entry in log] == ["byte connection failed"] * 2
    log.clear()


# Places.


async def closed_without_a_byte(peer: Peer) -> bool:
    return await peer.rest() == b""


async def test_who_does_not_say_who_it_is_gives_way_to_a_new_connection(mock_clock: MockClock) -> None:
    async with speaking(limits={"connections_max": 2}) as served:
        _, known = await served.connect()
        known.wire.established()
        talker, unknown = await served.connect()
        mock_clock.jump(2)
        await talker.send(b"I am busy")
        assert await take(talker, 9) == b"I am busy"
        assert (await served.wired.ask(GET)).status == 200
        assert unknown.ends == [GAVE_WAY]
        assert await closed_without_a_byte(talker)
        assert known.wire.open
        assert served.wired.engine.places.displaced == 1


async def test_a_full_server_closes_a_new_connection() -> None:
    async with speaking(limits={"connections_max": 2}) as served:
        kept = [await served.connect() for _ in range(2)]
        for _, session in kept:
            session.wire.established()
        assert not served.wired.engine.places._crowds, "they are not counted for their address any more"
        sock = trio.socket.socket()
        with sock:
            await sock.connect(("127.0.0.1", served.port))
            with trio.fail_after(PATIENCE_S):
                assert await sock.recv(1) == b"", "what HTTP says is for its clients only"
        assert served.wired.engine.refused == 1
        assert len(served.sessions) == 2


async def test_who_comes_while_the_server_stops_is_not_served() -> None:
    late: list[socket.socket] = []

    def connects() -> None:
        late.append(socket.create_connection(("127.0.0.1", served.port)))
        late[0].sendall(b"hello")

    async with speaking(at_the_end=connects) as served:
        await served.wired.stop()
        with late[0] as sock:
            sock.settimeout(PATIENCE_S)
            try:
                received = sock.recv(1)
            except ConnectionResetError:
                received = b""
            assert received == b""
        assert not served.sessions
