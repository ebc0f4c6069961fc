"""Whatever comes, the reader says packets or `Malformed`, and keeps no more than has come."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.mqtt.any_packets import VERSIONS, bytes_of, first_packets, packets
from tests.http.mqtt.mutation import mutated
from tests.rounds import examples
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt.packets import Malformed
from trunkline.http.mqtt.reader import HEAD_BYTES_MAX, PacketReader

PACKET_BYTES_MAX = 400
STREAMS = 30
CODES = {
    p.MALFORMED_PACKET,
    p.PROTOCOL_ERROR,
    p.UNSUPPORTED_PROTOCOL_VERSION,
    p.TOPIC_NAME_INVALID,
    p.TOPIC_ALIAS_INVALID,
    p.PACKET_TOO_LARGE,
}
SENDERS = pytest.mark.parametrize("from_server", [False, True], ids=["client", "server"])
BY_VERSION = pytest.mark.parametrize("version", VERSIONS)


def outcome(reader: PacketReader, parts: list[bytes]) -> tuple[list[p.Packet], Malformed | None]:
    """The packets, and what ends them if something is wrong."""
    found: list[p.Packet] = []
    for part in parts:
        try:
            found += reader.feed(part)
        except Malformed as wrong:
            return found + list(wrong.packets), wrong
        assert len(reader._rest) < PACKET_BYTES_MAX + HEAD_BYTES_MAX
    return found, None


@SENDERS
@BY_VERSION
@given(data=st.data(), random=st.randoms(use_true_random=False))
@settings(max_examples=examples(25), deadline=None)
def test_a_mutated_stream_is_read_or_refused_alike_however_it_is_divided(
    version: int, from_server: bool, data: st.DataObject, random: Random
) -> None:
    sent: list[p.Packet] = [data.draw(first_packets(version, from_server=from_server))]
    sent += data.draw(st.lists(packets(version, from_server=from_server), max_size=3))
    stream = b"".join(bytes_of(version, each) for each in sent)
    for _ in range(STREAMS):
        changed = mutated(stream, random)
        cut = random.randrange(len(changed))
        whole, halves, single = (
            outcome(PacketReader(PACKET_BYTES_MAX, client_version=version if from_server else 0), parts)
            for parts in ([changed], [changed[:cut], changed[cut:]], [bytes((byte,)) for byte in changed])
        )
        assert whole[0] == halves[0] == single[0]
        assert (whole[1] is None) == (halves[1] is None) == (single[1] is None)
        for _, wrong in (whole, halves, single):
            assert wrong is None or (wrong.code in CODES and wrong.sentence)


@SENDERS
@given(noise=st.binary(max_size=600))
@settings(max_examples=examples(100), deadline=None)
def test_noise_is_read_or_refused(from_server: bool, noise: bytes) -> None:
    reader = PacketReader(PACKET_BYTES_MAX, client_version=p.V5 if from_server else 0)
    _, wrong = outcome(reader, [noise])
    assert wrong is None or wrong.code in CODES
