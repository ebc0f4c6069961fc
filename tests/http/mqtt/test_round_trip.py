"""What is written is read again, wherever the bytes are divided."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.mqtt.any_packets import BYTES_MAX, VERSIONS, bytes_of, first_packets, packets
from tests.rounds import examples
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt.reader import PacketReader

SENDERS = pytest.mark.parametrize("from_server", [False, True], ids=["client", "server"])
BY_VERSION = pytest.mark.parametrize("version", VERSIONS)


def reader_of(version: int, *, from_server: bool) -> PacketReader:
    return PacketReader(BYTES_MAX, client_version=version if from_server else 0)


@SENDERS
@BY_VERSION
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_what_is_written_is_read_again(version: int, from_server: bool, data: st.DataObject) -> None:
    sent: list[p.Packet] = [data.draw(first_packets(version, from_server=from_server))]
    sent += data.draw(st.lists(packets(version, from_server=from_server), max_size=4))
    stream = b"".join(bytes_of(version, each) for each in sent)
    whole = reader_of(version, from_server=from_server)
    assert whole.feed(stream) == sent
    assert whole.version == version
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parts = [
        stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True) if begin < end
    ]
    reader = reader_of(version, from_server=from_server)
    assert [packet for part in parts for packet in reader.feed(part)] == sent


@SENDERS
@BY_VERSION
@given(data=st.data())
@settings(max_examples=examples(10), deadline=None)
def test_a_stream_may_be_divided_at_every_place(version: int, from_server: bool, data: st.DataObject) -> None:
    sent: list[p.Packet] = [data.draw(first_packets(version, from_server=from_server))]
    sent.append(data.draw(packets(version, from_server=from_server)))
    stream = b"".join(bytes_of(version, each) for each in sent)
    for place in range(1, len(stream)):
        reader = reader_of(version, from_server=from_server)
        assert reader.feed(stream[:place]) + reader.feed(stream[place:]) == sent
    reader = reader_of(version, from_server=from_server)
    assert [packet for byte in stream for packet in reader.feed(bytes((byte,)))] == sent


@BY_VERSION
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_the_bytes_of_a_packet_are_the_only_ones(version: int, data: st.DataObject) -> None:
    """A packet that was read is written with the same bytes: no two forms have the same meaning here."""
    sent: p.Packet = data.draw(first_packets(version, from_server=False))
    stream = bytes_of(version, sent)
    assert bytes_of(version, reader_of(version, from_server=False).feed(stream)[0]) == stream
