"""kill -9 at any moment loses nothing that was acknowledged, and nothing that was sent is there by half.

`pytest -m load tests/e2e/test_crash.py` runs the long form: twenty rounds, and prints what was kept.
"""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.crash_load import Books, Load, audit
from tests.e2e.server_process import OWNER, ServerProcess, serving, started, trunkline
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk

UNTHROTTLED = ("--limits", "off")
FAULTY = (str(Path(__file__).with_name("crash_program.py")),)
"""The command line with a fault in it, which an environment variable chooses."""
SYNC_S = ("0", "0.004")
"""A disk as it is here, and one on which a commit is what the server mostly does."""
SMALL_MAP = {"TRUNKLINE_MAP_SIZE_BYTES": str(2**20)}


async def checked(data_dir: Path) -> None:
    """The directory holds no broken value, no dangling index entry, no record without its own."""
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, (done.stdout, done.stderr)


async def killed(server: ServerProcess, random: Random) -> Books:
    """Load `server` from several connections, and kill it at a random moment."""
    load = Load(server.url, server.token, random.getrandbits(30))
    await load.prepare()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.run)
            await load.reached(random.randint(50, 700))
            # Not right after an answer, but anywhere in the next turns of the server's loop.
            await trio.sleep(random.uniform(0, 0.01))
            await server.kill()
    return load.books


async def rounds(data_dir: Path, count: int, seed: int) -> tuple[int, int, int]:
    """Kill and read back, again and again on one data directory; at the end all of it once more."""
    random = Random(seed)
    kept: list[Books] = []
    for number in range(count):
        env = {**OWNER, "CRASH_SYNC_S": SYNC_S[number % 2]}
        async with serving(data_dir, *UNTHROTTLED, program=FAULTY, env=env) as server:
            if kept:
                await audit(server.url, server.token, kept[-1])
            kept.append(await killed(server, random))
        await checked(data_dir)
    async with serving(data_dir, *UNTHROTTLED) as server:
        facts = [await audit(server.url, server.token, books) for books in kept]
        assert await server.terminate() == 0
    writes = sum(books.acknowledged for books in kept)
    under_way = sum(len(books.unknown) for books in kept)
    return writes, sum(facts), under_way


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    writes, facts, _ = await rounds(tmp_path / "data", 2, seed=20_100)
    assert facts > writes > 100


@pytest.mark.load
@pytest.mark.timeout(900)
async def test_nothing_acknowledged_is_lost_in_twenty_rounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writes, facts, under_way = await rounds(tmp_path / "data", 20, seed=9)
    with capsys.disabled():
        sys.stdout.write(
            f"\n20 kills: {writes} writes acknowledged, {under_way} under way, {facts} facts read back equal\n"
        )


@pytest.mark.slow
@pytest.mark.parametrize(("growth", "delay_s"), [(2, 0), (1, 0.001)])
async def test_nothing_is_lost_by_a_death_while_the_map_grows(
    tmp_path: Path, growth: int, delay_s: float
) -> None:
    """A map of 1 MiB and calls of 300 kB: the store outgrows its map after a few calls."""
    env = {**OWNER, **SMALL_MAP, "CRASH_GROWTH": f"{growth}:{delay_s}"}
    async with serving(tmp_path / "data", *UNTHROTTLED, program=FAULTY, env=env) as server:
        load = Load(server.url, server.token, growth, label_chars=3000)
        with trio.fail_after(PATIENCE_S):
            await load.prepare()
            await load.run()
        assert await server.ended() == -signal.SIGALRM
    await checked(tmp_path / "data")
    async with serving(tmp_path / "data", env={**OWNER, **SMALL_MAP}) as server:
        assert await audit(server.url, server.token, load.books) > 10


async def deaths(data_dir: Path) -> int:
    """Start again and again, and die each time two steps of the start later; returns how many it has.

    Each start goes on from what the death before it has left, and has to get past that.
    """
    async with started(data_dir, program=FAULTY, env={**OWNER, "CRASH_STEPS": "2"}) as server:
        assert await server.listens(), server.log
        await server.kill()
        printed = await server.output()  # the start that listened has ended as well
    return int(re.findall(r"dies at step (\d+)\n", printed)[-1])


@pytest.mark.slow
async def test_a_death_at_any_step_of_the_first_start_leaves_a_directory_that_starts(tmp_path: Path) -> None:
    assert await deaths(tmp_path / "crash-data") > 8
    async with serving(tmp_path / "crash-data") as server:
        await server.application()
        assert await server.terminate() == 0
    await checked(tmp_path / "crash-data")


@pytest.mark.slow
async def test_a_death_at_any_step_of_a_later_start_loses_nothing(tmp_path: Path) -> None:
    data_dir = tmp_path / "crash-data"
    async with serving(data_dir, *UNTHROTTLED) as server:
        books = await killed(server, Random(3))
    assert await deaths(data_dir) > 4
    await checked(data_dir)
    async with serving(data_dir) as server:
        await audit(server.url, server.token, books)
