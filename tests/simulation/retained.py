"""Retained messages: who subscribes is sent the newest of each topic, also after a power cut.

Clients with connections of one purpose, which have no session: one publishes a message that is to be retained, or
removes that of a topic by an empty one; another subscribes to all and leaves. Owns these clients and the topics. Does
not own messages that are not retained (`mqtt.py`).
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Final

import trio

from tests.simulation.model import Book, Broken, Change
from tests.simulation.mqtt_session import Session, connected
from tests.simulation.mqtt_session import publish as send
from tests.simulation.part import NEWER_FROM, Part
from tests.simulation.site import nothing
from tests.simulation.wires import Lost
from tests.simulation.world import World
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer

TOPICS: Final = ("r/1", "r/2", "r/3")
FILTER: Final = "r/+"
ALL_S: Final = 10.0
"""So long after its subscription a client has all retained messages."""
LOOKS: Final = 20


class Retained:
    """What each topic has, and the topics that are being changed."""

    def __init__(self) -> None:
        self.book = Book("retained messages")
        self.changing: set[str] = set()


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
            async with connected(world, chance, f"retains-{world.unique()}") as session:
                change = Change([(retained.book, topic, name)])
                packet = p.Publish(
                    topic, (name or "").encode(), chance.choice((1, 2)), retain=True, packet_id=1
                )
                await send(session, change, packet)
                world.reached["a retained message was removed"] += name is None
    finally:
        retained.changing.discard(topic)
        if change is not None and not change.answered:
            world.unanswered.append(change)


async def read(world: World, chance: Random) -> None:
    """Subscribe to all topics."""
    with suppress(Lost):
        await _read(world, chance, healthy=False)


async def _read(world: World, chance: Random, *, healthy: bool) -> bool:
    """Subscribe, and hold what comes against what may be. Whether all has come. Raises Lost."""
    book, failed = world.of(Retained).book, world.failed_commits
    found: dict[str, str] = {}
    with book.watched() as window:
        async with connected(world, chance, f"reads-{world.unique()}", healthy=healthy) as session:
            await session.wire.send(
                writer.subscribe(
                    session.version, p.Subscribe(1, [p.Filter(FILTER, chance.choice((0, 1, 2)))])
                )
            )
            (code,) = (await session.next(p.SubAck)).codes
            until_s = trio.current_time() + ALL_S
            with suppress(trio.TooSlowError):
                while (wait_s := until_s - trio.current_time()) > 0:
                    packet = await session.next(p.Publish, wait_s=wait_s)
                    if packet.retain:
                        await _take(session, packet, found)
        had_no_reason = (
            world.failed_commits == failed
            and world.quota is None
            and not session.life.was_unsure(session._began_s)
        )
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
    await session.acknowledge(packet)


async def look(world: World) -> None:
    """A client that has time is sent all that is retained."""
    for number in range(LOOKS):
        with suppress(Lost):
            if await _read(world, Random(f"{world.seed} {world.number} {number}"), healthy=True):
                return
    raise Broken("retained messages: nobody could read them")


PART: Final = Part(nothing, {publish: 8, read: 4}, look, since=NEWER_FROM, divided=True)
