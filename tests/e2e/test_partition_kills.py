"""Processes of a divided server are killed under load: nothing is lost or doubled, and the others go on.

`pytest -m load tests/e2e/test_partition_kills.py` kills them at random for minutes (`KILLS_S` seconds), and prints what
was kept.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.divided import PARTITIONS, divided, house_in
from tests.e2e.server_process import ServerProcess, processes
from tests.e2e.steady import Kills, Steady, answered_again, audited, steady_clients
from tests.e2e.stubborn import Stubborn, calls, patience, prepared_in, read_back, sent_marks
from tests.e2e.test_crash import UNTHROTTLED, checked

pytestmark = [pytest.mark.disk, pytest.mark.slow]

KILLS_S = float(os.environ.get("KILLS_S", "180"))


class Load:
    """Stubborn clients of a new application in each partition, and what became of their calls."""

    def __init__(self, random: Random, clients: int, count: int) -> None:
        self.clients = clients
        self.count = count
        self.paths: dict[str, tuple[str, str, str]] = {}
        self.stubborn: list[Stubborn] = []
        self._random = random

    async def prepare(self, server: ServerProcess) -> None:
        """Make the applications, and the clients."""
        for name in PARTITIONS:
            house = await house_in(server, name, f"load in {name}")
            self.paths[name] = paths = await prepared_in(server, house.application, house.device)
            self.stubborn += [
                Stubborn(f"{name}-{n}", calls(paths, n, self.count), Random(self._random.random()))
                for n in range(self.clients)
            ]

    @property
    def answered(self) -> int:
        return sum(len(each.answers) for each in self.stubborn)

    async def kept(self, server: ServerProcess) -> tuple[int, int]:
        """How many marks of acknowledged calls are missing, and how many are there more than once."""
        wanted, lost, doubled = sent_marks(self.clients, self.count), 0, 0
        for paths in self.paths.values():
            found, states = await read_back(server, paths)
            lost += (wanted - found).total()
            doubled += (found - wanted).total()
            expected = self.clients * sum(number % 7 < 2 for number in range(self.count))
            assert states == expected, "none replaced an equal one"
        return lost, doubled


async def check_steady(server: ServerProcess, organization: str, steady: list[Steady]) -> None:
    for each in steady:
        await each.check(server)
    assert await audited(server, organization) >= sum(each.patched for each in steady)


async def test_every_call_has_one_effect_and_the_others_go_on_whatever_process_dies(tmp_path: Path) -> None:
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        kills, load = Kills(server), Load(Random(5), clients=3, count=140)
        organization, steady = await steady_clients(kills)
        await load.prepare(server)
        with patience(load.stubborn):
            async with trio.open_nursery() as beside, trio.open_nursery() as nursery:
                for client in steady:
                    beside.start_soon(client.run)
                for each in load.stubborn:
                    nursery.start_soon(each.run, server)
                for number in range(4):
                    target = len(load.stubborn) * load.count * (number + 1) // 5
                    while load.answered < target:
                        await trio.lowlevel.checkpoint()
                    name = PARTITIONS[number % 2]
                    other = steady[1 - number % 2]
                    before, least = kills.kill(name), other.beside + 12
                    await answered_again(kills, name, before, load.paths[name][1])
                    assert other.beside >= least, "it has called while the other one was away"
                nursery.start_soon(stop_with, load, beside.cancel_scope)
        assert await load.kept(server) == (0, 0)
        await check_steady(server, organization, steady)
        assert await server.terminate() == 0
    await checked(tmp_path / "data")


async def stop_with(load: Load, scope: trio.CancelScope) -> None:
    """Cancel when all calls of a load are answered."""
    while any(each.left for each in load.stubborn):
        await trio.lowlevel.checkpoint()
    scope.cancel()


@pytest.mark.load
@pytest.mark.timeout(KILLS_S * 3 + 600)
async def test_every_call_has_one_effect_whatever_dies_at_any_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also both at once, and while they start. New applications are loaded again and again until the time is over."""
    random, counted, kinds = Random(7), Counter[str](), Counter[str]()
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        kills = Kills(server)
        organization, steady = await steady_clients(kills)
        async with trio.open_nursery() as beside:
            for client in steady:
                beside.start_soon(client.run)
            end_s = trio.current_time() + KILLS_S
            while trio.current_time() < end_s:
                load = Load(random, clients=4, count=420)
                await load.prepare(server)
                async with trio.open_nursery() as nursery:
                    for each in load.stubborn:
                        nursery.start_soon(each.run, server)
                    while any(each.left for each in load.stubborn):
                        await trio.sleep(random.uniform(0, 4))
                        await kill_one(kills, random, kinds, load)
                for name in PARTITIONS:
                    await answered_again(kills, name, 0, load.paths[name][1])
                lost, doubled = await load.kept(server)
                counted.update(acknowledged=load.answered, lost=lost, doubled=doubled)
            beside.cancel_scope.cancel()
        made, beside_made = sum(each.calls for each in steady), sum(each.beside for each in steady)
        longest_s, failed = max(each.longest_s for each in steady), sum(len(each.failed) for each in steady)
        with capsys.disabled():
            sys.stdout.write(
                f"\nkills: {dict(kinds)}; calls with keys: acknowledged {counted['acknowledged']}, lost "
                f"{counted['lost']}, doubled {counted['doubled']}; longest pause of an application {longest_s:.1f} s\n"
                f"calls at the process of their application: {made}, {beside_made} of them while the other one was "
                f"away; failed: {failed}\n"
            )
        assert (counted["lost"], counted["doubled"]) == (0, 0)
        await check_steady(server, organization, steady)
        assert await server.terminate() == 0
    await checked(tmp_path / "data")


async def kill_one(kills: Kills, random: Random, kinds: Counter[str], load: Load) -> None:
    """Kill a process, if it runs. Half of the time its return is awaited."""
    name = random.choice(PARTITIONS)
    if name not in processes(kills.server):
        return
    before = kills.kill(name)
    kinds[name] += 1
    if random.random() < 0.5:
        await answered_again(kills, name, before, load.paths[name][1])
