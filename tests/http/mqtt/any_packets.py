"""Packets of all types and versions for the tests of the codec: any at all (Hypothesis), and their bytes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import properties as props
from trunkline.http.mqtt import reason_codes, writer
from trunkline.http.mqtt.reader import PacketReader

BYTES_MAX = 1_000_000
VERSIONS = (p.V3_1, p.V3_1_1, p.V5)


def bytes_of(version: int, packet: p.Packet) -> bytes:
    """The bytes of a packet. The code of a CONNACK is one of 5.0 also for 3.1.1."""
    match packet:
        case p.Connect():
            return writer.connect(packet)
        case p.ConnAck(session_present, code, own):
            return writer.connack(version, code, session_present=session_present, properties=own)
        case p.Publish():
            return writer.publish(version, packet)
        case p.Ack(kind, packet_id, code, own):
            return writer.ack(version, kind, packet_id, code, own)
        case p.Subscribe():
            return writer.subscribe(version, packet)
        case p.SubAck(packet_id, codes, own):
            return writer.suback(version, packet_id, codes, own)
        case p.Unsubscribe():
            return writer.unsubscribe(version, packet)
        case p.UnsubAck(packet_id, codes, own):
            return writer.unsuback(version, packet_id, codes, own)
        case p.PingReq():
            return writer.PINGREQ
        case p.PingResp():
            return writer.PINGRESP
        case p.Disconnect(code, own):
            return writer.disconnect(version, code, own)
        case p.Auth(code, own):
            return writer.auth(code, own)


def opening(version: int, *, from_server: bool) -> bytes:
    """What comes first on a connection."""
    return writer.connack(version) if from_server else writer.connect(p.Connect(version, "client"))


def opened(version: int, *, from_server: bool = False, packet_bytes_max: int = BYTES_MAX) -> PacketReader:
    """A reader that has read the first packet of the other side."""
    reader = PacketReader(packet_bytes_max, client_version=version if from_server else 0)
    assert len(reader.feed(opening(version, from_server=from_server))) == 1
    return reader


def texts() -> SearchStrategy[str]:
    characters = st.characters(codec="utf-8", exclude_characters="\0")
    return st.text(characters, max_size=20)


def plain_texts(least: int = 0, *, exclude: str = "") -> SearchStrategy[str]:
    """Texts without control characters: names of clients and users, topics, and filters."""
    characters = st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters=exclude)
    return st.text(characters, min_size=least, max_size=20)


def topic_names(least: int = 1) -> SearchStrategy[str]:
    return plain_texts(least, exclude="+#")


def _values(row: props.Property) -> SearchStrategy[Any]:
    high = {props.BYTE: 255, props.TWO_BYTES: 65_535}.get(row.type, row.high)
    return {
        props.FLAG: st.booleans(),
        props.TEXT: texts(),
        props.TOPIC_NAME: topic_names(),
        props.BINARY: st.binary(max_size=20),
        props.PAIR: st.tuples(texts(), texts()),
    }.get(row.type, st.integers(row.low, min(row.high, high)))


@st.composite
def properties(draw: st.DrawFn, version: int, place: int, from_server: bool) -> p.Properties:
    """Any properties that this packet of this sender may have."""
    if version != p.V5:
        return p.NONE
    one_way = props.FROM_CLIENT_ONLY if from_server else props.FROM_SERVER_ONLY
    rows = [row for row in props.TABLE if place in row.packets and (place, row.name) not in one_way]
    chosen = draw(st.lists(st.sampled_from(rows), unique=True, max_size=5))
    found = {}
    for row in chosen:
        value = _values(row)
        if row.name in props.LISTS:
            value = st.lists(value, min_size=1, max_size=3 if place in row.repeats else 1)
        found[row.name] = draw(value)
    return found


PACKET_IDS = st.integers(1, 65_535)
QOS = st.integers(0, 2)


@st.composite
def _connects(draw: st.DrawFn, version: int) -> p.Connect:
    will = None
    if draw(st.booleans()):
        own = draw(properties(version, props.WILL, False))
        will = p.Will(draw(topic_names()), draw(st.binary(max_size=40)), draw(QOS), draw(st.booleans()), own)
    username = draw(st.none() | plain_texts())
    may_password = username is not None or version == p.V5
    own = dict(draw(properties(version, p.CONNECT, False)))
    if "authentication_data" in own:
        own.setdefault("authentication_method", "any")
    return p.Connect(
        version,
        draw(plain_texts()),
        draw(st.booleans()),
        draw(st.integers(0, 65_535)),
        will,
        username,
        draw(st.none() | st.binary(max_size=40)) if may_password else None,
        own,
    )


@st.composite
def _publishes(draw: st.DrawFn, version: int, from_server: bool) -> p.Publish:
    qos = draw(QOS)
    own = draw(properties(version, p.PUBLISH, from_server))
    return p.Publish(
        draw(topic_names(0 if "topic_alias" in own else 1)),
        draw(st.binary(max_size=300)),
        qos,
        draw(st.booleans()),
        bool(qos) and draw(st.booleans()),
        draw(PACKET_IDS) if qos else 0,
        own,
    )


@st.composite
def _coded(draw: st.DrawFn, version: int, packet: int, from_server: bool) -> tuple[int, p.Properties]:
    """A reason code and properties of a packet."""
    if version != p.V5:
        return p.SUCCESS, p.NONE
    codes = sorted(reason_codes.BY_SENDER[from_server][packet])
    return draw(st.sampled_from(codes)), draw(properties(version, packet, from_server))


@st.composite
def _acks(draw: st.DrawFn, version: int, from_server: bool) -> p.Ack:
    kind = draw(st.sampled_from((p.PUBACK, p.PUBREC, p.PUBREL, p.PUBCOMP)))
    return p.Ack(kind, draw(PACKET_IDS), *draw(_coded(version, kind, from_server)))


@st.composite
def _auths(draw: st.DrawFn, from_server: bool) -> p.Auth:
    code, own = draw(_coded(p.V5, p.AUTH, from_server))
    return p.Auth(code, {**own, "authentication_method": "any"})


def _filters(version: int) -> SearchStrategy[p.Filter]:
    name = plain_texts(1).filter(lambda text: not text.startswith("$share/"))
    if version != p.V5:
        return st.builds(p.Filter, name, QOS)
    return st.builds(p.Filter, name, QOS, st.booleans(), st.booleans(), st.integers(0, 2))


def _many_codes(version: int, packet: int) -> SearchStrategy[tuple[int, ...]]:
    codes = sorted(reason_codes.BY_SENDER[True][packet]) if version == p.V5 else [0, 1, 2, 0x80]
    return st.lists(st.sampled_from(codes), min_size=1, max_size=5).map(tuple)


def packets(version: int, *, from_server: bool) -> SearchStrategy[p.Packet]:
    """Any packet behind the first that this sender may send."""
    choices: list[SearchStrategy[Any]] = [_publishes(version, from_server), _acks(version, from_server)]
    if from_server:
        choices += [
            st.builds(
                p.SubAck, PACKET_IDS, _many_codes(version, p.SUBACK), properties(version, p.SUBACK, True)
            ),
            st.just(p.PingResp()),
        ]
        if version == p.V5:
            own = properties(version, p.UNSUBACK, True)
            choices.append(st.builds(p.UnsubAck, PACKET_IDS, _many_codes(version, p.UNSUBACK), own))
        else:
            choices.append(st.builds(p.UnsubAck, PACKET_IDS))
    else:
        filters = st.lists(_filters(version), min_size=1, max_size=4).map(tuple)
        names = st.lists(plain_texts(1), min_size=1, max_size=4).map(tuple)
        choices += [
            st.builds(p.Subscribe, PACKET_IDS, filters, properties(version, p.SUBSCRIBE, False)),
            st.builds(p.Unsubscribe, PACKET_IDS, names, properties(version, p.UNSUBSCRIBE, False)),
            st.just(p.PingReq()),
        ]
    if version == p.V5:
        choices.append(_auths(from_server))
    if version == p.V5 or not from_server:
        coded = _coded(version, p.DISCONNECT, from_server)
        choices.append(coded.map(lambda both: p.Disconnect(*both)))
    return st.one_of(choices)


def first_packets(version: int, *, from_server: bool) -> SearchStrategy[p.Packet]:
    """Any CONNECT, or any CONNACK of 5.0; one of 3.1.1 has other codes when it is read (test_writer.py)."""
    if not from_server:
        return _connects(version)
    if version != p.V5:
        return st.builds(p.ConnAck, st.booleans() if version == p.V3_1_1 else st.just(False))
    return st.tuples(st.booleans(), _coded(version, p.CONNACK, True)).map(
        lambda both: p.ConnAck(both[0] and not both[1][0], *both[1])
    )
