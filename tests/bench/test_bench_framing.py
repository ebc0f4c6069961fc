"""The client finds the end of an answer as HTTP defines it, however the bytes arrive, and bounds its reads."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.bench import framing
from trunkline.bench.errors import ConnectionBroken, ProtocolViolation
from trunkline.bench.framing import Body, Inbox, Response


class Scripted:
    """A transport that hands out given pieces and then ends."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = [piece for piece in pieces if piece]

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self) -> bytes:
        await trio.lowlevel.checkpoint()
        return self.pieces.pop(0) if self.pieces else b""

    def is_stale(self) -> bool:
        return False

    def abandon(self) -> None:
        self.pieces.clear()


async def read(*pieces: bytes, bodiless: bool = False) -> tuple[Response, Body, Inbox]:
    inbox = Inbox(Scripted(*pieces))
    head = await inbox.read_head()
    body = Body(inbox, head, bodiless=bodiless)
    return Response(int(head[9:12]), head, await body.read_all()), body, inbox


WITH_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5\r\nhello\r\n1;note="x"\r\n \r\nb\r\nwonderful\r\n\r\n0\r\nx-trailer: 1\r\n\r\n'
)


@pytest.mark.parametrize(("raw", "body"), [(WITH_LENGTH, b"hello"), (CHUNKED, b"hello wonderful\r\n")])
@given(cuts=st.lists(st.integers(0, 130), max_size=6))
@settings(max_examples=60, deadline=None)
def test_every_split_gives_the_same_answer(raw: bytes, body: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    pieces = [raw[a:b] for a, b in pairwise(edges)]

    async def run() -> None:
        response, _, inbox = await read(*pieces)
        assert (response.status, response.body, inbox.buffered) == (200, body, 0)

    trio.run(run)


async def test_the_next_answer_is_left_alone() -> None:
    response, body, inbox = await read(WITH_LENGTH + b"HTTP/1.1 204 No Content\r\n\r\n")
    assert response.headers == {"content-length": "5", "x-a": "1, 2"}
    assert not body.closes
    assert (await inbox.read_head()).startswith(b"HTTP/1.1 204")


async def test_without_a_length_the_answer_ends_with_the_connection() -> None:
    response, body, _ = await read(b"HTTP/1.1 200 OK\r\n\r\nab", b"cd")
    assert (response.body, body.closes) == (b"abcd", True)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
    ],
)
async def test_statuses_without_a_body(raw: bytes) -> None:
    assert (await read(raw))[0].body == b""


async def test_an_answer_to_head_has_no_body() -> None:
    assert (await read(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", bodiless=True))[0].body == b""


async def test_http_1_0_closes_unless_it_says_keep_alive() -> None:
    assert (await read(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"))[1].closes
    kept = b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n"
    assert not (await read(kept))[1].closes


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\nhello",
    ],
)
async def test_what_cannot_be_framed_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        await read(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ],
)
async def test_a_cut_answer_is_broken_and_may_have_been_carried_out(raw: bytes) -> None:
    with pytest.raises(ConnectionBroken) as caught:
        await read(raw)
    assert caught.value.maybe_done


async def test_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "HEAD_BYTES_MAX", 64)
    monkeypatch.setattr(framing, "BODY_BYTES_MAX", 64)
    with pytest.raises(ProtocolViolation):
        await read(b"HTTP/1.1 200 OK\r\n", b"x-long: " + b"y" * 100, b"z")
    with pytest.raises(ProtocolViolation):
        await read(b"HTTP/1.1 200 OK\r\n\r\n", *(b"y" * 20,) * 4)
    with pytest.raises(ProtocolViolation):
        await read(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *(b"14\r\n" + b"y" * 20 + b"\r\n",) * 4
        )


async def test_a_streamed_body_with_a_length_ends_there() -> None:
    inbox = Inbox(Scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", b"llo!"))
    body = Body(inbox, await inbox.read_head())
    parts = [await body.read_some(), await body.read_some(), await body.read_some()]
    assert (parts, inbox.buffered) == ([b"he", b"llo", b""], 1)
