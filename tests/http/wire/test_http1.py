"""HTTP/1.1 on the wire: what a request is, what an answer looks like, and where each of them ends.

The module is long because the protocol has many cases, and each is a short test.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from tests.http.raw_wire import (
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

pytestmark = pytest.mark.usefixtures("silent", "both_transports")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def post(body: bytes, *fields: bytes, path: bytes = b"/a") -> bytes:
    lines = b"".join(field + b"\r\n" for field in fields)
    return b"POST %b HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n%b" % (path, lines, len(body), body)


@pytest.fixture
async def wired() -> AsyncIterator[Wired]:
    async with serving(application(echo)) as running:
        yield running


@pytest.fixture(params=["fast", "stock"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[Wired]:
    async with serving(application(echo), request.param) as running:
        yield running


# Requests.


async def test_what_was_sent_is_what_the_application_sees(either: Wired) -> None:
    answer = await either.ask(
        b"PATCH /a%20b/c?d=e%20f&g HTTP/1.1\r\nHost: x:8080\r\nX-Twice: 1\r\nx-twice:  2 \r\nX-Empty:\r\n"
        b"Content-Length: 3\r\n\r\n\x00\xffz"
    )
    assert answer.status == 200
    assert answer.json() == {
        "method": "PATCH",
        "version": "1.1",
        "path": "/a b/c",
        "query": "d=e%20f&g",
        "headers": [
            ["host", "x:8080"],
            ["x-twice", "1"],
            ["x-twice", "2"],
            ["x-empty", ""],
            ["content-length", "3"],
        ],
        "body": "\x00\xffz",
    }


SPLITS = {
    "length": (post(b"hello"), "hello"),
    "chunked": (CHUNKED + b"1\r\nh\r\n3;x=y\r\nell\r\n01\r\no\r\n0\r\nX-Trailer: t\r\n\r\n", "hello"),
    "empty value": (b"GET /a HTTP/1.1\r\nHost:x\r\nX-A:\r\nContent-Length: 1\r\n\r\nz", "z"),
    "ignored upgrade": (post(b"hello", b"Connection: Upgrade", b"Upgrade: h2c"), "hello"),
}


@pytest.mark.parametrize("name", SPLITS)
async def test_a_request_is_the_same_however_it_is_split(wired: Wired, name: str) -> None:
    """Byte by byte, and in two pieces at every place; each on a connection that goes on afterwards."""
    request, body = SPLITS[name]
    peer = await wired.connect()
    whole = await peer.exchange(request)
    assert whole.json()["body"] == body
    splits = [[request[i : i + 1] for i in range(len(request))]]
    splits += [[request[:i], request[i:]] for i in range(1, len(request))]
    for pieces in splits:
        for piece in pieces:
            await peer.send(piece)
            # Let the server take this piece by itself.
            await trio.testing.wait_all_tasks_blocked()
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == whole.body


async def test_pipelined_requests_are_answered_in_their_order(either: Wired) -> None:
    peer = await either.connect()
    names = [b"/%d" % n for n in range(20)]
    await peer.send(b"".join(post(name, path=name) for name in names))
    for name in names:
        answer = await peer.answer()
        assert answer is not None
        assert answer.json()["body"] == name.decode()


async def test_more_requests_at_once_than_the_bound_are_refused_after_those_before_them() -> None:
    async with serving(application(echo), limits={"pipelined_requests_max": 3}) as wired:
        peer = await wired.connect()
        await peer.send(GET * 5)
        answers = [await peer.answer() for _ in range(4)]
        assert [answer.status for answer in answers if answer] == [200, 200, 200, 429]
        assert answers[3] is not None
        assert answers[3].error() == (429, "TooManyRequests")
        assert answers[3].header(b"retry-after") == b"1"
        assert await peer.answer() is None


async def test_what_is_sent_behind_a_waiting_call_stays_within_a_bound() -> None:
    """A part is taken off the socket and parsed later, in its order; the rest is the client's to keep."""
    gate = trio.Event()
    seen: list[str] = []

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["path"])
        if scope["path"] == "/wait":
            async with trio.open_nursery() as nursery:
                # As Quart does: one task listens for the client while the other works.
                nursery.start_soon(until_disconnect, receive)
                await gate.wait()
                nursery.cancel_scope.cancel()
        await reply(send, b"")

    async with serving(application(http)) as wired, trio.open_nursery() as nursery:
        peer = await wired.connect()
        await peer.send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        await trio.testing.wait_all_tasks_blocked()
        sent: list[int] = []

        async def flood() -> None:
            sent.append(await peer.send_until_refused(GET * 1000, 1000))

        nursery.start_soon(flood)
        await trio.testing.wait_all_tasks_blocked()
        assert (seen, sent) == (["/wait"], [])
        gate.set()
        statuses = [answer.status for _ in range(102) if (answer := await peer.answer())]
        assert statuses == [200] * 101 + [429]
        nursery.cancel_scope.cancel()


# Where a body ends.


async def test_a_body_comes_in_pieces_with_backpressure() -> None:
    """Nothing is read ahead of the application: what it does not ask for stays with the client."""
    taken: list[int] = []
    gate = trio.Event()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        taken.append(len(message["body"]))
        await gate.wait()
        while message["more_body"]:
            message = await receive()
            taken.append(len(message["body"]))
        await reply(send, b"%d" % sum(taken))

    size = 8 << 20
    async with serving(application(http)) as wired, trio.open_nursery() as nursery:
        peer = await wired.connect()
        head = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
        nursery.start_soon(peer.send, head, bytes(size))
        await trio.testing.wait_all_tasks_blocked()
        assert len(taken) == 1
        gate.set()
        answer = await peer.answer()
        assert answer is not None
        assert (answer.status, answer.body) == (200, b"%d" % size)
        assert max(taken) <= 65_536


async def test_a_call_that_does_not_read_its_body_ends_the_connection() -> None:
    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"no")

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        answer = await peer.exchange(post(b"x" * 100)[:-50])
        assert answer.header(b"connection") == b"close"
        await peer.send(b"x" * 50 + GET)
        assert await peer.rest() == b""


@pytest.mark.parametrize("ending", ["half_close", "reset"])
async def test_a_client_that_leaves_inside_a_body_is_told_of_as_gone(ending: str) -> None:
    ended: list[Any] = []

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        ended.append(await whole_body(receive))

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        await peer.send(post(b"hello")[:-2])
        await trio.testing.wait_all_tasks_blocked()
        await getattr(peer, ending)()
        await wired.deserted()
        assert ended == [None]


@pytest.mark.parametrize(
    "body",
    [
        b"ZZ\r\n",
        b"5\r\nhelloX",
        b"5\r\nhello\r\nG\r\n",
        b"0\r\nbad trailer\r\n\r\n",
        b"ffffffffffffffffff\r\n",
    ],
)
@pytest.mark.parametrize("together", [True, False])
async def test_a_body_that_is_none_is_refused_at_once(body: bytes, together: bool) -> None:
    async with serving(application(echo)) as wired:
        peer = await wired.connect()
        await peer.send(CHUNKED + body if together else CHUNKED)
        if not together:
            await trio.testing.wait_all_tasks_blocked()
            await peer.send(body)
        answer = await peer.answer()
        assert answer is not None
        assert answer.error() == (400, "Validation")
        assert answer.header(b"connection") == b"close"
        assert await peer.rest() == b""


async def test_garbage_behind_a_good_request_does_not_spoil_its_answer(wired: Wired) -> None:
    """The first request is complete: it is answered, and only then is the rest refused."""
    for split in (len(post(b"hello")) - 2, len(post(b"hello")), 1):
        peer = await wired.connect()
        everything = post(b"hello") + b"\x00GARBAGE\r\n\r\n"
        await peer.send(everything[:split])
        await trio.testing.wait_all_tasks_blocked()
        first = await peer.exchange(everything[split:])
        assert first.json()["body"] == "hello"
        second = await peer.answer()
        assert second is not None
        assert second.status in (400, 501)
        assert await peer.answer() is None


async def test_an_endless_trailer_or_chunk_extension_is_cut_off(wired: Wired) -> None:
    for beginning in (b"0\r\nX-Trailer: ", b"5;extension=", b"5;a=b\r\nhello\r\n0\r\nA: b\r\nX"):
        peer = await wired.connect()
        await peer.send(CHUNKED + beginning)
        sent = await peer.send_until_refused(b"a" * 16_384, 2000)
        assert sent < 30 << 20
        await peer.close()
        await wired.deserted()


async def test_one_byte_a_chunk_is_allowed_and_a_kilobyte_of_framing_for_it_is_not(wired: Wired) -> None:
    answer = await wired.ask(CHUNKED + b"1\r\na\r\n" * 50_000 + b"0\r\n\r\n")
    assert len(answer.json()["body"]) == 50_000
    peer = await wired.connect()
    wasteful = b"1;%b\r\na\r\n" % (b"x" * 1000)
    await peer.send(CHUNKED)
    assert await peer.send_until_refused(wasteful * 100, 400) < 30 << 20
    await peer.close()


# Expect, methods, versions.


async def test_a_client_that_asks_first_is_told_to_go_on_when_its_body_is_wanted(either: Wired) -> None:
    peer = await either.connect()
    head, body = post(b"hello", b"Expect: 100-Continue ")[:-5], b"hello"
    await peer.send(head)
    assert (await peer.head() or b"").startswith(b"HTTP/1.1 100 ")
    answer = await peer.exchange(body)
    assert answer.json()["body"] == "hello"
    # The connection goes on.
    assert (await peer.exchange(GET)).status == 200


async def test_a_client_that_asks_first_and_is_refused_does_not_send() -> None:
    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"no", 403)

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        answer = await peer.exchange(post(b"hello", b"Expect: 100-continue")[:-5])
        assert answer.head.startswith(b"HTTP/1.1 403 ")
        assert answer.header(b"connection") == b"close"


async def test_a_client_that_is_being_answered_is_not_told_to_go_on() -> None:
    """In the middle of an answer it would be a part of it."""

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"early ", more=True)
        body = await whole_body(receive)
        await send({"type": "http.response.body", "body": body or b""})

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        await peer.send(post(b"hello", b"Expect: 100-continue")[:-5])
        await trio.testing.wait_all_tasks_blocked()
        answer = await peer.exchange(b"hello")
        assert answer.body == b"early hello"


async def test_who_asks_first_and_sends_at_once_needs_no_interim_answer(wired: Wired) -> None:
    peer = await wired.connect()
    await peer.send(post(b"hello", b"Expect: 100-continue"))
    assert (await peer.head() or b"").startswith(b"HTTP/1.1 200 ")


async def test_an_old_client_is_never_sent_an_interim_answer(wired: Wired) -> None:
    peer = await wired.connect()
    await peer.send(post(b"hello", b"Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")[:-5])
    await trio.testing.wait_all_tasks_blocked()
    await peer.send(b"hello")
    assert (await peer.head() or b"").startswith(b"HTTP/1.1 200 ")


async def test_other_expectations_are_refused(wired: Wired) -> None:
    answer = await wired.ask(post(b"", b"Expect: a-miracle"))
    assert answer.error() == (417, "ExpectationFailed")


async def test_an_old_client_gets_one_answer_and_the_end(either: Wired) -> None:
    peer = await either.connect()
    answer = await peer.exchange(b"GET /a HTTP/1.0\r\n\r\n")
    assert answer.json()["version"] == "1.0"
    assert await peer.rest() == b""


async def test_an_old_client_may_keep_its_connection(wired: Wired) -> None:
    peer = await wired.connect()
    for _ in range(3):
        answer = await peer.exchange(b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert answer.header(b"connection") == b"keep-alive"


async def test_connection_close_is_kept(either: Wired) -> None:
    peer = await either.connect()
    answer = await peer.exchange(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + GET)
    assert answer.header(b"connection") == b"close"
    assert await peer.rest() == b""


@pytest.mark.parametrize(
    ("target", "path", "query", "host"),
    [
        (b"http://y/b?c", "/b", "c", "y"),
        (b"HTTP://y:8080", "/", "", "y:8080"),
        (b"https://y?c=/d", "/", "c=/d", "y"),
        (b"http://[::1]:80/", "/", "", "[::1]:80"),
    ],
)
async def test_the_absolute_form_says_path_and_host(
    wired: Wired, target: bytes, path: str, query: str, host: str
) -> None:
    answer = await wired.ask(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % target)
    seen = answer.json()
    assert (seen["path"], seen["query"], seen["headers"]) == (path, query, [["host", host]])


async def test_options_may_be_about_the_server(either: Wired) -> None:
    assert (await either.ask(b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")).json()["path"] == "*"


async def test_an_ignored_upgrade_does_not_turn_a_body_into_a_request(either: Wired) -> None:
    """llhttp stops before the body of a request that asks for another protocol; it is a body all the same."""
    hidden = GET.replace(b"/a", b"/hidden")
    peer = await either.connect()
    fields = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
    answer = await peer.exchange(post(hidden, *fields) + GET)
    assert answer.json()["body"] == hidden.decode()
    second = await peer.answer()
    assert second is not None
    assert second.json()["path"] == "/a"
    await peer.close()


async def test_many_ignored_upgrades_in_one_piece(wired: Wired) -> None:
    peer = await wired.connect()
    one = post(b"hello", b"Connection: upgrade", b"Upgrade: something") + GET
    await peer.send(one * 40)
    bodies = [json.loads(answer.body)["body"] for _ in range(80) if (answer := await peer.answer())]
    assert bodies == ["hello", ""] * 40
