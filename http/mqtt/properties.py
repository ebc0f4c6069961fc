"""The properties of MQTT 5: one table, and how they are read and written by it (section 2.2.2).

Owns their numbers, names, types and ranges, in which packets each may be, and how often. Does not own what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, NoReturn

from trunkline.http.mqtt.fields import FIELD_BYTES_MAX, INTEGER_MAX, Fields
from trunkline.http.mqtt.packets import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    MALFORMED_PACKET,
    NONE,
    PROTOCOL_ERROR,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    QUOTA_EXCEEDED,
    SUBACK,
    SUBSCRIBE,
    TOPIC_ALIAS_INVALID,
    UNSUBACK,
    UNSUBSCRIBE,
    Malformed,
    Properties,
)

WILL: Final = 16
"""The place of the properties of a will. They stand in a CONNECT, behind those of the CONNECT itself."""
USER_PROPERTIES_MAX: Final = 1_000
"""In one packet. They cost several times their size in memory, so that a bound on the packet's size is not enough."""

BYTE: Final = "byte"
FLAG: Final = "flag"
TWO_BYTES: Final = "two bytes"
FOUR_BYTES: Final = "four bytes"
INTEGER: Final = "integer"
TEXT: Final = "text"
TOPIC_NAME: Final = "topic name"
BINARY: Final = "binary"
PAIR: Final = "pair"


UNBOUNDED: Final = 2**32 - 1
"""The upper bound of numbers that have no other than that of their type."""


class Property(NamedTuple):
    """A row of the table. `low` and `high` bound numbers; `repeats` names the packets in which it may stand again."""

    number: int
    name: str
    type: str
    packets: frozenset[int]
    low: int = 0
    high: int = UNBOUNDED
    repeats: frozenset[int] = frozenset()
    refusal: int = PROTOCOL_ERROR


def _row(number: int, name: str, type: str, packets: Iterable[int], **more: Any) -> Property:
    return Property(number, name, type, frozenset(packets), **more)


_MESSAGE: Final = (PUBLISH, WILL)
_ACKS: Final = (PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK)
_EVERYWHERE: Final = (CONNECT, CONNACK, PUBLISH, WILL, *_ACKS, SUBSCRIBE, UNSUBSCRIBE, DISCONNECT, AUTH)

TABLE: Final = (
    _row(0x01, "payload_format_indicator", BYTE, _MESSAGE, high=1),
    _row(0x02, "message_expiry_interval", FOUR_BYTES, _MESSAGE),
    _row(0x03, "content_type", TEXT, _MESSAGE),
    _row(0x08, "response_topic", TOPIC_NAME, _MESSAGE),
    _row(0x09, "correlation_data", BINARY, _MESSAGE),
    _row(
        0x0B,
        "subscription_identifier",
        INTEGER,
        (PUBLISH, SUBSCRIBE),
        low=1,
        high=INTEGER_MAX,
        repeats=frozenset((PUBLISH,)),
    ),
    _row(0x11, "session_expiry_interval", FOUR_BYTES, (CONNECT, CONNACK, DISCONNECT)),
    _row(0x12, "assigned_client_identifier", TEXT, (CONNACK,)),
    _row(0x13, "server_keep_alive", TWO_BYTES, (CONNACK,)),
    _row(0x15, "authentication_method", TEXT, (CONNECT, CONNACK, AUTH)),
    _row(0x16, "authentication_data", BINARY, (CONNECT, CONNACK, AUTH)),
    _row(0x17, "request_problem_information", FLAG, (CONNECT,), high=1),
    _row(0x18, "will_delay_interval", FOUR_BYTES, (WILL,)),
    _row(0x19, "request_response_information", FLAG, (CONNECT,), high=1),
    _row(0x1A, "response_information", TEXT, (CONNACK,)),
    _row(0x1C, "server_reference", TEXT, (CONNACK, DISCONNECT)),
    _row(0x1F, "reason_string", TEXT, (CONNACK, *_ACKS, DISCONNECT, AUTH)),
    _row(0x21, "receive_maximum", TWO_BYTES, (CONNECT, CONNACK), low=1),
    _row(0x22, "topic_alias_maximum", TWO_BYTES, (CONNECT, CONNACK)),
    _row(0x23, "topic_alias", TWO_BYTES, (PUBLISH,), low=1, refusal=TOPIC_ALIAS_INVALID),
    _row(0x24, "maximum_qos", BYTE, (CONNACK,), high=1),
    _row(0x25, "retain_available", FLAG, (CONNACK,), high=1),
    _row(0x26, "user_property", PAIR, _EVERYWHERE, repeats=frozenset(_EVERYWHERE)),
    _row(0x27, "maximum_packet_size", FOUR_BYTES, (CONNECT, CONNACK), low=1),
    _row(0x28, "wildcard_subscription_available", FLAG, (CONNACK,), high=1),
    _row(0x29, "subscription_identifier_available", FLAG, (CONNACK,), high=1),
    _row(0x2A, "shared_subscription_available", FLAG, (CONNACK,), high=1),
)
BY_NAME: Final = {row.name: row for row in TABLE}
LISTS: Final = frozenset(("user_property", "subscription_identifier"))
"""The properties whose value is a list, also where only one may be."""
FROM_SERVER_ONLY: Final = frozenset(((PUBLISH, "subscription_identifier"), (DISCONNECT, "server_reference")))
FROM_CLIENT_ONLY: Final = frozenset(((DISCONNECT, "session_expiry_interval"),))

_BY_NUMBER: Final = {row.number: row for row in TABLE}
_READ: Final[dict[str, Callable[[Fields, str], Any]]] = {
    BYTE: Fields.byte,
    FLAG: Fields.byte,
    TWO_BYTES: Fields.two_bytes,
    FOUR_BYTES: Fields.four_bytes,
    INTEGER: Fields.integer,
    TEXT: Fields.text,
    TOPIC_NAME: Fields.topic_name,
    BINARY: Fields.binary,
    PAIR: lambda fields, _: (fields.text("name of a user_property"), fields.text("value of a user_property")),
}


def _allowed(place: int, *, from_server: bool) -> dict[int, tuple[Property, Callable[[Fields, str], Any]]]:
    one_way = FROM_CLIENT_ONLY if from_server else FROM_SERVER_ONLY
    return {
        row.number: (row, _READ[row.type])
        for row in TABLE
        if place in row.packets and (place, row.name) not in one_way
    }


_ALLOWED: Final = {
    from_server: {place: _allowed(place, from_server=from_server) for place in _EVERYWHERE}
    for from_server in (False, True)
}
"""What a sender may write at a place, by numbers, and how each is read."""


def read(fields: Fields, place: int) -> Properties:
    """The properties that stand here, with their length. `place` is the type of the packet, or `WILL`."""
    size = fields.integer("length of the properties")
    if not size:
        return NONE
    end_of_packet = fields.stop
    stop = fields.at + size
    if stop > end_of_packet:
        raise Malformed(MALFORMED_PACKET, f"the properties of {fields.name} are longer than the packet")
    fields.stop = stop
    found: dict[str, Any] = {}
    allowed = _ALLOWED[fields.from_server][place]
    while fields.at < stop:
        number = fields.byte("property identifier")  # All of them have one byte.
        row, read_value = allowed.get(number) or _not_allowed(fields, place, number)
        name = row.name
        value = read_value(fields, name)
        if row.low or row.high != UNBOUNDED:
            _check_range(fields, row, value)
        if name in LISTS:
            _append(fields, place, row, found.setdefault(name, []), value)
        elif name in found:
            raise _twice(fields, name)
        else:
            found[name] = bool(value) if row.type == FLAG else value
    fields.stop = end_of_packet
    return found


def _append(fields: Fields, place: int, row: Property, values: list[Any], value: Any) -> None:
    values.append(value)
    if len(values) > 1 and place not in row.repeats:
        raise _twice(fields, row.name)
    if len(values) > USER_PROPERTIES_MAX:
        raise Malformed(QUOTA_EXCEEDED, f"{fields.name} has more than {USER_PROPERTIES_MAX} of {row.name}")


def _not_allowed(fields: Fields, place: int, number: int) -> NoReturn:
    """Say why this sender cannot write this property here."""
    row = _BY_NUMBER.get(number)
    if row is None:
        raise Malformed(
            MALFORMED_PACKET, f"{fields.name} has the property {number:#04x}, which does not exist"
        )
    if place not in row.packets:
        raise Malformed(MALFORMED_PACKET, f"{fields.name} cannot have the property {row.name}")
    sender = "server" if fields.from_server else "client"
    raise Malformed(PROTOCOL_ERROR, f"a {sender} cannot send {fields.name} with the property {row.name}")


def _check_range(fields: Fields, row: Property, value: int) -> None:
    if not row.low <= value <= row.high:
        right = f"{row.low} or {row.high}" if row.high == 1 else f"{row.low} or more"
        raise Malformed(
            row.refusal, f"the property {row.name} of {fields.name} is {value}; it must be {right}"
        )


def _twice(fields: Fields, name: str) -> Malformed:
    return Malformed(PROTOCOL_ERROR, f"{fields.name} has the property {name} more than once")


def written(properties: Properties) -> bytes:
    """The bytes of these properties, with their length.

    ValueError: there is no such property, or its value cannot be written. That each is right for its packet is the
    caller's care.
    """
    if not properties:
        return b"\0"
    parts = bytearray()
    for name, value in properties.items():
        row = BY_NAME.get(name)
        if row is None:
            raise ValueError(f"MQTT has no property {name}")
        for each in value if name in LISTS else (value,):
            parts.append(row.number)
            parts += _WRITE[row.type](each)
    return integer_bytes(len(parts)) + parts


def integer_bytes(value: int) -> bytes:
    """A variable byte integer."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    if value > INTEGER_MAX:
        raise ValueError(f"{value} is too large for MQTT, whose integers end at {INTEGER_MAX}")
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def binary_bytes(value: bytes) -> bytes:
    """Binary data with its length."""
    if len(value) > FIELD_BYTES_MAX:
        raise ValueError(f"a text or binary data has {len(value)} bytes; MQTT allows {FIELD_BYTES_MAX}")
    return len(value).to_bytes(2, "big") + value


def text_bytes(value: str) -> bytes:
    """A text with its length."""
    return binary_bytes(value.encode())


_WRITE: Final[dict[str, Callable[[Any], bytes]]] = {
    BYTE: lambda value: value.to_bytes(1, "big"),
    FLAG: lambda value: b"\1" if value else b"\0",
    TWO_BYTES: lambda value: value.to_bytes(2, "big"),
    FOUR_BYTES: lambda value: value.to_bytes(4, "big"),
    INTEGER: integer_bytes,
    TEXT: text_bytes,
    TOPIC_NAME: text_bytes,
    BINARY: binary_bytes,
    PAIR: lambda pair: text_bytes(pair[0]) + text_bytes(pair[1]),
}
