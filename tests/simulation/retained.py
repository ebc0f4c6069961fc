"""Retained messages: who subscribes is sent the newest of each topic, also after a power cut.

Clients with connections of one purpose, which have no session: one publishes a message that is to be retained, or
removes that of a topic by an empty one; another subscribes to all and leaves. Owns these clients and the topics. Does
not own messages that are not retained (`mqtt.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, Final, TypeVar

import trio

from tests.simulation.model import Book, Broken, Change
from tests.simulation.part import Part
from tests.simulation.site import Site, nothing
from tests.simulation.wires import CUTS, Lost
from tests.simulation.world import World
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer
from trunkline.http.mqtt.packets import V3_1_1, V5
from trunkline.http.mqtt.reader import PacketReader

TOPICS: Final = ("r/1", "r/2", "r/3")
FILTER: Final = "r/+"
ANSWER_S: Final = 60.0
ALL_S: Final = 10.0
"""So long after its subscription a client has all retained messages."""
LOOKS: Final = 20
T = TypeVar("T")


class Retained:
    """What each topic has, and the topics that are being changed."""

    def __init__(self) -> None:
        self.book = Book("retained messages")
        self.changing: set[str] = set()


class Session:
    """A connection that is welcome."""

    def __init__(self, world: World, version: int) -> None:
        self.world = world
        self.life = world.life
        self.version = version
        self.wire = world.life.network.mqtt.connect()
        self._reader = PacketReader(1 << 20, client_version=version)
        self._came: deque[Any] = deque()
        self._slept_s = world.virtual.slept_s

    @property
    def was_held_up(self) -> bool:
        """Something may have come too late."""
        return bool(self.wire.was_cut or self.wire.has_stalled or self.world.virtual.slept_s > self._slept_s)

    async def connect(self, id: str) -> None:
        """Send the CONNECT, and take its CONNACK. Raises Lost."""
        name, world = f"token/{self.world.of(Site).id}", self.world
        await self.wire.send(
            writer.connect(p.Connect(self.version, id, True, 600, None, name, world.token.encode(), p.NONE))
        )
        if (await self.next(p.ConnAck)).code:
            raise Lost

    async def next(self, kind: type[T], wait_s: float = ANSWER_S) -> T:
        """The next packet of a kind; others before it are dropped. Raises Lost, and TooSlowError after `wait_s`."""
        with trio.fail_after(wait_s):
            while True:
                while self._came:
                    packet = self._came.popleft()
                    if isinstance(packet, kind):
                        return packet
                data = await self.wire.receive()
                if not data or self.life.over:
                    raise Lost
                self._came.extend(self._reader.feed(data))


@asynccontextmanager
async def connected(world: World, chance: Random, *, healthy: bool = False) -> AsyncIterator[Session]:
    """A client of its own. Raises Lost, and Broken where nothing comes without a reason."""
    session = Session(world, chance.choice((V3_1_1, V5)))
    if not healthy and chance.random() < 0.3:
        pipe = chance.choice((session.wire.to_server, session.wire.to_client))
        pipe.cut_after(chance.choice((20, 150, 300)) + chance.randrange(60), chance.choice(CUTS))
    try:
        await session.connect(f"retained-{world.unique()}")
        yield session
        await session.wire.send(writer.disconnect(session.version))
    except trio.TooSlowError:
        if not session.was_held_up:
            raise Broken(f"retained messages: nothing came for {ANSWER_S:.0f} seconds") from None
        raise Lost from None
    finally:
        session.wire.close()


async def publish(world: World, chance: Random) -> None:
    """Publish a message that is to be retained, or remove that of a topic."""
    retained, topic = world.of(Retained), chance.choice(TOPICS)
    if topic in retained.changing or retained.book.thing(topic).coming:
        return
    name = f"r{world.unique()}" if chance.random() < 0.8 else None
    retained.changing.add(topic)
    change: Change | None = None
    try:
        with suppress(Lost):
            async with connected(world, chance) as session:
                change = Change([(retained.book, topic, name)])
                await _publish(session, change, chance.choice((1, 2)))
    finally:
        retained.changing.discard(topic)
        if change is not None and not change.answered:
            world.unanswered.append(change)


async def _publish(session: Session, change: Change, qos: int) -> None:
    world, ((_, topic, name),) = session.world, change.targets
    failed = world.failed_commits
    packet = p.Publish(str(topic), str(name or "").encode(), qos, retain=True, packet_id=1)
    await session.wire.send(writer.publish(session.version, packet))
    ack = await session.next(p.Ack)
    world.note(f"retained {topic} {name}: {ack.code}")
    if ack.code >= p.UNSPECIFIED_ERROR:
        if world.failed_commits == failed and world.quota is None:
            raise Broken(f"the retained message {name} is refused with {ack.code} without a reason")
        change.refused()
        return
    change.stored()
    world.reached["a retained message was removed"] += name is None
    if qos == 2:
        await session.wire.send(writer.ack(session.version, p.PUBREL, 1))
        await session.next(p.Ack)


async def read(world: World, chance: Random) -> None:
    """Subscribe to all topics."""
    with suppress(Lost):
        await _read(world, chance, healthy=False)


async def _read(world: World, chance: Random, *, healthy: bool) -> bool:
    """Subscribe, and hold what comes against what may be. Whether all has come. Raises Lost."""
    book, failed = world.of(Retained).book, world.failed_commits
    found: dict[str, str] = {}
    with book.watched() as window:
        async with connected(world, chance, healthy=healthy) as session:
            await session.wire.send(
                writer.subscribe(
                    session.version, p.Subscribe(1, [p.Filter(FILTER, chance.choice((0, 1, 2)))])
                )
            )
            (code,) = (await session.next(p.SubAck)).codes
            until_s = trio.current_time() + ALL_S
            with suppress(trio.TooSlowError):
                while (wait_s := until_s - trio.current_time()) > 0:
                    packet = await session.next(p.Publish, wait_s)
                    if packet.retain:
                        await _take(session, packet, found)
        had_no_reason = world.failed_commits == failed and world.quota is None
        if code >= p.UNSPECIFIED_ERROR and had_no_reason:
            raise Broken(f"the subscription to retained messages is refused with {code}")
        is_whole = had_no_reason and not session.was_held_up
        world.note(f"retained: {sorted(found.items())} {is_whole}")
        window.check(found, [topic for topic in TOPICS if topic in book.things] if is_whole else found)
        world.reached["a retained message was read"] += bool(found)
    return is_whole or world.quota is not None


async def _take(session: Session, packet: p.Publish, found: dict[str, str]) -> None:
    if packet.topic in found:
        raise Broken(f"two retained messages of {packet.topic} came")
    found[packet.topic] = packet.payload.decode()
    if packet.qos:
        kind = p.PUBACK if packet.qos == 1 else p.PUBREC
        await session.wire.send(writer.ack(session.version, kind, packet.packet_id))


async def look(world: World) -> None:
    """A client that has time is sent all that is retained."""
    for number in range(LOOKS):
        with suppress(Lost):
            if await _read(world, Random(f"{world.seed} {world.number} {number}"), healthy=True):
                return
    raise Broken("retained messages: nobody could read them")


PART: Final = Part(nothing, {publish: 8, read: 4}, look, since=100_000)
