"""Runs in which the server has several partitions on several machines, each with a process for each: from seed 800,000.

Each process follows its partition or owns it, whoever owns the others, and reads the copies of its machine. What one
passes on to a partition that another machine owns goes through the process of its own machine that stands by for that
one, as through its port for other machines (`http/processes/machine_port.py`): that lasts while it hears the owner.

Clients reach each process that owns a partition. A process or a whole machine is killed, cut off, or ended in order, or
gives its partition to another machine. What was acknowledged before a call is seen by it, whichever machine it reaches.
What is not acknowledged yet may be seen on one machine sooner than on another.

Applications are not moved in these runs, as that needs both partitions on one machine. A `World` is `Any` here, as it
imports this module.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import trio

from tests.partitions import make_partitions
from tests.simulation.determinism import VirtualTime
from tests.simulation.disk import Disk
from tests.simulation.edge import processes_in_memory
from tests.simulation.life import Life, make_rare_things_frequent
from tests.simulation.links import Links, QuietWords
from tests.simulation.loose_files import MACHINES
from tests.simulation.machine_disks import contents_of, lead_to_contents
from tests.simulation.machine_log import Log
from tests.simulation.machines import CALM_S, CUT_OFF_S, TROUBLE, WAY_S
from tests.simulation.network import Network
from tests.simulation.spread_processes import PARTITIONS, Host, PartitionCluster, SpreadProcess
from tests.store.simulated_log import LONGEST_S
from trunkline.store.directory import STORE
from trunkline.store.memory_map import opened_here
from trunkline.store.partitions import partition_directory
from trunkline.store.snapshot import Snapshot

WORDS_LOST: Final = (0.0, 0.0, 0.05)
"""With more the leases of copies end now and then, although nothing is gone."""


def make_machines(here: Path, count: int) -> None:
    """Make the data directories of machines that are new, with the same secrets, and the contents of all."""
    (here / MACHINES).mkdir(mode=0o700, parents=True)
    (here / "contents").mkdir(mode=0o700)
    make_partitions(here / MACHINES / "0", PARTITIONS)
    for number in range(1, count):
        shutil.copytree(here / MACHINES / "0", here / MACHINES / str(number))


def disks_of(world: Any, here: Path, chance: Random, *, first: bool) -> Disk:
    """The disk of the first store of the first machine. The others are in its `machine`."""
    if first:
        make_machines(here, world.machines)
    lead_to_contents(here)
    root = None
    for number in range(world.machines * PARTITIONS):
        directory = here / MACHINES / str(number // PARTITIONS)
        path = partition_directory(directory, number % PARTITIONS)
        own = Random(chance.getrandbits(64))
        disk = Disk(path, own, world.virtual.sleep, world.cut, root, whole=here)
        root = root or disk
    assert root is not None
    return root


def snapshots_of(world: Any, number: int) -> Iterator[Snapshot]:
    """What any machine has of a partition, that of who serves it first."""
    cluster = world.life.processes[number]
    for each in sorted(cluster.machines, key=lambda each: not each.is_up):
        memory_map = opened_here((each.disk.path / STORE).resolve())
        if memory_map is not None:
            with Snapshot(memory_map) as snapshot:
                yield snapshot
            return


@asynccontextmanager
async def started(world: Any, name: str, disk: Disk, network: Network) -> AsyncIterator[Life]:
    """A life of all machines. `disk` is that of the first store."""
    make_rare_things_frequent()
    virtual: VirtualTime = world.virtual
    settings = replace(world.settings(disk.path), blobs=str(contents_of(disk.whole)))
    seed = f"{world.seed} life {name}"
    own = Random(f"{world.seed} log")
    trouble, way_s, lost = own.choice(TROUBLE), own.choice(WAY_S), own.choice(WORDS_LOST)
    with disk.files.watched(), network.below_sockets(), processes_in_memory(network):
        async with trio.open_nursery() as nursery:
            random = Random(f"{seed} log")
            log = Log(random, nursery, trouble, way_s, world.log)
            log.network = network
            words = [QuietWords(random, lost) for _ in range(PARTITIONS)]
            hosts = []
            for number in range(world.machines):
                disks = disk.machine[number * PARTITIONS : (number + 1) * PARTITIONS]
                host = Host(number, disks[0].path, virtual, seed)
                hosts.append(host)
                for partition, each in enumerate(disks):
                    words[partition].network = network
                    host.processes.append(
                        SpreadProcess(
                            host, partition, settings, virtual, each, network, seed, log, words[partition]
                        )
                    )
            every = [each for host in hosts for each in host.processes]
            virtual.threads_may_run = lambda: not any(each.holds_reads for each in every)
            clusters = [
                PartitionCluster(number, [host.processes[number] for host in hosts], virtual)
                for number in range(PARTITIONS)
            ]
            links = Links(network, hosts, virtual, loses=trouble > 0 or lost > 0)
            network.elsewhere = links.elsewhere
            nursery.start_soon(network.run)
            for process in every:
                process.on_death = partial(_died, world, clusters[process.partition], process)
                nursery.start_soon(process.keep)
            nursery.start_soon(links.watch)
            for cluster in clusters:
                await cluster.up.wait()
            processes: Any = clusters
            life: Any = Life(network, nursery, virtual, None, processes, (), Random(f"{seed} calls"))
            life.all_processes = every
            life.links = links
            life.home = world.home

            def was_unsure(since_s: float) -> bool:
                return any(each.was_unsure_itself(since_s) for each in clusters)

            async def is_calm() -> None:
                await trio.sleep(LONGEST_S if trouble else CALM_S)  # until what is late has come
                while not life.is_quiet:  # noqa: ASYNC110 - a moment of all of them
                    await trio.sleep(CALM_S)

            life.was_unsure, life.is_calm = was_unsure, is_calm
            for cluster in clusters:
                cluster.was_unsure = was_unsure
            yield life
            nursery.cancel_scope.cancel()


def _died(world: Any, cluster: PartitionCluster, process: SpreadProcess, when: str) -> None:
    """A process was killed, or has ended."""
    cluster.ended(process)
    world.note(f"{process.name}, partition {process.partition}, ended: {when}")
    world.reached.update(["a process of a machine ended", f"a process of a machine ended: {when}"])


# What happens to machines.


async def strike(world: Any, process: SpreadProcess, chance: Random) -> None:
    """Let something happen to a process or to all of its machine."""
    host = process.host
    whole = chance.random() < 0.4
    struck = host.processes if whole else [process]
    what = "a machine" if whole else "a process"
    fate = chance.choice(("killed", "killed", "ended", "cut off", "cut off", "cut off", "gave its partition"))
    if fate == "gave its partition":
        if not process.give(chance):
            return
        world.reached["a process gave its partition"] += 1
    else:
        world.reached[f"{what} was {fate}"] += 1
    if fate == "ended":
        for each in struck:
            each.end()
    elif fate == "killed" and whole:
        host.kill()
    elif fate == "killed":
        if chance.random() < 0.4:
            process.kill()
        else:
            process.disk.kill_soon(chance.choice((1, 1, 2, 5)))
    elif fate == "cut off":
        seconds = chance.choice(CUT_OFF_S)
        world.callers.start_soon(_cut_off, world, host, struck, seconds, chance.random() < 0.7)
        await trio.lowlevel.checkpoint()
    await _act_often(world, chance)


async def _act_often(world: Any, chance: Random) -> None:
    """Make calls while it is being found out what has happened."""
    await trio.sleep(chance.choice((0.0, 0.3, 1.0, 2.5)))
    for _ in range(chance.choice((0, 10, 30))):
        if world.life.over:
            return
        await world.act(chance)
        await trio.sleep(chance.choice((0, 0.005, 0.05, 0.2)))


async def _cut_off(
    world: Any, host: Host, struck: list[SpreadProcess], seconds: float, is_severed: bool
) -> None:
    """Cut off processes from the log, and from what others say; a machine may reach other ones meanwhile."""
    severed = world.life.links.severed
    if len(struck) > 1 and is_severed:
        severed.add(host.number)
    try:
        async with trio.open_nursery() as nursery:
            for each in struck:
                nursery.start_soon(each.cut_off, seconds)
    finally:
        severed.discard(host.number)
