"""A server that answers with thousands of small pieces at once: others work between them."""

from __future__ import annotations

from functools import partial

import httpx
import pytest
import trio

from tests.patience import PATIENCE_S
from tests.turns_of_tasks import counted_steps
from trunkline.actors.core.outgoing.http_requests import Request, fetch

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000 + WHOLE, b"x"),
        (CHUNKED + b"1\r\nx\r\n" * 5_000 + b"0\r\n\r\n", b"x" * 5_000),
    ],
    ids=["heads", "chunks"],
)
async def test_others_work_between_the_pieces_of_an_answer(answer: bytes, content: bytes) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        request = Request("GET", f"http://127.0.0.1:{port}/", httpx.Headers())
        with trio.fail_after(PATIENCE_S), counted_steps() as steps:
            received = await fetch(request, timeout_s=30, bytes_max=10_000, private=lambda _: True)
        assert received.content == content
        assert steps.count > 150
        nursery.cancel_scope.cancel()
