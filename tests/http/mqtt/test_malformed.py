"""What the specifications forbid is refused, with the reason code of 5.0 and a sentence.

Each case names the section of the specification that forbids it: of 5.0, or of 3.1.1 where it has its own rule.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.http.mqtt.any_packets import BYTES_MAX, opened
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt.bodies import FILTERS_MAX
from trunkline.http.mqtt.packets import Malformed
from trunkline.http.mqtt.properties import USER_PROPERTIES_MAX, integer_bytes
from trunkline.http.mqtt.reader import PacketReader

BAD, WRONG = p.MALFORMED_PACKET, p.PROTOCOL_ERROR
V3, V4, V5 = 3, 4, 5
BOTH = (V4, V5)
ALL = (V3, V4, V5)
M4, M5 = b"\0\4MQTT\4", b"\0\4MQTT\5"


def packet(first: int, body: bytes = b"") -> bytes:
    return bytes((first,)) + integer_bytes(len(body)) + body


def with_properties(before: bytes, own: bytes, after: bytes = b"") -> bytes:
    return before + integer_bytes(len(own)) + own + after


def connect5(own: bytes, flags: bytes = b"\2", after: bytes = b"\0\1c") -> bytes:
    return packet(0x10, with_properties(M5 + flags + b"\0\0", own, after))


def publish5(own: bytes, topic: bytes = b"\0\1t", first: int = 0x30) -> bytes:
    return packet(first, with_properties(topic, own, b"payload"))


class Case(NamedTuple):
    section: str
    versions: tuple[int, ...]
    data: bytes
    code: int
    sentence: str


FIRST_OF_CLIENTS = (
    Case("3.1.0", (0,), b"\xc0\0", WRONG, "the first packet of the client is PINGREQ; it must be CONNECT"),
    Case("3.1.0", (0,), b"GET / HTTP/1.1\r\n\r\n", WRONG, "is PUBACK; it must be CONNECT"),
    Case("3.1.0", (0,), b"\x30\3\0\1t", WRONG, "is PUBLISH; it must be CONNECT"),
    Case("3.1.0", (0,), b"\x16\3\1\2\0\1\0", BAD, "flags of CONNECT are 0x6; they must be 0x0"),
    Case("2.1.2", (0,), b"\0\0", BAD, "packets of type 0 do not exist"),
    Case("3.1.2.1", (0,), packet(0x10, b"\0\4MQTX\4\2\0\0\0\1c"), BAD, "neither MQTT nor MQIsdp"),
    Case("3.1.2.2", (0,), packet(0x10, b"\0\4MQTT\3\2\0\0\0\1c"), 0x84, "level of CONNECT is 3"),
    Case("3.1.2.2", (0,), packet(0x10, b"\0\4MQTT\6\2\0\0\0\0\1c"), 0x84, "level of CONNECT is 6"),
    Case("3.1.2.2", (0,), packet(0x10, b"\0\6MQIsdp\4\2\0\0\0\1c"), 0x84, "level of CONNECT is 4"),
    Case("3.1.2.3", (0,), packet(0x10, M4 + b"\3\0\0\0\1c"), BAD, "reserved connect flag"),
    Case("3.1.2.3", (0,), connect5(b"", b"\3"), BAD, "reserved connect flag"),
    Case("3.1.2.6", (0,), packet(0x10, M4 + b"\x0a\0\0\0\1c"), BAD, "but no will"),
    Case("3.1.2.7", (0,), connect5(b"", b"\x22"), BAD, "but no will"),
    Case("3.1.2.6", (0,), packet(0x10, M4 + b"\x1e\0\0\0\1c\0\1t\0\1m"), BAD, "will of CONNECT has QoS 3"),
    Case(
        "3.1.1 3.1.2.9", (0,), packet(0x10, M4 + b"\x42\0\0\0\1c\0\1p"), BAD, "password without a user name"
    ),
    Case("3.1.3", (0,), packet(0x10, M4 + b"\x82\0\0\0\1c"), BAD, "ends before its user name"),
    Case("3.1.3", (0,), packet(0x10, M4 + b"\2\0\0\0\1cx"), BAD, "1 bytes behind its last field"),
    Case(
        "3.1.3.1",
        (0,),
        packet(0x10, M4 + b"\2\0\0\0\1\xff"),
        BAD,
        "client identifier of CONNECT is not UTF-8",
    ),
    Case("3.1.3.1", (0,), packet(0x10, M4 + b"\2\0\0"), BAD, "ends before its client identifier"),
    Case("3.1.2.5", (0,), packet(0x10, M4 + b"\6\0\0\0\1c"), BAD, "ends before its will topic"),
    Case("3.1.2.5", (0,), packet(0x10, M4 + b"\6\0\0\0\1c\0\1t"), BAD, "ends before its will payload"),
    Case("3.1.2.9", (0,), packet(0x10, M4 + b"\xc2\0\0\0\1c\0\1u"), BAD, "ends before its password"),
    Case("3.1.2.8", (0,), packet(0x10, M4 + b"\2\0\0\0\1c\0\1u"), BAD, "3 bytes behind its last field"),
    Case(
        "3.1.2.9", (0,), packet(0x10, M4 + b"\x82\0\0\0\1c\0\1u\0\1p"), BAD, "3 bytes behind its last field"
    ),
    Case(
        "1.5.4",
        (0,),
        packet(0x10, M4 + b"\6\0\0\0\1c\0\1\xff\0\0"),
        BAD,
        "will topic of CONNECT is not UTF-8",
    ),
    Case(
        "1.5.4", (0,), packet(0x10, M4 + b"\x82\0\0\0\1c\0\1\xff"), BAD, "user name of CONNECT is not UTF-8"
    ),
    Case("1.5.4", (0,), packet(0x10, M4 + b"\2\0\0\0\1\x01"), BAD, "identifier of CONNECT has a control"),
    Case("1.5.4", (0,), packet(0x10, M4 + b"\x82\0\0\0\1c\0\1\x7f"), BAD, "user name of CONNECT has a"),
    Case(
        "3.1.3.3",
        (0,),
        packet(0x10, M4 + b"\6\0\0\0\1c\0\1+\0\0"),
        BAD,
        "will topic of CONNECT has a wildcard",
    ),
    Case("4.7.3", (0,), packet(0x10, M4 + b"\6\0\0\0\1c\0\0\0\0"), BAD, "will topic of CONNECT is empty"),
    Case(
        "3.1.2.11.3",
        (0,),
        connect5(b"\x21\0\0"),
        WRONG,
        "receive_maximum of CONNECT is 0; it must be 1 or more",
    ),
    Case("3.1.2.11.4", (0,), connect5(b"\x27\0\0\0\0"), WRONG, "maximum_packet_size of CONNECT is 0"),
    Case("3.1.2.11.6", (0,), connect5(b"\x19\2"), WRONG, "request_response_information of CONNECT is 2"),
    Case("3.1.2.11.7", (0,), connect5(b"\x17\2"), WRONG, "request_problem_information of CONNECT is 2"),
    Case("3.1.2.11.10", (0,), connect5(b"\x16\0\1x"), WRONG, "no authentication method"),
    Case(
        "2.2.2.2",
        (0,),
        connect5(b"\x18\0\0\0\1"),
        BAD,
        "CONNECT cannot have the property will_delay_interval",
    ),
    Case(
        "3.1.3.2",
        (0,),
        connect5(b"", b"\6", b"\0\1c\3\x21\0\1\0\1t\0\0"),
        BAD,
        "the will of CONNECT cannot have the property receive_maximum",
    ),
    Case("3.1.2.11.2", (0,), connect5(b"\x11\0\0\0\1" * 2), WRONG, "session_expiry_interval more than once"),
)

OF_CLIENTS = (
    Case("3.1.0", BOTH, packet(0x10, M4 + b"\2\0\0\0\1c"), WRONG, "a second CONNECT"),
    Case("2.1.2", BOTH, b"\0\0", BAD, "packets of type 0 do not exist"),
    Case("3.1.1 2.2.1", (V3, V4), b"\xf0\0", BAD, "packets of type 15 do not exist"),
    *(
        Case("2.1.2", ALL, bytes((first, 0)), WRONG, "a client cannot send")
        for first in (0x20, 0x90, 0xB0, 0xD0)
    ),
    *(
        Case("2.1.3", BOTH, bytes((first, 2, 0, 1)), BAD, "the flags of")
        for first in (0x41, 0x52, 0x60, 0x6A, 0x7F, 0x80, 0x83, 0x91, 0xA0, 0xC1, 0xE8)
    ),
    Case("2.1.4", BOTH, b"\x30\xff\xff\xff\xff\1", BAD, "a remaining length has more than 4 bytes"),
    Case("1.5.5", (V5,), b"\xc0\x80\0", BAD, "a remaining length has more bytes than it needs"),
    Case("3.3.1.1", ALL, b"\x38\3\0\1t", BAD, "DUP with QoS 0"),
    Case("3.3.1.2", ALL, b"\x36\5\0\1t\0\1", BAD, "PUBLISH has QoS 3"),
    Case("3.3.1.2", ALL, b"\x36", BAD, "PUBLISH has QoS 3"),
    Case("2.2.1", ALL, b"\x32\6\0\1t\0\0\0", WRONG, "PUBLISH has the packet identifier 0"),
    Case("3.3.2.1", (V3, V4), b"\x30\2\0\0", WRONG, "PUBLISH has no topic"),
    Case("3.3.2.1", (V5,), b"\x30\3\0\0\0", WRONG, "PUBLISH has no topic and no topic alias"),
    Case("3.3.2.1", BOTH, packet(0x30, b"\0\3a/+\0"), BAD, "topic name of PUBLISH has a wildcard"),
    Case("3.3.2.1", BOTH, packet(0x30, b"\0\1#\0"), BAD, "topic name of PUBLISH has a wildcard"),
    Case("1.5.4", BOTH, packet(0x30, b"\0\2\xc0\x80\0"), BAD, "topic name of PUBLISH is not UTF-8"),
    Case("1.5.4", BOTH, packet(0x30, b"\0\3\xed\xa0\x80\0"), BAD, "topic name of PUBLISH is not UTF-8"),
    Case("1.5.4", BOTH, packet(0x30, b"\0\3a\0b\0"), BAD, "topic name of PUBLISH has the character U+0000"),
    *(
        Case("1.5.4", BOTH, packet(0x30, b"\0\3a" + sign.encode() + b"\0"), BAD, "a control character")
        for sign in ("\x80", "\x9f")
    ),
    Case("1.5.4", BOTH, packet(0x30, b"\0\3a\x01b\0"), BAD, "topic name of PUBLISH has a control character"),
    Case("1.5.4", BOTH, packet(0x30, b"\0\3a\x7fb\0"), BAD, "topic name of PUBLISH has a control character"),
    Case("3.3", ALL, b"\x30\0", BAD, "PUBLISH ends before"),
    Case("3.3", ALL, b"\x30\1\0", BAD, "PUBLISH ends before"),
    Case("3.3", ALL, b"\x30\3\0\2t", BAD, "PUBLISH ends before"),
    Case("3.3", ALL, b"\x32\4\0\1t\0", BAD, "PUBLISH ends before"),
    Case("3.3.2.3", (V5,), b"\x30\3\0\1t", BAD, "PUBLISH ends before"),
    Case(
        "3.3.2.3.1",
        (V5,),
        packet(0x30, b"\0\1t\5\1\1"),
        BAD,
        "properties of PUBLISH are longer than the packet",
    ),
    Case("1.5.5", (V5,), packet(0x30, b"\0\1t\x82\0\1\1"), BAD, "more bytes than it needs"),
    Case("1.5.5", (V5,), packet(0x30, b"\0\1t\x80\x80\x80\x80\1"), BAD, "has more than 4 bytes"),
    Case("2.2.2.2", (V5,), publish5(b"\x7f\0"), BAD, "property 0x7f, which does not exist"),
    Case("2.2.2.2", (V5,), publish5(b"\x21\0\1"), BAD, "PUBLISH cannot have the property receive_maximum"),
    Case("2.2.2.2", (V5,), publish5(b"\2\0\0\0"), BAD, "ends before its message_expiry_interval"),
    Case(
        "3.3.2.3.2",
        (V5,),
        publish5(b"\1\2"),
        WRONG,
        "payload_format_indicator of PUBLISH is 2; it must be 0 or 1",
    ),
    Case("3.3.2.3.3", (V5,), publish5(b"\2\0\0\0\1" * 2), WRONG, "message_expiry_interval more than once"),
    Case(
        "3.3.2.3.4", (V5,), publish5(b"\x23\0\0"), 0x94, "topic_alias of PUBLISH is 0; it must be 1 or more"
    ),
    Case("3.3.2.3.5", (V5,), publish5(b"\x08\0\3a/#"), BAD, "response_topic of PUBLISH has a wildcard"),
    Case("3.3.2.3.5", (V5,), publish5(b"\x08\0\0"), BAD, "response_topic of PUBLISH is empty"),
    Case(
        "3.3.2.3.7",
        (V5,),
        publish5(b"\x26\0\1\xff\0\0"),
        BAD,
        "name of a user_property of PUBLISH is not UTF-8",
    ),
    Case(
        "3.3.2.3.8",
        (V5,),
        publish5(b"\x0b\1"),
        WRONG,
        "a client cannot send PUBLISH with the property subscr",
    ),
    Case("2.2.1", ALL, b"\x40\2\0\0", WRONG, "PUBACK has the packet identifier 0"),
    Case("2.2.1", ALL, b"\x62\2\0\0", WRONG, "PUBREL has the packet identifier 0"),
    Case("3.4", ALL, b"\x40\1\0", BAD, "PUBACK ends before its packet identifier"),
    Case("3.1.1 3.4", (V3, V4), b"\x40\3\0\1\0", BAD, "PUBACK has 1 bytes behind its last field"),
    Case("3.4.2.1", (V5,), b"\x40\3\0\1\1", WRONG, "PUBACK of a client cannot have the reason code 0x01"),
    Case("3.6.2.1", (V5,), b"\x62\3\0\1\x10", WRONG, "PUBREL of a client cannot have the reason code 0x10"),
    Case("3.4.2.2", (V5,), b"\x40\5\0\1\0\0x", BAD, "PUBACK has 1 bytes behind its last field"),
    Case("2.2.2.2", (V5,), b"\x40\7\0\1\0\3\x23\0\1", BAD, "PUBACK cannot have the property topic_alias"),
    Case("3.8.3", (V3, V4), b"\x82\2\0\1", WRONG, "SUBSCRIBE has no topic filter"),
    Case("3.8.3", (V5,), b"\x82\3\0\1\0", WRONG, "SUBSCRIBE has no topic filter"),
    Case("2.2.1", (V3, V4), b"\x82\6\0\0\0\1t\0", WRONG, "SUBSCRIBE has the packet identifier 0"),
    Case("3.8.3.1", (V5,), b"\x82\7\0\1\0\0\1t\3", WRONG, "has QoS 3"),
    Case("3.1.1 3.8.3", (V4,), b"\x82\6\0\1\0\1t\3", BAD, "has QoS 3"),
    Case("3.1.1 3.8.3", (V4,), b"\x82\6\0\1\0\1t\4", BAD, "reserved bit of the options"),
    Case("3.8.3.1", (V5,), b"\x82\7\0\1\0\0\1t\x40", BAD, "reserved bit of the options"),
    Case("3.8.3.1", (V5,), b"\x82\7\0\1\0\0\1t\x30", WRONG, "retain handling 3"),
    Case("3.8.3.1", (V5,), packet(0x82, b"\0\1\0\0\x0a$share/g/t\4"), WRONG, "has the option No Local"),
    Case("2.1.3", (V5,), packet(0xF1, b"\x18\4\x15\0\1m"), BAD, "the flags of AUTH are 0x1"),
    Case("1.5.4", (V4,), b"\x82\6\0\1\0\1\xff\0", BAD, "topic filter of SUBSCRIBE is not UTF-8"),
    Case("1.5.4", (V4,), b"\xa2\5\0\1\0\1\xff", BAD, "topic filter of UNSUBSCRIBE is not UTF-8"),
    Case("4.7.3", (V4,), b"\x82\5\0\1\0\0\0", BAD, "a topic filter of SUBSCRIBE is empty"),
    Case("4.7.3", (V5,), b"\x82\x0a\0\1\0\0\1t\0\0\0\0", BAD, "a topic filter of SUBSCRIBE is empty"),
    Case("4.7.3", (V4,), b"\xa2\4\0\1\0\0", BAD, "a topic filter of UNSUBSCRIBE is empty"),
    Case("1.5.4", (V4,), b"\x82\6\0\1\0\1\x1f\0", BAD, "topic filter of SUBSCRIBE has a control"),
    Case("1.5.4", (V4,), b"\xa2\5\0\1\0\1\x1f", BAD, "topic filter of UNSUBSCRIBE has a control"),
    Case("4.8.2", (V5,), packet(0x82, b"\0\1\0\0\x09$share/g/\0"), WRONG, "no filter behind its group"),
    Case("4.8.2", (V4,), packet(0x82, b"\0\1\0\x08$share/g\0"), WRONG, "no filter behind its group"),
    Case("3.8.3", (V4,), b"\x82\5\0\1\0\1t", BAD, "SUBSCRIBE ends before its subscription options"),
    Case(
        "3.8.2.1.2",
        (V5,),
        packet(0x82, b"\0\1\2\x0b\0\0\1t\0"),
        WRONG,
        "subscription_identifier of SUBSCRIBE is 0",
    ),
    Case(
        "3.8.2.1.2",
        (V5,),
        packet(0x82, b"\0\1\4\x0b\1\x0b\2\0\1t\0"),
        WRONG,
        "subscription_identifier more than once",
    ),
    Case("3.10.3", (V3, V4), b"\xa2\2\0\1", WRONG, "UNSUBSCRIBE has no topic filter"),
    Case("3.10.3", (V5,), b"\xa2\3\0\1\0", WRONG, "UNSUBSCRIBE has no topic filter"),
    Case("3.10.3", (V5,), b"\xa2\6\0\1\0\0\1\0", BAD, "topic filter of UNSUBSCRIBE has the character U+0000"),
    Case("3.12", BOTH, b"\xc0\1\0", BAD, "PINGREQ has 1 bytes behind its last field"),
    Case("3.1.1 3.14", (V4,), b"\xe0\1\0", BAD, "DISCONNECT has 1 bytes behind its last field"),
    Case("3.14.2.1", (V5,), b"\xe0\1\x8e", WRONG, "DISCONNECT of a client cannot have the reason code 0x8e"),
    Case(
        "3.14.2.2.5",
        (V5,),
        b"\xe0\6\0\4\x1c\0\1s",
        WRONG,
        "a client cannot send DISCONNECT with the property server_ref",
    ),
    Case("3.15.2.1", (V5,), b"\xf0\0", WRONG, "AUTH of a client cannot have the reason code 0x00"),
    Case("3.15.2.2.2", (V5,), b"\xf0\2\x18\0", WRONG, "AUTH has no authentication method"),
    Case(
        "own bound",
        (V5,),
        publish5(b"\x26\0\0\0\0" * (USER_PROPERTIES_MAX + 1)),
        0x97,
        "more than 1000 of user_pro",
    ),
    Case(
        "own bound",
        (V4,),
        packet(0x82, b"\0\1" + b"\0\1t\0" * (FILTERS_MAX + 1)),
        0x97,
        "more than 4096 topic filters",
    ),
    Case(
        "own bound",
        (V4,),
        packet(0xA2, b"\0\1" + b"\0\1t" * (FILTERS_MAX + 1)),
        0x97,
        "more than 4096 topic filters",
    ),
)

FIRST_OF_SERVERS = (
    Case(
        "3.2", BOTH, b"\x30\4\0\1t\0", WRONG, "the first packet of the server is PUBLISH; it must be CONNACK"
    ),
    Case("3.2.2.1", (V4,), b"\x20\2\2\0", BAD, "reserved acknowledge flag"),
    Case("3.2.2.1", (V4,), b"\x20\2\1\5", WRONG, "refuses the connection and says that there is a session"),
    Case(
        "3.2.2.1", (V5,), b"\x20\3\1\x87\0", WRONG, "refuses the connection and says that there is a session"
    ),
    Case("3.1.1 3.2.2.3", (V4,), b"\x20\2\0\6", WRONG, "CONNACK has the return code 6"),
    Case("3.2.2.2", (V5,), b"\x20\3\0\1\0", WRONG, "CONNACK of a server cannot have the reason code 0x01"),
    Case("3.2.2.3.4", (V5,), b"\x20\5\0\0\2\x24\2", WRONG, "maximum_qos of CONNACK is 2; it must be 0 or 1"),
    Case("3.2.2.3.5", (V5,), b"\x20\5\0\0\2\x25\2", WRONG, "retain_available of CONNACK is 2"),
    Case("2.2.2.2", (V5,), b"\x20\5\0\0\2\x17\1", BAD, "CONNACK cannot have the property request_problem"),
)

OF_SERVERS = (
    *(Case("2.1.2", ALL, bytes((first, 0)), WRONG, "a server cannot send") for first in (0x82, 0xA2, 0xC0)),
    Case("3.1.1 3.14", (V3, V4), b"\xe0\0", WRONG, "a server cannot send DISCONNECT"),
    Case("2.1.3", BOTH, b"\xd1\0", BAD, "the flags of PINGRESP"),
    Case("3.9.3", (V4,), b"\x90\2\0\1", BAD, "SUBACK has no code"),
    Case("3.1.1 3.9.3", (V4,), b"\x90\3\0\1\3", WRONG, "SUBACK has the return code 0x03"),
    Case("3.9.3", (V5,), b"\x90\4\0\1\0\3", WRONG, "SUBACK of a server cannot have the reason code 0x03"),
    Case("3.11.3", (V5,), b"\xb0\3\0\1\0", BAD, "UNSUBACK has no code"),
    Case("3.11.3", (V5,), b"\xb0\4\0\1\0\1", WRONG, "UNSUBACK of a server cannot have the reason code 0x01"),
    Case("3.14.2.1", (V5,), b"\xe0\1\4", WRONG, "DISCONNECT of a server cannot have the reason code 0x04"),
    Case(
        "3.14.2.2.2",
        (V5,),
        b"\xe0\7\0\5\x11\0\0\0\1",
        WRONG,
        "a server cannot send DISCONNECT with the property sess",
    ),
)


def each(cases: tuple[Case, ...]) -> pytest.MarkDecorator:
    """A test for each version of each case."""
    given = [
        pytest.param(version, case, id=f"{case.section}-v{version}-{case.sentence[:30]}")
        for case in cases
        for version in case.versions
    ]
    return pytest.mark.parametrize(("version", "case"), given)


def check(reader: PacketReader, case: Case) -> None:
    with pytest.raises(Malformed) as caught:
        reader.feed(case.data)
    assert case.sentence in caught.value.sentence
    assert caught.value.code == case.code


@each(FIRST_OF_CLIENTS)
def test_a_wrong_first_packet_is_refused(version: int, case: Case) -> None:
    check(PacketReader(BYTES_MAX), case)


@each(OF_CLIENTS)
def test_a_wrong_packet_of_a_client_is_refused(version: int, case: Case) -> None:
    check(opened(version), case)


@each(FIRST_OF_SERVERS)
def test_a_wrong_first_packet_of_a_server_is_refused(version: int, case: Case) -> None:
    check(PacketReader(BYTES_MAX, client_version=version), case)


@each(OF_SERVERS)
def test_a_wrong_packet_of_a_server_is_refused(version: int, case: Case) -> None:
    check(opened(version, from_server=True), case)


@each(OF_CLIENTS)
def test_it_is_refused_as_well_where_its_bytes_come_one_by_one(version: int, case: Case) -> None:
    reader = opened(version)
    with pytest.raises(Malformed) as caught:
        list(map(reader.feed, map(bytes, zip(case.data))))
    assert caught.value.code == case.code


def test_the_packets_before_what_is_wrong_come_with_it() -> None:
    reader = opened(V4)
    with pytest.raises(Malformed) as caught:
        reader.feed(b"\x30\4\0\1tx" + b"\xc0\0" + b"\x40\2\0\0" + b"\xc0\0")
    assert caught.value.packets == [p.Publish("t", b"x"), p.PingReq()]


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (b"\0\4MQTT\4\3\0\0\0\1c", V4),
        (b"\0\4MQTT\5\3\0\0\0\0\1c", V5),
        (b"\0\4MQTT\6\2\0\0\0\0\1c", V4),
        (b"\0\4MQTT\3\2\0\0\0\1c", V4),
        (b"\0\4MQTT\x84\2\0\0\0\1c", V4),
        (b"\0\4HTTP\4\2\0\0\0\1c", 0),
    ],
    ids=["flag of 3.1.1", "flag of 5.0", "level 6", "level 3", "level of a bridge", "other name"],
)
def test_a_refused_connect_says_in_which_version_it_is_answered(body: bytes, version: int) -> None:
    reader = PacketReader(BYTES_MAX)
    with pytest.raises(Malformed):
        reader.feed(packet(0x10, body))
    assert reader.version == version
