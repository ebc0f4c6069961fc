"""Mutated requests: whatever comes, the connection answers or ends, nothing is logged, and nobody else notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager

import pytest
import structlog
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from tests.http.raw_wire import (
    Fast,
    Receive,
    Scope,
    Send,
    Wired,
    application,
    reply,
    serving,
    until_disconnect,
    whole_body,
)
from tests.http.wire.test_smuggling import CASES
from tests.rounds import examples
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import Respond

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
BASES = sorted({case.data for case in CASES.values()})
PIECES = (
    b"\r\n", b"\n", b"\r", b"\x00", b" ", b"\t", b":", b",", b";", b"/", b"?", b"#", b"%00", b"0", b"-1", b"\xff",
    b"0\r\n\r\n", b"5\r\nhello\r\n", b"Host: x\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Connection: upgrade\r\n", b"Upgrade: h2c\r\n",
    b"Expect: 100-continue\r\n", b"HTTP/1.0", b"HTTP/1.1", b"GET ", b"POST ", b"PUT ", GET,
)  # fmt: skip


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """A few requests with some bytes changed, cut into the pieces in which they are sent."""
    data = b"".join(draw(st.lists(st.sampled_from(BASES), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.sampled_from((0, 0, 1, 2, 7, 40))))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4)))
        data = data[:at] + piece + data[end:]
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]


async def http(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body or not, listen for the client or not, answer at once or in pieces: by the method."""
    if scope["method"] == "PUT":
        await reply(send, b"unread")
        return
    if await whole_body(receive) is None:
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_disconnect, receive)
        await reply(send, b"beg", more=True)
        await send({"type": "http.response.body", "body": b"un"})
        nursery.cancel_scope.cancel()


class Taking(Fast):
    """The same, but whole requests other than PUT are taken by the fast path, half of them answered later."""

    def __init__(self) -> None:
        super().__init__(http)

    def begin(self, exchange: Exchange, respond: Respond, again: Callable[[], None] | None) -> bool:
        if exchange.method == "PUT":
            return False
        if exchange.whole_body():
            trio.lowlevel.current_trio_token().run_sync_soon(respond, 200, (), b"begun")
        else:
            respond(200, (), b"begun")
        return True


def served(*, fast: bool) -> AbstractAsyncContextManager[Wired]:
    """A server of these applications: with a fast path, or with an application that is always awaited."""
    if not fast:
        return serving(application(http))
    app = Taking()
    return serving(app, fast_path=app)


@pytest.fixture
def unlogged() -> Iterator[None]:
    with structlog.testing.capture_logs() as entries:
        yield
    assert entries == []


@given(pieces=streams(), fast=st.booleans())
@settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_any_bytes_are_answered_or_end_the_connection(
    unlogged: None, pieces: list[bytes], fast: bool
) -> None:
    # On the fast path what came before is known, so everything comes twice.
    pieces = pieces * 2 if fast else pieces
    async with served(fast=fast) as wired:
        other = await wired.connect()
        peer = await wired.connect()
        try:
            for piece in pieces:
                await peer.send(piece)
                await wait_all_tasks_blocked()
            await peer.half_close()
        except trio.BrokenResourceError:
            pass
        statuses = []
        while (answer := await peer.answer()) is not None:
            statuses.append(answer.status)
            if answer.status != 200:
                answer.error()
                assert answer.header(b"connection") == b"close"
        assert statuses[:-1].count(200) == len(statuses[:-1]), "nothing is answered behind a refusal"
        assert (await other.exchange(GET)).body == b"begun"
        await peer.close()
        await other.close()
        await wired.deserted()


@given(pieces=streams(), ending=st.sampled_from(["close", "reset"]), fast=st.booleans())
@settings(
    max_examples=examples(75),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_a_client_may_leave_at_any_moment(
    unlogged: None, pieces: list[bytes], ending: str, fast: bool
) -> None:
    pieces = pieces * 2 if fast else pieces
    async with served(fast=fast) as wired:
        peer = await wired.connect()
        try:
            for piece in pieces:
                await peer.send(piece)
        except trio.BrokenResourceError:
            pass
        await getattr(peer, ending)()
        await wired.deserted()
        assert (await wired.ask(GET)).body == b"begun"
