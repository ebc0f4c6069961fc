"""Machines of several processes, each of which follows or owns a partition, that are killed, end and are cut off, whole
or in part, with a writer and readers of all of them. Owns no test.

Whenever a process claims its partition, one that serves is cut off just then, and hears nothing of it. The log is
trimmed while some machines are behind.

In each partition one number is written, larger each time. A process that serves reads that of its own partition, and
from the stores of its machine those of the others. Whoever asks it is told no smaller ones than were acknowledged, or
told by this machine, before he asked. When all goes well again, all partitions are served.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import pytest
import trio

from tests.partitions import make_partitions
from tests.store.replicated_node import MAP_BYTES
from tests.store.simulated_log import SimulatedLog
from tests.store.simulated_nodes import (
    KEY,
    NAMES,
    SILENCE_S,
    Connection,
    History,
    Way,
    Words,
    written,
)
from trunkline.store import follower, keys, replicated_journal
from trunkline.store.directory import KEYS_FILE
from trunkline.store.env import Store
from trunkline.store.errors import CopyOutdated, Fenced, LogUnreachable, StoreError
from trunkline.store.log import Chain, decoded
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.partition_copy import PartitionCopy
from trunkline.store.partitions import partition_directory
from trunkline.store.replicated_journal import ReplicatedPartitionedJournal
from trunkline.store.standby import Standby
from trunkline.store.store_copy import new_file

TROUBLE_S: Final = 60.0
"""So long machines and processes are gone in turn."""
CALM_S: Final = 120.0
"""So long it may take until all is served, when nothing is gone any more; the log stays as bad as it was."""
STARTS_S: Final = (0.0, 0.0, 0.1, 1.0)
"""How long a process takes to start when it owns its partition."""
LOOK_S: Final = 0.1
NOTED_S: Final = 1.0
"""Without groups, so often it is noted in a store how far it has the log."""
KEPT_S: Final = 5.0
"""What has been in the log for longer may be trimmed, if the process that serves has had it since."""
END_S: Final = 0.1
"""A process that is killed does not wait for the log."""


class World:
    """What all machines have in common."""

    def __init__(self, folder: Path, seed: int, nursery: trio.Nursery) -> None:
        self.random = Random(seed)
        self.count = self.random.choice((2, 3))
        trouble, way_s = self.random.choice((0.0, 0.0, 0.05, 0.3)), self.random.choice((0.002, 0.005, 0.1))
        self.log = SimulatedLog(self.random, nursery, trouble, way_s)
        self.words = [Words(self.random, self.random.choice((0.0, 0.3))) for _ in range(self.count)]
        self.histories = [History() for _ in range(self.count)]
        self.reached: Counter[str] = Counter()
        self.calm = False
        self.claims = trio.Event()
        """Set, and replaced, when a process claims its partition."""
        first = folder / "first"
        make_partitions(first, self.count)
        for name in NAMES:
            shutil.copytree(first, folder / name)
        self.machines = [Machine(self, folder / name) for name in NAMES]

    @property
    def serving(self) -> list[Process]:
        """The processes that think to own their partitions."""
        return [each for machine in self.machines for each in machine.processes if each.store is not None]


class _Way(Way):
    """That of a process, whose claims are told."""

    def __init__(self, world: World, partition: int) -> None:
        super().__init__(world.log.of(partition))
        self._world = world

    async def append(self, data: bytes, after: int) -> int:
        if data and decoded(data).kind == "claim":  # without data it is asked where the log ends
            self._world.claims.set()
        return await super().append(data, after)


class Machine:
    """A machine: its processes, each of which is started again when it has ended."""

    def __init__(self, world: World, directory: Path) -> None:
        self.world = world
        self.name = directory.name
        self.directory = directory
        random = world.random
        self._rate, self._ahead_s = random.uniform(0.9, 1.1), random.uniform(-1e6, 1e6)
        self.processes = [Process(self, number) for number in range(world.count)]
        self.told = [0] * world.count
        """By partition, the largest number that it has told."""

    def boot_s(self) -> float:
        """The clock of the machine."""
        return trio.current_time() * self._rate + self._ahead_s

    async def live(self) -> None:
        """Live until cancelled."""
        async with trio.open_nursery() as nursery:
            for process in self.processes:
                nursery.start_soon(process.live)
            nursery.start_soon(self._suffer)

    async def _suffer(self) -> None:
        """Let something happen to the machine or to one of its processes, again and again."""
        random, reached = self.world.random, self.world.reached
        while True:
            await trio.sleep(random.uniform(0, 10))
            if self.world.calm:
                return
            one = [random.choice(self.processes)]
            struck = random.choice((self.processes, one))
            what = "a machine" if struck is self.processes else "a process"
            fate = random.choice(("killed", "cut off", "cut off in part", "ended"))
            reached[f"{what} was {fate}"] += 1
            if fate == "killed":
                for each in struck:
                    each.kill()
            elif fate == "ended":
                for each in struck:
                    each.ends.set()
            else:
                with cut_off(struck, self.world.random.choice(NAMES) if fate == "cut off in part" else ""):
                    await trio.sleep(random.choice((0.3, 1.2, 3, 8)))


class Process:
    """A process of a machine, which serves a partition while it owns it. `live` starts it again and again."""

    def __init__(self, machine: Machine, partition: int) -> None:
        self.machine = machine
        self.partition = partition
        self.id = f"{machine.name}{partition}"
        self.store: Store | None = None
        self.way = _Way(machine.world, partition)
        self.ends = trio.Event()
        """It is told to end in order."""
        self.place = 0
        """Up to where it had its log when it was looked at last."""
        self._life = trio.CancelScope()

    def kill(self) -> None:
        """End it: nothing that it has sent or will send arrives any more."""
        self.way.cut()
        self.store = None
        self._life.cancel()

    async def live(self) -> None:
        """Live until cancelled."""
        world = self.machine.world
        while True:
            await trio.sleep(world.random.uniform(0, 2))
            self.way, self.ends = _Way(world, self.partition), trio.Event()
            with trio.CancelScope() as self._life:
                try:
                    async with trio.open_nursery() as nursery:
                        await self._serve(nursery)
                        nursery.cancel_scope.cancel()
                except* Fenced:
                    world.reached["an owner was fenced"] += 1
                except* LogUnreachable:
                    world.reached["an owner gave up"] += 1

    async def _serve(self, nursery: trio.Nursery) -> None:
        machine, world, number = self.machine, self.machine.world, self.partition
        words = cast("NatsConnection", Connection(world.words[number], self.id))
        copy = PartitionCopy(machine.directory, number, world.count, machine.boot_s, boot=1)
        node = Standby(self.way, words, "words", machine.name, "", SILENCE_S, copy=copy)
        nursery.start_soon(node.nodes.run)
        nursery.start_soon(self._note, node)
        with self._store() as store, store.snapshot(own=True) as snapshot:
            is_empty = snapshot.get(keys.RECORDS, KEY) is None
        owner = await node.own(machine.directory, b"secrets", self._fetch, is_empty=is_empty)
        world.reached["a process owns its partition"] += 1
        await trio.sleep(world.random.choice(STARTS_S))
        journal = partial(ReplicatedPartitionedJournal, owner=owner, copy=copy, boot_s=machine.boot_s)
        with self._store(journal=journal) as store:
            async with trio.open_nursery() as running:
                await running.start(store.journal.run)
                self.store = store
                try:
                    await self.ends.wait()
                finally:
                    self.store = None
                running.cancel_scope.cancel()
            with suppress(StoreError):
                await cast("ReplicatedPartitionedJournal", store.journal).release(node.heir())
                world.reached["an owner ended in order"] += 1

    async def _note(self, node: Standby) -> None:
        while True:
            self.place = node.say().place
            await trio.sleep(LOOK_S)

    def _store(self, **options: Any) -> Store:
        return Store.open(
            self.machine.directory,
            partition=self.partition,
            encryption_keys=self.machine.directory / KEYS_FILE,
            map_size_bytes=MAP_BYTES,
            keeps_log=True,
            **options,
        )

    async def _fetch(self) -> None:
        """Get a copy of the store of the process that serves the partition."""
        while True:
            for other in self.machine.world.serving:
                if other.partition == self.partition and other.store is not None:
                    own = partition_directory(self.machine.directory, self.partition)
                    with new_file(own).open("wb") as file:
                        other.store.memory_map.env.copyfd(file.fileno())
                    self.machine.world.reached["a store was copied"] += 1
                    return
            await trio.sleep(0.2)


@contextmanager
def cut_off(processes: list[Process], deaf: str = "") -> Iterator[None]:
    """Meanwhile nothing passes between these processes and the log, and nobody hears them, or only the machine `deaf`
    does not."""
    ways = [each.way for each in processes]
    pairs = {(each.id, f"{deaf}{each.partition}") for each in processes}
    for each in processes:
        each.way.cut()
        for words in each.machine.world.words:
            words.unheard |= pairs
            if not deaf:
                words.cut.add(each.id)
    yield
    for each in processes:
        for words in each.machine.world.words:
            words.unheard -= pairs
            words.cut.discard(each.id)
    for way in ways:
        way.mend()


@contextmanager
def one_process() -> Iterator[None]:
    """Let all processes be tasks of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replicated_journal, "END_S", END_S)
        for module in (follower, replicated_journal):
            patch.setattr(module, "KEPT_S", NOTED_S)
        yield


async def live(folder: Path, seed: int) -> Counter[str]:
    """One history. Returns what has happened in it."""
    async with trio.open_nursery() as nursery:
        world = World(folder, seed, nursery)
        with one_process():
            async with trio.open_nursery() as living:
                for machine in world.machines:
                    living.start_soon(machine.live)
                living.start_soon(_cut_off_at_claims, world)
                living.start_soon(_trim, world)
                living.start_soon(_write, world)
                for _ in range(2):
                    living.start_soon(_read, world)
                await trio.sleep(TROUBLE_S)
                world.calm = True
                await trio.sleep(10)
                marks = [(each.sent, each.reached["a read was told"]) for each in world.histories]
                ends = [world.log.of(number).last for number in range(world.count)]
                with trio.move_on_after(CALM_S) as waiting:
                    while not _all_is_well(world, marks, ends):  # noqa: ASYNC110 - time is virtual
                        await trio.sleep(LOOK_S)
                assert not waiting.cancelled_caught, "not all partitions are served and followed"
                living.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
    _check(world)
    for history in world.histories:
        world.reached += history.reached
    return world.reached


def _all_is_well(world: World, marks: list[tuple[int, int]], ends: list[int]) -> bool:
    """Whether more was acknowledged and told in each partition, and all processes have the log up to these places."""
    is_served = all(
        each.known > sent and each.reached["a read was told"] > told
        for each, (sent, told) in zip(world.histories, marks, strict=True)
    )
    processes = [each for machine in world.machines for each in machine.processes]
    return is_served and all(each.place >= ends[each.partition] for each in processes)


def _check(world: World) -> None:
    """Whether each chain is whole. Notes whether the partitions belonged to several machines."""
    chains = [Chain(number) for number in range(world.count)]
    placed = sorted(
        (each.place, number, each) for number in range(world.count) for each in world.log.of(number).appended
    )
    for _, number, each in placed:
        chains[number].add(each)
        world.reached["machines shared the partitions"] += len({chain.owner for chain in chains} - {""}) > 1


async def _cut_off_at_claims(world: World) -> None:
    while not world.calm:
        await world.claims.wait()
        world.claims = trio.Event()
        if serving := world.serving:
            world.reached["a process was cut off at a claim"] += 1
            with cut_off([world.random.choice(serving)]):
                await trio.sleep(world.random.choice((0.3, 1.2, 3)))


async def _trim(world: World) -> None:
    while not world.calm:
        await trio.sleep(world.random.uniform(0, 20))
        before = {each: (each.store, each.place) for each in world.serving}
        await trio.sleep(KEPT_S)
        kept = [place for each, (store, place) in before.items() if each.store is store]
        if len(kept) == world.count:
            world.reached["the log was trimmed"] += 1
            await world.log.trim(min(kept))


async def _some_process(world: World, pause_max_s: float) -> Process:
    """After a pause, and as soon as there is one, a process that thinks to own its partition."""
    while True:
        await trio.sleep(world.random.uniform(0, pause_max_s))
        if serving := world.serving:
            return world.random.choice(serving)


async def _write(world: World) -> None:
    while True:
        process = await _some_process(world, 0.1)
        assert process.store is not None
        await written(process.store, world.histories[process.partition])


async def _read(world: World) -> None:
    while True:
        process = await _some_process(world, 0.02)
        told = process.machine.told
        known = [max(each.known, told[number]) for number, each in enumerate(world.histories)]
        store = process.store
        assert store is not None
        assert store.partitions is not None
        found: dict[int, int] = {}
        for number in range(world.count):
            try:
                with store.partitions.snapshot_of(number) as snapshot:
                    found[number] = int.from_bytes(snapshot.get(keys.RECORDS, KEY) or b"", "big")
            except CopyOutdated:
                world.reached["a copy was not fresh"] += 1
        if not store.journal.is_current():
            world.reached["a read was told to nobody"] += 1
            found.pop(process.partition)
        for number, each in found.items():
            history = world.histories[number]
            assert known[number] <= each <= history.sent, f"{each} was told when {known[number]} was known"
            told[number] = max(told[number], each)
            history.check(each)
            history.reached["a read was told"] += 1
            world.reached["a copy was read"] += number != process.partition
