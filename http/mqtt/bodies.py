"""The bodies of packets, read field by field: of all but the PUBLISH, which `reader.py` reads itself.

Owns which fields each packet has, in which order, and which of their values the specification forbids. Does not own
what depends on earlier packets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import properties, reason_codes
from trunkline.http.mqtt.fields import Fields
from trunkline.http.mqtt.packets import MALFORMED_PACKET, NONE, PROTOCOL_ERROR, V3_1, V3_1_1, V5, Malformed

FILTERS_MAX: Final = 4_096
"""In one SUBSCRIBE or UNSUBSCRIBE: each costs many times its bytes in memory."""
_VERSIONS: Final = {(b"MQIsdp", 3): V3_1, (b"MQTT", 4): V3_1_1, (b"MQTT", 5): V5}
_SHARED: Final = "$share/"


def connect(fields: Fields) -> p.Connect:
    """A CONNECT. `fields.version` is set as soon as it is known, so that also a refusal can be told in it."""
    version = fields.version = _version(fields)
    flags = fields.byte("connect flags")
    will_flags = flags >> 2 & 0x0F
    if version != V3_1:
        _check_connect_flags(version, flags, will_flags)
    keep_alive_s = fields.two_bytes("keep alive")
    own = properties.read(fields, p.CONNECT) if version == V5 else NONE
    if "authentication_data" in own and "authentication_method" not in own:
        raise Malformed(PROTOCOL_ERROR, "CONNECT has authentication data, but no authentication method")
    client_id = fields.plain("client identifier")
    will = _will(fields, will_flags) if will_flags & 1 else None
    username = password = None
    # In 3.1 the remaining length counts more than the flags: what they announce may be missing.
    if flags & 0x80 and (version != V3_1 or fields.at < fields.stop):
        username = fields.plain("user name")
    if flags & 0x40 and (version != V3_1 or fields.at < fields.stop):
        password = fields.binary("password")
    fields.end()
    clean_start = bool(flags & 2)
    return p.Connect(version, client_id, clean_start, keep_alive_s, will, username, password, own)


def _version(fields: Fields) -> int:
    name = fields.binary("protocol name")
    level = fields.byte("protocol level")
    version = _VERSIONS.get((name, level), 0)
    if version:
        return version
    if name != b"MQTT" and name != b"MQIsdp":
        raise Malformed(MALFORMED_PACKET, "the protocol name of CONNECT is neither MQTT nor MQIsdp")
    # 3.1.1 demands its return code for any other level; 5 leaves it open how it is told.
    fields.version = V3_1_1
    raise Malformed(
        p.UNSUPPORTED_PROTOCOL_VERSION,
        f"the protocol level of CONNECT is {level}; MQTT has 4 and 5 here, and MQIsdp 3",
    )


def _check_connect_flags(version: int, flags: int, will_flags: int) -> None:
    if flags & 1:
        raise Malformed(MALFORMED_PACKET, "the reserved connect flag of CONNECT is 1; it must be 0")
    if will_flags and not will_flags & 1:
        raise Malformed(MALFORMED_PACKET, "CONNECT has a QoS or retain flag of a will, but no will")
    if version == V3_1_1 and flags & 0xC0 == 0x40:
        raise Malformed(MALFORMED_PACKET, "CONNECT has a password without a user name, which needs version 5")


def _will(fields: Fields, flags: int) -> p.Will:
    qos = flags >> 1 & 3
    if qos == 3:
        raise Malformed(MALFORMED_PACKET, "the will of CONNECT has QoS 3; it must be 0, 1 or 2")
    own = NONE
    if fields.version == V5:
        connect_name, fields.name = fields.name, "the will of CONNECT"
        own = properties.read(fields, properties.WILL)
        fields.name = connect_name
    topic = fields.topic_name("will topic")
    return p.Will(topic, fields.binary("will payload"), qos, bool(flags & 8), own)


def connack(fields: Fields) -> p.ConnAck:
    flags = fields.byte("acknowledge flags")
    code = fields.byte("reason code")
    if flags > 1 and fields.version != V3_1:
        raise Malformed(MALFORMED_PACKET, "a reserved acknowledge flag of CONNACK is 1; it must be 0")
    own = NONE
    if fields.version == V5:
        reason_codes.check(code, p.CONNACK, "CONNACK", from_server=fields.from_server)
        own = properties.read(fields, p.CONNACK)
    elif code > reason_codes.NOT_AUTHORIZED_3:
        raise Malformed(PROTOCOL_ERROR, f"CONNACK has the return code {code}; 3.1.1 has 0 to 5")
    if flags and code:
        raise Malformed(PROTOCOL_ERROR, "CONNACK refuses the connection and says that there is a session")
    fields.end()
    return p.ConnAck(bool(flags), code, own)


def ack(fields: Fields) -> p.Ack:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP."""
    packet_id = fields.packet_id()
    code, own = _code_and_properties(fields)
    return p.Ack(fields.packet, packet_id, code, own)


def _code_and_properties(fields: Fields) -> tuple[int, p.Properties]:
    """The last fields of many packets of 5.0, either of which may be missing; the end of all packets."""
    code, own = p.SUCCESS, NONE
    if fields.version == V5 and fields.at < fields.stop:
        code = fields.byte("reason code")
        reason_codes.check(code, fields.packet, fields.name, from_server=fields.from_server)
        if fields.at < fields.stop:
            own = properties.read(fields, fields.packet)
    fields.end()
    return code, own


def subscribe(fields: Fields) -> p.Subscribe:
    packet_id = fields.packet_id()
    own = properties.read(fields, p.SUBSCRIBE) if fields.version == V5 else NONE
    filters: list[p.Filter] = []
    while fields.at < fields.stop or not filters:
        _check_count(fields, len(filters))
        filters.append(_filter(fields))
    return p.Subscribe(packet_id, tuple(filters), own)


def _check_count(fields: Fields, before: int) -> None:
    if fields.at == fields.stop:
        raise Malformed(PROTOCOL_ERROR, f"{fields.name} has no topic filter; it must have at least one")
    if before == FILTERS_MAX:
        raise Malformed(p.QUOTA_EXCEEDED, f"{fields.name} has more than {FILTERS_MAX} topic filters")


def _filter(fields: Fields) -> p.Filter:
    text = fields.topic_filter()
    options = fields.byte("subscription options")
    if fields.version == V3_1:
        options &= 3
    qos, retain_handling = options & 3, options >> 4 & 3
    if options & (0xC0 if fields.version == V5 else 0xFC):
        raise Malformed(MALFORMED_PACKET, "a reserved bit of the options in SUBSCRIBE is 1; it must be 0")
    if qos == 3:
        raise Malformed(
            PROTOCOL_ERROR if fields.version == V5 else MALFORMED_PACKET,
            "a filter of SUBSCRIBE has QoS 3; it must be 0, 1 or 2",
        )
    if retain_handling == 3:
        raise Malformed(PROTOCOL_ERROR, "a filter of SUBSCRIBE has retain handling 3; it must be 0, 1 or 2")
    no_local = bool(options & 4)
    if text.startswith(_SHARED) and not text[len(_SHARED) :].partition("/")[2]:
        raise Malformed(PROTOCOL_ERROR, "a shared subscription of SUBSCRIBE has no filter behind its group")
    if no_local and text.startswith(_SHARED):
        raise Malformed(PROTOCOL_ERROR, "a shared subscription of SUBSCRIBE has the option No Local")
    return p.Filter(text, qos, no_local, bool(options & 8), retain_handling)


def suback(fields: Fields) -> p.SubAck:
    packet_id = fields.packet_id()
    own = properties.read(fields, p.SUBACK) if fields.version == V5 else NONE
    codes = tuple(fields.data[fields.at : fields.stop])
    if not codes:
        raise Malformed(MALFORMED_PACKET, "SUBACK has no code; it must have one for each topic filter")
    for code in codes:
        if fields.version == V5:
            reason_codes.check(code, p.SUBACK, "SUBACK", from_server=fields.from_server)
        elif code not in (0, 1, 2, p.UNSPECIFIED_ERROR):
            raise Malformed(
                PROTOCOL_ERROR, f"SUBACK has the return code {code:#04x}; 3.1.1 has 0, 1, 2, 0x80"
            )
    return p.SubAck(packet_id, codes, own)


def unsubscribe(fields: Fields) -> p.Unsubscribe:
    packet_id = fields.packet_id()
    own = properties.read(fields, p.UNSUBSCRIBE) if fields.version == V5 else NONE
    filters: list[str] = []
    while fields.at < fields.stop or not filters:
        _check_count(fields, len(filters))
        filters.append(fields.topic_filter())
    return p.Unsubscribe(packet_id, tuple(filters), own)


def unsuback(fields: Fields) -> p.UnsubAck:
    packet_id = fields.packet_id()
    if fields.version != V5:
        fields.end()
        return p.UnsubAck(packet_id)
    own = properties.read(fields, p.UNSUBACK)
    codes = tuple(fields.data[fields.at : fields.stop])
    if not codes:
        raise Malformed(MALFORMED_PACKET, "UNSUBACK has no code; it must have one for each topic filter")
    for code in codes:
        reason_codes.check(code, p.UNSUBACK, "UNSUBACK", from_server=fields.from_server)
    return p.UnsubAck(packet_id, codes, own)


def pingreq(fields: Fields) -> p.PingReq:
    fields.end()
    return p.PingReq()


def pingresp(fields: Fields) -> p.PingResp:
    fields.end()
    return p.PingResp()


def disconnect(fields: Fields) -> p.Disconnect:
    return p.Disconnect(*_code_and_properties(fields))


def auth(fields: Fields) -> p.Auth:
    """An AUTH. Only the one without a body has no authentication method (section 3.15.2.1)."""
    short = fields.at == fields.stop
    if short:
        reason_codes.check(p.SUCCESS, p.AUTH, "AUTH", from_server=fields.from_server)
    code, own = _code_and_properties(fields)
    if not short and "authentication_method" not in own:
        raise Malformed(PROTOCOL_ERROR, "AUTH has no authentication method")
    return p.Auth(code, own)


FROM_CLIENTS: Final[dict[int, Callable[[Fields], p.Packet]]] = {
    p.CONNECT: connect,
    p.PUBACK: ack,
    p.PUBREC: ack,
    p.PUBREL: ack,
    p.PUBCOMP: ack,
    p.SUBSCRIBE: subscribe,
    p.UNSUBSCRIBE: unsubscribe,
    p.PINGREQ: pingreq,
    p.DISCONNECT: disconnect,
    p.AUTH: auth,
}
"""The readers of the packets that a client may send, by type."""
FROM_SERVERS: Final[dict[int, Callable[[Fields], p.Packet]]] = {
    p.CONNACK: connack,
    p.PUBACK: ack,
    p.PUBREC: ack,
    p.PUBREL: ack,
    p.PUBCOMP: ack,
    p.SUBACK: suback,
    p.UNSUBACK: unsuback,
    p.PINGRESP: pingresp,
    p.DISCONNECT: disconnect,
    p.AUTH: auth,
}
"""The readers of the packets that a server may send."""
