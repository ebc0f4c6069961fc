"""The bytes of a broker are cut into packets, wherever the network cuts them, and packets have a bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.connections.integrations.mqtt import _Frames
from trunkline.actors.connections.integrations.session import Failed

BYTES_MAX = 20_000


def packet(kind: int, content: bytes) -> bytes:
    length, digits = len(content), bytearray()
    while True:
        length, digit = divmod(length, 128)
        digits.append(digit | (128 if length else 0))
        if not length:
            return bytes([kind]) + bytes(digits) + content


@given(
    st.lists(
        st.tuples(st.sampled_from([0x20, 0x30, 0x32, 0xD0]), st.sampled_from([0, 1, 127, 128, 17_000])),
        max_size=6,
    ),
    st.lists(st.integers(1, 5_000), min_size=1, max_size=50),
)
def test_packets_arrive_whole_and_in_order(kinds: list[tuple[int, int]], cuts: list[int]) -> None:
    packets = [packet(kind, bytes([index]) * size) for index, (kind, size) in enumerate(kinds)]
    stream, frames = b"".join(packets), _Frames(BYTES_MAX)
    found: list[bytes] = []
    at = turn = 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        found += frames.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert found == packets


@pytest.mark.parametrize(
    "data",
    [
        b"\x30\xa1\x9c\x01",  # 20,001 bytes and a head
        b"\x30\xff\xff\xff\xff",
        b"\x34\x00",
    ],
)
def test_what_is_too_large_is_refused_before_it_has_arrived(data: bytes) -> None:
    with pytest.raises(Failed, match="The broker sent"):
        list(_Frames(BYTES_MAX).feed(data))


def test_bytes_that_come_one_by_one_make_a_packet() -> None:
    frames, whole = _Frames(BYTES_MAX), packet(0x30, b"x" * 200)
    found = [each for index in range(len(whole)) for each in frames.feed(whole[index : index + 1])]
    assert found == [whole]
