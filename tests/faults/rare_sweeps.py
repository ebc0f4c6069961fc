"""Sweeps of what happens seldom: a map that grows, and a first start on a backup. Each step has a directory of its own.

Owns how it comes to that. Does not own what must hold after a fault (`sweep.py`).
"""

from __future__ import annotations

import copy
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.e2e.conftest import Server
from tests.e2e.server_process import trunkline
from tests.faults.plan import MAP, Call
from tests.faults.sweep import Disk, Way

GROWTH_CALLS_MAX: Final = 50
GROWN: Final = Call(MAP, "/store/data.mdb")


async def sweep_growths(folder: Path, way: Way, numbers: Iterable[int]) -> Counter[str]:
    """Let these system calls fail, from the one on that maps a larger file; returns what came of it."""
    outcomes: Counter[str] = Counter()
    for number in numbers:
        disk = _new_disk(folder, way, number)

        async def grow(server: Server, disk: Disk = disk) -> bool:
            for _ in range(GROWTH_CALLS_MAX):
                if not await disk.ledger.send_states(server):
                    return False
                if GROWN in disk.plan.calls():
                    return True
            raise AssertionError("the map never grew")

        async with disk.server() as server:
            await disk.fail_work(server, grow, way.at(number, awaits=MAP), way)
        await disk.audit()
        outcomes += disk.outcomes
        shutil.rmtree(disk.data)
        if not disk.was_struck:
            break
    return outcomes


async def sweep_restores(folder: Path, way: Way, numbers: Iterable[int]) -> Counter[str]:
    """Let these system calls of the first start on a backup fail; returns what came of it."""
    outcomes: Counter[str] = Counter()
    source, backup = _new_disk(folder, way, -1), folder / "backup"
    async with source.server() as server:
        for work in ("many states", "a command", "a file"):
            assert await source.ledger.works[work](server)
        done = await trunkline("backup", str(backup), "--data", str(source.data))
        assert done.returncode == 0, done.stderr
    for number in numbers:
        disk = _new_disk(folder, way, number)
        shutil.copytree(backup, disk.data)
        disk.ledger = copy.deepcopy(source.ledger)
        await disk.fail_start(number, way)
        await disk.audit()
        outcomes += disk.outcomes
        shutil.rmtree(disk.data)
        if not disk.was_struck:
            break
    return outcomes


def _new_disk(folder: Path, way: Way, number: int) -> Disk:
    place = folder / f"{way.name} {number}"
    place.mkdir(parents=True)
    return Disk(place)
