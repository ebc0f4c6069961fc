"""The processes of a server with several partitions: each owns one store, dies now and then, and starts again.

All of them run in one event loop. `PROCESS` says whose a task is, and so whose the sockets are that it opens. When a
process dies, the system closes its sockets and its files, nothing that it had in memory is written any more, and its
tasks are cancelled: what they still do is seen by nobody. The file of its store stays as LMDB has written it, and the
others go on reading it.

Owns how a process starts, dies and starts again. Does not own what it serves (`edge.py`), nor when it dies.
"""

from __future__ import annotations

import faulthandler
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.disk import Disk, PowerCut, take_nothing
from tests.simulation.edge import DividedEdge, Edge
from tests.simulation.network import Network
from tests.simulation.wires import PROCESS
from trunkline.actors import boot
from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.system import System
from trunkline.actors.maintenance import foreign
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.processes.neighbours import Neighbours
from trunkline.http.serve import make_dispatcher
from trunkline.limits.settings import Settings
from trunkline.store.env import Store
from trunkline.store.errors import StoreBroken
from trunkline.store.overlay import Overlay
from trunkline.store.partitioned import SETTLE
from trunkline.store.replicated_journal import ReplicatedJournal

MAP_BYTES: Final = 1 << 19
"""So small that the map grows in each run."""
AWAY_S: Final = (0.0, 0.02, 0.3, 2.0, 2.0, 15.0)
"""How long it takes until a process that died is started again."""
LOCKED_S: Final = 0.01
"""So often a process that starts looks whether an application can be settled."""
LATE_S: Final = 2.0
"""So long after a process is there again, others may not have noticed: what is under way between them takes less."""


@dataclass
class Server:
    """What a process has in memory, and its disk."""

    system: System
    dispatcher: Dispatcher
    disk: Disk
    edge: Edge | DividedEdge


def open_store(
    path: Path, settings: Settings, virtual: VirtualTime, partition: int = 0, **more: Any
) -> Store:
    """The store of a life; `more` is for `Store.open`."""
    limits = settings.limits
    return Store.open(
        path,
        partition=partition,
        map_size_bytes=MAP_BYTES,
        store_size_max_bytes=settings.store_size_max_bytes,
        journal_bytes_max=limits.journal_bytes_max,
        journal_batches_max=limits.journal_batches_max,
        arrival_window_bytes=limits.arrival_window_bytes,
        arrivals_bytes_max=limits.arrivals_bytes_max,
        read_threads_max=limits.read_threads_max,
        read_queue_length_max=limits.read_queue_length_max,
        start_check_s=limits.start_check_s,
        monotonic_s=virtual.monotonic_s,
        **more,
    )


async def _settle(store: Store) -> None:
    """What a start does about moves that were interrupted. The lock for it would stop the loop of all processes."""
    assert store.partitions is not None
    is_free = False
    while not is_free:
        with store.partitions.locked(SETTLE) as is_free:
            pass
        if not is_free:
            await trio.sleep(LOCKED_S)
    foreign.settle(store, store.partitions, store.own_results)


class AnyProcess:
    """A process, in one life of the machine, that is started again whenever it has died. `run` is its program."""

    def __init__(self, number: int, virtual: VirtualTime, network: Network, seed: str) -> None:
        self.number = number
        self.deaths = 0
        self.is_up = False
        self.up = trio.Event()
        """It serves, since it was started last."""
        self.on_death: Callable[[str], None] = lambda _when: None
        self.back_s = -LATE_S
        """When it was there again after it died the last time."""
        self._virtual = virtual
        self._network = network
        self._chance = Random(f"{seed} process {number}")
        self._is_dead = False
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Run it once, until it is cancelled."""
        raise NotImplementedError

    @property
    def is_quiet(self) -> bool:
        """Whether it is there, reaches all others, and nothing waits in it."""
        raise NotImplementedError

    def was_away(self, since_s: float) -> bool:
        """Whether others may have found it away since a time of the run."""
        return not self.is_up or self.back_s + LATE_S > since_s

    async def keep(self) -> None:
        """Run it, again and again, until the power is cut."""
        PROCESS.set(self.number)
        while True:
            self._is_dead, self._scope = False, trio.CancelScope()
            self._network.dead.discard(self.number)
            try:
                with self._scope:
                    await self.run()
            except PowerCut:
                raise
            except BaseException as ghost:  # noqa: BLE001 - nobody hears what a ghost says
                _raise_unless_ghost(ghost, is_dead=self._is_dead)
            await trio.sleep(self._chance.choice(AWAY_S))

    def serves(self) -> None:
        """It serves from now on."""
        self.is_up = True
        if self.deaths:
            self.back_s = self._virtual.now_s
        self.up.set()

    # Its death.

    def kill(self) -> None:
        """Let it die now, between two commits."""
        if not self._is_dead:
            self._die("between commits")

    def _die(self, when: str) -> None:
        self._is_dead, self.is_up, self.up = True, False, trio.Event()
        self.deaths += 1
        self.on_death(when)
        self._network.kill(self.number)
        self.lose_memory()
        self._scope.cancel()

    def lose_memory(self) -> None:
        """It has died: let nothing of what it has in memory be written any more."""


class Process(AnyProcess):
    """A process that owns a partition. `server` is what it has in memory, or had before it died."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        virtual: VirtualTime,
        disk: Disk,
        network: Network,
        seed: str,
    ) -> None:
        super().__init__(number, virtual, network, seed)
        self.disk = disk
        self.server: Server
        self.neighbours: Neighbours
        self._settings = settings
        self._store: Store
        disk.on_kill = self._die

    @property
    def holds_reads(self) -> bool:
        """Whether a thread that reads its store would wait for its event loop."""
        return self.is_up and self._store.memory_map._reads_held

    @property
    def is_quiet(self) -> bool:
        return (
            self.is_up
            and not self.server.system.journal.pending_batches
            and all(door.channel.open for door in self.neighbours.doors.values())
            and self.server.edge.is_quiet
        )

    async def run(self) -> None:
        directory = self.disk.machine[0].path
        store = self._store = open_store(directory, self._settings, self._virtual, self.number)
        try:
            await _settle(store)
            self.disk.watch(store)
            system = System(
                store, self._settings.limits, self._virtual, ACTORS, random_bytes=self._chance.randbytes
            )
            boot.add_parts(system, self._settings)
            watch: Any = system.component(LoopWatch)
            watch.lap = lambda: None  # the loop is that of all processes, and its time stands still
            self.neighbours = neighbours = Neighbours(system)
            async with boot.running(system), trio.open_nursery() as nursery:
                await nursery.start(neighbours.run)
                dispatcher = make_dispatcher(system, self._settings)
                nursery.start_soon(system.component(LinkTasks).run)
                nursery.start_soon(dispatcher.call_turns.run)
                edge = DividedEdge(dispatcher, self._settings, self._network, neighbours, self.number)
                await nursery.start(edge.serve, nursery)
                self.server = Server(system, dispatcher, self.disk, edge)
                self.serves()
                await trio.sleep_forever()
        finally:
            if self._is_dead:
                abandon(store)
            else:
                store.close()

    def lose_memory(self) -> None:
        forget(self._store)


def forget(store: Store) -> None:
    """Let nothing of what a process has in memory come to its store any more, nor to other processes."""
    journal: Any = store.journal
    take_nothing(store)
    groups = [journal._group]
    journal._group, journal._overlay = type(journal._group)(), Overlay()
    if isinstance(journal, ReplicatedJournal) and journal._sent is not None:
        groups.append(journal._sent)
        journal._sent, journal._earlier = None, ()
    partitions: Any = store.partitions
    if partitions is not None:
        partitions.numbers.revoke = partitions.numbers.note_change = lambda *_: None
        partitions.release_names()
        partitions.hold_names = lambda: True  # the lock is not for a ghost
    for group in groups:
        group.finish(StoreBroken("The process has died."))  # some who wait for it cannot be cancelled


def abandon(store: Store) -> None:
    """Close what a process had open, as the system does."""
    store._closed = True
    assert store.memory_map.close(0), "a ghost still reads"
    if store.partitions is not None:
        store.partitions.close()
    if store._crash._file is not None:
        faulthandler.disable()
        store._crash._file.close()
    store.directory.close()


def _raise_unless_ghost(error: BaseException, *, is_dead: bool) -> None:
    """Raise what is not of a process that has died. What the death of the machine cancels ends it as well."""
    if not is_dead:
        raise error
    if isinstance(error, BaseExceptionGroup):
        cut = error.split((trio.Cancelled, PowerCut))[0]
        if cut is not None:
            raise cut
    elif isinstance(error, trio.Cancelled):
        raise error


@asynccontextmanager
async def running(
    processes: Sequence[Process], doors: Sequence[AnyProcess], network: Network
) -> AsyncIterator[trio.Nursery]:
    """Run all processes while the body runs, which begins when all are there and reach each other."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(network.run)
        for process in processes:
            nursery.start_soon(process.keep)
        for process in processes:
            await process.up.wait()
        for process in processes:
            await process.neighbours.connected()
        for door in doors:
            nursery.start_soon(door.keep)
        for door in doors:
            await door.up.wait()
        yield nursery
        nursery.cancel_scope.cancel()
