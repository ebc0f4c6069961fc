"""A connection of an MQTT client that comes for one purpose and leaves.

Owns the packets from CONNECT to DISCONNECT. Does not own clients that stay connected (`mqtt_connection.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final, TypeVar

import trio

from tests.simulation.model import Broken, Change
from tests.simulation.site import Site
from tests.simulation.wires import CUTS, Lost
from tests.simulation.world import World
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer
from trunkline.http.mqtt.packets import V3_1_1, V5
from trunkline.http.mqtt.reader import PacketReader

ANSWER_S: Final = 60.0
_EXPIRY: Final = {"session_expiry_interval": 500_000}
T = TypeVar("T")


class Session:
    """A connection. With `keeps` the client has a session at the server after its end."""

    def __init__(self, world: World, id: str, version: int, *, keeps: bool) -> None:
        self.world = world
        self.life = world.life
        self.version = version
        self.was_there = False
        """Whether the server had the session."""
        self.wire = world.life.network.mqtt.connect()
        self._id = id
        self._keeps = keeps
        self._reader = PacketReader(1 << 20, client_version=version)
        self._came: deque[Any] = deque()
        self._slept_s = world.virtual.slept_s
        self._began_s = world.virtual.now_s

    @property
    def was_held_up(self) -> bool:
        """Something may have come too late."""
        wire, was_away = self.wire, self.life.was_away(self.wire, self._began_s, with_home=True)
        return bool(
            wire.was_cut or wire.has_stalled or was_away or self.world.virtual.slept_s > self._slept_s
        )

    async def connect(self) -> None:
        """Send the CONNECT, and take its CONNACK. Raises Lost."""
        world = self.world
        name, properties = f"token/{world.of(Site).id}", _EXPIRY if self._keeps and self.version == V5 else {}
        clean = not self._keeps
        packet = p.Connect(self.version, self._id, clean, 600, None, name, world.token.encode(), properties)
        await self.wire.send(writer.connect(packet))
        answer = await self.next(p.ConnAck)
        if answer.code:
            raise Lost
        self.was_there = answer.session_present

    async def next(self, *kinds: type[T], wait_s: float = ANSWER_S) -> T:
        """The next packet of these kinds; others before it are dropped. Raises Lost, and TooSlowError."""
        with trio.fail_after(wait_s):
            while True:
                while self._came:
                    packet = self._came.popleft()
                    if isinstance(packet, kinds):
                        return packet
                data = await self.wire.receive()
                if not data or self.life.over:
                    raise Lost
                self._came.extend(self._reader.feed(data))

    async def acknowledge(self, packet: p.Publish) -> None:
        """Send the PUBACK or PUBREC of a message. Raises Lost."""
        if packet.qos:
            kind = p.PUBACK if packet.qos == 1 else p.PUBREC
            await self.wire.send(writer.ack(self.version, kind, packet.packet_id))


@asynccontextmanager
async def connected(
    world: World, chance: Random, id: str, *, keeps: bool = False, healthy: bool = False
) -> AsyncIterator[Session]:
    """A client that is connected. Raises Lost, and Broken where nothing comes without a reason."""
    version = V5 if sum(id.encode()) % 2 else V3_1_1
    session = Session(world, id, version, keeps=keeps)
    if not healthy and chance.random() < 0.3:
        pipe = chance.choice((session.wire.to_server, session.wire.to_client))
        pipe.cut_after(chance.choice((20, 150, 300)) + chance.randrange(60), chance.choice(CUTS))
    try:
        await session.connect()
        yield session
        await session.wire.send(writer.disconnect(session.version))
    except trio.TooSlowError:
        if not session.was_held_up:
            raise Broken(f"MQTT of {id}: nothing came for {ANSWER_S:.0f} seconds") from None
        raise Lost from None
    finally:
        session.wire.close()


async def publish(session: Session, change: Change, packet: p.Publish) -> None:
    """Publish a message with QoS 1 or 2, and let the model know what became of it. Raises Lost."""
    world, failed = session.world, session.world.failed_commits
    await session.wire.send(writer.publish(session.version, packet))
    ack = await session.next(p.Ack)
    world.note(f"{packet.topic} {packet.payload.decode()}: {ack.code}")
    if ack.code >= p.UNSPECIFIED_ERROR:
        is_unsure = session.life.was_unsure(session._began_s)
        if world.failed_commits == failed and world.quota is None and not is_unsure:
            raise Broken(f"{packet.topic} is refused with {ack.code} without a reason")
        change.refused()
        return
    change.stored()
    if packet.qos == 2:
        await session.wire.send(writer.ack(session.version, p.PUBREL, packet.packet_id))
        await session.next(p.Ack)
