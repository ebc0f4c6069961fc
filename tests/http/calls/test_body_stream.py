"""Bodies that are read in pieces, and their time-out."""

from __future__ import annotations

from typing import Any

from trio.testing import MockClock

from trunkline.http.calls.body_stream import BodyStream


async def test_pieces_that_came_while_the_loop_was_held_up_are_taken(mock_clock: MockClock) -> None:
    pieces = [b"a", b"b", b"c"]

    async def receive() -> dict[str, Any]:
        mock_clock.jump(10)
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    stream = BodyStream(receive, None, timeout_s=1)
    stream.limit(3)
    assert [piece async for piece in stream] == [b"a", b"b", b"c"]
