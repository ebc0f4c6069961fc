"""The types of packets: what they are when nothing is said, and that they are told apart."""

from __future__ import annotations

from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import (
    NAMES,
    NONE,
    Auth,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Publish,
    SubAck,
    UnsubAck,
)


def test_packets_of_different_types_are_never_equal() -> None:
    alike: list[list[Packet]] = [
        [Disconnect(), Auth()],
        [PingReq(), PingResp()],
        [SubAck(1, ()), UnsubAck(1)],
    ]
    for one, other in alike:
        assert one != other


def test_each_type_has_its_name_at_its_number() -> None:
    for number, name in enumerate(NAMES[1:], start=1):
        assert getattr(packets, name) == number


def test_a_packet_says_nothing_that_was_not_given() -> None:
    connect = Connect(packets.V5, "device")
    assert (connect.will, connect.username, connect.password) == (None, None, None)
    assert Publish("topic", b"") == Publish("topic", b"", 0, False, False, 0, NONE)
