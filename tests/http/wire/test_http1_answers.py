"""Answers on the wire: their framing, streams with backpressure, and what an application must not send."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import structlog
import trio

from tests.http.raw_wire import (
    Handler,
    Receive,
    Scope,
    Send,
    application,
    echo,
    part,
    reply,
    serving,
    start,
    until_disconnect,
    whole_body,
)
from trunkline.http.hosting.logs import configure_logging
from trunkline.limits.settings import Settings

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
Sender = Callable[[Send], Awaitable[None]]


def sends(*messages: dict[str, Any]) -> Handler:
    """An application that sends these messages whatever it is asked."""

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        await whole_body(receive)
        for message in messages:
            await send(message)

    return application(http)


# Framing.


async def test_a_short_answer_is_one_send_with_all_that_it_needs(silent: object) -> None:
    app = sends(
        start(201, (b"content-type", b"text/plain"), (b"x-twice", b"1"), (b"x-twice", b"2")), part(b"yes")
    )
    async with serving(app) as wired:
        peer = await wired.connect()
        await peer.send(GET)
        data = await peer.stream.receive_some(65_536)
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 201 Created"
    assert lines[1:4] == [b"content-type: text/plain", b"x-twice: 1", b"x-twice: 2"]
    assert re.fullmatch(rb"x-request-id: [0-9a-f]{12}-[0-9a-f]+", lines[4])
    assert lines[5:-1] == [b"content-length: 3"]
    assert lines[-1].startswith(b"date: ")
    assert lines[-1].endswith(b" GMT")
    assert body == b"yes"


@pytest.mark.parametrize("engine", ["fast", "stock"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_an_answer_without_a_length_ends_in_its_own_way(
    silent: object, engine: str, version: bytes
) -> None:
    app = sends(start(), part(b"", more=True), part(b"abc", more=True), part(b"", more=True), part(b"def"))
    async with serving(app, engine) as wired:
        peer = await wired.connect()
        answer = await peer.exchange(GET.replace(b"1.1", version))
        assert answer.body == b"abcdef"
        chunked = answer.header(b"transfer-encoding") == b"chunked"
        assert chunked == (version == b"1.1")
        if chunked:
            assert (await peer.exchange(GET)).body == b"abcdef"


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_an_answer_with_a_length_in_pieces(silent: object, engine: str) -> None:
    app = sends(
        start(200, (b"content-length", b"6")), part(b"abc", more=True), part(b"def", more=True), part(b"")
    )
    async with serving(app, engine) as wired:
        peer = await wired.connect()
        for _ in range(2):
            answer = await peer.exchange(GET)
            assert (answer.header(b"content-length"), answer.body) == (b"6", b"abcdef")


@pytest.mark.parametrize("engine", ["fast", "stock"])
@pytest.mark.parametrize(
    ("messages", "length"),
    [
        ([start(), part(b"hello")], b"5"),
        ([start(200, (b"content-length", b"5")), part(b"hello")], b"5"),
        ([start(200, (b"content-length", b"5")), part(b"")], b"5"),
        ([start(), part(b"hel", more=True), part(b"lo")], None),
    ],
)
async def test_head_has_the_head_of_get_and_no_body(
    silent: object, engine: str, messages: list[dict[str, Any]], length: bytes | None
) -> None:
    async with serving(sends(*messages), engine) as wired:
        peer = await wired.connect()
        for _ in range(2):
            answer = await peer.exchange(GET.replace(b"GET", b"HEAD"), method="HEAD")
            assert answer.status == 200
            if engine == "fast":
                assert answer.header(b"content-length") == length


@pytest.mark.parametrize("engine", ["fast", "stock"])
@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_that_has_no_body_has_none(silent: object, engine: str, status: int) -> None:
    """Not even a length: a 204 must not have one, that of a 304 would be the length of another answer."""
    app = sends(start(status, (b"etag", b'"a"')), part(b""))
    async with serving(app, engine) as wired:
        peer = await wired.connect()
        for _ in range(2):
            answer = await peer.exchange(GET)
            assert (answer.status, answer.header(b"content-length")) == (status, None)


async def test_a_body_given_to_an_answer_that_has_none_is_left_out(silent: object) -> None:
    async with serving(sends(start(304, (b"content-length", b"5")), part(b"hello"))) as wired:
        peer = await wired.connect()
        for _ in range(2):
            assert (await peer.exchange(GET)).header(b"content-length") is None


async def test_an_application_may_ask_for_the_end_of_the_connection(silent: object) -> None:
    async with serving(sends(start(200, (b"connection", b"close")), part(b"bye"))) as wired:
        peer = await wired.connect()
        assert (await peer.exchange(GET)).header(b"connection") == b"close"
        assert await peer.rest() == b""


async def test_an_unusual_status_is_sent_as_it_is(silent: object) -> None:
    async with serving(sends(start(299), part(b"odd"))) as wired:
        answer = await wired.ask(GET)
        assert answer.head.startswith(b"HTTP/1.1 299 \r\n")


# What an application must not send.


@pytest.mark.parametrize(
    "header",
    [
        (b"x-a", b"1\r\nset-cookie: injected=1"),
        (b"x-a", b"1\nx-b: 2"),
        (b"x-a", b"1\rx-b: 2"),
        (b"x-a", b"1\x00"),
        (b"x-a\r\nx-b", b"2"),
        (b"x-a: 1\nx-b", b"2"),
        (b"x a", b"2"),
        (b"x-a:", b"2"),
        (b"", b"2"),
        (b"content-length", b"5\r\nx-b: 2"),
        (b"content-length", b"five"),
    ],
)
async def test_a_field_that_would_inject_another_one_is_refused(
    log: list[dict[str, Any]], header: tuple[bytes, bytes]
) -> None:
    """The client gets a plain 500 with nothing of the field, and the fault is logged."""
    async with serving(sends(start(200, header), part(b"x"))) as wired:
        answer = await wired.ask(GET)
        assert answer.error() == (500, "Internal")
        assert (answer.header(b"set-cookie"), answer.header(b"x-b")) == (None, None)
    assert [entry["event"] for entry in log] == ["request failed"]


@pytest.mark.parametrize(("length", "more"), [(b"4", False), (b"6", False), (b"4", True)])
async def test_a_length_that_is_not_true_is_refused(
    log: list[dict[str, Any]], length: bytes, more: bool
) -> None:
    async with serving(sends(start(200, (b"content-length", length)), part(b"hello", more=more))) as wired:
        assert (await wired.ask(GET)).error() == (500, "Internal")
    assert len(log) == 1


@pytest.mark.parametrize(
    "parts", [[part(b"abc", more=True), part(b"")], [part(b"abc", more=True), part(b"defg")]]
)
async def test_a_stream_whose_length_is_not_true_ends_the_connection(
    log: list[dict[str, Any]], parts: list[dict[str, Any]]
) -> None:
    """A client that keeps the connection would take the next answer for a part of this one."""
    async with serving(sends(start(200, (b"content-length", b"6")), *parts)) as wired:
        peer = await wired.connect()
        await peer.send(GET * 2)
        data = await peer.rest()
        assert data.count(b"HTTP/1.1") == 1
        assert data.endswith(b"abc")
    assert len(log) == 1


@pytest.mark.parametrize(
    "messages", [[], [start()], [part(b"x")], [start(99), part(b"x")], [start(101), part(b"")]]
)
async def test_an_application_that_does_not_answer_is_answered_for(
    log: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> None:
    async with serving(sends(*messages)) as wired:
        answer = await wired.ask(GET)
        assert answer.error() == (500, "Internal")
        assert answer.header(b"connection") == b"close"


async def test_a_crash_is_told_and_spoils_no_other_connection(log: list[dict[str, Any]]) -> None:
    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/crash":
            async with trio.open_nursery():
                raise RuntimeError("a bug")
        if scope["path"] == "/os":
            raise FileNotFoundError("also a bug, though an OSError")
        if scope["path"] == "/late":
            await reply(send, b"abc", more=True)
            raise RuntimeError("a bug")
        await reply(send, b"fine")

    async with serving(application(http)) as wired:
        other = await wired.connect()
        for path, body in ((b"/crash", 500), (b"/os", 500), (b"/crash", 500)):
            assert (await wired.ask(GET.replace(b"/a", path))).status == body
            assert (await other.exchange(GET)).body == b"fine"
        late = await wired.connect()
        await late.send(GET.replace(b"/a", b"/late"))
        data = await late.rest()
        assert data.endswith(b"3\r\nabc\r\n"), "a stream that broke off must not look complete"
        assert (await other.exchange(GET)).body == b"fine"
        head = await wired.ask(GET.replace(b"GET /a", b"HEAD /crash"), method="HEAD")
        assert head.status == 500
    assert [(entry["event"], entry["path"]) for entry in log] == [
        ("request failed", path) for path in ("/crash", "/os", "/crash", "/late", "/crash")
    ]


# The access log.


@pytest.fixture
def logged(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Logs as the product does, in JSON; called, it returns the lines."""
    root, chosen = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers, root.level
    configure_logging(Settings(log_format="json", log_level="warning"))
    try:
        yield lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    finally:
        structlog.configure(**chosen)
        root.handlers = handlers
        root.setLevel(level)


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_the_access_log_has_a_line_for_each_answer(
    logged: Callable[[], list[dict[str, Any]]], engine: str
) -> None:
    app = sends(start(200, (b"content-length", b"5")), part(b"hello"))
    async with serving(app, engine, access_log=True) as wired:
        request = GET.replace(b"/a", b"/a?token=secret").replace(b"\r\n", b"\r\nX-Request-Id: abc-1\r\n", 1)
        await wired.ask(request)
    (line,) = logged()
    assert line.pop("duration_ms") >= 0
    assert line.pop("timestamp")
    assert line == {
        "event": "request",
        "level": "info",
        "method": "GET",
        "path": "/a",
        "status": 200,
        "bytes": 5,
        "client": "127.0.0.1",
        "operation": None,
        "principal": None,
        "principal_id": None,
        "request_id": "abc-1",
    }


# Request ids.


@pytest.mark.parametrize("engine", ["fast", "stock"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (b"0af7651916cd43dd8448eb211c80319c", True),
        (b"a.b:c/d+e=f@g~h-i_j", True),
        (b"x" * 128, True),
        (b"x" * 129, False),
        (b"two words", False),
        (b'quote"', False),
        (b"caf\xc3\xa9", False),
        (b"", False),
    ],
)
async def test_an_id_of_the_client_is_kept_if_it_is_harmless(engine: str, given: bytes, kept: bool) -> None:
    async with serving(sends(start(200), part(b"hello")), engine) as wired:
        answer = await wired.ask(GET.replace(b"\r\n", b"\r\nX-Request-Id: %b\r\n" % given, 1))
    named = answer.header(b"x-request-id")
    assert named is not None
    assert (named == given) is kept
    assert re.fullmatch(rb"[A-Za-z0-9._:/+=@~-]+", named)


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_each_answer_has_an_id_of_its_own(engine: str) -> None:
    """Also those of a head that comes again, and those that the connection gives by itself."""
    async with serving(sends(start(200), part(b"hello")), engine) as wired:
        peer = await wired.connect()
        ids = [(await peer.exchange(GET)).header(b"x-request-id") for _ in range(4)]
        if engine == "fast":
            ids.append((await peer.exchange(b"GET / HTTP/9.9\r\n\r\n")).header(b"x-request-id"))
    assert None not in ids
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_a_line_that_is_logged_during_a_request_has_its_id(
    logged: Callable[[], list[dict[str, Any]]], engine: str
) -> None:
    async def http(scope: Any, receive: Any, send: Any) -> None:
        structlog.get_logger("app").warning("in the request")
        await send(start(200))
        await send(part(b"hello"))

    async with serving(application(http), engine) as wired:
        answer = await wired.ask(GET)
    structlog.get_logger("app").warning("after it")
    lines = {line["event"]: line for line in logged()}
    id = answer.header(b"x-request-id")
    assert id is not None
    assert lines["in the request"]["request_id"] == id.decode()
    assert "request_id" not in lines["after it"]


async def test_a_body_whose_rest_comes_behind_a_waiting_call_is_whole() -> None:
    """The head and half of the body came with the call before; the rest comes while that call waits."""
    gate = trio.Event()
    head = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/wait":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_disconnect, receive)
                await gate.wait()
                nursery.cancel_scope.cancel()
            await reply(send, b"")
        else:
            await echo(scope, receive, send)

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        sent = head % (17, b"hello, all of you")
        await peer.send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + sent[:-6])
        await trio.testing.wait_all_tasks_blocked()
        await peer.send(sent[-6:-3])
        await trio.testing.wait_all_tasks_blocked()
        gate.set()
        assert await peer.answer() is not None
        await peer.send(sent[-3:] + head % (4, b"next"))
        for body in ("hello, all of you", "next"):
            answer = await peer.answer()
            assert answer is not None
            assert answer.json()["body"] == body
