"""The processes of a server with several partitions on several machines (`spread.py`).

Owns how one stands by, serves and ends, and what is so of its machine. Does not own who reaches it (`links.py`), nor
the protocol (`store/standby.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.disk import Disk
from tests.simulation.edge import DividedEdge
from tests.simulation.machine_log import SLOW_S, Log
from tests.simulation.machines import SILENCE_S, Cluster, Machine
from tests.simulation.network import Network
from tests.simulation.processes import LATE_S, Server, abandon, open_store
from tests.store.simulated_nodes import Connection, Words
from trunkline.actors import boot
from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.system import System
from trunkline.actors.maintenance.data_directory import contents_place_of
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.processes.neighbours import Neighbours
from trunkline.http.serve import drain_after, make_dispatcher
from trunkline.limits.settings import Settings
from trunkline.store import keys
from trunkline.store.directory import STORE
from trunkline.store.env import Store
from trunkline.store.errors import StoreError
from trunkline.store.freshness import Freshness
from trunkline.store.leases import LEASE_S
from trunkline.store.memory_map import opened_here
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.partition_copy import PartitionCopy
from trunkline.store.partitions import FOLDER, FRESH
from trunkline.store.replicated_journal import ReplicatedJournal, ReplicatedPartitionedJournal
from trunkline.store.standby import Standby

PARTITIONS: Final = 2
CALM_LEASE_S: Final = LEASE_S / 2
"""At rest each lease lasts for longer."""
_NUMBERS: Final = 10
"""Numbers of processes: so many for each machine. Those below are partitions."""
_IN_FRESH: Final = 4
"""Numbers of each partition in the file of `Freshness`."""


class Host:
    """A machine, in one life of the run: its data directory, its clock, and the processes on it."""

    def __init__(self, number: int, path: Path, virtual: VirtualTime, seed: str) -> None:
        chance = Random(f"{seed} host {number}")
        self.number = number
        self.name = f"machine-{number}"
        self.path = path
        self.processes: list[SpreadProcess] = []
        self.boot = chance.getrandbits(50)
        """What tells this start of the machine from others."""
        self._rate, self._ahead_s = chance.uniform(0.95, 1.05), chance.uniform(1e6, 2e6)
        self._virtual = virtual
        self._freshness = Freshness(path / FOLDER / FRESH, PARTITIONS, self.clock_s, self.boot)

    def clock_s(self) -> float:
        """Its clock, which goes faster or slower than that of others, and begins at another time."""
        return self._virtual.monotonic_s() * self._rate + self._ahead_s

    @property
    def serves(self) -> bool:
        """Whether one of its processes serves."""
        return any(each.is_up for each in self.processes)

    def fresh_s(self, number: int) -> float:
        """For how long its store of a partition is fresh from now on."""
        until_ns = self._freshness._numbers[number * _IN_FRESH + 1]
        return until_ns / 1e9 - self.clock_s() if self._freshness.is_fresh(number) else 0.0

    def kill(self) -> None:
        """Let all of it die at once."""
        self.boot += 1
        self._freshness._boot = self.boot
        for each in self.processes:
            each.kill()


class SpreadProcess(Machine):
    """The process of a partition on a machine."""

    def __init__(
        self,
        host: Host,
        partition: int,
        settings: Settings,
        virtual: VirtualTime,
        disk: Disk,
        network: Network,
        seed: str,
        log: Log,
        words: Words,
    ) -> None:
        super().__init__(
            _NUMBERS * (host.number + 1) + partition,
            settings,
            virtual,
            disk,
            network,
            seed,
            log.of(partition),
            words,
        )
        self.host = host
        self.partition = partition
        self.name = host.name
        self.heir = ""
        """Who shall own the partition, where this process gives it."""
        self.standby: Standby | None = None
        self.troubled_s = -LATE_S
        """When it was not there, or its copy was not fresh, for the last time."""
        self.neighbours: Neighbours
        self._settings = replace(
            settings, data_dir=str(host.path), cluster_nats="nats://127.0.0.1:4222", cluster_node=host.name
        )

    @property
    def holds_reads(self) -> bool:
        memory_map = opened_here((self.disk.path / STORE).resolve())
        return memory_map is not None and memory_map._reads_held

    @property
    def stands_by(self) -> bool:
        """Whether it follows its partition, and another process may own it."""
        return self.standby is not None and self.standby.owner is None and self.standby.follows.is_set()

    @property
    def is_well(self) -> bool:
        """Whether it serves or stands by, and reaches the log; not after the power was cut."""
        is_there = (self.is_up or self.stands_by) and not self.disk._over_already
        return is_there and not (
            self.way.is_cut or self.way.waits(SLOW_S) or self.ends.is_set() or self.is_lost
        )

    @property
    def is_quiet(self) -> bool:
        if not super().is_quiet:
            return False
        if not self.is_up:
            return self.stands_by
        lasts = all(self.host.fresh_s(each) > CALM_LEASE_S for each in range(PARTITIONS))
        return lasts and all(door.channel.open for door in self.neighbours.doors.values())

    def _boot_s(self) -> float:
        return self.host.clock_s()

    def give(self, chance: Random) -> bool:
        """Let it give its partition to another machine, if one follows."""
        if self.standby is None or not self.is_up or self.ends.is_set():
            return False
        nodes = self.standby.nodes
        there = [each for each in nodes.others if nodes.follows(each)]
        if not there:
            return False
        self.heir = chance.choice(there)
        self.end()
        return True

    async def run(self) -> None:
        self.heir = ""
        await super().run()

    def _die(self, when: str) -> None:
        self.standby = None
        super()._die(when)
        self.gone_s = self._virtual.now_s  # also one that stands by, as it passes on what others say

    async def _serve(self, nursery: trio.Nursery) -> None:
        host, number = self.host, self.partition
        with self._opened() as store, store.snapshot(own=True) as snapshot:
            is_empty = not snapshot.count(keys.RECORDS, b"", None)
        connection = cast("NatsConnection", Connection(self._words, self.name))
        copy = PartitionCopy(host.path, number, PARTITIONS, host.clock_s, host.boot)
        standby = self.standby = Standby(
            self.way, connection, "words", host.name, host.name, SILENCE_S, copy=copy
        )
        nursery.start_soon(standby.nodes.run)
        owner = await standby.own(host.path, b"secrets", _no_copy, is_empty=is_empty)
        journal = partial(ReplicatedPartitionedJournal, owner=owner, copy=copy, boot_s=host.clock_s)
        store = self._store = self._opened(journal)
        try:
            self.disk.watch(store)
            self._watch(store)
            await self._serve_store(store)
        finally:
            if self._is_dead:
                abandon(store)
            else:
                store.close()
            self._store = None
        with suppress(StoreError):
            heir = self.heir or standby.heir()
            await cast("ReplicatedPartitionedJournal", store.journal).release(heir)

    def _opened(self, journal: Callable[..., ReplicatedJournal] | None = None) -> Store:
        return open_store(
            self.host.path,
            self._settings,
            self._virtual,
            self.partition,
            contents_place=contents_place_of(self._settings),
            journal=journal,
            keeps_log=True,
        )

    async def _serve_store(self, store: Store) -> None:
        system = System(
            store, self._settings.limits, self._virtual, ACTORS, random_bytes=self._chance.randbytes
        )
        boot.add_parts(system, self._settings)
        self._watch_copies(store)
        watch: Any = system.component(LoopWatch)
        watch.lap = lambda: None  # the loop is that of all machines, and its time stands still
        self.neighbours = neighbours = Neighbours(system)
        async with boot.running(system), trio.open_nursery() as serving:
            await serving.start(neighbours.run)
            dispatcher = make_dispatcher(system, self._settings)
            serving.start_soon(system.component(LinkTasks).run)
            serving.start_soon(dispatcher.call_turns.run)
            edge = DividedEdge(dispatcher, self._settings, self._network, neighbours, self.number)
            trigger = partial(drain_after, self.ends.wait, system)
            await serving.start(partial(edge.serve, serving, trigger))
            self.server = Server(system, dispatcher, self.disk, edge)
            self.serves()
            self.on_service()

    def _watch_copies(self, store: Store) -> None:
        """Note when a copy is not read, as it may be old."""
        partitions: Any = store.partitions
        outdated = partitions.outdated

        def noted(number: int) -> Any:
            self.host.processes[number].troubled_s = trio.current_time()
            self._network.reached["a copy was not fresh"] += 1
            return outdated(number)

        partitions.outdated = noted


async def _no_copy() -> None:
    raise AssertionError("nothing was trimmed")


class PartitionCluster(Cluster):
    """The processes of a partition on all machines, as the one that clients know."""

    machines: list[SpreadProcess]

    def __init__(self, number: int, processes: list[SpreadProcess], virtual: VirtualTime) -> None:
        super().__init__(processes, virtual)
        self.number = number
        self.was_unsure: Callable[[float], bool] = lambda _since_s: False

    def was_away(self, since_s: float) -> bool:
        return self.was_unsure(since_s)

    def was_unsure_itself(self, since_s: float) -> bool:
        """Whether it was not sure since a time who serves, or a copy was not fresh."""
        ahead_s = self._virtual.monotonic_s() - self._virtual.now_s
        troubled_s = max(each.troubled_s for each in self.machines) - ahead_s
        is_cut = any(each.way.is_cut for each in self.machines)
        return is_cut or troubled_s + LATE_S > since_s or super().was_away(since_s)
