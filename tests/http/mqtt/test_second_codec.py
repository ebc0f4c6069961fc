"""The codec beside `mqtt5`, a codec of 5.0 in Rust: both read the same from what either writes.

`mqtt5` leaves out properties whose value is the default, and gives those a value that are missing, so packets are
compared by what they mean. It does not read an AUTH without a body, and lets pass much that 5.0 forbids, as U+0000.
"""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any

import mqtt5
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.mqtt.any_packets import BYTES_MAX, bytes_of, first_packets, opened, packets
from tests.http.mqtt.mutation import mutated
from tests.rounds import examples
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt.packets import V5, Malformed
from trunkline.http.mqtt.reader import PacketReader

DEFAULTS = {
    "payload_format_indicator": 0,
    "session_expiry_interval": 0,
    "request_problem_information": True,
    "request_response_information": False,
    "receive_maximum": 65_535,
    "topic_alias_maximum": 0,
    "will_delay_interval": 0,
    "retain_available": True,
    "wildcard_subscription_available": True,
    "subscription_identifier_available": True,
    "shared_subscription_available": True,
}
SENDERS = pytest.mark.parametrize("from_server", [False, True], ids=["client", "server"])


def meaning(packet: p.Packet) -> dict[str, Any]:
    """The fields of a packet, and which of its properties say more than their defaults."""
    found = msgspec.structs.asdict(packet) | {"": type(packet)}
    if isinstance(packet, p.Connect) and packet.will is not None:
        found["will"] = msgspec.structs.asdict(packet.will)
        found["will"]["properties"] = said(packet.will.properties)
    if "properties" in found:
        found["properties"] = said(found["properties"])
    return found


def said(properties: p.Properties) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if DEFAULTS.get(name) != value}


def read(data: bytes, *, from_server: bool) -> list[p.Packet]:
    """What our reader reads."""
    if data[0] >> 4 in (p.CONNECT, p.CONNACK):
        return PacketReader(BYTES_MAX, client_version=V5 if from_server else 0).feed(data)
    return opened(V5, from_server=from_server).feed(data)


@SENDERS
@given(data=st.data())
@settings(max_examples=examples(100), deadline=None)
def test_both_read_the_same(from_server: bool, data: st.DataObject) -> None:
    sent = data.draw(first_packets(V5, from_server=from_server) | packets(V5, from_server=from_server))
    encoded = bytes_of(V5, sent)
    other, size = mqtt5.read(memoryview(encoded))
    assert size == len(encoded)
    assert [meaning(each) for each in read(other.write(), from_server=from_server)] == [meaning(sent)]


@SENDERS
@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=examples(100), deadline=None)
def test_what_is_read_from_mutated_packets_the_other_reads_as_well(
    from_server: bool, data: st.DataObject, seed: int
) -> None:
    sent = data.draw(first_packets(V5, from_server=from_server) | packets(V5, from_server=from_server))
    encoded = bytes_of(V5, sent)
    random = Random(seed)
    for _ in range(20):
        changed = mutated(encoded, random)
        with contextlib.suppress(Malformed):
            found = read(changed, from_server=from_server)
            if found and changed != b"\xf0\0" and getattr(found[0], "version", V5) == V5:
                other, _ = mqtt5.read(memoryview(changed))
                again = read(other.write(), from_server=from_server)
                assert meaning(again[0]) == meaning(found[0])
