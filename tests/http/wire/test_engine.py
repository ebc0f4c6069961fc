"""Connections: how many there are, how long they may take, and how they end."""

from __future__ import annotations

import gc
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.e2e.sse_client import until
from tests.http.raw_wire import Peer, Receive, Scope, Send, Wired, application, echo, reply, serving
from tests.http.tls_client import TlsStream
from tests.patience import PATIENCE_S
from trunkline.http.wire import accepting
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.descriptors import DESCRIPTORS_BESIDE, allow_descriptors
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.exchange_channel import ExchangeChannel
from trunkline.http.wire.http1 import Http1Connection
from trunkline.http.wire.request_parser import RequestParser

pytestmark = pytest.mark.usefixtures("silent", "both_transports")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
LIMITS = {
    "head_timeout_s": 10,
    "body_timeout_s": 30,
    "write_timeout_s": 20,
    "connection_idle_s": 75,
    "drain_s": 10,
}


CLEARTEXT = pytest.mark.parametrize("both_transports", ["cleartext"], indirect=True)


# Bounds of a head.


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 1024), (414, "TargetTooLong")),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: %b\r\n\r\n" % (b"a" * 1024), (431, "HeaderTooLarge")),
        (b"GET / HTTP/1.1\r\nHost: x\r\n%b: x\r\n\r\n" % (b"a" * 1024), (431, "HeaderTooLarge")),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: 0123456789\r\n" * 80 + b"\r\n", (431, "HeaderTooLarge")),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X:\r\n" * 20 + b"\r\n", (431, "HeaderTooLarge")),
    ],
)
async def test_a_head_has_a_bound(request_: bytes, expected: tuple[int, str]) -> None:
    """The same whether the head comes at once or byte by byte."""
    async with serving(
        application(echo), limits={"header_bytes_max": 1024, "headers_length_max": 20}
    ) as wired:
        assert (await wired.ask(request_)).error() == expected
        peer = await wired.connect()
        for i in range(len(request_)):
            try:
                await peer.send(request_[i : i + 1])
            except trio.BrokenResourceError:
                break
            await trio.lowlevel.checkpoint()
        answer = await peer.answer()
        assert answer is not None
        # Byte by byte a single field is refused before its end, so it is not known yet to be the target.
        assert answer.status in (expected[0], 431)


async def test_a_head_within_the_bound_passes() -> None:
    async with serving(
        application(echo), limits={"header_bytes_max": 1024, "headers_length_max": 20}
    ) as wired:
        request = b"GET /a HTTP/1.1\r\nHost: x\r\n" + b"X: %b\r\n" % (b"a" * 40) * 19 + b"\r\n"
        assert len((await wired.ask(request)).json()["headers"]) == 20


@pytest.mark.parametrize("beginning", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\nX"])
async def test_a_field_without_end_is_cut_off_early(beginning: bytes) -> None:
    async with serving(application(echo)) as wired:
        peer = await wired.connect()
        await peer.send(beginning)
        await wait_all_tasks_blocked()
        assert await peer.send_until_refused(b"a" * 16_384, 2000) < 30 << 20
        await peer.close()
        await wired.deserted()


# How many.


@CLEARTEXT
async def test_connections_over_the_bound_hear_503_and_have_their_place_later() -> None:
    """While all others have a request under way; of idle ones one gives way (`test_places.py`)."""

    async def hold(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/held":
            assert (await receive())["type"] == "http.request"
            assert (await receive())["type"] == "http.disconnect"
        else:
            await echo(scope, receive, send)

    async with serving(application(hold), limits={"connections_max": 3}) as wired:
        first = [await wired.connect() for _ in range(3)]
        for peer in first:
            await peer.send(GET.replace(b"/a", b"/held"))
        await wait_all_tasks_blocked()
        late = await wired.connect()
        answer = await late.exchange(GET)
        assert answer.error() == (503, "Overloaded")
        assert answer.header(b"retry-after") == b"1"
        assert await late.rest() == b""
        assert (wired.engine.connections, wired.engine.refused) == (3, 1)
        await first[0].close()
        await until(lambda: wired.engine.connections < 3)
        assert (await wired.ask(GET)).status == 200


async def test_many_connections_are_accepted_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 64 a wake-up: with one a turn a storm waits, without a bound everybody else does."""
    turns: list[int] = []
    wait_readable = trio.lowlevel.wait_readable

    async with serving(application(echo)) as wired:

        async def counted(sock: Any) -> None:
            if isinstance(sock, socket.socket) and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                turns.append(wired.engine.accepted)
            await wait_readable(sock)

        await wired.ask(GET)
        monkeypatch.setattr(trio.lowlevel, "wait_readable", counted)
        with ExitStack() as held:
            for _ in range(200):
                held.enter_context(socket.create_connection(("127.0.0.1", wired.port)))
            # The loop did not run meanwhile: they all wait.
            while wired.engine.accepted < 201:
                await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked()
        steps = [later - earlier for earlier, later in zip([1, *turns], turns, strict=False)]
        assert [step for step in steps if step] == [64, 64, 64, 8]


@pytest.fixture
def few_descriptors() -> Iterator[Any]:
    """A function that leaves this process `n` descriptors from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def leave(n: int) -> None:
        probe = socket.socket()
        resource.setrlimit(resource.RLIMIT_NOFILE, (probe.fileno() + n, hard))
        probe.close()

    yield leave
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_without_descriptors_connections_wait_and_nothing_breaks(
    log: list[dict[str, Any]], few_descriptors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    tries = 0
    accept = Listener.accept_nowait

    def counted(*arguments: Any) -> OSError | None:
        nonlocal tries
        problem = accept(*arguments)
        tries += problem is not None
        return problem

    monkeypatch.setattr(Listener, "accept_nowait", counted)
    monkeypatch.setattr(accepting, "ACCEPT_PAUSE_S", 0.001)
    async with serving(application(echo)) as wired:
        served = await wired.connect()
        await served.exchange(GET)
        with ExitStack() as held:
            clients = [
                held.enter_context(socket.create_connection(("127.0.0.1", wired.port))) for _ in range(6)
            ]
            few_descriptors(2)
            while tries < 5:
                await trio.lowlevel.checkpoint()
            assert wired.engine.accepted < 7
            assert (await served.exchange(GET)).status == 200
            for client in clients:
                client.close()
            with trio.fail_after(PATIENCE_S):
                while wired.engine.accepted < 7:
                    await trio.lowlevel.checkpoint()
        assert (await served.exchange(GET)).status == 200
    # Told once an episode, not at every try.
    assert [entry["event"] for entry in log] == ["no descriptor is left for a new connection"]
    log.clear()


@pytest.mark.parametrize(
    ("soft", "wanted", "allowed"), [(1024, 2000, 2256), (3000, 2000, 3000), (1024, 10**6, 4096)]
)
def test_the_process_may_have_as_many_descriptors_as_connections(
    soft: int, wanted: int, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The soft limit is raised as far as the hard one allows, and never lowered."""
    limits = {"now": (soft, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.update(now=pair))
    assert allow_descriptors(wanted) == min(wanted + DESCRIPTORS_BESIDE, 4096)
    assert limits["now"] == (allowed, 4096)


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("begun", [b"", b"PR", GET[:10]])
async def test_who_leaves_before_a_request_is_complete_hears_nothing(begun: bytes, apart: bool) -> None:
    """Also where the bytes could still be the beginning of HTTP/2."""
    async with serving(application(echo)) as wired:
        peer = await wired.connect()
        await peer.send(begun)
        if apart:
            await wait_all_tasks_blocked()
        await peer.half_close()
        assert await peer.rest() == b""
        await wired.deserted()


CONNECTION_PARTS = (Http1Connection, ExchangeChannel, RequestParser)


def alive(kind: type) -> dict[int, Any]:
    """Everything of a kind that is in memory, by its identity, which nothing else has for as long as this is kept."""
    return {id(each): each for each in gc.get_objects() if isinstance(each, kind)}


def left_of(kind: type, identities: set[int]) -> list[Any]:
    """Those of a kind and with one of these identities that are in memory still."""
    return [each for each in gc.get_objects() if isinstance(each, kind) and id(each) in identities]


async def test_a_connection_that_idles_holds_no_request() -> None:
    """Only what this test made is looked for: other tests may have left theirs."""
    exchanges: set[int] = set()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        exchange = receive.__self__  # type: ignore[attr-defined]
        assert isinstance(exchange, Exchange)
        exchanges.add(id(exchange))
        await echo(scope, receive, send)

    before = [alive(kind) for kind in CONNECTION_PARTS]
    async with serving(application(http)) as wired:
        peers = [await wired.connect() for _ in range(10)]
        for peer in peers:
            await peer.exchange(GET)
        await wait_all_tasks_blocked()
        parts = [
            alive(kind).keys() - known.keys() for kind, known in zip(CONNECTION_PARTS, before, strict=True)
        ]
        assert [*map(len, parts)] == [10, 10, 10]
        assert exchanges
        gc.collect()
        assert not left_of(Exchange, exchanges)
        for peer in peers:
            await peer.close()
        await wired.deserted()
        # And nothing of a connection waits for the collector.
        for kind, ours in zip(CONNECTION_PARTS, parts, strict=True):
            assert not left_of(kind, ours)


# The end.


class Gated:
    """An application whose calls wait for a gate."""

    def __init__(self) -> None:
        self.gate = trio.Event()
        self.waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/wait":
            self.waiting += 1
            await self.gate.wait()
        await reply(send, b"done")


async def waits(wired: Wired, app: Gated) -> Peer:
    peer = await wired.connect()
    await peer.send(GET.replace(b"/a", b"/wait"))
    before = app.waiting
    while app.waiting == before:
        await trio.lowlevel.checkpoint()
    return peer


async def test_a_drain_answers_what_is_in_flight_and_ends_what_idles() -> None:
    app = Gated()
    async with serving(application(app)) as wired:
        idle, fresh, begun = await wired.connect(), await wired.connect(), await wired.connect()
        await idle.exchange(GET)
        await begun.send(GET[:10])
        busy = await waits(wired, app)
        wired.drain()
        assert await idle.rest() == b""
        assert await fresh.rest() == b""
        with pytest.raises(OSError):
            await wired.connect()
        assert not wired.stopped.is_set()
        answer = await begun.exchange(GET[10:])
        assert (answer.body, answer.header(b"connection")) == (b"done", b"close")
        await begun.close()
        app.gate.set()
        answer = await busy.exchange()
        assert (answer.body, answer.header(b"connection")) == (b"done", b"close")
        assert await busy.rest() == b""
        await busy.close()
        await wired.stop()


async def test_a_request_that_waits_on_an_idle_connection_is_answered_by_a_server_that_drains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(application(Gated())) as wired:
        idle = await wired.connect()
        await idle.exchange(GET)

        accept = Listener.accept_nowait

        def accept_the_last(*args: Any) -> OSError | None:
            # The request comes between the last look at the sockets and the end of idle connections.
            data = idle.stream.encrypted(GET) if isinstance(idle.stream, TlsStream) else GET
            os.write(idle.stream.socket.fileno(), data)
            return accept(*args)

        monkeypatch.setattr(Listener, "accept_nowait", accept_the_last)
        wired.drain()
        answer = await idle.answer()
        assert answer is not None
        assert (answer.body, answer.header(b"connection")) == (b"done", b"close")
        await idle.close()
        await wired.stop()


@CLEARTEXT
async def test_a_client_that_has_connected_is_answered_by_a_server_that_drains() -> None:
    """Who was not accepted yet would be reset with the listening socket."""
    with ExitStack() as held:
        late: list[socket.socket] = []

        def connects() -> None:
            for request in (GET, b""):
                late.append(held.enter_context(socket.create_connection(("127.0.0.1", wired.port))))
                late[-1].sendall(request)

        async with serving(application(Gated()), at_the_end=connects) as wired:
            await wired.ask(GET)
            wired.drain()
            with trio.fail_after(PATIENCE_S):
                await wait_all_tasks_blocked()
                await trio.lowlevel.wait_readable(late[0])
                answer = late[0].recv(65_536)
                assert answer.endswith(b"done")
                assert b"connection: close" in answer
                late[0].close()
                await trio.lowlevel.wait_readable(late[1])
                assert late[1].recv(65_536) == b"", "who has not asked is not waited for"
            await wired.stop()


async def test_no_call_outlasts_the_grace(mock_clock: MockClock) -> None:
    app = Gated()
    async with serving(application(app), limits=LIMITS) as wired:
        peer = await waits(wired, app)
        wired.drain()
        await wait_all_tasks_blocked()
        mock_clock.jump(9)
        await wait_all_tasks_blocked()
        assert not wired.stopped.is_set()
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        assert wired.stopped.is_set()
        assert await peer.rest() == b""


async def test_an_empty_server_stops_at_once(mock_clock: MockClock) -> None:
    async with serving(application(echo), limits=LIMITS) as wired:
        await wired.ask(GET)
        await wired.stop()
