"""Heads that come again: looked up instead of parsed, and never taken for anything that they are not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from trio.testing import wait_all_tasks_blocked

from tests.http.both_paths import FAST_ROUTES, GOOD_BODIES, Twin, both_paths, comparable, request
from tests.http.raw_wire import Fast, Peer, Wired, echo, serving
from tests.http.wire.test_fuzz import streams
from trunkline.actors.core.records.messages import DeleteRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.http.wire.exchange import Connection, Exchange
from trunkline.http.wire.fast_path import Respond
from trunkline.http.wire.request_heads import HEAD_BYTES_MAX, RequestHeads
from trunkline.http.wire.request_parser import Bounds, RequestParser

STATE = FAST_ROUTES["device.sendState"]
BODY = GOOD_BODIES[STATE.operation]
BOUNDS = Bounds(
    header_bytes_max=16_384,
    headers_length_max=64,
    pipelined_requests_max=16,
    head_timeout_s=1,
    body_timeout_s=1,
    write_timeout_s=1,
    idle_s=1,
    http2_streams_max=1,
    http2_answers_max=1,
)


# On the wire.


class Telling(Fast):
    """An application that takes each whole request, and says whether its head was looked up."""

    def __init__(self) -> None:
        super().__init__(echo)

    def begin(self, exchange: Exchange, respond: Respond, again: Callable[[], None] | None) -> bool:
        told = [(b"known", str(exchange.known is not None).encode())]
        respond(200, told, exchange.target + b" " + exchange.whole_body())
        return True


@asynccontextmanager
async def telling(**limits: Any) -> AsyncIterator[tuple[Wired, Peer]]:
    app = Telling()
    async with serving(app, fast_path=app, limits=limits) as wired:
        peer = await wired.connect()
        await peer.exchange(b"GET /first HTTP/1.1\r\nHost: x\r\n\r\n")
        yield wired, peer


async def ask(peer: Peer, *pieces: bytes) -> tuple[bool, bytes]:
    """Whether the head was known, and what was understood."""
    for piece in pieces[:-1]:
        await peer.send(piece)
        await wait_all_tasks_blocked()  # until the other side has read it
    answer = await peer.exchange(pieces[-1])
    return answer.header(b"known") == b"True", answer.body


def post(body: bytes, *fields: bytes, target: bytes = b"/a", version: bytes = b"1.1") -> bytes:
    lines = [b"POST %b HTTP/%b" % (target, version), b"Host: x", *fields, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def test_a_head_that_comes_again_is_looked_up_whatever_the_body() -> None:
    async with telling() as (wired, peer):
        assert await ask(peer, post(b"one")) == (False, b"/a one")
        assert await ask(peer, post(b"two")) == (True, b"/a two")
        assert await ask(peer, post(b"\r\n\r")) == (True, b"/a \r\n\r")
        assert await ask(peer, post(b"four")) == (False, b"/a four"), "another length is another head"
        assert await ask(peer, post(b"five")) == (True, b"/a five")
        other = await wired.connect()
        assert await ask(other, post(b"six")) == (True, b"/a six"), "connections share what they know"
        assert (len(wired.engine.heads), wired.engine.heads.found) == (2, 4)


@pytest.mark.parametrize(
    "pieces",
    [
        (post(b"one")[:-1], b"e"),
        (post(b"one")[:20], post(b"one")[20:]),
        (b"\r\n" + post(b"one"),),
        (post(b"one").replace(b"Host: x", b"host: x"),),
        (post(b"one").replace(b"Host: x", b"Host:  x"),),
        (post(b"one", b"Accept: *"),),
    ],
    ids=["its end later", "its head in two", "a line before", "a letter", "a space", "a field"],
)
async def test_what_is_not_the_same_bytes_at_once_is_parsed(pieces: tuple[bytes, ...]) -> None:
    async with telling() as (_, peer):
        await ask(peer, post(b"one"))
        known, body = await ask(peer, *pieces)
        assert not known
        assert b"one" in body
        assert await ask(peer, post(b"one")) == (True, b"/a one")


async def test_the_second_half_of_a_head_is_not_kept_as_a_head() -> None:
    data = post(b"one", b"Accept: *")
    async with telling() as (wired, peer):
        await ask(peer, post(b"one"))
        for half in (data[:20], data[20:]):
            await peer.send(half)
            await wait_all_tasks_blocked()
        assert (await peer.answer()) is not None
        before = len(wired.engine.heads)
        other = await wired.connect()
        await other.exchange(b"GET /first HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await other.exchange(data[20:])).status in (400, 501)
        assert len(wired.engine.heads) == before == 1


async def test_more_than_one_request_at_once_is_parsed() -> None:
    async with telling() as (_, peer):
        await ask(peer, post(b"one"))
        await peer.send(post(b"one") + post(b"two"))
        for body in (b"/a one", b"/a two"):
            answer = await peer.answer()
            assert answer is not None
            assert (answer.header(b"known"), answer.body) == (b"False", body)


@pytest.mark.parametrize(
    "data",
    [
        post(b"one", b"Upgrade: h2c", b"Connection: upgrade"),
        post(b"one", b"Padding: " + b"x" * HEAD_BYTES_MAX),
        b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n",
        post(b"one", b"Connection: keep-alive", version=b"1.0"),
        post(b"one", b"Expect: 100-continue"),
    ],
    ids=["an upgrade", "long", "chunked", "of 1.0", "an expectation"],
)
async def test_heads_that_are_not_plain_are_parsed_each_time(data: bytes) -> None:
    async with telling() as (_, peer):
        for _ in range(3):
            assert await ask(peer, data) == (False, b"/a one")


async def test_no_more_heads_are_kept_than_the_bound() -> None:
    async with telling(head_cache_length_max=2) as (_, peer):
        for target in (b"/1", b"/2", b"/3"):
            await ask(peer, post(b"x", target=target))
        known = [(await ask(peer, post(b"y", target=target)))[0] for target in (b"/3", b"/2")]
        assert known == [True, True]
        assert (await ask(peer, post(b"y", target=b"/1")))[0] is False


# Against the parser.


def understood(exchange: Exchange) -> tuple[Any, ...]:
    return (
        exchange.method,
        exchange.target,
        exchange.version,
        exchange.headers,
        exchange.whole_body(),
        exchange.complete,
        exchange.keep_alive,
        exchange.expects,
        exchange.upgrade,
    )


CONNECTION = cast("Connection", None)
"""Nothing is answered here."""

SHARED = RequestHeads(64)
"""Lives as long as the test, so that what comes in one example is known in the next."""


@given(pieces=streams())
@settings(max_examples=500)
def test_what_is_looked_up_is_what_would_be_parsed(pieces: list[bytes]) -> None:
    parsed, looked_up = (
        RequestParser(CONNECTION, BOUNDS, RequestHeads(0)),
        RequestParser(CONNECTION, BOUNDS, SHARED),
    )
    for piece in [piece for piece in pieces for _ in range(2)]:
        begins = looked_up.partial is None
        for parser in (parsed, looked_up):
            parser.feed(piece)
        assert str(parsed.failure) == str(looked_up.failure)
        assert [*map(understood, parsed.requests)] == [*map(understood, looked_up.requests)]
        assert (parsed.partial is None) == (looked_up.partial is None)
        if parsed.failure is not None:
            return
        if begins and len(looked_up.requests) == 1 and looked_up.partial is None:
            SHARED.keep(piece, looked_up.requests[0])
        if parsed.partial is None:
            parsed.requests.clear()
            looked_up.requests.clear()


def test_nothing_is_looked_up_behind_the_last_request() -> None:
    heads = RequestHeads(64)
    first = RequestParser(CONNECTION, BOUNDS, heads)
    first.feed(post(b"one"))
    heads.keep(post(b"one"), first.requests[0])
    last = RequestParser(CONNECTION, BOUNDS, heads)
    last.feed(post(b"one"))
    assert last.requests.popleft().known is not None
    last.feed(post(b"two", b"Connection: close"))
    last.requests.clear()
    last.feed(post(b"one"))
    assert not last.requests
    assert last.failure is not None


# What the application remembers beside them.


async def statuses(twin: Twin, peer: Peer, token: str, times: int = 3) -> list[int]:
    data = request(twin, STATE, BODY, token=token)
    return [(await peer.exchange(data, method="POST")).status for _ in range(times)]


async def test_what_ends_access_ends_it_for_a_head_that_is_known(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        brief, lasting = twin.token(ttl_s=60), twin.token()
        peer = await twin.wired.connect()
        assert await statuses(twin, peer, brief) == await statuses(twin, peer, lasting) == [200] * 3
        twin.house.clock.pass_s(60)
        assert await statuses(twin, peer, brief) == [401] * 3
        assert await statuses(twin, peer, lasting) == [200] * 3
        revoke = DeleteRecord(resource="applicationKey", record=twin.key, if_match=None)
        await twin.house.system.ask(Ref("application", ROOT, twin.house.application), revoke)
        assert await statuses(twin, peer, lasting) == [401] * 3


@pytest.mark.parametrize("query", ["", "?_links=false", "?nothing=1", "?limit=1"])
@pytest.mark.parametrize(
    ("operation", "body"),
    [
        *GOOD_BODIES.items(),
        ("device.getState", None),
        ("device.getCompositeState", None),
        (STATE.operation, b'{"data":{"a":"no number"}}'),
        (STATE.operation, b"{"),
        (STATE.operation, b""),
        (STATE.operation, b'[{"data":{"a":1}},{"data":{"a":2}}]'),
        ("dataTableRows.post", b'[{"a":1},{"a":2}]'),
        ("dataTableRows.post", b'{"b":1}'),
    ],
)
async def test_both_doors_answer_the_same_each_time(
    tmp_path: Path, operation: str, body: bytes | None, query: str
) -> None:
    async with both_paths(tmp_path / "data") as paths:
        answers: list[list[bytes]] = []
        for twin in paths:
            for _ in range(2):
                await twin.wired.ask(request(twin, STATE, b'{"time":-1,"data":{"a":1}}'), method="POST")
            peer, route = await twin.wired.connect(), FAST_ROUTES[operation]
            data = request(twin, route, body, query=query)
            got = [await peer.exchange(data, method=route.method) for _ in range(4)]
            answers.append([*map(comparable, got)])
        assert answers[0] == answers[1]
        assert len({answer.split(b" ")[1] for answer in answers[0]}) == 1


async def test_a_known_head_does_not_say_which_way_its_body_goes(tmp_path: Path) -> None:
    """Bodies of one length: a row, rows that wait for their lane, and what is refused."""
    bodies = [
        b'{"a":1,"label":"xyz"}',
        b'[{"a":1.25},{"a":22}]',
        b'{"a":1,"label":12345}',
        b'{"a":1,"label":"xyz"]',
    ]
    assert len({*map(len, bodies)}) == 1
    async with both_paths(tmp_path / "data") as paths:
        answers: list[list[bytes]] = []
        for twin in paths:
            peer, route = await twin.wired.connect(), FAST_ROUTES["dataTableRows.post"]
            got = [
                await peer.exchange(request(twin, route, body), method="POST")
                for body in bodies
                for _ in range(3)
            ]
            got += [await peer.exchange(request(twin, route, body), method="POST") for body in bodies]
            answers.append([*map(comparable, got)])
        assert answers[0] == answers[1]
        statuses = b" ".join(answer.split(b" ")[1] for answer in answers[0][::3])
        assert statuses == b"201 201 400 400 201 400"


async def test_a_server_that_stops_answers_a_known_head_and_ends(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        peer, data = await twin.wired.connect(), request(twin, STATE, BODY)
        for _ in range(3):
            assert (await peer.exchange(data, method="POST")).status == 200
        await peer.send(data)
        twin.wired.drain()
        answer = await peer.answer()
        assert answer is not None
        assert answer.status == 200
        assert await peer.answer() is None
