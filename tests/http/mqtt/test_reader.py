"""What the reader keeps between two reads, and what it refuses before it has come."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.http.mqtt.any_packets import opened
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer
from trunkline.http.mqtt.packets import Malformed
from trunkline.http.mqtt.reader import PacketReader

KIB = 1024
BY_VERSION = pytest.mark.parametrize("version", [p.V3_1_1, p.V5])


@BY_VERSION
def test_a_packet_may_have_exactly_the_size_that_is_allowed(version: int) -> None:
    packet = p.Publish("topic", b"x" * 1000)
    data = writer.publish(version, packet)
    assert opened(version, packet_bytes_max=len(data)).feed(data) == [packet]
    with pytest.raises(Malformed, match=f"PUBLISH has {len(data)} bytes; at most") as caught:
        opened(version, packet_bytes_max=len(data) - 1).feed(data)
    assert caught.value.code == p.PACKET_TOO_LARGE


@pytest.mark.parametrize("first", [0x30, 0x82])
def test_a_large_packet_is_refused_by_its_length_alone(first: int) -> None:
    reader = opened(p.V3_1_1, packet_bytes_max=256 * KIB)
    assert reader.feed(bytes((first, 0xFF, 0xFF, 0xFF))) == []
    with pytest.raises(Malformed) as caught:
        reader.feed(b"\x7f")
    assert caught.value.code == p.PACKET_TOO_LARGE


def test_a_stranger_is_refused_by_the_first_byte() -> None:
    with pytest.raises(Malformed, match="must be CONNECT"):
        PacketReader(KIB).feed(b"G")


def test_the_bound_may_change_when_the_client_is_known() -> None:
    reader = opened(p.V3_1_1, packet_bytes_max=64)
    packet = p.Publish("topic", b"x" * 1000)
    reader.packet_bytes_max = 2000
    assert reader.feed(writer.publish(p.V3_1_1, packet)) == [packet]


@BY_VERSION
def test_small_packets_fill_reads_and_stand_across_their_ends(version: int) -> None:
    sent = [
        p.Publish(f"topic/{number % 7}", b"x" * (number % 50), 1, packet_id=1 + number)
        for number in range(9000)
    ]
    stream = b"".join(writer.publish(version, packet) for packet in sent)
    reader = opened(version)
    parts = [stream[at : at + 64 * KIB] for at in range(0, len(stream), 64 * KIB)]
    assert len(parts) > 4
    assert [packet for part in parts for packet in reader.feed(part)] == sent


@BY_VERSION
def test_a_large_packet_comes_in_many_reads_and_is_not_read_anew_for_each(version: int) -> None:
    packet = p.Publish("topic", bytes(range(256)) * KIB, 1, packet_id=9)
    data = writer.publish(version, packet) + writer.PINGREQ
    reader = opened(version)
    found = []
    kept = []
    for at in range(0, len(data), KIB):
        found += reader.feed(data[at : at + KIB])
        kept.append(id(reader._rest))
    assert found == [packet, p.PingReq()]
    assert len(set(kept[:-1])) == 1, "what has come is appended to, not copied"
    assert not reader._rest


def test_what_is_kept_is_bounded_by_what_was_sent() -> None:
    """A length that is announced reserves no memory."""
    readers = [opened(p.V5, packet_bytes_max=2**29) for _ in range(100)]
    tracemalloc.start()
    try:
        for reader in readers:
            assert reader.feed(b"\x30\xff\xff\xff\x7f\0\1t") == []
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100 * KIB


@BY_VERSION
def test_topics_may_alternate(version: int) -> None:
    reader = opened(version)
    sent = [p.Publish(topic, b"x") for topic in ("a", "b", "b", "a", "ä", "a")]
    assert reader.feed(b"".join(writer.publish(version, packet) for packet in sent)) == sent


def test_an_alias_after_a_topic_brings_no_topic() -> None:
    sent = [
        p.Publish("a", b"", properties={"topic_alias": 1}),
        p.Publish("", b"", properties={"topic_alias": 1}),
    ]
    assert opened(p.V5).feed(b"".join(writer.publish(p.V5, packet) for packet in sent)) == sent
