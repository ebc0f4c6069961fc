"""Data with several partitions on two machines, with a real log: one machine owns all of them, or the other one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.machines import Machines, copied, machines_in, made, report, states
from tests.e2e.server_process import ServerProcess
from tests.partitions import make_partitions

pytestmark = [pytest.mark.slow]


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    async with machines_in(tmp_path, silence_ms=60_000) as found:
        yield found


async def commanded(machines: Machines, name: str, *arguments: str, code: int = 0) -> str:
    """What a command says on a machine, and that it ends with a code."""
    done = await machines.command(name, *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


def partition_of(told: str, application: str) -> int:
    """In which partition an application is, as `trunkline partition` tells."""
    before, _, _ = told.partition(application)
    return before.count("Partition ") - 1


async def houses_of(server: ServerProcess) -> list[tuple[str, str]]:
    """Two applications, each with a device that has reported its number."""
    houses = [await made(server) for _ in range(2)]
    for number, (_, device) in enumerate(houses):
        await report(server, device, number)
    return houses


async def test_all_partitions_are_handed_over_at_once(machines: Machines) -> None:
    make_partitions(machines.folder / "a", 2)
    async with machines.serving("a") as one:
        houses = await houses_of(one)
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            # A machine that stands by has not noticed where an application is, and its calls are answered all the same.
            moved = houses[0][0].rpartition("/")[2]
            place = 1 - partition_of(await commanded(machines, "a", "partition"), moved)
            await commanded(machines, "a", "partition", "move", moved, str(place))
            for number, (_, device) in enumerate(houses):
                await report(two, device, 10 + number)
            assert await one.terminate() == 0
            for number, (_, device) in enumerate(houses):
                assert await states(two, device) == [number, 10 + number]
            assert partition_of(await commanded(machines, "b", "partition"), moved) == place
            for number, (_, device) in enumerate(houses):
                await report(two, device, 20 + number)


async def test_data_with_a_log_are_divided(machines: Machines) -> None:
    async with machines.serving("a") as one:
        houses = await houses_of(one)
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            assert await two.terminate() == 0
        assert await one.terminate() == 0
    await commanded(machines, "a", "partition", "--count", "2")
    assert "has 2 partitions, and the log tl-trunkline-0 one partition" in await machines.refused("a")
    await commanded(machines, "a", "cluster", "new-log", "--yes")
    async with machines.serving("a") as one:
        assert "has one partition, and the log tl-trunkline-0 2 partitions" in await machines.refused("b")
        await commanded(machines, "b", "cluster", "rejoin")
        async with machines.standing_by("b", one) as two:
            await copied(two, 2)
            told = await commanded(machines, "b", "cluster", "status", code=1)
            assert "serves all partitions, epoch 1" in told
            assert told.count("At risk") == 1, "one NATS server"
            assert await one.terminate() == 0
            for number, (_, device) in enumerate(houses):
                assert await states(two, device) == [number]
                await report(two, device, 10 + number)
            await two.terminate()
    told = await commanded(machines, "b", "partition")
    assert "Partition 1:" in told
    assert told.count("house") == 2
