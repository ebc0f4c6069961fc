"""The packets of MQTT, with the names of the specifications (MQTT Version 5.0 and 3.1.1, OASIS).

Owns the types of packets, their numbers, and the reason codes. Does not own their bytes (`reader.py`, `writer.py`), nor
what a packet means where it comes: that is the session.

Packets of all versions have the same types. What a version does not have is empty: `properties` of 3.1.1, the filters'
options, the code of a PUBACK. They are structs and not tuples, because a hot packet is made in a quarter of the time;
`gc=False`, because none can be part of a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

V3_1: Final = 3
"""MQTT 3.1, whose protocol name is `MQIsdp`. It is answered as 3.1.1 is."""
V3_1_1: Final = 4
V5: Final = 5

CONNECT: Final = 1
CONNACK: Final = 2
PUBLISH: Final = 3
PUBACK: Final = 4
PUBREC: Final = 5
PUBREL: Final = 6
PUBCOMP: Final = 7
SUBSCRIBE: Final = 8
SUBACK: Final = 9
UNSUBSCRIBE: Final = 10
UNSUBACK: Final = 11
PINGREQ: Final = 12
PINGRESP: Final = 13
DISCONNECT: Final = 14
AUTH: Final = 15

NAMES: Final = (
    "packet of type 0",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
)
"""The names of the types, by their numbers."""

# The reason codes of 5.0, section 2.4. Codes from 0x80 on are failures.
SUCCESS: Final = 0x00
GRANTED_QOS_0: Final = 0x00
GRANTED_QOS_1: Final = 0x01
GRANTED_QOS_2: Final = 0x02
DISCONNECT_WITH_WILL_MESSAGE: Final = 0x04
NO_MATCHING_SUBSCRIBERS: Final = 0x10
NO_SUBSCRIPTION_EXISTED: Final = 0x11
CONTINUE_AUTHENTICATION: Final = 0x18
RE_AUTHENTICATE: Final = 0x19
UNSPECIFIED_ERROR: Final = 0x80
MALFORMED_PACKET: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
IMPLEMENTATION_SPECIFIC_ERROR: Final = 0x83
UNSUPPORTED_PROTOCOL_VERSION: Final = 0x84
CLIENT_IDENTIFIER_NOT_VALID: Final = 0x85
BAD_USER_NAME_OR_PASSWORD: Final = 0x86
NOT_AUTHORIZED: Final = 0x87
SERVER_UNAVAILABLE: Final = 0x88
SERVER_BUSY: Final = 0x89
BANNED: Final = 0x8A
SERVER_SHUTTING_DOWN: Final = 0x8B
BAD_AUTHENTICATION_METHOD: Final = 0x8C
KEEP_ALIVE_TIMEOUT: Final = 0x8D
SESSION_TAKEN_OVER: Final = 0x8E
TOPIC_FILTER_INVALID: Final = 0x8F
TOPIC_NAME_INVALID: Final = 0x90
PACKET_IDENTIFIER_IN_USE: Final = 0x91
PACKET_IDENTIFIER_NOT_FOUND: Final = 0x92
RECEIVE_MAXIMUM_EXCEEDED: Final = 0x93
TOPIC_ALIAS_INVALID: Final = 0x94
PACKET_TOO_LARGE: Final = 0x95
MESSAGE_RATE_TOO_HIGH: Final = 0x96
QUOTA_EXCEEDED: Final = 0x97
ADMINISTRATIVE_ACTION: Final = 0x98
PAYLOAD_FORMAT_INVALID: Final = 0x99
RETAIN_NOT_SUPPORTED: Final = 0x9A
QOS_NOT_SUPPORTED: Final = 0x9B
USE_ANOTHER_SERVER: Final = 0x9C
SERVER_MOVED: Final = 0x9D
SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: Final = 0x9E
CONNECTION_RATE_EXCEEDED: Final = 0x9F
MAXIMUM_CONNECT_TIME: Final = 0xA0
SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED: Final = 0xA1
WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: Final = 0xA2

Properties = Mapping[str, Any]
"""Properties of 5.0 by the names in `properties.py`, as `message_expiry_interval`. A number is an int, a flag a bool, a
text a str, binary data bytes. `user_property` is a list of pairs of texts, `subscription_identifier` a list of ints."""
NONE: Final[Properties] = MappingProxyType({})
"""No properties."""


class Will(msgspec.Struct, frozen=True, gc=False):
    """The message that the server publishes when the connection ends without a DISCONNECT."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NONE


class Connect(msgspec.Struct, frozen=True, gc=False):
    """CONNECT. `clean_start` is Clean Session in 3.1.1. A `keep_alive_s` of 0 is none."""

    version: int
    client_id: str
    clean_start: bool = True
    keep_alive_s: int = 0
    will: Will | None = None
    username: str | None = None
    password: bytes | None = None
    properties: Properties = NONE


class ConnAck(msgspec.Struct, frozen=True, gc=False):
    """CONNACK. In 3.1.1 the code is its return code, 0 to 5, when it is read."""

    session_present: bool
    code: int = SUCCESS
    properties: Properties = NONE


class Publish(msgspec.Struct, frozen=True, gc=False):
    """PUBLISH. With QoS 0 the packet id is 0. The topic is empty where 5.0 gives a topic alias instead."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: Properties = NONE


class Ack(msgspec.Struct, frozen=True, gc=False):
    """PUBACK, PUBREC, PUBREL or PUBCOMP, as `type` says."""

    type: int
    packet_id: int
    code: int = SUCCESS
    properties: Properties = NONE


class Filter(msgspec.Struct, frozen=True, gc=False):
    """A topic filter of a SUBSCRIBE, with its options. 3.1.1 has the QoS only.

    The filter is any text that is not empty: the SUBACK answers for each whether its wildcards stand right.
    """

    filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(msgspec.Struct, frozen=True, gc=False):
    """SUBSCRIBE, with at least one filter."""

    packet_id: int
    filters: Sequence[Filter]
    properties: Properties = NONE


class SubAck(msgspec.Struct, frozen=True, gc=False):
    """SUBACK: a code for each filter of the SUBSCRIBE, in its order. 3.1.1 has 0, 1, 2 and 0x80."""

    packet_id: int
    codes: Sequence[int]
    properties: Properties = NONE


class Unsubscribe(msgspec.Struct, frozen=True, gc=False):
    """UNSUBSCRIBE, with at least one filter."""

    packet_id: int
    filters: Sequence[str]
    properties: Properties = NONE


class UnsubAck(msgspec.Struct, frozen=True, gc=False):
    """UNSUBACK: a code for each filter of the UNSUBSCRIBE. 3.1.1 has no codes."""

    packet_id: int
    codes: Sequence[int] = ()
    properties: Properties = NONE


class PingReq(msgspec.Struct, frozen=True, gc=False):
    """PINGREQ."""


class PingResp(msgspec.Struct, frozen=True, gc=False):
    """PINGRESP."""


class Disconnect(msgspec.Struct, frozen=True, gc=False):
    """DISCONNECT. In 3.1.1 only clients send it, and it has no code."""

    code: int = SUCCESS
    properties: Properties = NONE


class Auth(msgspec.Struct, frozen=True, gc=False):
    """AUTH, which only 5.0 has."""

    code: int = SUCCESS
    properties: Properties = NONE


Packet = (
    Connect
    | ConnAck
    | Publish
    | Ack
    | Subscribe
    | SubAck
    | Unsubscribe
    | UnsubAck
    | PingReq
    | PingResp
    | Disconnect
    | Auth
)


class Malformed(Exception):
    """The peer has sent what the specification does not allow; nothing that follows can be read.

    `code` is the reason code of 5.0 for it, `sentence` says what is wrong, and `packets` are those that came whole and
    right before it in the same bytes.
    """

    def __init__(self, code: int, sentence: str, packets: Sequence[Packet] = ()) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.packets = packets
