"""Messages of topics over MQTT with QoS 2, to a subscriber with a session that outlives its connections.

Owns the ledger of what was published. Each message must come once, in order.
"""

from __future__ import annotations

from typing import Final

import trio

from tests.e2e.mqtt_client import MqttClient
from tests.patience import PATIENCE_S
from tests.soak.house import Part
from trunkline.http.mqtt import packets, writer

LIFE_S: Final = 20.0
"""Of a connection of the subscriber; then it is away for a moment."""
AWAY_S: Final = 2.0
SESSION_S: Final = 120


class Messages(Part):
    """A publisher and a subscriber."""

    pause_s = 2.0

    async def prepare(self) -> None:
        self._sent = self._heard = 0
        self._wrong: list[bytes] = []
        self._unreleased: set[int] = set()
        """Packet ids of messages that were received and not released: they may come again."""
        self._arrived = trio.Event()
        self._publisher = await self._connected("publisher", clean_start=True)
        subscriber = await self._connected("subscriber", clean_start=False)
        await subscriber.subscribe("soak/#", qos=2)
        self.house.nursery.start_soon(self._listen, subscriber)

    async def step(self) -> None:
        with self.calls.timed("message, MQTT QoS 2"):
            ack = await self._publisher.publish("soak/number", b"%d" % self._sent, 2)
        assert ack.code < packets.UNSPECIFIED_ERROR, ack
        self._sent += 1
        self.calls.acknowledged += 1

    async def look(self) -> int:
        with trio.fail_after(PATIENCE_S):
            while self._heard < self._sent:
                await self._arrived.wait()
        assert not self._wrong, self._wrong
        await trio.aclose_forcefully(self._publisher.stream)
        return self._heard

    async def _connected(self, name: str, *, clean_start: bool) -> MqttClient:
        client = MqttClient(await trio.open_tcp_stream("127.0.0.1", self.calls.mqtt_port))
        properties = {} if clean_start else {"session_expiry_interval": SESSION_S}
        answer = await client.connect(name, clean_start=clean_start, properties=properties, **self.house.key)
        assert answer.code == packets.SUCCESS, answer
        return client

    async def _listen(self, subscriber: MqttClient) -> None:
        while True:
            async with subscriber:
                while True:
                    with trio.move_on_after(LIFE_S) as waiting:
                        # Each message is taken whole: a connection ends between two of them.
                        packet = await subscriber.next()
                    if waiting.cancelled_caught:
                        break
                    await self._take(subscriber, packet)
            await trio.sleep(AWAY_S)
            subscriber = await self._connected("subscriber", clean_start=False)

    async def _take(self, subscriber: MqttClient, packet: packets.Packet | None) -> None:
        match packet:
            case packets.Publish():
                if packet.packet_id not in self._unreleased:
                    self._unreleased.add(packet.packet_id)
                    self._hear(packet.payload)
                await subscriber.send(writer.ack(subscriber.version, packets.PUBREC, packet.packet_id))
            case packets.Ack(type=packets.PUBREL):
                self._unreleased.discard(packet.packet_id)
                await subscriber.send(writer.ack(subscriber.version, packets.PUBCOMP, packet.packet_id))
            case _:
                raise AssertionError(packet)

    def _hear(self, payload: bytes) -> None:
        if payload != b"%d" % self._heard:
            self._wrong.append(payload)
        self._heard += 1
        arrived, self._arrived = self._arrived, trio.Event()
        arrived.set()
