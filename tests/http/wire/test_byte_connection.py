"""Connections of bytes: what is sent and received, and what becomes of slow and silent clients."""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.wire.byte_sessions import (
    BOUNDS,
    UNSENT_BYTES_MAX,
    Echo,
    over,
    passes,
    speaking,
    take,
)
from trunkline.http.wire.byte_connection import (
    CLIENT_CLOSED,
    CLIENT_SLOW,
    NOT_ESTABLISHED,
    SERVER_STOPPED,
    ByteConnection,
)

pytestmark = pytest.mark.usefixtures("silent", "both_transports")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 4 << 20
"""More than the buffers of both sides."""
SMALL_BUFFER: dict[str, Any] = {"receive_buffer_bytes": 16_384}


# Bytes.


async def test_bytes_come_back_in_order_beside_http() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        sent = os.urandom(1 << 20)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, *[sent[at : at + 7_777] for at in range(0, len(sent), 7_777)])
            assert await take(peer, len(sent)) == sent
        assert session.calls[:3] == ["opened", "received", "received_all"]
        assert session.calls.count("received") == session.calls.count("received_all")
        assert (await served.wired.ask(GET)).status == 200
        assert session.peer is not None
        assert session.peer.address is not None
        assert session.peer.address[0] == "127.0.0.1"


async def test_a_client_that_does_not_read_is_not_read_from_and_loses_nothing() -> None:
    async with speaking() as served:
        peer, session = await served.connect(**SMALL_BUFFER)
        sent = os.urandom(LARGE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, sent)
            await wait_all_tasks_blocked()
            assert session.got < LARGE
            assert 0 < session.wire.unsent_bytes <= UNSENT_BYTES_MAX
            assert await take(peer, LARGE) == sent
        assert session.wire.open
        assert session.wire.has_room


async def test_nothing_is_read_while_a_session_has_to_work_off_what_came() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        for sent in (os.urandom(1 << 20), b"once more"):
            session.wire.pause()
            got = session.got
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.send, sent)
                await wait_all_tasks_blocked()
                assert session.got == got
                session.wire.resume()
                assert await take(peer, len(sent)) == sent
        session.wire.pause()
        session.wire.resume()
        assert session.wire.open


async def test_the_end_of_a_client_is_seen_behind_a_pause() -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        session.wire.pause()
        await peer.send(b"last")
        await peer.stream.aclose()
        await wait_all_tasks_blocked()
        assert session.ends == []
        session.wire.resume()
        await over(session)
        assert session.got == 4


async def test_what_a_slow_client_says_is_read_before_it_has_taken_all() -> None:
    """As it would wait for an answer to what it says."""

    async with speaking(acts={"opened": lambda session: session.wire.send(bytes(100_000))}) as served:
        peer, session = await served.connect(**SMALL_BUFFER)
        await wait_all_tasks_blocked()
        assert not session.wire.has_room
        await peer.send(b"ping")
        await wait_all_tasks_blocked()
        assert session.got == 4
        assert await take(peer, 100_004) == bytes(100_000) + b"ping"


async def test_a_session_is_told_when_the_client_has_taken_what_waited() -> None:
    async with speaking(acts={"opened": lambda session: session.wire.send(bytes(LARGE))}) as served:
        peer, session = await served.connect()
        session.acts.clear()
        session.wire.send(b"behind it")
        assert (session.wire.has_room, session.wire.open) == (False, True), "one message may be of any length"
        assert await take(peer, LARGE + 9) == bytes(LARGE) + b"behind it"
        await wait_all_tasks_blocked()
        assert session.calls == ["opened", "flushed"]
        assert (session.wire.has_room, session.wire.unsent_bytes) == (True, 0)


async def test_what_is_sent_while_the_task_looks_for_input_arrives() -> None:
    """Then nobody is woken for it. Which task comes first is random, so there are several attempts."""
    async with speaking() as served:
        for _ in range(20):
            peer, session = await served.connect()
            await wait_all_tasks_blocked()
            assert isinstance(session.wire, ByteConnection)
            session.wire._transport.mark_readable()
            session.wire._transport.wake()
            await trio.lowlevel.checkpoint()
            session.wire.send(bytes(LARGE))
            assert await take(peer, LARGE) == bytes(LARGE)


async def test_a_connection_has_a_task_only_at_its_beginning_and_its_end() -> None:
    async with speaking() as served:
        tasks = trio.lowlevel.current_statistics().tasks_living
        clients = [await served.connect() for _ in range(5)]
        for turn in range(3):
            await wait_all_tasks_blocked()
            assert trio.lowlevel.current_statistics().tasks_living == tasks
            for peer, _ in clients:
                await peer.send(b"ping%d" % turn)
                assert await take(peer, 5) == b"ping%d" % turn
        assert served.wired.engine.connections == 5
        await clients[0][0].stream.aclose()
        clients[1][1].wire.close("enough")
        assert await take(clients[1][0], 1) == b""
        assert [await over(session) for _, session in clients[:2]] == [[CLIENT_CLOSED], ["enough"]]
        await clients[1][0].stream.aclose()
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert served.wired.engine.connections == 3


async def test_a_server_that_is_cut_off_ends_the_connections_without_a_task() -> None:
    async with speaking(acts={"drain": lambda _: None}, limits={"drain_s": 0.1}) as served:
        _, session = await served.connect()
        await wait_all_tasks_blocked()
        await served.wired.stop()
        assert session.ends == [SERVER_STOPPED]
        assert served.wired.engine.connections == 0


# Slow clients.


async def test_a_client_for_whom_too_much_waits_is_closed() -> None:
    def pour(session: Echo) -> None:
        while session.wire.open:
            session.wire.send(bytes(10_000))
            assert session.wire.unsent_bytes <= UNSENT_BYTES_MAX + 10_000

    async with speaking(acts={"received": pour}) as served:
        peer, session = await served.connect()
        other, others = await served.connect()
        others.acts = {}
        await peer.send(b"!")
        assert await over(session) == [CLIENT_SLOW]
        session.wire.send(b"late")
        await other.send(b"still there")
        assert await take(other, 11) == b"still there"
        assert len(await peer.rest()) < LARGE


async def test_a_client_that_takes_nothing_is_closed_in_time(mock_clock: MockClock) -> None:
    async with speaking(acts={"opened": lambda session: session.wire.send(bytes(LARGE))}) as served:
        peer, session = await served.connect(**SMALL_BUFFER)
        session.wire.established()
        await passes(mock_clock, BOUNDS.write_timeout_s - 1)
        assert session.wire.open
        await take(peer, 1 << 20)
        await passes(mock_clock, BOUNDS.write_timeout_s - 1)
        assert session.wire.open, "the client has taken something"
        await passes(mock_clock, 1)
        assert session.ends == [CLIENT_SLOW]
        assert (served.wired.engine.connections, served.wired.engine.timed_out) == (0, 1)


async def test_a_client_that_has_taken_all_has_no_deadline(mock_clock: MockClock) -> None:
    async with speaking(acts={"opened": lambda session: session.wire.send(bytes(LARGE))}) as served:
        peer, session = await served.connect()
        session.wire.established()
        await take(peer, LARGE)
        await passes(mock_clock, BOUNDS.write_timeout_s)
        assert session.wire.open


async def test_a_closed_connection_does_not_wait_for_ever_for_a_slow_client(mock_clock: MockClock) -> None:
    def pour_and_close(session: Echo) -> None:
        session.wire.send(bytes(LARGE))
        session.wire.close("enough")

    async with speaking(acts={"opened": pour_and_close}, limits={"write_timeout_s": 20}) as served:
        _, session = await served.connect(**SMALL_BUFFER)
        assert session.ends == ["enough"]
        await passes(mock_clock, 19)
        assert served.wired.engine.connections == 1
        await passes(mock_clock, 1)
        assert served.wired.engine.connections == 0


# Silent clients.


async def test_clients_that_never_say_who_they_are_are_closed_and_stop_nobody(mock_clock: MockClock) -> None:
    async with speaking() as served:
        silent = [await served.connect() for _ in range(300)]
        peer, session = await served.connect()
        session.wire.established()
        await silent[0][0].send(b"whatever")
        await passes(mock_clock, BOUNDS.established_s - 1)
        assert served.wired.engine.connections == 301
        assert await take(silent[0][0], 8) == b"whatever"
        await passes(mock_clock, 1)
        assert {tuple(each.ends) for _, each in silent} == {(NOT_ESTABLISHED,)}
        assert (served.wired.engine.connections, served.wired.engine.timed_out) == (1, 300)
        assert await silent[0][0].rest() == b""
        await passes(mock_clock, 3_600)
        await peer.send(b"still there")
        assert await take(peer, 11) == b"still there"


async def test_a_session_sets_its_end(mock_clock: MockClock) -> None:
    async with speaking() as served:
        peer, session = await served.connect()
        session.wire.established()
        session.wire.close_at(trio.current_time() + 5, "earlier")
        session.wire.close_at(trio.current_time() + 60, "silent for too long", b"bye")
        await passes(mock_clock, 59)
        assert session.wire.open
        await passes(mock_clock, 1)
        assert session.ends == ["silent for too long"]
        assert await peer.rest() == b"bye"
