"""Upgrades under load, with kill -9 in the middle: `python -m tests.soak.upgrade --rounds 20`.

Each round takes a kept store of each format. The first start dies at a step that the round chooses: `--every-step`
takes all steps, one after the other, among them those of the copy and the migration. The next start is loaded by eight
clients from its first second, and is killed by SIGKILL. After the third one everything is there that the store had, and
everything that was acknowledged under load, and `trunkline check` finds nothing. The exit code is 1 if not.
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import trio

from tests.e2e.crash_load import Load, audit
from tests.e2e.server_process import OWNER, ServerProcess, serving, started
from tests.e2e.test_crash import FAULTY, UNTHROTTLED, checked
from tests.patience import PATIENCE_S
from tests.soak.kept_store import compare, kept_formats, unpack
from trunkline.store import migrations

STEPS: Final = 60
"""A start has fewer steps of the file system, also with a migration."""
WRITES_MAX: Final = 300


class Upgrade(NamedTuple):
    """One upgrade: the format, the step at which the first start dies, and when the second one is killed."""

    format: int
    step: int
    writes: int
    seed: int

    @classmethod
    def at_random(cls, number: int, seed: int) -> Upgrade:
        """An upgrade from this format at a random moment."""
        random = Random(f"{number} {seed}")
        return cls(number, random.randrange(STEPS), random.randrange(WRITES_MAX), seed)


class Outcome(NamedTuple):
    """What came of an upgrade that lost nothing."""

    has_died: bool
    """Whether the first start had so many steps."""
    facts: int
    """Of the store, and of what was acknowledged under load."""


async def upgrade(folder: Path, chosen: Upgrade) -> Outcome:
    """Make one upgrade in a folder. Raises AssertionError if anything is lost or wrong."""
    data = folder / "crash-data"
    ledger = unpack(chosen.format, data)
    async with started(data, program=FAULTY, env={**OWNER, "CRASH_STEP": str(chosen.step)}) as server:
        has_died = not await server.listens()
        assert not has_died or await server.ended() == -signal.SIGKILL, server.log
        if not has_died:
            await server.kill()
    async with serving(data, *UNTHROTTLED) as server:
        load = await _killed_under_load(server, chosen)
    async with serving(data, *UNTHROTTLED) as server:
        facts = await compare(server, ledger)
        facts += await audit(server.url, server.token, load.books)
        assert await server.terminate() == 0, server.log
    await checked(data)
    copies = sorted(path.name for path in (data / "backups").glob("*"))
    allowed = (
        [f"format-{chosen.format}", f"format-{chosen.format}-1"] if chosen.format < migrations.FORMAT else []
    )
    assert copies in (allowed, allowed[:1]), copies
    return Outcome(has_died, facts)


async def _killed_under_load(server: ServerProcess, chosen: Upgrade) -> Load:
    load = Load(server.url, server.token, chosen.seed)
    random = Random(chosen.seed)
    with trio.fail_after(PATIENCE_S):
        await load.prepare()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.run)
            await load.reached(load.books.acknowledged + chosen.writes)
            # Not right after an answer, but anywhere in the next turns of the server's loop.
            await trio.sleep(random.uniform(0, 0.01))
            await server.kill()
    return load


def main() -> int:
    """Read the command line, make the upgrades, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.upgrade", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--every-step", action="store_true")
    given = parser.parse_args()
    failed = 0
    for number in kept_formats():
        upgrades = (Upgrade.at_random(number, seed) for seed in range(given.seed, given.seed + given.rounds))
        if given.every_step:
            steps = (Upgrade.at_random(number, given.seed)._replace(step=step) for step in range(STEPS))
            failed += _all(number, steps, until_alive=True)
        else:
            failed += _all(number, upgrades)
    return int(failed > 0)


def _all(number: int, upgrades: Iterable[Upgrade], *, until_alive: bool = False) -> int:
    """Make these upgrades of a format, or only up to the first whose start has not died; how many have failed."""
    failed = facts = done = died = 0
    for chosen in upgrades:
        done += 1
        outcome = _one(chosen)
        if outcome is None:
            failed += 1
            continue
        facts += outcome.facts
        died += outcome.has_died
        if until_alive and not outcome.has_died:
            break
    print(
        f"format {number}: {done} upgrades, {died} of which died at the first start, {facts} facts were "
        f"as they had to be, {failed} upgrades failed",
        flush=True,
    )
    return failed


def _one(chosen: Upgrade) -> Outcome | None:
    """Make one upgrade; None if it has failed, which is printed."""
    try:
        with tempfile.TemporaryDirectory(prefix="upgrade-") as folder:
            return trio.run(upgrade, Path(folder), chosen)
    except* (AssertionError, trio.TooSlowError) as wrong:
        print(f"{chosen}: FAILED")
        traceback.print_exception(wrong, file=sys.stdout)
    return None


if __name__ == "__main__":
    sys.exit(main())
