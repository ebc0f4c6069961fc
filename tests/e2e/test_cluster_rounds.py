"""Three machines and three servers of their log, of which any are gone in turn, under load by all protocols.

`ROUNDS=36 SEED=7 pytest -m load -s tests/e2e/test_cluster_rounds.py` does so in an order that is random, with each kind
as often as another one. It prints for each kind how long nothing was acknowledged by REST, and which promises were not
kept. `PARTITIONS=2` divides the data between the machines, lets single processes be gone as well, and gives partitions
to other machines; `KINDS` is a part of the names of kinds that are wanted.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.cluster_load import Client, Restful, clients_of
from tests.e2e.lives import KINDS, KINDS_OF_PARTITIONS, Lives, lives
from tests.e2e.registers import listed_of, record_of, state_of, violations
from tests.e2e.sse_client import until
from tests.e2e.verdict import Verdict

pytestmark = [pytest.mark.slow, pytest.mark.load]

ROUNDS = int(os.environ.get("ROUNDS", "8"))
SEED = int(os.environ.get("SEED", "1"))
PARTITIONS = int(os.environ.get("PARTITIONS", "1"))
WANTED = os.environ.get("KINDS", "")
MORE = 5
"""So much is acknowledged to each client before a fault, and after it."""
MEANWHILE = 40
"""So many calls of each client by REST are acknowledged meanwhile: it lasts longer than a silence may."""


class Rounds:
    """What happens to the machines, and what their clients notice."""

    def __init__(self, found: Lives, say: Callable[[str], None]) -> None:
        self.pauses = defaultdict[str, list[float]](list)
        """By kind of fault, the seconds in which nothing was acknowledged by REST."""
        self._lives = found
        self._say = say

    async def run(self, kinds: Sequence[str], clients: Sequence[Client], acks: list[float]) -> None:
        """Let these faults happen one after the other, each of them when all clients get on again."""
        for number, kind in enumerate(kinds, 1):
            await advanced(clients)
            since = len(acks) - 1
            began_s = trio.current_time()
            fault = await self._lives.strike(kind)
            unreached = self._lives.unreached
            reached = [
                each for each in clients if isinstance(each, Restful) and each.front.name not in unreached
            ]
            await advanced(reached, MEANWHILE)
            back_s = trio.current_time()
            missing = await self._lives.mend()
            mended_s = trio.current_time()
            last = await advanced(clients)
            pause = max(later - earlier for earlier, later in pairwise(acks[since:]))
            self.pauses[kind].append(pause)
            self._say(
                f"{number} of {len(kinds)}: {kind} ({fault}); nothing for {pause:.1f} s, "
                f"gone for {back_s - began_s:.1f} s, back after {mended_s - back_s:.1f} s ({missing}), "
                f"the last client ({last}) after {trio.current_time() - mended_s:.1f} s, {len(acks)} calls"
            )


async def advanced(clients: Sequence[Client], more: int = MORE) -> str:
    """Wait until so much more is acknowledged to each client. Returns the name of the last one."""
    left = {each: each.done + more for each in clients}
    last = ""

    def is_done() -> bool:
        nonlocal last
        for each in [each for each, target in left.items() if each.done >= target]:
            del left[each]
            last = each.name
        return not left

    try:
        await until(is_done, 0.01)
    except trio.TooSlowError:
        raise AssertionError(f"nothing is acknowledged to {[each.name for each in left]}") from None
    return last


@pytest.mark.timeout(ROUNDS * 60 + 900)
async def test_nothing_is_lost_whatever_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)

    def say(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    kinds: list[str] = []
    of_all = KINDS if PARTITIONS == 1 else KINDS_OF_PARTITIONS
    chosen = [each for each in of_all if WANTED in each]
    while len(kinds) < ROUNDS:
        kinds += random.sample(chosen, len(chosen))
    verdict, acks, stopping = Verdict(), list[float](), trio.Event()
    async with lives(tmp_path, random, partitions=PARTITIONS) as found:
        fronts = [*found.fronts.values()]
        shared = await fronts[0].application("shared")
        numbers = count(1)
        registers = [make(await fronts[0].device(shared), numbers) for make in (state_of, record_of)]
        registers.append(listed_of(shared, numbers))
        clients = await clients_of(fronts, registers, acks, verdict, random)
        rounds = Rounds(found, say)
        async with trio.open_nursery() as nursery:
            for each in clients:
                nursery.start_soon(each.run, stopping)
            await found.spread()
            await rounds.run(kinds[:ROUNDS], clients, acks)
            stopping.set()
        for each in clients:
            await each.check(verdict)
        for kind, pauses in sorted(rounds.pauses.items()):
            say(
                f"{kind}: {len(pauses)} times; nothing was acknowledged for {statistics.median(pauses):.1f} s "
                f"(median), {max(pauses):.1f} s (longest)"
            )
        broken = [(each.name, found) for each in registers for found in violations(each.history)]
        say(
            f"{ROUNDS} rounds, {sum(each.done for each in clients)} acknowledged or read: lost {verdict.lost}, doubled "
            f"{verdict.doubled}, out of order {verdict.disorder}, stale {verdict.stale}; histories of "
            f"{' and '.join(f'{len(each.history)} calls ({each.unknown} unanswered writes)' for each in registers)}, "
            f"not linearizable {len(broken)}; tracebacks {len(found.problems())}\n"
        )
        for name, problem in broken:
            say(f"{name}: {problem}")
        assert not verdict.evidence
        assert not broken
        assert not found.problems()
