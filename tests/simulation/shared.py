"""Shared subscriptions: each message comes to one of those who share, whoever of them is connected.

Workers with sessions share a subscription from the beginning on. They come for a while and leave, with and without a
goodbye. Owns the workers. Does not own messages that each subscriber gets (`mqtt.py`).
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
from tests.simulation.wires import Lost
from tests.simulation.world import World
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer

FILTER: Final = "$share/workers/s/+"
TOPICS: Final = ("s/1", "s/2")
WORKERS: Final = 3
STAYS_S: Final = (0.5, 5.0, 30.0)
COMES_S: Final = 300.0
ATTEMPTS_MAX: Final = 100


class Worker:
    """One of those who share. `released` are the packet ids of messages with QoS 2 that it has, until then."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.is_here = False
        self.has_session = False
        self.has: set[int] = set()


class Shared:
    """The workers, the messages, and who has got each."""

    def __init__(self) -> None:
        self.workers = [Worker(f"worker-{number}") for number in range(WORKERS)]
        self.book = Book("shared messages")
        self.got: dict[str, list[str]] = {}

    def came(self, worker: Worker, packet: p.Publish) -> None:
        """A worker has got a message, for the first time on this packet id if it has QoS 2."""
        name = packet.payload.decode()
        if name not in self.book.things:
            raise Broken(f"{worker.id} got {name}, which nobody has sent")
        by = self.got.setdefault(name, [])
        by.append(worker.id)
        if len(by) > 1 and packet.qos == 2:
            raise Broken(f"{name} came with QoS 2 to {' and '.join(by)}")

    def missing(self) -> list[str]:
        """Messages that were acknowledged, and that nobody has got."""
        return sorted(name for name in self.book.sure() if name not in self.got)


async def prepare(world: World) -> None:
    for worker in world.of(Shared).workers:
        for _ in range(ATTEMPTS_MAX):
            with suppress(Lost):
                async with connected(world, Random(0), worker.id, keeps=True, healthy=True) as session:
                    packet = p.Subscribe(1, [p.Filter(FILTER, 2)])
                    await session.wire.send(writer.subscribe(session.version, packet))
                    (code,) = (await session.next(p.SubAck)).codes
                    worker.has_session = code < p.UNSPECIFIED_ERROR
            if worker.has_session:
                break
        else:
            raise Broken(f"{worker.id} got no session in {ATTEMPTS_MAX} attempts")


async def publish(world: World, chance: Random) -> None:
    """Publish some messages."""
    shared = world.of(Shared)
    with suppress(Lost):
        async with connected(world, chance, f"gives-{world.unique()}") as session:
            for packet_id in range(1, chance.choice((2, 2, 3, 6))):
                await _publish(session, shared, chance, packet_id)


async def _publish(session: Session, shared: Shared, chance: Random, packet_id: int) -> None:
    world, name, qos = session.world, f"s{session.world.unique()}", chance.choice((1, 2))
    change = Change([(shared.book, name, name)])
    try:
        await send(session, change, p.Publish(chance.choice(TOPICS), name.encode(), qos, packet_id=packet_id))
    finally:
        if not change.answered:
            world.unanswered.append(change)


async def work(world: World, chance: Random) -> None:
    """Come for a while."""
    await _work(world, chance.choice(world.of(Shared).workers), chance, healthy=False)


async def _work(world: World, worker: Worker, chance: Random, *, healthy: bool) -> None:
    """Come, take what there is, and leave. One connection of a worker at a time."""
    if worker.is_here:
        return
    worker.is_here = True
    until_s = trio.current_time() + (1.0 if healthy else chance.choice(STAYS_S))
    try:
        with suppress(Lost):
            async with connected(world, chance, worker.id, keeps=True, healthy=healthy) as session:
                if not session.was_there:
                    raise Broken(f"{worker.id}: its session is not there")
                with suppress(trio.TooSlowError):
                    while (wait_s := until_s - trio.current_time()) > 0:
                        await _take(
                            world, worker, session, await session.next(p.Publish, p.Ack, wait_s=wait_s)
                        )
                if not healthy and chance.random() < 0.5:
                    session.wire.abort()  # so it is lost, without a goodbye
    finally:
        worker.is_here = False


async def _take(world: World, worker: Worker, session: Session, packet: p.Publish | p.Ack) -> None:
    if isinstance(packet, p.Ack):  # a release
        worker.has.discard(packet.packet_id)
        await session.wire.send(writer.ack(session.version, p.PUBCOMP, packet.packet_id))
        return
    world.note(f"{worker.id}: {packet.payload.decode()} with QoS {packet.qos}")
    world.reached["a shared message came again"] += packet.dup
    if packet.qos < 2 or packet.packet_id not in worker.has:
        world.of(Shared).came(worker, packet)
    if packet.qos == 2:
        worker.has.add(packet.packet_id)
    await session.acknowledge(packet)


async def look(world: World) -> None:
    """All workers come, and together they get all that was acknowledged."""
    shared = world.of(Shared)
    with trio.move_on_after(COMES_S):
        while shared.missing():
            async with trio.open_nursery() as nursery:
                for worker in shared.workers:
                    chance = Random(f"{world.seed} {world.number} {worker.id}")
                    nursery.start_soon(lambda who, how: _work(world, who, how, healthy=True), worker, chance)
    if world.quota is None and (missing := shared.missing()):
        raise Broken(f"shared messages that were acknowledged came to nobody: {missing}")


PART: Final = Part(prepare, {publish: 8, work: 8}, look, since=NEWER_FROM, divided=True)
