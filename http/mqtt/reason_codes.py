"""Which reason codes each packet of 5.0 may have (section 2.4), and the return codes that 3.1.1 has in their place.

Owns the codes by packet and sender. Does not own when which is right.
"""

from __future__ import annotations

from typing import Final

from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import (
    ADMINISTRATIVE_ACTION,
    AUTH,
    BAD_AUTHENTICATION_METHOD,
    BAD_USER_NAME_OR_PASSWORD,
    BANNED,
    CLIENT_IDENTIFIER_NOT_VALID,
    CONNACK,
    DISCONNECT,
    MESSAGE_RATE_TOO_HIGH,
    NOT_AUTHORIZED,
    PROTOCOL_ERROR,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    SERVER_BUSY,
    SERVER_SHUTTING_DOWN,
    SUBACK,
    SUCCESS,
    UNSPECIFIED_ERROR,
    UNSUBACK,
    UNSUPPORTED_PROTOCOL_VERSION,
    Malformed,
)

_PUBLISHED: Final = frozenset((0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99))
_RELEASED: Final = frozenset((0x00, 0x92))
_OF_ANYBODY: Final[dict[int, frozenset[int]]] = {
    PUBACK: _PUBLISHED,
    PUBREC: _PUBLISHED,
    PUBREL: _RELEASED,
    PUBCOMP: _RELEASED,
}
_OF_CLIENTS: Final[dict[int, frozenset[int]]] = {
    **_OF_ANYBODY,
    DISCONNECT: frozenset(
        (0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99)
    ),
    AUTH: frozenset((0x18, 0x19)),
}
_OF_SERVERS: Final[dict[int, frozenset[int]]] = {
    **_OF_ANYBODY,
    CONNACK: frozenset((0x00, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, *range(0x99, 0x9E), 0x9F)),
    SUBACK: frozenset((0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2)),
    UNSUBACK: frozenset((0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91)),
    DISCONNECT: frozenset(
        (0x00, *range(0x80, 0x84), 0x87, 0x89, *range(0x8B, 0x8C), *range(0x8D, 0x91), *range(0x93, 0xA3))
    ),
    AUTH: frozenset((0x00, 0x18)),
}
BY_SENDER: Final = {False: _OF_CLIENTS, True: _OF_SERVERS}
"""The codes of packets, by whether a server sends them."""

UNACCEPTABLE_PROTOCOL_VERSION: Final = 1
IDENTIFIER_REJECTED: Final = 2
SERVER_UNAVAILABLE: Final = 3
BAD_USER_NAME_OR_PASSWORD_3: Final = 4
NOT_AUTHORIZED_3: Final = 5
_IN_OTHER_PACKETS: Final = {
    (CONNACK, ADMINISTRATIVE_ACTION): NOT_AUTHORIZED,
    (CONNACK, MESSAGE_RATE_TOO_HIGH): packets.CONNECTION_RATE_EXCEEDED,
    (CONNACK, SERVER_SHUTTING_DOWN): packets.SERVER_UNAVAILABLE,
    (DISCONNECT, BAD_USER_NAME_OR_PASSWORD): NOT_AUTHORIZED,
    (DISCONNECT, packets.SERVER_UNAVAILABLE): SERVER_BUSY,
}
_RETURN_CODES: Final = {
    SUCCESS: 0,
    UNSUPPORTED_PROTOCOL_VERSION: UNACCEPTABLE_PROTOCOL_VERSION,
    CLIENT_IDENTIFIER_NOT_VALID: IDENTIFIER_REJECTED,
    BAD_USER_NAME_OR_PASSWORD: BAD_USER_NAME_OR_PASSWORD_3,
    BAD_AUTHENTICATION_METHOD: BAD_USER_NAME_OR_PASSWORD_3,
    NOT_AUTHORIZED: NOT_AUTHORIZED_3,
    BANNED: NOT_AUTHORIZED_3,
    packets.TOPIC_NAME_INVALID: NOT_AUTHORIZED_3,
    packets.PACKET_TOO_LARGE: NOT_AUTHORIZED_3,
    packets.PAYLOAD_FORMAT_INVALID: NOT_AUTHORIZED_3,
}


def return_code(code: int) -> int:
    """The return code of a CONNACK of 3.1.1 that says what this reason code says. Where none does it is 3, after which
    clients try again, or 5 if the same CONNECT can never succeed."""
    return _RETURN_CODES.get(code, SERVER_UNAVAILABLE)


def said_in(packet: int, code: int) -> int:
    """The code with which a CONNACK or DISCONNECT of a server says what another one says in other packets."""
    if code in _OF_SERVERS[packet]:
        return code
    return _IN_OTHER_PACKETS.get((packet, code), UNSPECIFIED_ERROR)


def check(code: int, packet: int, name: str, *, from_server: bool) -> None:
    """Refuse a reason code that this packet of this sender cannot have."""
    if code not in BY_SENDER[from_server][packet]:
        sender = "server" if from_server else "client"
        raise Malformed(PROTOCOL_ERROR, f"{name} of a {sender} cannot have the reason code {code:#04x}")
