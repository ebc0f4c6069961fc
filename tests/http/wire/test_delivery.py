"""Answers that leave by themselves: the connection's task waits for the next request meanwhile.

The application here takes each whole request through `begin`, and the test delivers the answers when it likes,
as the committer does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.raw_wire import (
    Fast,
    Peer,
    Receive,
    Scope,
    Send,
    Wired,
    application,
    echo,
    reply,
    serving,
    until_disconnect,
    whole_body,
)
from tests.http.wire.byte_sessions import passes
from tests.patience import PATIENCE_S
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import Respond

pytestmark = pytest.mark.usefixtures("both_transports")

GET = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
TEXT = [(b"content-type", b"text/plain")]
LARGE = b"x" * (8 << 20)


class Later(Fast):
    """An application whose answers wait until the test delivers them; `/asgi` goes the ordinary way."""

    def __init__(self) -> None:
        super().__init__(echo)
        self.begun: list[tuple[bytes, Respond]] = []
        self._arrived = trio.Event()

    def begin(self, exchange: Exchange, respond: Respond, again: Callable[[], None] | None) -> bool:
        if exchange.target == b"/asgi":
            return False
        if exchange.target in (b"/now", b"/large"):
            respond(200, TEXT, b"at once" if exchange.target == b"/now" else LARGE)
            return True
        if exchange.target == b"/fails":
            raise RuntimeError("a bug")
        self.begun.append((exchange.target + exchange.whole_body(), respond))
        self._arrived.set()
        return True

    async def next(self) -> tuple[bytes, Respond]:
        """The next request that was taken."""
        with trio.fail_after(PATIENCE_S):
            while not self.begun:
                self._arrived = trio.Event()
                await self._arrived.wait()
        return self.begun.pop(0)


@asynccontextmanager
async def later(**settings: Any) -> AsyncIterator[tuple[Wired, Later, Peer]]:
    app = Later()
    async with serving(app, fast_path=app, **settings) as wired:
        yield wired, app, await wired.connect()


async def test_answers_leave_when_they_are_delivered() -> None:
    async with later() as (_, app, peer):
        for number in range(3):
            await peer.send(GET % number)
            target, done = await app.next()
            assert target == b"/%d" % number
            done(201, TEXT, b"done %d" % number)
            answer = await peer.answer()
            assert answer is not None
            assert (answer.status, answer.body) == (201, b"done %d" % number)
            assert answer.header(b"content-type") == b"text/plain"
            assert answer.header(b"content-length") == b"6"


async def test_a_body_in_pieces_is_whole() -> None:
    async with later() as (_, app, peer):
        await peer.send(
            b"POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"
        )
        target, done = await app.next()
        assert target == b"/pabcd"
        done(200, TEXT, b"")
        assert (await peer.answer()) is not None


async def test_the_next_request_waits_for_the_answer_before_it() -> None:
    async with later() as (_, app, peer):
        await peer.send(GET % 1 + GET % 2 + b"GET /asgi HTTP/1.1\r\nHost: x\r\n\r\n" + GET % 3)
        for number in (1, 2):
            target, done = await app.next()
            await wait_all_tasks_blocked()
            assert app.begun == []
            assert target == b"/%d" % number
            done(200, TEXT, target)
            answer = await peer.answer()
            assert answer is not None
            assert answer.body == target
        answer = await peer.answer()
        assert answer is not None
        assert answer.json()["path"] == "/asgi"
        (await app.next())[1](200, TEXT, b"last")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"last"


async def test_a_request_that_comes_while_the_answer_waits_is_answered_after_it() -> None:
    async with later() as (_, app, peer):
        await peer.send(GET % 1)
        _, first = await app.next()
        await peer.send(GET % 2)
        await wait_all_tasks_blocked()
        assert app.begun == []
        first(200, TEXT, b"1")
        _, second = await app.next()
        second(200, TEXT, b"2")
        bodies = [(await peer.answer()).body for _ in range(2)]  # type: ignore[union-attr]
        assert bodies == [b"1", b"2"]


class Listening(Later):
    """The same, but `/asgi` listens for its client while it waits to be released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = trio.Event()
        self.listens = True
        self._app = application(self._http)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        await whole_body(receive)
        async with trio.open_nursery() as nursery:
            if self.listens:
                nursery.start_soon(until_disconnect, receive)
            await self.released.wait()
            await reply(send, b"asgi")


async def test_requests_are_answered_in_order_however_they_were_read() -> None:
    """One after the other: awaited, parsed ahead, received behind an awaited one, and unread in the socket."""
    app = Listening()
    async with serving(app, fast_path=app) as wired:
        peer = await wired.connect()
        await peer.send(b"GET /asgi HTTP/1.1\r\nHost: x\r\n\r\n" + GET % 1)
        await wait_all_tasks_blocked()
        await peer.send(GET % 2)
        await wait_all_tasks_blocked()
        app.released.set()
        answers = [await peer.answer()]
        for number in (1, 2, 3):
            target, done = await app.next()
            if number == 1:
                await peer.send(GET % 3)
                await wait_all_tasks_blocked()
            assert (target, app.begun) == (b"/%d" % number, [])
            done(200, TEXT, target)
            answers.append(await peer.answer())
        assert [answer and answer.body for answer in answers] == [b"asgi", b"/1", b"/2", b"/3"]


@pytest.mark.parametrize("target", [b"/now", b"/large", b"/fails"])
async def test_a_request_that_waits_in_the_socket_behind_an_awaited_one_is_served(
    target: bytes, log: list[dict[str, Any]]
) -> None:
    """The task of the connection reads it itself: nobody else is there to wake that when something is left to do."""
    app = Listening()
    app.listens = False
    async with serving(app, fast_path=app) as wired:
        peer = await wired.connect(receive_buffer_bytes=4096)
        await peer.send(b"GET /asgi HTTP/1.1\r\nHost: x\r\n\r\n")
        await wait_all_tasks_blocked()
        await peer.send(GET.replace(b"/%d", target))
        await wait_all_tasks_blocked()
        app.released.set()
        bodies = [answer and answer.body for answer in (await peer.answer(), await peer.answer())]
        assert bodies == [b"asgi", {b"/now": b"at once", b"/large": LARGE, b"/fails": None}[target]]
    assert [entry["event"] for entry in log] == ["request failed"] * (target == b"/fails")


async def test_a_fast_path_that_fails_ends_its_connection_only(log: list[dict[str, Any]]) -> None:
    async with later() as (wired, _, other):
        for before in (b"", b"GET /now HTTP/1.1\r\nHost: x\r\n\r\n"):  # begun by the task, and by a callback
            peer = await wired.connect()
            if before:
                await peer.exchange(before)
            await peer.send(b"GET /fails HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await peer.answer() is None
        assert [entry["event"] for entry in log] == ["request failed"] * 2
        log.clear()
        assert (await other.exchange(b"GET /now HTTP/1.1\r\nHost: x\r\n\r\n")).body == b"at once"


async def test_what_is_malformed_behind_it_is_refused_after_the_answer() -> None:
    async with later() as (_, app, peer):
        await peer.send(GET % 1 + b"nonsense\r\n\r\n")
        _, done = await app.next()
        await wait_all_tasks_blocked()
        done(200, TEXT, b"1")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"1"
        refused = await peer.answer()
        assert refused is not None
        assert refused.status in (400, 501)
        assert await peer.answer() is None


async def test_answers_at_once_to_many_requests_at_once() -> None:
    async with later() as (_, _, peer):
        await peer.send(b"GET /now HTTP/1.1\r\nHost: x\r\n\r\n" * 5)
        for _ in range(5):
            answer = await peer.answer()
            assert answer is not None
            assert answer.body == b"at once"


async def test_who_closes_only_the_sending_half_gets_the_answer() -> None:
    async with later() as (wired, app, peer):
        await peer.send(GET % 1)
        await peer.half_close()
        _, done = await app.next()
        await wait_all_tasks_blocked()
        done(200, TEXT, b"late")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"late"
        assert await peer.answer() is None
        await wired.deserted()


@pytest.mark.parametrize("fields", [b"Connection: close\r\n", b""], ids=["asked for", "HTTP/1.0"])
async def test_a_connection_that_ends_with_its_answer_goes_the_ordinary_way(fields: bytes) -> None:
    async with later() as (_, app, peer):
        version = b"1.1" if fields else b"1.0"
        await peer.send(b"GET /1 HTTP/" + version + b"\r\nHost: x\r\n" + fields + b"\r\n")
        answer = await peer.answer()
        assert answer is not None
        assert answer.json()["path"] == "/1"
        assert app.begun == []
        assert await peer.answer() is None


async def test_a_client_that_has_left_is_not_answered_and_hurts_nobody() -> None:
    async with later() as (wired, app, peer):
        await peer.send(GET % 1)
        _, done = await app.next()
        await peer.reset()
        await wait_all_tasks_blocked()
        done(200, TEXT, b"nobody hears this")
        await wired.deserted()
        other = await wired.connect()
        await other.send(GET % 2)
        (await app.next())[1](200, TEXT, b"heard")
        answer = await other.answer()
        assert answer is not None
        assert answer.body == b"heard"


async def test_an_answer_that_the_socket_does_not_take_at_once_comes_whole() -> None:
    """And the request behind it waits until the last byte of it has left."""
    async with later() as (wired, app, _):
        peer = await wired.connect(receive_buffer_bytes=4096)
        for behind in (b"", GET % 2):
            await peer.send(GET % 1 + behind)
            _, done = await app.next()
            await wait_all_tasks_blocked()
            done(200, TEXT, LARGE)
            await wait_all_tasks_blocked()
            assert app.begun == []
            answer = await peer.answer()
            assert answer is not None
            assert answer.body == LARGE
        (await app.next())[1](200, TEXT, b"behind")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"behind"


async def test_who_does_not_read_is_given_up(mock_clock: MockClock) -> None:
    async with later(limits={"write_timeout_s": 30}) as (wired, app, first):
        await first.close()
        peer = await wired.connect(receive_buffer_bytes=4096)
        await peer.send(GET % 1)
        _, done = await app.next()
        done(200, TEXT, LARGE)
        await passes(mock_clock, 30)
        await wired.deserted()
        assert wired.engine.timed_out == 1


async def test_an_answer_that_takes_long_is_no_idle_connection(mock_clock: MockClock) -> None:
    async with later(limits={"connection_idle_s": 10, "head_timeout_s": 5}) as (wired, app, peer):
        await peer.send(GET % 1)
        _, done = await app.next()
        for _ in range(4):
            await passes(mock_clock, 10)
        done(200, TEXT, b"slow")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"slow"
        await passes(mock_clock, 10)
        await wired.deserted()
        assert await peer.answer() is None, "idle since its answer, and its time was over"


async def test_half_a_head_behind_an_answer_has_the_time_of_a_head(mock_clock: MockClock) -> None:
    async with later(limits={"connection_idle_s": 1000, "head_timeout_s": 5}) as (wired, app, peer):
        await peer.send(GET % 1 + b"GET /2 HT")
        _, done = await app.next()
        await wait_all_tasks_blocked()
        done(200, TEXT, b"1")
        assert await peer.answer() is not None
        await passes(mock_clock, 5)
        refused = await peer.answer()
        assert refused is not None
        assert refused.error() == (408, "RequestTimeout")
        await wired.deserted()


async def test_a_drain_waits_for_the_answer_and_ends_the_connection_with_it() -> None:
    async with later() as (wired, app, peer):
        await peer.send(GET % 1)
        _, done = await app.next()
        wired.drain()
        await wait_all_tasks_blocked()
        assert not wired.stopped.is_set()
        done(200, TEXT, b"before the end")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"before the end"
        assert answer.header(b"connection") == b"close"
        assert await peer.answer() is None
        await peer.close()
        await wired.stop()


async def test_a_drain_reads_what_came_behind_the_last_answer_so_that_nothing_is_reset() -> None:
    async with later() as (wired, app, peer):
        await peer.send(GET % 1)
        _, done = await app.next()
        wired.drain()
        await peer.send(GET % 2 + GET % 3)
        await wait_all_tasks_blocked()
        done(200, TEXT, b"the last")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"the last"
        await wait_all_tasks_blocked()
        assert await peer.stream.receive_some(10) == b"", "an end, not a reset"
        await peer.close()
        await wired.stop()


async def test_an_answer_after_the_grace_of_a_drain_is_nobodys(mock_clock: MockClock) -> None:
    async with later(limits={"drain_s": 5}) as (wired, app, peer):
        await peer.send(GET % 1)
        _, done = await app.next()
        wired.drain()
        await wait_all_tasks_blocked()
        mock_clock.jump(5)
        await wired.stop()
        done(200, TEXT, b"too late")
        assert await peer.answer() is None


async def test_an_answer_that_can_not_be_framed_ends_its_connection_only(log: list[dict[str, Any]]) -> None:
    async with later() as (wired, app, peer):
        await peer.send(GET % 1)
        (await app.next())[1](200, [(b"x-bad", b"a\r\nb: c")], b"")
        assert await peer.answer() is None
        assert [entry["event"] for entry in log] == ["request failed"]
        other = await wired.connect()
        await other.send(GET % 2)
        (await app.next())[1](200, TEXT, b"fine")
        assert await other.answer() is not None
