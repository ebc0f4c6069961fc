"""The bytes of each packet, in both directions, written out by hand from the specifications."""

from __future__ import annotations

import pytest

from tests.http.mqtt.any_packets import BYTES_MAX, bytes_of, opened
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer
from trunkline.http.mqtt.packets import V3_1, V3_1_1, V5
from trunkline.http.mqtt.reader import PacketReader

WILL = p.Will("w", b"gone", 1, True)
WILL5 = p.Will("w", b"gone", 2, False, {"will_delay_interval": 5})

CONNECTS: list[tuple[p.Packet, bytes]] = [
    (p.Connect(V3_1, "c", True, 60), b"\x10\x0f\0\6MQIsdp\3\2\0\x3c\0\1c"),
    (p.Connect(V3_1_1, "c", True, 60), b"\x10\x0d\0\4MQTT\4\2\0\x3c\0\1c"),
    (p.Connect(V3_1_1, "", False), b"\x10\x0c\0\4MQTT\4\0\0\0\0\0"),
    (p.Connect(V3_1_1, "c", True, 0, WILL), b"\x10\x16\0\4MQTT\4\x2e\0\0\0\1c\0\1w\0\4gone"),
    (
        p.Connect(V3_1_1, "c", False, 0, None, "user", b"\xff"),
        b"\x10\x16\0\4MQTT\4\xc0\0\0\0\1c\0\4user\0\1\xff",
    ),
    (p.Connect(V5, "c"), b"\x10\x0e\0\4MQTT\5\2\0\0\0\0\1c"),
    (p.Connect(V5, "c", password=b"pw"), b"\x10\x12\0\4MQTT\5\x42\0\0\0\0\1c\0\2pw"),
    (
        p.Connect(
            V5, "c", False, 1, WILL5, properties={"receive_maximum": 20, "user_property": [("a", "b")]}
        ),
        b"\x10\x27\0\4MQTT\5\x14\0\1\x0a\x21\0\x14\x26\0\1a\0\1b\0\1c\5\x18\0\0\0\5\0\1w\0\4gone",
    ),
]

OF_ANYBODY_3: list[tuple[p.Packet, bytes]] = [
    (p.Publish("a/b", b"hi"), b"\x30\7\0\3a/bhi"),
    (p.Publish("a/b", b"", 1, True, False, 10), b"\x33\7\0\3a/b\0\x0a"),
    (p.Publish("a/b", b"x", 2, False, True, 0x1234), b"\x3c\x08\0\3a/b\x12\x34x"),
    (p.Ack(p.PUBACK, 1), b"\x40\2\0\1"),
    (p.Ack(p.PUBREC, 0x0102), b"\x50\2\1\2"),
    (p.Ack(p.PUBREL, 2), b"\x62\2\0\2"),
    (p.Ack(p.PUBCOMP, 65535), b"\x70\2\xff\xff"),
]

OF_CLIENTS_3: list[tuple[p.Packet, bytes]] = [
    *OF_ANYBODY_3,
    (p.Subscribe(10, (p.Filter("a/#", 1), p.Filter("+", 2))), b"\x82\x0c\0\x0a\0\3a/#\1\0\1+\2"),
    (p.Unsubscribe(11, ("a/#", "+")), b"\xa2\x0a\0\x0b\0\3a/#\0\1+"),
    (p.PingReq(), b"\xc0\0"),
    (p.Disconnect(), b"\xe0\0"),
]

OF_SERVERS_3: list[tuple[p.Packet, bytes]] = [
    *OF_ANYBODY_3,
    (p.SubAck(10, (0, 1, 2, 0x80)), b"\x90\6\0\x0a\0\1\2\x80"),
    (p.UnsubAck(11), b"\xb0\2\0\x0b"),
    (p.PingResp(), b"\xd0\0"),
]

OF_ANYBODY_5: list[tuple[p.Packet, bytes]] = [
    (p.Publish("a/b", b"hi"), b"\x30\x08\0\3a/b\0hi"),
    (p.Publish("a/b", b"", 1, True, False, 10), b"\x33\x08\0\3a/b\0\x0a\0"),
    (p.Publish("", b"x", 0, properties={"topic_alias": 7}), b"\x30\7\0\0\3\x23\0\7x"),
    (p.Ack(p.PUBACK, 1), b"\x40\2\0\1"),
    (p.Ack(p.PUBACK, 1, 0x10), b"\x40\3\0\1\x10"),
    (p.Ack(p.PUBREL, 2, 0x92, {"reason_string": "no"}), b"\x62\x09\0\2\x92\5\x1f\0\2no"),
    (p.Ack(p.PUBCOMP, 2, 0, {"reason_string": "ok"}), b"\x70\x09\0\2\0\5\x1f\0\2ok"),
]

OF_CLIENTS_5: list[tuple[p.Packet, bytes]] = [
    *OF_ANYBODY_5,
    (
        p.Subscribe(10, (p.Filter("a/#", 1, True, True, 2),), {"subscription_identifier": [200]}),
        b"\x82\x0c\0\x0a\3\x0b\xc8\1\0\3a/#\x2d",
    ),
    (p.Unsubscribe(11, ("a/#", "+")), b"\xa2\x0b\0\x0b\0\0\3a/#\0\1+"),
    (p.PingReq(), b"\xc0\0"),
    (p.Disconnect(), b"\xe0\0"),
    (p.Disconnect(4), b"\xe0\1\4"),
    (p.Disconnect(0, {"session_expiry_interval": 9}), b"\xe0\7\0\5\x11\0\0\0\x09"),
    (p.Auth(0x19, {"authentication_method": "m"}), b"\xf0\6\x19\4\x15\0\1m"),
]

OF_SERVERS_5: list[tuple[p.Packet, bytes]] = [
    *OF_ANYBODY_5,
    (
        p.Publish("t", b"", 0, properties={"subscription_identifier": [1, 300]}),
        b"\x30\x09\0\1t\5\x0b\1\x0b\xac\2",
    ),
    (p.SubAck(10, (0, 0x87)), b"\x90\5\0\x0a\0\0\x87"),
    (p.UnsubAck(11, (0, 0x11)), b"\xb0\5\0\x0b\0\0\x11"),
    (p.PingResp(), b"\xd0\0"),
    (p.Disconnect(0x8E), b"\xe0\1\x8e"),
    (
        p.Auth(0x18, {"authentication_method": "m", "authentication_data": b"d"}),
        b"\xf0\x0a\x18\x08\x15\0\1m\x16\0\1d",
    ),
    (p.Auth(), b"\xf0\0"),
]

CONNACKS: list[tuple[int, p.ConnAck, bytes]] = [
    (V3_1_1, p.ConnAck(False, 0), b"\x20\2\0\0"),
    (V3_1_1, p.ConnAck(True, 0), b"\x20\2\1\0"),
    (V5, p.ConnAck(True, 0), b"\x20\3\1\0\0"),
    (V5, p.ConnAck(False, 0x87), b"\x20\3\0\x87\0"),
    (V5, p.ConnAck(False, 0, {"retain_available": False, "maximum_qos": 1}), b"\x20\7\0\0\4\x25\0\x24\1"),
]

FORMS = [
    (version, from_server, packet, data)
    for version, from_server, rows in (
        (V3_1, False, OF_CLIENTS_3),
        (V3_1_1, False, OF_CLIENTS_3),
        (V3_1, True, OF_SERVERS_3),
        (V3_1_1, True, OF_SERVERS_3),
        (V5, False, OF_CLIENTS_5),
        (V5, True, OF_SERVERS_5),
    )
    for packet, data in rows
]


@pytest.mark.parametrize(("packet", "data"), CONNECTS)
def test_a_connect_has_this_form(packet: p.Connect, data: bytes) -> None:
    assert writer.connect(packet) == data
    reader = PacketReader(BYTES_MAX)
    assert reader.feed(data) == [packet]
    assert reader.version == packet.version


@pytest.mark.parametrize(("version", "packet", "data"), CONNACKS)
def test_a_connack_has_this_form(version: int, packet: p.ConnAck, data: bytes) -> None:
    assert bytes_of(version, packet) == data
    assert PacketReader(BYTES_MAX, client_version=version).feed(data) == [packet]


@pytest.mark.parametrize(("version", "from_server", "packet", "data"), FORMS)
def test_a_packet_has_this_form(version: int, from_server: bool, packet: p.Packet, data: bytes) -> None:
    assert bytes_of(version, packet) == data
    assert opened(version, from_server=from_server).feed(data) == [packet]


@pytest.mark.parametrize(
    ("version", "data", "packet"),
    [
        (V5, b"\x40\3\0\1\0", p.Ack(p.PUBACK, 1)),
        (V5, b"\x40\4\0\1\x10\0", p.Ack(p.PUBACK, 1, 0x10)),
        (V5, b"\xe0\1\0", p.Disconnect()),
        (V5, b"\xe0\2\0\0", p.Disconnect()),
        (V3_1, b"\x8a\6\0\1\0\1t\1", p.Subscribe(1, (p.Filter("t", 1),))),
        (V3_1, b"\x6a\2\0\1", p.Ack(p.PUBREL, 1)),
        (V3_1, b"\x82\6\0\1\0\1t\xfd", p.Subscribe(1, (p.Filter("t", 1),))),
        (V3_1_1, b"\xc0\x80\0", p.PingReq()),
    ],
)
def test_longer_and_older_forms_are_read_as_well(version: int, data: bytes, packet: p.Packet) -> None:
    """3.1 repeats some packets with DUP and leaves other bits unused; codes and lengths of 0 may be there."""
    assert opened(version).feed(data) == [packet]


def test_in_3_1_the_length_counts_more_than_the_flags() -> None:
    data = b"\x10\x0f\0\6MQIsdp\3\xc2\0\0\0\1c"
    assert PacketReader(BYTES_MAX).feed(data) == [p.Connect(V3_1, "c")]


def test_a_text_keeps_its_byte_order_mark() -> None:
    topic = "\ufefft"
    data = writer.publish(V3_1_1, p.Publish(topic, b""))
    assert opened(V3_1_1).feed(data) == [p.Publish(topic, b"")]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (0, 0),
        (0x84, 1),
        (0x85, 2),
        (0x88, 3),
        (0x89, 3),
        (0x97, 3),
        (0x9F, 3),
        (0x86, 4),
        (0x8C, 4),
        (0x87, 5),
        (0x8A, 5),
        (0x90, 5),
        (0x95, 5),
        (0x99, 5),
    ],
)
def test_a_client_of_3_1_1_is_told_the_return_code_that_says_the_same(code: int, told: int) -> None:
    for version in (V3_1, V3_1_1):
        assert writer.connack(version, code) == bytes((0x20, 2, 0, told))


def test_versions_before_5_are_told_no_more_than_they_know() -> None:
    own = {"reason_string": "no"}
    assert writer.ack(V3_1_1, p.PUBACK, 1, 0x87, own) == b"\x40\2\0\1"
    assert writer.suback(V3_1_1, 1, (1, 0x87), own) == b"\x90\4\0\1\1\x80"
    assert writer.unsuback(V3_1_1, 1, (0, 0x11), own) == b"\xb0\2\0\1"
    assert writer.disconnect(V3_1_1, 0x8E, own) == b"\xe0\0"
    assert writer.connack(V3_1, session_present=True) == b"\x20\2\0\0"


@pytest.mark.parametrize("version", [V3_1_1, V5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_is_encoded_once_for_all_who_get_it(version: int, qos: int) -> None:
    own = {"content_type": "text"} if version == V5 else p.NONE
    encoded = writer.encoded_publish(version, "a/b", b"x" * 300, qos, retain=True, properties=own)
    for packet_id in (1, 300, 65_535) if qos else (0,):
        for dup in (False, True) if qos else (False,):
            data = encoded.packet(packet_id, dup=dup)
            sent = p.Publish("a/b", b"x" * 300, qos, True, dup, packet_id, own)
            assert data == writer.publish(version, sent)
            assert opened(version).feed(data) == [sent]
            assert len(data) == writer.publish_bytes(encoded, qos)


def test_what_has_no_form_is_not_written() -> None:
    with pytest.raises(ValueError, match="MQTT allows 65535"):
        writer.encoded_publish(V5, "t" * 65_536, b"")
    with pytest.raises(ValueError, match="MQTT has no property colour"):
        writer.ack(V5, p.PUBACK, 1, 0, {"colour": 1})
    with pytest.raises(ValueError, match="too large for MQTT"):
        writer.subscribe(V5, p.Subscribe(1, (p.Filter("t"),), {"subscription_identifier": [2**28]}))
    with pytest.raises(OverflowError):
        writer.ack(V5, p.PUBACK, 1, 0, {"topic_alias": 65_536})
