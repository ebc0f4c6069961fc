"""Applications are moved between the processes of a divided server under load: nothing is lost or doubled, the others
go on, and whoever is killed meanwhile, each application is in one partition as a whole.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.divided import PARTITIONS, divided, partition_of
from tests.e2e.server_process import ServerProcess, trunkline
from tests.e2e.steady import Kills, answered_again, steady_clients
from tests.e2e.stubborn import patience
from tests.e2e.test_crash import UNTHROTTLED, checked
from tests.e2e.test_partition_kills import Load, check_steady, stop_with
from tests.patience import PATIENCE_S
from trunkline.actors.core.values.errors import Invalid
from trunkline.http.control_client import ask_server

pytestmark = [pytest.mark.disk, pytest.mark.slow]

LONG_MOVE_S = 0.4
"""About as long as a move takes here."""
MOVES = int(os.environ.get("MOVES", "40"))


async def moved(server: ServerProcess, application: str, to: int) -> str:
    """Move an application as soon as that can be done; what the command says."""
    id = application.rpartition("/")[2]
    with trio.fail_after(PATIENCE_S):
        while True:
            done = await trunkline("partition", "move", id, str(to), "--data", str(server.data_dir))
            if done.returncode == 0:
                return done.stdout
            assert "still being removed" in done.stderr, done


async def test_applications_are_moved_under_load(tmp_path: Path) -> None:
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        kills, load = Kills(server), Load(Random(5), clients=2, count=70)
        organization, steady = await steady_clients(kills)
        await load.prepare(server)
        with patience(load.stubborn):
            async with trio.open_nursery() as beside, trio.open_nursery() as nursery:
                for client in steady:
                    beside.start_soon(client.run)
                for each in load.stubborn:
                    nursery.start_soon(each.run, server)
                places = {name: number for number, name in enumerate(PARTITIONS)}
                for number in range(4):
                    target = len(load.stubborn) * load.count * (number + 1) // 6
                    while load.answered < target:
                        await trio.lowlevel.checkpoint()
                    name = PARTITIONS[number % 2]
                    application, to = load.paths[name][0], 1 - places[name]
                    told = await moved(server, application, to)
                    assert re.search(
                        rf"^Moved application {application[-24:]} from partition {1 - to} to {to}: [1-9]\d* bytes were "
                        r"copied. Its calls were refused for \d+\.\d+ s\.$",
                        told,
                    ), told
                    places[name] = to
                nursery.start_soon(stop_with, load, beside.cancel_scope)
        assert await load.kept(server) == (0, 0)
        await check_steady(server, organization, steady)
        for name in PARTITIONS:
            assert await partition_of(server, load.paths[name][0]) == places[name]
        assert await server.terminate() == 0
    await checked(tmp_path / "data")


async def attempted(server: ServerProcess, application: str, to: int) -> bool:
    """Move an application at once, or fail to; whether it was moved."""
    arguments = {"application": application.rpartition("/")[2], "partition": str(to)}
    try:
        await ask_server(server.data_dir, "partition.move", arguments, ServerGone())
    except (Invalid, ServerGone):
        return False
    return True


class ServerGone(Exception):
    """The process that was asked has ended."""


async def test_an_application_is_in_one_partition_whoever_is_killed_while_it_is_moved(tmp_path: Path) -> None:
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        await kill_while_moving(server, Random(11), rounds=2)
        assert await server.terminate() == 0
    await checked(tmp_path / "data")


@pytest.mark.load
@pytest.mark.timeout(MOVES * 60 + 600)
async def test_nothing_is_lost_whoever_is_killed_while_applications_are_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With new applications after every ten kills: a list of what is stored has an end."""
    random, made, acknowledged = Random(11), list[bool](), 0
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        for first in range(0, MOVES, 10):
            outcomes, answered = await kill_while_moving(server, random, rounds=min(10, MOVES - first))
            made += outcomes
            acknowledged += answered
        with capsys.disabled():
            sys.stdout.write(
                f"\nkills while applications were moved: {len(made)}; moved all the same: {sum(made)}; "
                f"calls with keys: acknowledged {acknowledged}, lost 0, doubled 0\n"
            )
        assert await server.terminate() == 0
    await checked(tmp_path / "data")


async def kill_while_moving(server: ServerProcess, random: Random, rounds: int) -> tuple[list[bool], int]:
    """Kill the source or the target of a move at any time of it, so many times, under load.

    Returns which of the applications were moved, and how many calls were acknowledged.
    """
    kills, load, outcomes = Kills(server), Load(random, clients=2, count=rounds * 40), list[bool]()
    await load.prepare(server)
    with trio.fail_after(PATIENCE_S * rounds):
        async with trio.open_nursery() as nursery:
            for each in load.stubborn:
                nursery.start_soon(each.run, server)
            for number in range(rounds):
                name, killed = PARTITIONS[number % 2], PARTITIONS[number // 2 % 2]
                application = load.paths[name][0]
                before = await partition_of(server, application)
                async with trio.open_nursery() as moving:

                    async def attempt(application: str = application, to: int = 1 - before) -> None:
                        outcomes.append(await attempted(server, application, to))

                    moving.start_soon(attempt)
                    await trio.sleep(random.uniform(0, LONG_MOVE_S))
                    id = kills.kill(killed)
                    await answered_again(kills, killed, id, load.paths[name][1])
    assert await load.kept(server) == (0, 0)
    for name in PARTITIONS:
        assert await partition_of(server, load.paths[name][0]) in (0, 1)
    return outcomes, load.answered
