"""An MQTT client for tests, over a real socket: it sends what it is told, and hands out packets as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import trio

from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import Ack, ConnAck, Connect, Disconnect, Filter, Packet, Publish, SubAck
from trunkline.http.mqtt.reader import PacketReader


class MqttClient:
    """One connection. `version` is that of its CONNECT."""

    def __init__(self, stream: trio.abc.Stream, version: int = packets.V5) -> None:
        self.version = version
        self.stream = stream
        self._reader = PacketReader(1 << 28, client_version=version)
        self._come: deque[Packet] = deque()
        self._next_id = 0

    async def __aenter__(self) -> MqttClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await trio.aclose_forcefully(self.stream)

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def next(self) -> Packet | None:
        """The next packet; None where the server has closed the connection."""
        while not self._come:
            try:
                data = await self.stream.receive_some(65_536)
            except trio.BrokenResourceError:
                return None
            if not data:
                return None
            self._come.extend(self._reader.feed(bytes(data)))
        return self._come.popleft()

    async def expect(self, kind: type[Any]) -> Any:
        packet = await self.next()
        assert type(packet) is kind, packet
        return packet

    async def connect(self, client_id: str, **fields: Any) -> ConnAck:
        """Send a CONNECT and return the CONNACK."""
        await self.send(writer.connect(Connect(self.version, client_id, **fields)))
        answer: ConnAck = await self.expect(ConnAck)
        return answer

    def new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    async def subscribe(self, *filters: str | Filter, qos: int = 1, **properties: Any) -> Sequence[int]:
        """Subscribe, and return the codes of the SUBACK. Messages that come before it are kept."""
        asked = tuple(each if isinstance(each, Filter) else Filter(each, qos) for each in filters)
        number = self.new_id()
        await self.send(writer.subscribe(self.version, packets.Subscribe(number, asked, properties)))
        answer = await self._answer(SubAck)
        assert answer.packet_id == number
        codes: Sequence[int] = answer.codes
        return codes

    async def unsubscribe(self, *filters: str) -> Sequence[int]:
        number = self.new_id()
        await self.send(writer.unsubscribe(self.version, packets.Unsubscribe(number, filters)))
        answer = await self._answer(packets.UnsubAck)
        assert answer.packet_id == number
        codes: Sequence[int] = answer.codes
        return codes

    async def publish(self, topic: str, payload: bytes = b"x", qos: int = 0, **fields: Any) -> Any:
        """Publish, with QoS 2 to its end; returns the PUBACK, the PUBREC where that refuses, or the PUBCOMP."""
        number = self.new_id() if qos else 0
        packet = Publish(topic, payload, qos, packet_id=number, **fields)
        await self.send(writer.publish(self.version, packet))
        if not qos:
            return None
        answer = await self._answer(Ack)
        assert answer.packet_id == number
        if qos == 1 or answer.code >= packets.UNSPECIFIED_ERROR:
            return answer
        assert answer.type == packets.PUBREC
        await self.send(writer.ack(self.version, packets.PUBREL, number))
        return await self._answer(Ack)

    async def message(self) -> Publish:
        """The next message, acknowledged as its QoS asks for."""
        packet: Publish = await self.expect(Publish)
        if packet.qos == 1:
            await self.send(writer.ack(self.version, packets.PUBACK, packet.packet_id))
        elif packet.qos == 2:
            await self.send(writer.ack(self.version, packets.PUBREC, packet.packet_id))
            released = await self._answer(Ack)
            assert (released.type, released.packet_id) == (packets.PUBREL, packet.packet_id)
            await self.send(writer.ack(self.version, packets.PUBCOMP, packet.packet_id))
        return packet

    async def goodbye(self, code: int = 0) -> None:
        await self.send(writer.disconnect(self.version, code))

    async def farewell(self) -> int | None:
        """The code with which the server disconnects; None where it only closes."""
        packet = await self.next()
        if packet is None:
            return None
        assert type(packet) is Disconnect, packet
        assert await self.next() is None
        return packet.code

    async def _answer(self, kind: type[Any]) -> Any:
        """The next packet of a kind; messages before it are kept."""
        kept: list[Packet] = []
        while type(packet := await self.next()) is Publish:
            kept.append(packet)
        assert type(packet) is kind, packet
        self._come.extendleft(reversed(kept))
        return packet


@asynccontextmanager
async def mqtt_client(port: int, version: int = packets.V5) -> AsyncIterator[MqttClient]:
    """A client that is not connected yet."""
    async with MqttClient(await trio.open_tcp_stream("127.0.0.1", port), version) as client:
        yield client
