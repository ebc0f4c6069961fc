"""HTTP/2 and WebSocket: handed to Hypercorn's protocols, and working there from end to end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked
from trio_websocket import ConnectionClosed, HandshakeError

from tests.http.other_protocols import APP, UPGRADE, H2Peer, pour, talking
from tests.http.raw_wire import Receive, Scope, Send, application, echo, serving
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("silent")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
ENGINES = pytest.mark.parametrize("engine", ["fast", "stock"])


# WebSocket.


@ENGINES
async def test_a_websocket_echoes(engine: str) -> None:
    async with serving(APP, engine) as wired:
        with trio.fail_after(PATIENCE_S):
            async with talking(wired, "/chat?room=1") as connection:
                assert await connection.get_message() == "/chat?room=1 1"
                for message in ("text", b"bytes", "x" * 100_000):
                    await connection.send_message(message)
                    assert await connection.get_message() == message


@ENGINES
async def test_a_websocket_that_is_not_wanted_is_refused(engine: str) -> None:
    async with serving(APP, engine) as wired:
        with trio.fail_after(PATIENCE_S), pytest.raises(HandshakeError) as refused:
            async with talking(wired, "/refused"):
                pass
        assert refused.value.status_code == 403  # type: ignore[attr-defined]


@ENGINES
async def test_a_message_over_the_bound_ends_the_websocket(engine: str) -> None:
    async with serving(APP, engine, limits={"link_frame_bytes_max": 1000}) as wired:
        with trio.fail_after(PATIENCE_S):
            async with talking(wired, "/chat") as connection:
                await connection.get_message()
                await connection.send_message("x" * 1001)
                with pytest.raises(ConnectionClosed):
                    await connection.get_message()


async def test_a_handshake_is_understood_however_it_is_split_and_whatever_came_before() -> None:
    """Byte by byte, behind calls on the same connection, and with the first frame in the same packet."""
    frame = bytes([0x81, 0x82, 0, 0, 0, 0]) + b"hi"
    async with serving(APP) as wired:
        for before in (b"", GET, GET + b"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"):
            for size in (1, 1000):
                peer = await wired.connect()
                everything = before + UPGRADE + frame
                for i in range(0, len(everything), size):
                    await peer.send(everything[i : i + size])
                    await trio.lowlevel.checkpoint()
                for _ in range(before.count(b"HTTP")):
                    answer = await peer.answer()
                    assert answer is not None
                    assert answer.status == 200
                head = await peer.head()
                assert head is not None
                assert head.startswith(b"HTTP/1.1 101 ")
                hello, echoed = b"\x81\x0e/chat?room=1 1", b"\x81\x02hi"
                assert await peer._take(len(hello) + len(echoed)) == hello + echoed
                await peer.close()
        await wired.deserted()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ((b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\nhello"), 400),
        ((b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        ((b"GET", b"POST"), 200),
        ((b"HTTP/1.1", b"HTTP/1.0"), 200),
        ((b", Upgrade", b""), 200),
        ((b"Upgrade: WebSocket", b"Upgrade: other"), 200),
    ],
)
async def test_what_is_no_handshake_is_no_websocket(change: tuple[bytes, bytes], status: int) -> None:
    async with serving(APP) as wired:
        assert (await wired.ask(UPGRADE.replace(*change))).status == status


@ENGINES
async def test_a_websocket_ends_with_its_client(engine: str) -> None:
    left = trio.Event()

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        left.set()

    async with serving(application(echo, listen), engine) as wired:
        peer = await wired.connect()
        await peer.send(UPGRADE)
        await peer.head()
        await peer.reset()
        with trio.fail_after(PATIENCE_S):
            await left.wait()


# HTTP/2 with prior knowledge.


@ENGINES
@pytest.mark.parametrize("size", [1, 3, 10, 1 << 20])
async def test_http2_with_prior_knowledge(engine: str, size: int) -> None:
    """However the preface is split: its first bytes could be those of POST, PUT or PATCH."""
    async with serving(APP, engine) as wired:
        client = H2Peer(await wired.connect())
        await client.flush(size)
        for body in (b"", b"hello", bytes(50_000)):
            status, received = await client.ask("POST", "/a?b", body)
            assert status == "200"
            assert f'"body": "{"hello" if body == b"hello" else ""}' in received.decode()


async def test_methods_that_begin_as_the_preface_does() -> None:
    async with serving(APP) as wired:
        for method in (b"POST", b"PUT", b"PATCH", b"PROPFIND"):
            peer = await wired.connect()
            request = GET.replace(b"GET", method)
            await peer.send(request[:1])
            await wait_all_tasks_blocked()
            await peer.send(request[1:2])
            await wait_all_tasks_blocked()
            assert (await peer.exchange(request[2:])).json()["method"] == method.decode()


# Bounds on what was handed over.


async def test_connections_that_were_handed_over_count() -> None:
    async with serving(APP, limits={"connections_max": 2}) as wired:
        client = H2Peer(await wired.connect())
        await client.ask("GET", "/a")
        peer = await wired.connect()
        await peer.send(UPGRADE)
        await peer.head()
        assert wired.engine.connections == 2
        assert (await wired.ask(GET)).status == 503
        await peer.reset()
        await client.peer.reset()
        await wired.deserted()
        assert (await wired.ask(GET)).status == 200


async def test_a_websocket_client_that_never_reads_is_closed(mock_clock: MockClock) -> None:
    """The stock protocol would wait for it without end, and a drain with it."""
    async with serving(application(echo, pour), limits={"write_timeout_s": 20}) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        await peer.send(UPGRADE)
        await peer.head()
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 1
        mock_clock.jump(20)
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 0


async def test_an_application_that_never_looks_for_its_client_ends_with_it() -> None:
    """The stock send returns at once when the client is gone: the loop would be the last thing that runs."""
    async with serving(application(echo, pour)) as wired:
        peer = await wired.connect()
        await peer.send(UPGRADE)
        await peer.head()
        await peer.reset()
        await wired.deserted()
        assert (await wired.ask(GET)).status == 200


async def test_a_drain_waits_for_what_was_handed_over(mock_clock: MockClock) -> None:
    async with serving(APP, limits={"drain_s": 10}) as wired:
        peer = await wired.connect()
        await peer.send(UPGRADE)
        await peer.head()
        wired.drain()
        await wait_all_tasks_blocked()
        mock_clock.jump(9)
        await wait_all_tasks_blocked()
        assert not wired.stopped.is_set()
        await peer.send(bytes([0x88, 0x80, 0, 0, 0, 0]))
        await wired.stop()


async def test_a_fault_in_a_handed_over_connection_ends_it_alone(log: list[dict[str, Any]]) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("a bug")

    async with serving(application(echo, broken)) as wired:
        other = await wired.connect()
        await other.exchange(GET)
        peer = await wired.connect()
        await peer.send(UPGRADE)
        assert (await peer.head() or b"").startswith(b"HTTP/1.1 500 ")
        nonsense = await wired.connect()
        await nonsense.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\1\0\0\0\0\0\0x")
        await nonsense.rest()
        await nonsense.close()
        assert (await other.exchange(GET)).status == 200
