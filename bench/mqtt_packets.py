"""The packets of MQTT 5 that a load needs, as bytes.

Owns the packets of a client, and the reason in a packet of the server. Does not own a connection.
"""

from __future__ import annotations

from typing import Final

PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70
"""The first bytes of acknowledgements."""

CONNACK, PUBLISH, SUBACK, PINGRESP, DISCONNECT = 0x20, 0x30, 0x90, 0xD0, 0xE0
"""The first bytes of what else a server sends; those of a PUBLISH have its QoS in bits 1 and 2."""

RETAIN: Final = 0x01
"""The bit of the first byte of a PUBLISH that is set if the message is a retained one."""

REFUSED_FROM: Final = 0x80
"""Reason codes from here on are refusals."""

PINGREQ: Final = b"\xc0\x00"
_CLEAN_START, _PASSWORD, _USER_NAME = 0x02, 0x40, 0x80
_REASON_STRING: Final = 0x1F
_SESSION_EXPIRY: Final = 0x11


def connect(client_id: str, user_name: str, password: str, *, session_s: int = 0) -> bytes:
    """A CONNECT with a clean start and without keep alive. Its session outlives the connection for ``session_s``."""
    flags = _CLEAN_START | _PASSWORD | _USER_NAME
    head = b"\x00\x04MQTT\x05" + bytes((flags, 0, 0))
    head += bytes((5, _SESSION_EXPIRY)) + session_s.to_bytes(4) if session_s else b"\x00"
    return _packet(0x10, head + b"".join(_text(text) for text in (client_id, user_name, password)))


def subscribe(topic: str, qos: int) -> bytes:
    """A SUBSCRIBE to one topic, with packet id 1."""
    return _packet(0x82, b"\x00\x01\x00" + _text(topic) + bytes((qos,)))


def publish(topic: bytes, qos: int, packet_id: int, payload: bytes, *, retain: bool = False) -> bytes:
    """A PUBLISH to a topic that ``topic_of`` has made; ``packet_id`` has no meaning with QoS 0."""
    middle = b"\x00" if not qos else packet_id.to_bytes(2) + b"\x00"
    return _packet(PUBLISH | qos << 1 | retain, b"".join((topic, middle, payload)))


def topic_of(topic: str) -> bytes:
    """A topic as ``publish`` takes it."""
    return _text(topic)


def ack(first: int, packet_id: bytes) -> bytes:
    """An acknowledgement of the packet with this id, without a reason."""
    return bytes((first, 2)) + packet_id


def length_at(data: bytes, at: int) -> tuple[int, int]:
    """The remaining length that begins at ``at``, and where the body begins: 0 if that has not come whole."""
    length = shift = 0
    for index in range(at, min(at + 4, len(data))):
        byte = data[index]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return length, index + 1
        shift += 7
    return 0, 0


def reason_of(body: bytes, at: int) -> str:
    """The reason code at ``at`` in a body, and the reason string behind it, if that is the first property."""
    if at >= len(body):
        return "0x00"
    code = f"{body[at]:#04x}"
    size, start = length_at(body, at + 1)
    if size < 3 or body[start] != _REASON_STRING:
        return code
    end = start + 3 + int.from_bytes(body[start + 1 : start + 3])
    return f"{code}: {body[start + 3 : end].decode('utf-8', 'replace')}"


def _packet(first: int, body: bytes) -> bytes:
    size = len(body)
    if size < 0x80:
        return bytes((first, size)) + body
    head = bytearray((first,))
    while size:
        size, byte = size >> 7, size & 0x7F
        head.append(byte | 0x80 if size else byte)
    return bytes(head) + body


def _text(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(2) + raw
