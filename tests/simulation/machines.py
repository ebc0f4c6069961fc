"""Runs in which several machines have the data of the server, and one of them serves: from seed 700,000 on.

Each has a store of its own that follows the log. The log is simulated, with answers that are late or lost, and so are
the words between the machines. A machine is killed, cut off from all others but not from its clients, or ends in order;
then another one serves, and what was acknowledged is there, by whichever machine. The log outlives the lives of a run.

Clients reach any machine that thinks to serve. Those that stand by have no doors here, so they serve nobody.

Owns how a machine starts, stands by, serves and ends. Does not own the protocol (`store/standby.py`), nor what is
served. A `World` is `Any` here, as it imports this module.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final, cast

import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.disk import Disk
from tests.simulation.edge import Edge
from tests.simulation.life import Life, make_rare_things_frequent
from tests.simulation.machine_disks import contents_of
from tests.simulation.machine_log import SLOW_S, Log, LogWay
from tests.simulation.model import Throttle
from tests.simulation.network import Network
from tests.simulation.processes import LATE_S, AnyProcess, Server, abandon, forget, open_store
from tests.store.simulated_log import LONGEST_S, SimulatedLog
from tests.store.simulated_nodes import Connection, Words
from trunkline.actors import boot
from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.system import System
from trunkline.actors.maintenance.data_directory import contents_place_of
from trunkline.http.serve import drain_after, make_dispatcher
from trunkline.limits.settings import Settings
from trunkline.store import keys
from trunkline.store.env import Store
from trunkline.store.errors import Fenced, LogUnreachable, StoreError, StoreLost, first_of
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.replicated_journal import PROOF_S, ReplicatedJournal
from trunkline.store.standby import Standby

MACHINES_FROM: Final = 700_000
"""The first seed with several machines."""
SPREAD_FROM: Final = 800_000
"""The first seed with several partitions on several machines (`spread.py`)."""
SILENCE_S: Final = 1.5
TROUBLE: Final = (0.0, 0.0, 0.02, 0.2)
"""How often an append fails, or an answer of the log does not come."""
WAY_S: Final = (0.002, 0.01, 0.03)
WORDS_LOST: Final = (0.0, 0.3, 0.9)
CUT_OFF_S: Final = (0.3, 1.2, 3.0, 8.0, 25.0, 60.0)
CALM_S: Final = 0.2
"""An append of which nothing fails takes less."""


def machines_of(seed: int) -> int:
    """How many machines a run has."""
    return 1 if seed < MACHINES_FROM else 2 + (seed % 2 if seed < SPREAD_FROM else seed % 4 == 3)


class Machine(AnyProcess):
    """A machine, in one life of the run. `server` is what it has in memory, or had when it served last."""

    partition = 0

    def __init__(
        self,
        number: int,
        settings: Settings,
        virtual: VirtualTime,
        disk: Disk,
        network: Network,
        seed: str,
        log: SimulatedLog,
        words: Words,
    ) -> None:
        super().__init__(number, virtual, network, seed)
        self.name = f"machine-{number}"
        self.disk = disk
        self.server: Server
        self.on_service: Callable[[], None] = lambda: None
        """Called when it begins to serve."""
        self.way = LogWay(log)
        self.ends = trio.Event()
        """It got SIGTERM."""
        self._settings = replace(settings, data_dir=str(disk.path))
        self._log = log
        self._words = words
        self.gone_s = -LATE_S
        """When it ended while it served for the last time."""
        self.unsure_s = -LATE_S
        """When it was not sure whether it owns the data for the last time."""
        self.is_lost = False
        """Whether its process ends, as it does not own the data any more, or cannot store them."""
        self._store: Store | None = None
        self._rate, self._ahead_s = self._chance.uniform(0.95, 1.05), self._chance.uniform(-1e6, 1e6)
        disk.on_kill = self._die

    @property
    def holds_reads(self) -> bool:
        """Whether a thread that reads its store would wait for its event loop."""
        return self._store is not None and self._store.memory_map._reads_held

    @property
    def is_quiet(self) -> bool:
        if self.way.is_cut or self.ends.is_set():
            return False
        if not self.is_up:
            return True
        journal: Any = self.server.system.journal
        return bool(
            not journal.pending_batches
            and self._boot_s() - journal._proved_s < PROOF_S + CALM_S / 2
            and not self.way.waits(CALM_S)
            and self.server.edge.is_quiet
        )

    def _boot_s(self) -> float:
        """The clock of the machine, which goes faster or slower than that of others, and begins at another time."""
        return self._virtual.monotonic_s() * self._rate + self._ahead_s

    def end(self) -> None:
        """Let it end in order; one that serves hands over."""
        if self.is_up:
            self.ends.set()
            self._network.ending.add(self.number)
        else:
            self.kill()

    async def cut_off(self, seconds: float) -> None:
        """Let nothing pass between it and the log, or other machines, for a while. Its clients reach it."""
        if self.way.is_cut:
            return
        way = self.way
        way.cut()
        self._words.cut.add(self.name)
        await trio.sleep(seconds)
        if way is self.way:
            self._words.cut.discard(self.name)
            way.mend()
            way.slow_until_s = trio.current_time()

    async def run(self) -> None:
        self.way, self.ends, self.is_lost = LogWay(self._log), trio.Event(), False
        self._words.cut.discard(self.name)
        self._network.ending.discard(self.number)
        try:
            async with trio.open_nursery() as nursery:
                await self._serve(nursery)
                nursery.cancel_scope.cancel()
        except* (Fenced, StoreLost, LogUnreachable) as errors:
            self._ended(type(first_of(errors)).__name__)
        else:
            self._ended("in order")

    def was_away(self, since_s: float) -> bool:
        """Whether clients may have found that it ended, since a time of the run."""
        return self.is_lost or self.ends.is_set() or self.gone_s + LATE_S > since_s

    def _die(self, when: str) -> None:
        if self.is_up:
            self.gone_s = self._virtual.now_s
        super()._die(when)

    def _ended(self, how: str) -> None:
        """Its process has ended by itself, if it was not killed before."""
        if not self._is_dead:
            self._die(how)

    async def _serve(self, nursery: trio.Nursery) -> None:
        path = self.disk.path
        with self._opened() as store, store.snapshot() as snapshot:
            is_empty = not snapshot.count(keys.RECORDS, b"", None)
        connection = cast("NatsConnection", Connection(self._words, self.name))
        standby = Standby(self.way, connection, "words", self.name, "address", SILENCE_S)
        nursery.start_soon(standby.nodes.run)
        owner = await standby.own(path, b"secrets", _no_copy, is_empty=is_empty)
        store = self._store = self._opened(partial(ReplicatedJournal, owner=owner, boot_s=self._boot_s))
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
            await cast("ReplicatedJournal", store.journal).release()

    def _opened(self, journal: Callable[..., ReplicatedJournal] | None = None) -> Store:
        return open_store(
            self.disk.path,
            self._settings,
            self._virtual,
            contents_place=contents_place_of(self._settings),
            journal=journal,
            keeps_log=True,
        )

    def _watch(self, store: Store) -> None:
        """Note when reads are refused, as it is not sure whether this machine still owns the data, and when writes are,
        as it does not.
        """
        journal: Any = store.journal
        is_current, lose = journal.is_current, journal._lose

        def lost(error: StoreError) -> None:
            self.is_lost = True
            self.disk.on_failure()
            lose(error)

        def watched() -> bool:
            found: bool = is_current()
            if not found:
                self.unsure_s = trio.current_time()
            return found

        journal.is_current, journal._lose = watched, lost

    async def _serve_store(self, store: Store) -> None:
        system = System(
            store, self._settings.limits, self._virtual, ACTORS, random_bytes=self._chance.randbytes
        )
        boot.add_parts(system, self._settings)
        watch: Any = system.component(LoopWatch)
        watch.lap = lambda: None  # the loop is that of all machines, and its time stands still
        async with boot.running(system), trio.open_nursery() as serving:
            dispatcher = make_dispatcher(system, self._settings)
            serving.start_soon(dispatcher.call_turns.run)
            edge = Edge(dispatcher, self._settings, self._network, process=self.number)
            trigger = partial(drain_after, self.ends.wait, system)
            await cast("ReplicatedJournal", store.journal).begun()

            async def serve_until_drained(task_status: trio.TaskStatus[list[str]]) -> None:
                await edge.serve(trigger, task_status=task_status)
                serving.cancel_scope.cancel()

            await serving.start(serve_until_drained)
            self.server = Server(system, dispatcher, self.disk, edge)
            self.serves()
            self.on_service()

    def lose_memory(self) -> None:
        self.way.cut()
        self._words.cut.add(self.name)
        if self._store is not None:
            forget(self._store)


async def _no_copy() -> None:
    raise AssertionError("nothing was trimmed")


class Cluster:
    """All machines, as the one server that clients know: that of the machine that began to serve last."""

    number = 0

    def __init__(self, machines: Sequence[Machine], virtual: VirtualTime) -> None:
        self.machines = machines
        self.deaths = 0
        self.back_s = -LATE_S
        """When another machine began to serve, or the same one again."""
        self.up = trio.Event()
        self._latest: Machine | None = None
        self._virtual = virtual
        for machine in machines:
            machine.on_service = partial(self._served_by, machine)

    def ended(self, machine: Machine) -> None:
        """A machine has ended. One that did not know yet that another one had claimed the data may have served last."""
        others = [each for each in self.machines if each.is_up]
        if machine is self._latest and others:
            self._served_by(others[0])

    def _served_by(self, machine: Machine) -> None:
        if self._latest is not None:
            self.back_s = self._virtual.now_s
            Throttle.crashes += 1
        self._latest = machine
        self.up.set()

    @property
    def server(self) -> Server:
        """What the machine has in memory that began to serve last."""
        assert self._latest is not None
        return self._latest.server

    @property
    def disk(self) -> Disk:
        return self.server.disk

    @property
    def is_up(self) -> bool:
        """Whether that machine is there still."""
        return self._latest is not None and self._latest.is_up

    @property
    def is_quiet(self) -> bool:
        """Whether one machine serves, and nothing waits in it."""
        return self.is_up and sum(each.is_up for each in self.machines) == 1

    def was_away(self, since_s: float) -> bool:
        """Whether clients may have found that nobody serves, or that it is not sure who does, since a time."""
        ahead_s = self._virtual.monotonic_s() - self._virtual.now_s
        slow_s = max(max(each.way.slow_until_s, each.unsure_s) for each in self.machines) - ahead_s
        gone_s = max(each.gone_s for each in self.machines)
        is_unsure = sum(each.is_up for each in self.machines) != 1 or any(
            each.is_up and (each.way.is_cut or each.way.waits(SLOW_S) or each.ends.is_set() or each.is_lost)
            for each in self.machines
        )
        return is_unsure or max(self.back_s, gone_s, slow_s) + LATE_S > since_s


@asynccontextmanager
async def started(world: Any, name: str, disk: Disk, network: Network) -> AsyncIterator[Life]:
    """A life of all machines. `disk` is that of the first one."""
    make_rare_things_frequent()
    virtual: VirtualTime = world.virtual
    settings = replace(world.settings(disk.path), blobs=str(contents_of(disk.whole)))
    seed = f"{world.seed} life {name}"
    own = Random(f"{world.seed} log")
    trouble, way_s, lost = own.choice(TROUBLE), own.choice(WAY_S), own.choice(WORDS_LOST)
    with disk.files.watched(), network.below_sockets():
        async with trio.open_nursery() as nursery:
            random = Random(f"{seed} log")
            log = Log(random, nursery, trouble, way_s, world.log)
            log.network = network
            words = Words(random, lost)
            machines = [
                Machine(number, settings, virtual, each, network, seed, log, words)
                for number, each in enumerate(disk.machine)
            ]
            virtual.threads_may_run = lambda: not any(machine.holds_reads for machine in machines)
            cluster = Cluster(machines, virtual)
            nursery.start_soon(network.run)
            for machine in machines:
                machine.on_death = partial(_died, world, cluster, machine)
                nursery.start_soon(machine.keep)
            await cluster.up.wait()
            processes: Any = [cluster]
            life = Life(network, nursery, virtual, None, processes, (), Random(f"{seed} calls"))
            life.all_processes = [*machines]
            life.was_unsure = cluster.was_away

            async def is_calm() -> None:
                await trio.sleep(LONGEST_S if trouble else CALM_S)  # until what is late has come
                while not life.is_quiet:  # noqa: ASYNC110 - a moment of all of them
                    await trio.sleep(CALM_S)

            life.is_calm = is_calm
            yield life
            nursery.cancel_scope.cancel()


def _died(world: Any, cluster: Cluster, machine: Machine, when: str) -> None:
    """A machine was killed, or its process has ended."""
    cluster.ended(machine)
    world.note(f"{machine.name} ended: {when}")
    world.reached.update(["a machine ended", f"a machine ended: {when}"])
