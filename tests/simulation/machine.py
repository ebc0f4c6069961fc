"""Runs in which the server has several partitions, each with a process of its own: from seed 200,000 on.

Owns how many there are in a run, what begins a life of such a server, and what a call may be told while a process is
away: nothing, where its partition is another one. A `World` is `Any` here, as it imports this module.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.partitions import make_partitions
from tests.simulation import machine_disks, machines, spread
from tests.simulation.disk import Disk
from tests.simulation.doors import doors_of
from tests.simulation.life import Answer, Life, living, living_in_processes
from tests.simulation.machines import MACHINES_FROM, SPREAD_FROM
from tests.simulation.model import Broken, Throttle
from tests.simulation.network import Network
from tests.simulation.processes import AnyProcess
from tests.simulation.spread_processes import PARTITIONS
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.http.processes.peers import ASK_S
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.partitions import partition_directory
from trunkline.store.snapshot import Snapshot

DIVIDED_FROM: Final = 200_000
"""The first seed with several partitions."""
SHAPES: Final = ((2, 20), (2, 35), (3, 15), (4, 10))
"""Lives of such a run, and steps of each: there are more seeds, as each is about what is between processes."""
AWAY: Final = (502, 503)
CLAIM_S: Final = 2.0
"""So long after a name was claimed, or refused, others may find that it is being claimed."""
_CLAIMED: Final = "claims a name just now"
_MOVES: Final = "is being moved to another partition"
_OF_APPLICATION: Final = re.compile(r"/applications/([0-9a-f]{24})")


def partitions_of(seed: int) -> int:
    """How many partitions a run has."""
    if seed >= SPREAD_FROM:
        return PARTITIONS
    return 1 if seed < DIVIDED_FROM or seed >= MACHINES_FROM else 2 + seed % 3


@asynccontextmanager
async def started(world: Any, name: str, disk: Disk, network: Network, chance: Random) -> AsyncIterator[Life]:
    """A life of the server, on the directory of `disk`. What is by chance in processes follows from its name."""
    if world.machines > 1:
        begun = machines.started if world.partitions == 1 else spread.started
        async with begun(world, name, disk, network) as life:
            yield life
        return
    settings = world.settings(disk.path)
    if world.partitions == 1:
        async with living(disk.path, settings, world.virtual, disk, network, chance.randbytes) as life:
            yield life
        return
    seed = f"{world.seed} life {name}"
    doors = doors_of(world.seed)
    async with living_in_processes(settings, world.virtual, disk, network, seed, doors) as life:
        life.home = world.home
        for process in life.all_processes:
            process.on_death = partial(_died, world, process)
        yield life


def disks_of(world: Any, here: Path, chance: Random, *, first: bool) -> Disk:
    """The disk of the first store in the directory of a life. The others are in its `machine`."""
    if world.machines > 1:
        of_machines = machine_disks.disks_of if world.partitions == 1 else spread.disks_of
        return _watched(world, of_machines(world, here, chance, first=first))
    if first and world.partitions > 1:
        make_partitions(here, world.partitions)
    disk = Disk(here, chance, world.virtual.sleep, world.cut)
    for number in range(1, world.partitions):
        own = Random(chance.getrandbits(64))
        Disk(partition_directory(here, number), own, world.virtual.sleep, world.cut, disk)
    return _watched(world, disk)


def _watched(world: Any, disk: Disk) -> Disk:
    for each in disk.machine:
        each.on_failure = world.commit_failed
    return disk


def _died(world: Any, process: AnyProcess, when: str) -> None:
    if process.number >= world.partitions:
        world.note(f"door {process.number} died")
        world.reached["a door died"] += 1
        return
    world.note(f"process {process.number} died {when}")
    world.reached.update(["a process died", f"a process died {when}"])
    if process.number == world.home:
        Throttle.crashes += 1


def place_of(world: Any, application: str) -> int:
    """The partition of an application; the root's for one that is not there."""
    if world.partitions > 1 and application not in world.placed and (places := places_of(world, application)):
        world.placed[application] = places[-1]
    return int(world.placed.get(application, 0))


def know_place(world: Any, path: str) -> None:
    """Before a call: note where its application is, which may be gone when the answer comes."""
    if named := _OF_APPLICATION.match(path):
        place_of(world, named[1])


def places_of(world: Any, application: str) -> list[int]:
    """The partitions that have an application: one, or none if it is not there, or if no process is."""
    id = bytes.fromhex(application)
    key = keys.record_key(APPLICATION.name, ROOT, id)
    found: list[int] = []
    arrived: dict[int, int] = {}
    given: dict[int, int] = {}
    for number in range(world.partitions):
        for snapshot in _snapshots_of(world, number):
            if (departure := snapshot.get(keys.META, keys.foreign_key(id))) is not None:
                given[number] = decode(departure)["partition"]
            if snapshot.get(keys.RECORDS, key) is None:
                continue
            if (arrival := snapshot.get(keys.META, keys.arrived_key(id))) is None:
                found.append(number)
            else:
                arrived[number] = decode(arrival)["from"]
    return found or [number for number, source in arrived.items() if given.get(source) == number]


def _snapshots_of(world: Any, number: int) -> Iterator[Snapshot]:
    """The store of a partition; none if no process is there."""
    if world.machines > 1:
        yield from spread.snapshots_of(world, number)
        return
    for server in world.life.running[:1]:
        with server.system.store.partitions.snapshot_of(number) as snapshot:
            yield snapshot


def check_away(
    world: Any,
    call: str,
    path: str,
    answer: Answer,
    began_s: float,
    needs: Iterable[int],
    slept_s: float = 0.0,
) -> None:
    """A call was told that a process is away. Raises `Broken` where each one that it `needs` was there.

    That is the process of its application, or else that of the root. For `slept_s` of its time the whole machine stood
    still.
    """
    named = _OF_APPLICATION.match(path)
    needed = {place_of(world, named[1]) if named else 0, *needs}
    if "retry-after" not in answer.headers and answer.status == 503:
        raise Broken(f"{call} is 503, and does not say when to come again")
    if answer.status == 503 and _CLAIMED in answer.body["message"]:
        others = [claimed_s for number, claimed_s in world.claims.items() if number not in needed]
        if max(others, default=-CLAIM_S) + CLAIM_S < began_s:
            raise Broken(f"{call} is told that a name is claimed, and nobody claims one")
        world.reached["a name was being claimed"] += 1
        return
    moves = world.life.moves
    ended_s = [moves.get(named[1], began_s)] if named else []
    was_moved = any(each > began_s for each in (*ended_s, *(moves.values() if needs else ())))
    if answer.status == 503 and was_moved:
        world.reached["503 as an application was moved"] += 1
        return
    if was_moved or _MOVES in answer.body["message"]:
        needed |= set(range(world.partitions))  # until both processes are there, it belongs to none for sure
    is_late = answer.status == 502 and slept_s > ASK_S / 2
    if not is_late and not any(world.life.processes[each].was_away(began_s) for each in needed):
        raise Broken(f"{call} is {answer.status}, and the processes {needed} were there: {answer.body}")
    world.reached[f"{answer.status} as a process was away"] += 1
