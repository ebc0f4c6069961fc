"""The codec with paho, the client of many devices, over a socket: each reads what the other has written.

The test is the server: it reads with `PacketReader` and answers with `writer`, as paho expects it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.http.mqtt.any_packets import BYTES_MAX
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer
from trunkline.http.mqtt.packets import V5
from trunkline.http.mqtt.reader import PacketReader

WAIT_S = 20
BY_VERSION = pytest.mark.parametrize("version", [p.V3_1, p.V3_1_1, p.V5])


class Server:
    """One connection of paho, whose packets are asked for one after another."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._reader = PacketReader(BYTES_MAX)
        self._packets: list[p.Packet] = []
        self._socket: socket.socket | None = None

    def next(self) -> Any:
        """The next packet of the client."""
        if self._socket is None:
            self._socket, _ = self._listener.accept()
            self._socket.settimeout(WAIT_S)
        while not self._packets:
            data = self._socket.recv(65_536)
            assert data, "paho has closed the connection"
            self._packets += self._reader.feed(data)
        return self._packets.pop(0)

    def send(self, data: bytes) -> None:
        assert self._socket is not None
        self._socket.sendall(data)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


class Peer:
    """A client of paho that runs in its thread, and what it has been told."""

    def __init__(self, version: int) -> None:
        self.told: list[Any] = []
        self.client = Client(
            CallbackAPIVersion.VERSION2, client_id="device", protocol=MQTTProtocolVersion(version)
        )
        self.client.on_connect = lambda _c, _u, flags, code, own: self.told.append((flags, code, own))
        self.client.on_message = self._message
        self.client.on_subscribe = lambda _c, _u, _id, codes, _own: self.told.append([c.value for c in codes])

    def _message(self, _client: Client, _user: Any, message: MQTTMessage) -> None:
        self.told.append((message.topic, message.payload, message.qos, message.retain, message.properties))


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(WAIT_S)
        with closing(Server(listener)) as found:
            yield found


def connect(peer: Peer, server: Server, **options: Any) -> p.Connect:
    """Connect, and accept it: the CONNECT."""
    host, port = server._listener.getsockname()
    peer.client.connect(host, port, keepalive=60, **options)
    peer.client.loop_start()
    packet: p.Connect = server.next()
    own = {"assigned_client_identifier": "other", "receive_maximum": 5} if packet.version == V5 else p.NONE
    server.send(writer.connack(packet.version, properties=own))
    return packet


@pytest.fixture
def peer(version: int) -> Iterator[Peer]:
    found = Peer(version)
    yield found
    found.client.loop_stop()


def properties(packet: int, **values: Any) -> Properties:
    found = Properties(packet)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(found, name, value)
    return found


@BY_VERSION
def test_its_packets_are_read_as_it_was_told(version: int, peer: Peer, server: Server) -> None:
    five = version == V5
    peer.client.will_set("gone/device", b"bye", qos=1, retain=True)
    peer.client.username_pw_set("key", "secret")
    connected = connect(peer, server, **({"clean_start": True} if five else {}))
    assert connected.will == p.Will("gone/device", b"bye", 1, True)
    assert connected == p.Connect(version, "device", True, 60, connected.will, "key", b"secret")

    peer.client.subscribe([("a/#", 1), ("b/+", 2)])
    subscribe = server.next()
    assert [(each.filter, each.qos) for each in subscribe.filters] == [("a/#", 1), ("b/+", 2)]
    server.send(writer.suback(version, subscribe.packet_id, (1, 0x80)))

    peer.client.publish("a/b", b"zero")
    assert server.next() == p.Publish("a/b", b"zero")
    large = b"x" * 200_000
    peer.client.publish("a/b", large, qos=1, retain=True)
    one = server.next()
    assert one == p.Publish("a/b", large, 1, True, False, one.packet_id)
    server.send(writer.ack(version, p.PUBACK, one.packet_id))
    two = peer.client.publish("a/b", b"two", qos=2)
    packet = server.next()
    assert packet == p.Publish("a/b", b"two", 2, packet_id=packet.packet_id)
    server.send(writer.ack(version, p.PUBREC, packet.packet_id))
    assert server.next() == p.Ack(p.PUBREL, packet.packet_id)
    server.send(writer.ack(version, p.PUBCOMP, packet.packet_id))
    two.wait_for_publish(WAIT_S)
    assert two.is_published()

    peer.client.unsubscribe(["a/#", "b/+"])
    unsubscribe = server.next()
    assert list(unsubscribe.filters) == ["a/#", "b/+"]
    server.send(writer.unsuback(version, unsubscribe.packet_id, (0, 0x11)))
    peer.client.disconnect()
    assert server.next() == p.Disconnect()
    _, code, own = peer.told[0]
    assert not code.is_failure
    assert getattr(own, "ReceiveMaximum", None) == (5 if five else None)
    assert peer.told[1] == [1, 0x80]


@BY_VERSION
def test_it_reads_what_it_is_sent(version: int, peer: Peer, server: Server) -> None:
    connect(peer, server)
    own = {"content_type": "text", "user_property": [("a", "b"), ("a", "c")]} if version == V5 else p.NONE
    for qos, packet_id in ((0, 0), (1, 7), (2, 8)):
        encoded = writer.encoded_publish(version, "t/ä", b"x" * 300, qos, retain=qos == 1, properties=own)
        server.send(encoded.packet(packet_id))
    assert server.next() == p.Ack(p.PUBACK, 7)
    assert server.next() == p.Ack(p.PUBREC, 8)
    server.send(writer.ack(version, p.PUBREL, 8))
    assert server.next() == p.Ack(p.PUBCOMP, 8)
    messages = peer.told[1:]
    assert [each[:4] for each in messages] == [("t/ä", b"x" * 300, qos, qos == 1) for qos in (0, 1, 2)]
    if version == V5:
        assert {(each[4].ContentType, tuple(each[4].UserProperty)) for each in messages} == {
            ("text", (("a", "b"), ("a", "c")))
        }
    peer.client.disconnect()
    assert server.next() == p.Disconnect()


@pytest.mark.parametrize("version", [V5])
def test_properties_and_options_of_5_are_read(version: int, peer: Peer, server: Server) -> None:
    own = properties(PacketTypes.CONNECT, SessionExpiryInterval=30, ReceiveMaximum=4, MaximumPacketSize=9000)
    assert connect(peer, server, properties=own).properties == {
        "session_expiry_interval": 30,
        "receive_maximum": 4,
        "maximum_packet_size": 9000,
    }
    options = SubscribeOptions(qos=1, noLocal=True, retainAsPublished=True, retainHandling=2)
    identifier = properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=300)
    peer.client.subscribe("a/+", options=options, properties=identifier)
    subscribe = server.next()
    assert subscribe.filters == (p.Filter("a/+", 1, True, True, 2),)
    assert subscribe.properties == {"subscription_identifier": [300]}
    message = properties(
        PacketTypes.PUBLISH,
        MessageExpiryInterval=5,
        ResponseTopic="r/t",
        CorrelationData=b"\0\1",
        UserProperty=[("a", "1"), ("b", "2")],
        PayloadFormatIndicator=1,
        TopicAlias=3,
    )
    peer.client.publish("t", b"x", properties=message)
    assert server.next().properties == {
        "message_expiry_interval": 5,
        "response_topic": "r/t",
        "correlation_data": b"\0\1",
        "user_property": [("a", "1"), ("b", "2")],
        "payload_format_indicator": 1,
        "topic_alias": 3,
    }
    peer.client.disconnect(properties=properties(PacketTypes.DISCONNECT, SessionExpiryInterval=0))
    assert server.next() == p.Disconnect(0, {"session_expiry_interval": 0})
