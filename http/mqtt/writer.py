"""The bytes of packets, for servers and for clients, in all versions.

Owns their form. Does not own whether a packet is right: that its properties may be in it, that its topic has no
wildcard. What has no form in MQTT, as a text of more than 65,535 bytes, is a `ValueError`, or an `OverflowError`.

`encoded_publish` makes the bytes of a message once for all its subscribers: only the packet identifier differs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import properties as props
from trunkline.http.mqtt.packets import NONE, SUCCESS, V3_1, V5, Properties
from trunkline.http.mqtt.properties import binary_bytes, integer_bytes, text_bytes
from trunkline.http.mqtt.reason_codes import return_code

PINGREQ: Final = b"\xc0\0"
PINGRESP: Final = b"\xd0\0"
_DUP: Final = 0x08
_ACK_FIRST: Final = {p.PUBACK: 0x40, p.PUBREC: 0x50, p.PUBREL: 0x62, p.PUBCOMP: 0x70}
_SHORT_ACK: Final = struct.Struct(">BBH").pack
_CODED_ACK: Final = struct.Struct(">BBHB").pack
_PROTOCOLS: Final = {3: b"\0\6MQIsdp\3", 4: b"\0\4MQTT\4", 5: b"\0\4MQTT\5"}


class EncodedPublish(NamedTuple):
    """A PUBLISH that can be sent to many: `head`, the packet identifier, `tail`. With QoS 0, head and tail alone.

    Joining them is all that is left for each subscriber: `b"".join((head, packet_id.to_bytes(2, "big"), tail))`.
    """

    head: bytes
    tail: bytes

    def packet(self, packet_id: int = 0, *, dup: bool = False) -> bytes:
        """The packet with this identifier; 0 for QoS 0."""
        head = self.head
        if dup:
            head = bytes((head[0] | _DUP,)) + head[1:]
        if not packet_id:
            return head + self.tail
        return b"".join((head, packet_id.to_bytes(2, "big"), self.tail))


def encoded_publish(
    version: int,
    topic: str,
    payload: bytes,
    qos: int = 0,
    *,
    retain: bool = False,
    properties: Properties = NONE,
) -> EncodedPublish:
    """A PUBLISH without its packet identifier."""
    name = text_bytes(topic)
    own = props.written(properties) if version == V5 else b""
    length = len(name) + (2 if qos else 0) + len(own) + len(payload)
    first = bytes((0x30 | qos << 1 | retain,))
    return EncodedPublish(b"".join((first, integer_bytes(length), name)), own + payload)


def publish(version: int, packet: p.Publish) -> bytes:
    """A PUBLISH that is sent once."""
    encoded = encoded_publish(
        version, packet.topic, packet.payload, packet.qos, retain=packet.retain, properties=packet.properties
    )
    return encoded.packet(packet.packet_id, dup=packet.dup)


def publish_bytes(encoded: EncodedPublish, qos: int) -> int:
    """The size of the packet, which the maximum packet size of a client bounds."""
    return len(encoded.head) + len(encoded.tail) + (2 if qos else 0)


def ack(
    version: int, packet: int, packet_id: int, code: int = SUCCESS, properties: Properties = NONE
) -> bytes:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP. 3.1.1 has neither code nor properties."""
    if properties and version == V5:
        body = packet_id.to_bytes(2, "big") + bytes((code,)) + props.written(properties)
        return _packet(_ACK_FIRST[packet], body)
    if code and version == V5:
        return _CODED_ACK(_ACK_FIRST[packet], 3, packet_id, code)
    return _SHORT_ACK(_ACK_FIRST[packet], 2, packet_id)


def connack(
    version: int, code: int = SUCCESS, *, session_present: bool = False, properties: Properties = NONE
) -> bytes:
    """A CONNACK. The code is one of 5.0; 3.1.1 is told the return code that says the same."""
    session = session_present and version != V3_1
    if version == V5:
        return _packet(0x20, bytes((session, code)), props.written(properties))
    return bytes((0x20, 2, session, return_code(code)))


def suback(version: int, packet_id: int, codes: Iterable[int], properties: Properties = NONE) -> bytes:
    """A SUBACK. The codes are those of 5.0; 3.1.1 has one failure for all."""
    if version == V5:
        return _packet(0x90, packet_id.to_bytes(2, "big"), props.written(properties), bytes(codes))
    granted = bytes(min(code, p.UNSPECIFIED_ERROR) for code in codes)
    return _packet(0x90, packet_id.to_bytes(2, "big"), granted)


def unsuback(version: int, packet_id: int, codes: Sequence[int], properties: Properties = NONE) -> bytes:
    """An UNSUBACK. 3.1.1 has no codes."""
    if version == V5:
        return _packet(0xB0, packet_id.to_bytes(2, "big"), props.written(properties), bytes(codes))
    return _packet(0xB0, packet_id.to_bytes(2, "big"))


def disconnect(version: int, code: int = SUCCESS, properties: Properties = NONE) -> bytes:
    """A DISCONNECT. In 3.1.1 only clients send it, and without a code."""
    if version != V5:
        return b"\xe0\0"
    return _packet(0xE0, _code_and_properties(code, properties))


def auth(code: int = SUCCESS, properties: Properties = NONE) -> bytes:
    """An AUTH, of 5.0."""
    return _packet(0xF0, _code_and_properties(code, properties))


def connect(packet: p.Connect) -> bytes:
    """A CONNECT, in its version."""
    version, will = packet.version, packet.will
    flags = packet.clean_start << 1
    if will is not None:
        flags |= 0x04 | will.qos << 3 | will.retain << 5
    flags |= (packet.password is not None) << 6 | (packet.username is not None) << 7
    parts = [_PROTOCOLS[version], bytes((flags,)), packet.keep_alive_s.to_bytes(2, "big")]
    if version == V5:
        parts.append(props.written(packet.properties))
    parts.append(text_bytes(packet.client_id))
    if will is not None:
        if version == V5:
            parts.append(props.written(will.properties))
        parts += text_bytes(will.topic), binary_bytes(will.payload)
    if packet.username is not None:
        parts.append(text_bytes(packet.username))
    if packet.password is not None:
        parts.append(binary_bytes(packet.password))
    return _packet(0x10, *parts)


def subscribe(version: int, packet: p.Subscribe) -> bytes:
    """A SUBSCRIBE."""
    parts = [packet.packet_id.to_bytes(2, "big")]
    if version == V5:
        parts.append(props.written(packet.properties))
    for each in packet.filters:
        options = each.qos
        if version == V5:
            options |= each.no_local << 2 | each.retain_as_published << 3 | each.retain_handling << 4
        parts += text_bytes(each.filter), bytes((options,))
    return _packet(0x82, *parts)


def unsubscribe(version: int, packet: p.Unsubscribe) -> bytes:
    """An UNSUBSCRIBE."""
    parts = [packet.packet_id.to_bytes(2, "big")]
    if version == V5:
        parts.append(props.written(packet.properties))
    return _packet(0xA2, *parts, *map(text_bytes, packet.filters))


def _code_and_properties(code: int, properties: Properties) -> bytes:
    """The last fields of many packets, each of which is left out where it says nothing."""
    if properties:
        return bytes((code,)) + props.written(properties)
    return bytes((code,)) if code else b""


def _packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return b"".join((bytes((first,)), integer_bytes(len(body)), body))
