"""Server-sent events are parsed the same however they are split, and a silent or broken stream is detected."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from trunkline.bench import event_stream
from trunkline.bench.errors import NotFound, ProtocolViolation, TimedOut
from trunkline.bench.event_stream import Event, EventParser, open_events

RAW = (
    b'\xef\xbb\xbf: hello\n\nevent: deviceCommand\nid: 7\ndata: {"name":\ndata:"caf\xc3\xa9"}\n\n'
    b"data:a\rdata: b\r\r:keep-alive\r\n\r\nid: 8\r\ndata\r\n\r\n"
    b"event: lost\n\nunknown: x\ndata:  two\n\ndata: cut"
)
EVENTS = [
    Event("deviceCommand", "7", '{"name":\n"café"}'),
    Event("message", "7", "a\nb"),
    Event("message", "8", ""),
    Event("message", "8", " two"),
]


@given(cuts=st.lists(st.integers(0, len(RAW)), max_size=12))
def test_every_split_gives_the_same_events(cuts: list[int]) -> None:
    parser = EventParser()
    edges = [0, *sorted(cuts), len(RAW)]
    found = [event for a, b in pairwise(edges) for event in parser.feed(RAW[a:b])]
    assert found == EVENTS
    assert parser.comments == 2


def test_an_id_with_a_nul_is_ignored() -> None:
    assert EventParser().feed(b"id: 1\nid: a\0b\ndata: x\n\n") == [Event("message", "1", "x")]


def test_an_event_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "EVENT_BYTES_MAX", 100)
    parser = EventParser()
    for _ in range(1000):
        assert parser.feed(b": keep-alive comments have no end\n\n") == []
    with pytest.raises(ProtocolViolation):
        parser.feed(b"data: x\n" * 20)
    with pytest.raises(ProtocolViolation):
        EventParser().feed(b"data: " + b"x" * 200)


async def serve(nursery: trio.Nursery, answer: bytes, *, hold: bool) -> tuple[str, list[bytes]]:
    """A peer that answers every connection with the same bytes; the requests it saw."""
    seen: list[bytes] = []

    async def handler(stream: trio.SocketStream) -> None:
        seen.append(bytes(await stream.receive_some(65_536)))
        await stream.send_all(answer)
        if hold:
            await trio.sleep_forever()

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, handler, [listener])
    return f"http://127.0.0.1:{listener.socket.getsockname()[1]}", seen


async def test_events_over_a_chunked_answer(nursery: trio.Nursery) -> None:
    first, rest = RAW[:30], RAW[30:]
    chunks = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in (first, rest)) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    url, seen = await serve(nursery, head + chunks, hold=True)
    with trio.fail_after(PATIENCE_S):
        async with open_events(url, "/stream?keepAliveInterval=2", "secret", last_id="6") as events:
            assert [event async for event in events] == EVENTS
            assert (events.keep_alives, events.last_id) == (2, "8")
    assert seen[0].startswith(b"GET /stream?keepAliveInterval=2 HTTP/1.1\r\n")
    assert b"\r\nauthorization: Bearer secret\r\n" in seen[0]
    assert b"\r\nlast-event-id: 6\r\n" in seen[0]


async def test_events_until_the_server_closes(nursery: trio.Nursery) -> None:
    url, _ = await serve(nursery, b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n", hold=False)
    with trio.fail_after(PATIENCE_S):
        async with open_events(url, "/", None) as events:
            assert [event.data async for event in events] == ["1"]


async def test_a_refused_stream_raises_the_servers_error(nursery: trio.Nursery) -> None:
    body = b'{"type":"NotFound","message":"No such device."}'
    head = f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    url, _ = await serve(nursery, head + body, hold=True)
    with trio.fail_after(PATIENCE_S), pytest.raises(NotFound, match="No such device") as caught:
        async with open_events(url, "/", None):
            pass
    assert (caught.value.status, caught.value.type) == (404, "NotFound")


async def test_a_silent_stream_is_dead(nursery: trio.Nursery) -> None:
    url, _ = await serve(nursery, b"HTTP/1.1 200 OK\r\n\r\n: ping\n\n", hold=True)
    with trio.fail_after(PATIENCE_S):
        async with open_events(url, "/", None, quiet_timeout_s=0.02) as events:
            with pytest.raises(TimedOut):
                await anext(events)
