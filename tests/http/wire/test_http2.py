"""HTTP/2: every bound of HTTP/1.1 holds, and one request ends without ending its neighbours.

Most tests run with prior knowledge, which the settings allow here, and over TLS. The file is long because each bound of
`http2.py` has a test here.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h2.errors
import pytest
import trio
import trustme
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.e2e.sse_client import until
from tests.http.other_protocols import H2Peer, Received, h2_peer, pour
from tests.http.raw_wire import (
    Handler,
    Receive,
    Scope,
    Send,
    Wired,
    application,
    echo,
    part,
    reply,
    serving,
    start,
    until_disconnect,
    whole_body,
)
from tests.patience import PATIENCE_S
from trunkline.http.wire.engine import REAP_S
from trunkline.http.wire.headers import Headers
from trunkline.http.wire.http2_exchange import Http2Exchange

pytestmark = pytest.mark.usefixtures("silent")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("000000040000000000")
APP = application(echo)
CODES = h2.errors.ErrorCodes
Connect = Callable[..., Any]


class Peers:
    """Serves an application, and connects to it with HTTP/2."""

    def __init__(self, settings: dict[str, Any], context: ssl.SSLContext | None) -> None:
        self.settings = settings
        self._context = context

    @asynccontextmanager
    async def serving(self, app: Handler = APP, **limits: Any) -> AsyncIterator[tuple[Wired, Connect]]:
        async with serving(app, limits=limits, **self.settings) as wired:

            async def connect(**options: Any) -> H2Peer:
                return await h2_peer(wired, self._context, **options)

            yield wired, connect


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(params=["cleartext", "tls"])
def peers(request: pytest.FixtureRequest, tmp_path: Path, authority: trustme.CA) -> Peers:
    if request.param == "cleartext":
        return Peers({"http2_prior_knowledge": True}, None)
    issued = authority.issue_cert("localhost")
    files = {"certfile": str(tmp_path / "chain.pem"), "keyfile": str(tmp_path / "key.pem")}
    issued.cert_chain_pems[0].write_to_path(files["certfile"])
    issued.private_key_pem.write_to_path(files["keyfile"])
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return Peers(files, context)


async def expire(clock: MockClock, seconds: float) -> None:
    """Let so much time pass that deadlines of `seconds` are over, and are seen to be."""
    await wait_all_tasks_blocked()
    clock.jump(seconds)
    await wait_all_tasks_blocked()
    clock.jump(REAP_S)
    await wait_all_tasks_blocked()


# Without TLS.


async def test_prior_knowledge_is_refused_unless_it_is_configured(log: list[dict[str, Any]]) -> None:
    """However the preface is split: its first bytes could be those of POST, PUT or PATCH."""
    async with serving(APP) as wired:
        for size in (1, 3, 10, 1000):
            peer = await wired.connect()
            everything = PREFACE + SETTINGS
            for i in range(0, len(everything), size):
                await peer.send(everything[i : i + size])
                await trio.lowlevel.checkpoint()
            answer = await peer.answer()
            assert answer is not None
            assert answer.error() == (505, "VersionNotSupported")
            assert answer.header(b"connection") == b"close"
            assert await peer.rest() == b""
        for begins in (b"PRI /x HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/1.1\r\nHost: x\r\n\r\n"):
            assert (await wired.ask(begins)).error() == (400, "Validation")
        await until(lambda: not wired.engine.connections)
    assert log == []


@pytest.mark.parametrize("size", [1, 3, 10, 1 << 20])
async def test_prior_knowledge_where_it_is_configured(size: int) -> None:
    async with serving(APP, http2_prior_knowledge=True) as wired:
        client = H2Peer((await wired.connect()).stream)
        await client.flush(size)
        for body in (b"", b"hello", bytes(200_000)):
            answer = await client.ask("POST", "/a?b", body)
            assert answer.status == 200
            assert f'"body": "{"hello" if body == b"hello" else ""}' in answer.body.decode()
        assert (await wired.ask(GET)).status == 200


@pytest.mark.parametrize("prior_knowledge", [False, True])
async def test_methods_that_begin_as_the_preface_does(prior_knowledge: bool) -> None:
    async with serving(APP, http2_prior_knowledge=prior_knowledge) as wired:
        for method in (b"POST", b"PUT", b"PATCH", b"PROPFIND"):
            peer = await wired.connect()
            request = GET.replace(b"GET", method)
            await peer.send(request[:1])
            await wait_all_tasks_blocked()
            await peer.send(request[1:2])
            await wait_all_tasks_blocked()
            assert (await peer.exchange(request[2:])).json()["method"] == method.decode()


# Requests.


async def test_many_requests_at_once(peers: Peers) -> None:
    async with peers.serving() as (_, connect):
        client = await connect()
        numbers = [client.begin("GET", f"/{n}?q=%C3%A9") for n in range(100)]
        for n, number in enumerate(numbers):
            answer = await client.response(number)
            assert (answer.status, answer.ended) == (200, True)
            assert f'"path": "/{n}", "query": "q=%C3%A9"' in answer.body.decode()
            assert answer.heads[0][b"content-length"] == b"%d" % len(answer.body)


async def test_scope_and_framing(peers: Peers) -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        status = int(scope["path"][1:])
        fields = [(b"Connection", b"close"), (b"Transfer-Encoding", b"chunked"), (b"X-Own", b"1")]
        await reply(send, b"body", status, fields)

    async with peers.serving(application(app)) as (_, connect):
        client = await connect()
        for method, status, body in (
            ("GET", 200, b"body"),
            ("HEAD", 200, b""),
            ("GET", 204, b""),
            ("GET", 304, b""),
        ):
            answer = await client.ask(method, f"/{status}")
            assert (answer.status, answer.body, answer.ended) == (status, body, True)
            assert set(answer.heads[0]) == {b":status", b"x-own", b"x-request-id", b"date"} | (
                {b"content-length"} if status == 200 else set()
            )
    scheme = "https" if "certfile" in peers.settings else "http"
    assert {(scope["http_version"], scope["scheme"]) for scope in scopes} == {("2", scheme)}
    assert scopes[0]["headers"] == [(b"host", b"x")]


async def test_wrong_requests_are_refused_alone(peers: Peers) -> None:
    """Each beside a stream that stays open."""
    release = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/stream":
            await echo(scope, receive, send)
            return
        await reply(send, b"begin", more=True)
        await release.wait()
        await send(part(b" end"))

    wrong: list[tuple[tuple[Any, ...], int]] = [
        (("GET", "/\xe9"), 400),
        (("GET", "/#x"), 400),
        (("GET", "http://x/"), 400),
        (("GET", "*"), 400),
        (("get", "/"), 501),
        (("GET", "/", ("expect", "the impossible")), 417),
        (("GET", "/", *((f"x-{n}", "1") for n in range(101))), 431),
        (("GET", "/", ("x-long", "y" * 40_000)), 431),
    ]
    async with peers.serving(application(app)) as (_, connect):
        client = await connect()
        stream = client.begin("GET", "/stream")
        await client.head(stream)
        for request, status in wrong:
            answer = await client.response(client.begin(*request))
            assert answer.status == status, request
            assert b'"message":' in answer.body
            assert (await client.ask()).status == 200
        release.set()
        assert (await client.response(stream)).body == b"begin end"


async def test_connect_is_refused(peers: Peers) -> None:
    async with peers.serving() as (wired, connect):
        client = await connect()
        number = client.h2.get_next_available_stream_id()
        client.responses[number] = Received()
        client.h2.send_headers(number, [(":method", "CONNECT"), (":authority", "x")])
        assert (await client.response(number)).status == 501
        assert (await client.ask()).status == 200
        # With a path it is malformed, and the library ends the connection.
        client.begin("CONNECT", "/")
        await client.flush()
        await client.rest()
        assert client.goaway == CODES.PROTOCOL_ERROR
        await trio.aclose_forcefully(client.stream)
        await wired.deserted()


async def test_a_head_that_is_too_large_to_be_unpacked_ends_the_connection_with_goaway(peers: Peers) -> None:
    async with peers.serving() as (wired, connect):
        client = await connect()
        for _ in range(3):
            client.begin("GET", "/", *((f"x-{n}", "y" * 1000) for n in range(200)))
        await client.flush()
        await client.rest()
        assert client.goaway == CODES.ENHANCE_YOUR_CALM
        await trio.aclose_forcefully(client.stream)
        await wired.deserted()


async def test_nonsense_ends_the_connection_with_goaway(peers: Peers) -> None:
    async with peers.serving() as (wired, connect):
        client = await connect()
        await client.ask()
        await client.stream.send_all(b"\0\0\1\0\0\0\0\0\0x")
        await client.rest()
        assert client.goaway == CODES.PROTOCOL_ERROR
        await trio.aclose_forcefully(client.stream)
        await wired.deserted()


async def test_an_early_answer_ends_its_request_alone(peers: Peers) -> None:
    """The client goes on to send a body that nobody reads."""
    release = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/stream":
            await reply(send, b"begin", more=True)
            await release.wait()
            await send(part(b" end"))
        else:
            await reply(send, b"too large", 413)

    async with peers.serving(application(app)) as (_, connect):
        client = await connect()
        stream = client.begin("GET", "/stream")
        await client.head(stream)
        for _ in range(100):
            number = client.begin("POST", "/a", end=False)
            for _ in range(3):
                client.h2.send_data(number, bytes(16_000))
            answer = await client.response(number)
            while answer.reset is None:
                await client.receive()
            assert (answer.status, answer.body, answer.reset) == (413, b"too large", CODES.NO_ERROR)
        release.set()
        assert (await client.response(stream)).body == b"begin end"


async def test_a_body_that_does_not_come_is_answered_alone(peers: Peers, mock_clock: MockClock) -> None:
    async with peers.serving(body_timeout_s=20) as (_, connect):
        client = await connect()
        slow = client.begin("POST", "/a", end=False)
        client.h2.send_data(slow, b"begin")
        await client.ask()
        await expire(mock_clock, 20)
        answer = await client.response(slow)
        assert answer.status == 408
        assert b"too slowly" in answer.body
        assert (await client.ask()).status == 200


async def test_an_expected_continue_is_sent_before_the_body_is_read(peers: Peers) -> None:
    async with peers.serving() as (_, connect):
        client = await connect()
        number = client.begin("POST", "/a", ("expect", "100-continue"), end=False)
        await client.head(number)
        assert client.responses[number].status == 100
        client.h2.send_data(number, b"body", end_stream=True)
        assert b'"body": "body"' in (await client.response(number)).body


async def test_bodies_that_are_not_read_hold_up_nobody(peers: Peers) -> None:
    """99 requests whose bodies fill their windows; the application reads none of them."""
    release = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/held":
            await reply(send, b"", more=True)
            await release.wait()
            assert len(await whole_body(receive) or b"") == 65_535
            await send(part(b""))
        else:
            await echo(scope, receive, send)

    async with peers.serving(application(app)) as (_, connect):
        client = await connect()
        held = []
        for _ in range(50):
            number = client.begin("POST", "/held", end=False)
            await client.head(number)
            for size in (16_384, 16_384, 16_384, 16_383):
                client.h2.send_data(number, bytes(size))
            assert client.h2.local_flow_control_window(number) == 0
            client.h2.end_stream(number)
            held.append(number)
        assert (await client.ask("POST", "/a", bytes(50_000))).status == 200
        release.set()
        for number in held:
            assert (await client.response(number)).ended


async def test_faults_of_the_application(peers: Peers, log: list[dict[str, Any]]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/before":
            raise RuntimeError("a bug")
        if scope["path"] == "/amid":
            await reply(send, b"begin", more=True)
            raise RuntimeError("a bug")
        if scope["path"] == "/short":
            await send(start(200, (b"content-length", b"9")))
            await send(part(b"begin"))
        if scope["path"] == "/split":
            await reply(send, b"", headers=[(b"x", b"a\r\nb")])
        if scope["path"] == "/a":
            await reply(send, b"whole")

    async with peers.serving(application(app)) as (_, connect):
        client = await connect()
        for path, status, reset in (
            ("/before", 500, None),
            ("/nothing", 500, None),
            ("/split", 500, None),
            ("/amid", 200, CODES.INTERNAL_ERROR),
            ("/short", 200, CODES.INTERNAL_ERROR),
        ):
            answer = await client.ask("GET", path)
            assert (answer.status, answer.reset) == (status, reset), path
            assert (await client.ask()).body == b"whole"
    assert {entry["event"] for entry in log} == {"request failed", "request not answered"}
    assert len(log) == 5
    log.clear()


# Clients that leave.


async def test_an_application_learns_that_its_client_has_left(peers: Peers) -> None:
    left: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/streams":
            await reply(send, b"begin", more=True)
            await until_disconnect(receive)
            with pytest.raises(OSError, match="left"):
                await send(part(b"more", more=True))
        elif scope["path"] == "/waits":
            await until_disconnect(receive)
        else:
            await echo(scope, receive, send)
            return
        left.append(scope["path"])

    async with peers.serving(application(app)) as (wired, connect):
        for path in ("/streams", "/waits"):
            client = await connect()
            number = client.begin("GET", path)
            await client.flush()
            await wait_all_tasks_blocked()
            client.h2.reset_stream(number, CODES.CANCEL)
            assert (await client.ask()).status == 200
            with trio.fail_after(PATIENCE_S):
                while left != [path]:
                    await trio.lowlevel.checkpoint()
            client.begin("GET", path)
            await client.flush()
            await wait_all_tasks_blocked()
            await trio.aclose_forcefully(client.stream)
            await wired.deserted()
            assert left == [path, path]
            left.clear()


async def test_an_application_that_never_looks_for_its_client_ends_with_it(peers: Peers) -> None:
    async with peers.serving(application(pour)) as (wired, connect):
        client = await connect()
        await client.head(client.begin())
        await trio.aclose_forcefully(client.stream)
        await wired.deserted()


async def test_requests_that_were_reset_count_until_their_task_has_ended(peers: Peers) -> None:
    """A client cannot begin any number of them by resetting each at once."""
    begun = 0
    release = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal begun
        begun += 1
        if scope["path"] == "/streams":
            await reply(send, b"", more=True)
        await release.wait()

    async with peers.serving(application(app), http2_streams_max=10) as (wired, connect):
        client = await connect()
        refused = 0
        for _ in range(1000):
            number = client.begin("GET", "/streams")
            client.h2.reset_stream(number, CODES.CANCEL)
        await client.flush()
        await wait_all_tasks_blocked()
        assert begun <= 10
        refused = client.begin("GET", "/streams")
        if begun == 10:
            assert (await client.response(refused)).reset == CODES.REFUSED_STREAM
        release.set()
        await trio.aclose_forcefully(client.stream)
        await wired.deserted()


# Windows.


async def test_a_response_whose_window_stays_closed_is_reset_alone(
    peers: Peers, mock_clock: MockClock
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, bytes(50_000 if scope["path"] == "/large" else 10))

    async with peers.serving(application(app), write_timeout_s=20) as (_, connect):
        client = await connect(window_bytes=100, reads=False)
        large = client.begin("GET", "/large")
        await client.flush()
        assert (await client.ask()).body == bytes(10)
        await expire(mock_clock, 20)
        answer = await client.response(large)
        assert (answer.status, len(answer.body), answer.reset) == (200, 100, CODES.CANCEL)
        assert (await client.ask()).body == bytes(10)


async def test_a_window_that_opens_by_a_few_bytes_is_no_progress(peers: Peers, mock_clock: MockClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, bytes(50_000))

    async with peers.serving(application(app), write_timeout_s=20) as (_, connect):
        client = await connect(window_bytes=100, reads=False)
        large = client.begin()
        await client.head(large)
        for _ in range(30):
            await wait_all_tasks_blocked()
            mock_clock.jump(1)
            if not client.responses[large].over:
                client.h2.increment_flow_control_window(1, large)
            await client.ask("HEAD")
        answer = await client.response(large)
        assert answer.reset == CODES.CANCEL
        assert len(answer.body) <= 130


async def test_a_body_that_goes_on_when_its_time_is_over_times_out(mock_clock: MockClock) -> None:
    exchange = _Busy().exchange
    received: list[bytes] = []

    async def read() -> None:
        with exchange.scope:
            while True:
                received.append((await exchange.receive())["body"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        exchange.complete = False
        exchange.take(b"late", 0)
        mock_clock.jump(2)
        await wait_all_tasks_blocked()
        await expire(mock_clock, 1)
    assert (received, exchange.timed_out) == ([b"late"], True)


async def test_a_window_that_opens_a_little_when_its_time_is_over_times_out(
    peers: Peers, mock_clock: MockClock
) -> None:
    exchanges: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        exchanges.append(send.__self__)  # type: ignore[attr-defined]
        await reply(send, bytes(50_000 if scope["path"] == "/large" else 10))

    async with peers.serving(application(app), write_timeout_s=20) as (_, connect):
        client = await connect(window_bytes=100, reads=False)
        large = client.begin("GET", "/large")
        await client.flush()
        assert (await client.ask()).body == bytes(10)
        await wait_all_tasks_blocked()
        # A change that comes after the deadline in the same turn: no client can be that exact.
        exchanges[0]._connection._wake_senders()
        mock_clock.jump(21)
        await wait_all_tasks_blocked()
        await expire(mock_clock, 1)
        assert (await client.response(large)).reset == CODES.CANCEL
        assert (await client.ask()).body == bytes(10)


async def test_a_connection_whose_window_stays_closed_is_ended(peers: Peers, mock_clock: MockClock) -> None:
    async with peers.serving(application(pour), write_timeout_s=20) as (wired, connect):
        client = await connect(window_bytes=1 << 20, reads=False)
        numbers = [client.begin() for _ in range(3)]
        await client.flush()
        while sum(len(client.responses[number].body) for number in numbers) < 65_535:
            await client.receive()
        await expire(mock_clock, 10)
        assert wired.engine.connections == 1
        await expire(mock_clock, 10)
        await client.rest()
        assert wired.engine.timed_out == 1
        await wired.deserted()


async def test_a_slow_reader_is_served(peers: Peers, mock_clock: MockClock) -> None:
    """A window that opens by a step within the write time-out."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, bytes(1 << 20))

    async with peers.serving(application(app), write_timeout_s=20) as (_, connect):
        client = await connect(window_bytes=65_535, reads=False)
        number = client.begin()
        await client.flush()
        taken = 0
        while not client.responses[number].over:
            while len(client.responses[number].body) < min(taken + 65_535, 1 << 20):
                assert await client.receive()
            if client.responses[number].over:
                break
            await wait_all_tasks_blocked()
            mock_clock.jump(15)
            await wait_all_tasks_blocked()
            client.h2.acknowledge_received_data(len(client.responses[number].body) - taken, number)
            taken = len(client.responses[number].body)
            await client.flush()
            await client.receive()
        assert len(client.responses[number].body) == 1 << 20


async def test_answers_behind_a_closed_window_are_bounded(peers: Peers) -> None:
    """Requests wait before they begin: what is not made needs no memory."""
    begun = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal begun
        begun += 1
        await reply(send, bytes(1000))

    async with peers.serving(application(app), http2_answers_max=8) as (_, connect):
        client = await connect(window_bytes=0)
        numbers = [client.begin() for _ in range(100)]
        await client.flush()
        await client.head(numbers[7])
        await wait_all_tasks_blocked()
        assert begun == 8
        client.h2.update_settings({4: 100_000})
        for number in numbers:
            assert (await client.response(number)).body == bytes(1000)
        assert begun == 100


async def test_open_streams_do_not_keep_other_requests_waiting(peers: Peers) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/stream":
            await reply(send, b"begin", more=True)
            await until_disconnect(receive)
        else:
            await echo(scope, receive, send)

    async with peers.serving(application(app), http2_answers_max=2) as (_, connect):
        client = await connect()
        for _ in range(20):
            await client.head(client.begin("GET", "/stream"))
        assert (await client.ask()).status == 200


# Idling, and the end.


async def test_connections_end_that_only_idle(peers: Peers, mock_clock: MockClock) -> None:
    async with peers.serving(head_timeout_s=10, connection_idle_s=75) as (wired, connect):
        silent = await connect()  # not even a preface
        preface = await connect()
        await preface.flush()
        while not preface.settled:
            assert await preface.receive()
        answered = await connect()
        await answered.ask()
        await expire(mock_clock, 10)
        assert wired.engine.connections == 2
        for client in (preface, answered):
            client.h2.ping(b"12345678")  # shows that the client lives, not that it needs the connection
            await client.flush()
        await expire(mock_clock, 65)
        await wired.deserted()
        for client in (preface, answered):
            await client.rest()
            assert client.goaway == CODES.NO_ERROR
        assert await silent.stream.receive_some(1000) is not None


async def test_an_open_stream_is_not_idle(peers: Peers, mock_clock: MockClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"begin", more=True)
        await until_disconnect(receive)

    async with peers.serving(application(app), connection_idle_s=75) as (wired, connect):
        client = await connect()
        number = client.begin()
        await client.head(number)
        await expire(mock_clock, 1000)
        assert wired.engine.connections == 1
        client.h2.reset_stream(number, CODES.CANCEL)
        await client.flush()
        await expire(mock_clock, 75)
        await wired.deserted()


async def test_a_client_that_never_reads_is_closed(peers: Peers, mock_clock: MockClock) -> None:
    async with peers.serving(application(pour), write_timeout_s=20) as (wired, connect):
        client = await connect(window_bytes=(1 << 31) - 1)
        client.h2.increment_flow_control_window((1 << 31) - 1 - 65_535)
        client.begin()
        await client.flush()
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 1
        await expire(mock_clock, 20)
        await wired.deserted()


async def test_connections_are_bounded_and_idle_ones_do_not_hold_up_a_drain(peers: Peers) -> None:
    """With a grace of an hour: nothing here uses it."""
    async with peers.serving(connections_max=2, drain_s=3600) as (wired, connect):
        client, other = await connect(), await connect()
        posts = [(peer, peer.begin("POST", end=False)) for peer in (client, other)]
        for peer, _ in posts:
            await peer.flush()
        await wait_all_tasks_blocked()
        third = await wired.connect()
        with trio.fail_after(PATIENCE_S):
            await third.rest()
        assert wired.engine.refused == 1
        for peer, number in posts:
            peer.h2.end_stream(number)
            await peer.response(number)
        fourth = await connect()  # one of the others is idle, so it gives way
        await fourth.ask()
        assert wired.engine.places.displaced == 1
        await client.rest()
        assert client.goaway == CODES.NO_ERROR
        await wired.stop()
        await fourth.rest()
        assert fourth.goaway == CODES.NO_ERROR


async def test_a_drain_answers_what_is_open_and_refuses_the_rest(peers: Peers) -> None:
    release = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"begin", more=True)
        await release.wait()
        await send(part(b" end"))

    async with peers.serving(application(app), drain_s=3600) as (wired, connect):
        client = await connect()
        number = client.begin()
        await client.head(number)
        late = client.begin()
        wired.drain()
        await wait_all_tasks_blocked()
        await client.flush()
        await wait_all_tasks_blocked()
        assert not wired.stopped.is_set()
        release.set()
        with trio.fail_after(PATIENCE_S):
            await wired.stopped.wait()
        client.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
        received = b""
        while data := bytes(await client.stream.receive_some(65_536)):
            received += data
        assert b" end" in received
        assert late not in client.h2.streams or not client.responses[late].heads


class _Busy:
    """A connection on which the rest of a body arrives while the window for more of it is opened."""

    def __init__(self) -> None:
        self.exchange = Http2Exchange(self, 1, 1.0)

    def acknowledge(self, stream_id: int, size: int) -> None:
        pass

    def answer_sent(self, exchange: Http2Exchange) -> None:
        pass

    async def send_head(self, exchange: Http2Exchange, head: Headers, *, end: bool) -> None:
        pass

    async def send_body(self, exchange: Http2Exchange, body: bytes, *, end: bool) -> None:
        pass

    async def flush(self) -> None:
        if not self.exchange.complete:
            self.exchange.take(b"and the rest", 12)
            self.exchange.end()


async def test_a_body_is_whole_if_its_end_comes_while_the_window_is_opened() -> None:
    exchange = _Busy().exchange
    exchange.take(b"the beginning ", 14)
    first = await exchange.receive()
    assert (first["body"], first["more_body"]) == (b"the beginning ", True)
    last = await exchange.receive()
    assert (last["body"], last["more_body"]) == (b"and the rest", False)
