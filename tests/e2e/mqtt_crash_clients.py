"""MQTT clients that keep what the specification has them keep over kills of the server and cuts. Owns no test.

Both connect with sessions that outlive their connections. The publisher sends again what was not acknowledged: PUBLISH
with DUP, and PUBREL. The subscriber remembers which packet ids with QoS 2 it has received and not released.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import trio

from tests.e2e.mqtt_client import MqttClient, mqtt_client
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5, Ack, ConnAck, Connect, Packet, PingResp, Publish

UNDER_WAY = 8
FIRST_MS = 1_700_000_000_000
LARGE = "x" * 400
"""With it, a message is stored once for all sessions."""


V3_UNAVAILABLE = 3
LEAVING = frozenset(
    {V3_UNAVAILABLE, packets.SERVER_UNAVAILABLE, packets.SERVER_BUSY, packets.SERVER_SHUTTING_DOWN}
)
"""The codes with which a server refuses or ends connections while another machine takes over."""


class Gone(Exception):
    """The server has closed the connection, or was killed."""


@asynccontextmanager
async def lasting(
    port: int,
    version: int,
    client_id: str,
    credentials: dict[str, Any],
    leaving: frozenset[int] = frozenset(),
    **fields: Any,
) -> AsyncIterator[tuple[MqttClient, bool]]:
    """A connection with a session that outlives it, and whether the session was there before. Raises `Gone`, also where
    the server refuses it with a code of `leaving`."""
    properties = {"session_expiry_interval": 3600} if version == V5 else {}
    connect = Connect(version, client_id, clean_start=False, properties=properties, **credentials, **fields)
    try:
        async with mqtt_client(port, version) as client:
            await client.send(writer.connect(connect))
            answer = await came(client, leaving)
            assert type(answer) is ConnAck
            if answer.code in leaving:
                raise Gone
            assert answer.code == packets.SUCCESS, answer
            yield client, answer.session_present
    except (OSError, trio.BrokenResourceError) as lost:
        raise Gone from lost


async def came(client: MqttClient, leaving: frozenset[int] = frozenset()) -> Packet:
    """The next packet. Raises `Gone` where the connection has ended, or ends with a code of `leaving`."""
    packet = await client.next()
    if packet is None or (type(packet) is packets.Disconnect and packet.code in leaving):
        raise Gone
    assert type(packet) is not packets.Disconnect, packet
    return packet


class Publisher:
    """It publishes numbered messages: to its topic, some of them retained on another one, or the states of a device."""

    def __init__(
        self, client_id: str, version: int, credentials: dict[str, Any], random: Random, *, is_device: bool
    ) -> None:
        self.client_id = client_id
        self.sent: list[int] = []
        """The QoS of each message by its number."""
        self.acknowledged = 0
        self.repeated = 0
        self.newest = -1
        """The highest number that was acknowledged."""
        self.leaving: frozenset[int] = frozenset()
        """The codes with which the server may end a connection."""
        self.refusals: frozenset[int] = frozenset()
        """The codes with which messages may be refused."""
        self.refused: list[int] = []
        """The numbers of such messages, which are not sent again."""
        self.times = True
        """Whether states have a time, which is their number."""
        self.under_way = UNDER_WAY
        self.pause_s = 0.0
        """Before new messages."""
        self.retained = -1
        """The number of the last retained message that was acknowledged, and of the last one that was sent."""
        self.last_retained = -1
        self._version = version
        self._credentials = credentials
        self._random = random
        self._is_device = is_device
        self._is_known = False
        self._next_id = 0
        self._waiting: dict[int, tuple[Publish, int] | None] = {}
        """By packet id, in the order in which they were sent: the message and its number; None once it is received."""

    async def run(self, port: int, *, is_last: bool = False) -> None:
        """Publish until the server is gone; at the `is_last` time only what is not acknowledged."""
        fields = (port, self._version, self.client_id, self._credentials, self.leaving)
        async with lasting(*fields) as (client, is_present):
            assert is_present or not self._is_known, "the session is lost"
            self._is_known = True
            await client.send(b"".join(self._again(number) for number in self._waiting))
            self.repeated += len(self._waiting)
            while self._waiting or not is_last:
                await trio.sleep(self.pause_s)
                fresh = [] if is_last else [self._fresh() for _ in range(self.under_way - len(self._waiting))]
                await client.send(b"".join(fresh))
                packet = await came(client, self.leaving)
                assert type(packet) is Ack, packet
                await client.send(self._handle(packet))

    def _again(self, packet_id: int) -> bytes:
        waiting = self._waiting[packet_id]
        if waiting is None:
            return writer.ack(self._version, packets.PUBREL, packet_id)
        return writer.publish(self._version, msgspec.structs.replace(waiting[0], dup=True))

    def _handle(self, packet: Ack) -> bytes:
        """Note an acknowledgement; what has to be sent for it."""
        waiting = self._waiting[packet.packet_id]
        if packet.type == packets.PUBCOMP:
            assert waiting is None
            assert packet.code in (packets.SUCCESS, packets.PACKET_IDENTIFIER_NOT_FOUND)
            del self._waiting[packet.packet_id]
            return b""
        assert waiting is not None
        message, number = waiting
        assert packet.type == (packets.PUBACK if message.qos == 1 else packets.PUBREC)
        if packet.code in self.refusals:
            self.refused.append(number)
            del self._waiting[packet.packet_id]
            return b""
        assert packet.code < packets.UNSPECIFIED_ERROR, packet
        self.acknowledged += 1
        self.newest = max(self.newest, number)
        if message.retain:
            self.retained = max(self.retained, number)
        if message.qos == 1:
            del self._waiting[packet.packet_id]
            return b""
        self._waiting[packet.packet_id] = None
        return writer.ack(self._version, packets.PUBREL, packet.packet_id)

    def _fresh(self) -> bytes:
        number, qos = len(self.sent), self._random.choice((1, 2))
        retain = not self._is_device and self._random.random() < 0.2
        if retain:
            # One QoS for all: a message with QoS 1 that comes again may rightly replace one with QoS 2 that does not.
            qos = 1 if self._version == V5 else 2
        self.sent.append(qos)
        self._next_id = self._next_id % 65_535 + 1
        while self._next_id in self._waiting:
            self._next_id = self._next_id % 65_535 + 1
        if self._is_device:
            topic = f"losant/{self.client_id}/state"
            time = {"time": FIRST_MS + number} if self.times else {}
            payload = json.dumps({"data": {"temp": float(number)}, **time})
        else:
            topic = f"{'kept' if retain else 'load'}/{self.client_id}"
            payload = f"{number} {self._random.choice(('', LARGE))}"
        if retain:
            self.last_retained = number
        message = Publish(topic, payload.encode(), qos, retain=retain, packet_id=self._next_id)
        self._waiting[self._next_id] = (message, number)
        return writer.publish(self._version, message)


class Subscriber:
    """It takes messages, and comes and goes."""

    def __init__(
        self, client_id: str, version: int, credentials: dict[str, Any], random: Random, qos: int
    ) -> None:
        self.qos = qos
        self.got: dict[str, list[int]] = {}
        """The numbers of the messages of each publisher, as they have come."""
        self.wills: list[str] = []
        self.connections = 0
        self._fields = (version, client_id, credentials)
        self._version = version
        self._random = random
        self._received: set[int] = set()

    async def subscribe(self, port: int) -> None:
        """The first connection."""
        async with lasting(port, *self._fields) as (client, is_present):
            assert not is_present
            codes = await client.subscribe("load/#", "kept/#", "wills/#", qos=self.qos)
            assert list(codes) == [self.qos] * 3

    async def run(self, port: int) -> None:
        """Take messages, and leave after some of them, until the server is gone."""
        while True:
            async with lasting(port, *self._fields) as (client, is_present):
                assert is_present, "the session is lost"
                self.connections += 1
                for _ in range(self._random.randint(1, 400)):
                    await client.send(self._handle(await came(client)))
                if self._random.random() < 0.5:
                    await client.goodbye()

    async def finish(self, port: int, is_done: Callable[[], bool]) -> None:
        """Take messages until nothing is missing, and what else is on the way."""
        async with lasting(port, *self._fields) as (client, is_present):
            assert is_present, "the session is lost"
            while not is_done() or self._received:
                await client.send(self._handle(await came(client)))
            await client.send(writer.PINGREQ)
            while type(packet := await came(client)) is not PingResp:
                await client.send(self._handle(packet))

    def _handle(self, packet: Packet) -> bytes:
        if type(packet) is Ack:
            assert packet.type == packets.PUBREL
            self._received.discard(packet.packet_id)
            return writer.ack(self._version, packets.PUBCOMP, packet.packet_id)
        assert type(packet) is Publish, packet
        if packet.qos == 1:
            self._take(packet)
            return writer.ack(self._version, packets.PUBACK, packet.packet_id)
        assert packet.qos == 2
        if packet.packet_id not in self._received:
            self._received.add(packet.packet_id)
            self._take(packet)
        return writer.ack(self._version, packets.PUBREC, packet.packet_id)

    def _take(self, packet: Publish) -> None:
        about, _, publisher = packet.topic.partition("/")
        if about == "wills":
            self.wills.append(packet.payload.decode())
        else:
            self.got.setdefault(publisher, []).append(int(packet.payload.split()[0]))

    def has_all(self, publishers: Sequence[Publisher]) -> bool:
        """Whether the last message of each publisher has come."""
        return all(max(self.got.get(each.client_id, [-1])) == len(each.sent) - 1 for each in publishers)

    def check(self, publishers: Sequence[Publisher]) -> None:
        """All has come in order, and what has QoS 2 once."""
        for publisher in publishers:
            got = self.got[publisher.client_id]
            first = list(dict.fromkeys(got))
            assert first == list(range(len(publisher.sent))), "not all, or not in order"
            if self.qos == 2:
                twice = [each for each in first if publisher.sent[each] == 2 and got.count(each) > 1]
                assert not twice, (publisher.client_id, twice)
