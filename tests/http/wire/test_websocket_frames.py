"""The reader of WebSocket frames, with any bytes and any cuts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.websocket_peer import masked
from trunkline.http.wire.websocket_frames import BINARY, CLOSE, PING, PONG, TEXT, Broken, FrameReader


@given(
    st.lists(st.tuples(st.sampled_from([TEXT, BINARY, PING, PONG]), st.text(max_size=30)), max_size=8),
    st.integers(1, 50),
)
@settings(max_examples=200, deadline=None)
def test_messages_do_not_depend_on_how_bytes_are_cut(messages: list[tuple[int, str]], step: int) -> None:
    sent = [(opcode, text.encode()) for opcode, text in messages]
    data = b"".join(masked(*message) for message in sent)
    reader, read = FrameReader(1000), []
    for at in range(0, len(data), step):
        read += reader.feed(data[at : at + step])
    assert read == sent


@given(st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_any_bytes_give_messages_or_a_told_refusal(data: bytes) -> None:
    refusals, messages = [], []
    try:
        messages = FrameReader(50).feed(data)
    except Broken as broken:
        refusals.append(broken)
    assert all(opcode in (TEXT, BINARY, CLOSE, PING, PONG) for opcode, _ in messages)
    assert all(len(payload) <= 125 for _, payload in messages)
    assert all(broken.code in (1002, 1007, 1009) and broken.message for broken in refusals)
