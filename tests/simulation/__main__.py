"""Runs seeds of the simulation: `python -m tests.simulation --seed 17`, or `--seeds 100001..101000 --jobs 2`.

`--seed` prints the digest of the history; `--trace` also the history itself, one line for each answer. `--seeds` prints
how often rare things happened, and each seed that found a fault. The exit code is 1 if one did. `--shrink` leaves out
steps of a seed that fails as long as it fails in the same way, and prints those that stay for `--steps`.
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.simulation.coverage import (
    RARE,
    RARE_OF_DOORS,
    RARE_OF_MACHINES,
    RARE_OF_MOVES,
    RARE_OF_PROCESSES,
    RARE_OF_SPREAD,
    RARE_OF_TIMES,
)
from tests.simulation.doors import DOORS_FROM
from tests.simulation.machine import DIVIDED_FROM
from tests.simulation.machines import MACHINES_FROM, SPREAD_FROM
from tests.simulation.moves import MOVES_FROM
from tests.simulation.part import TIMED_FROM
from tests.simulation.runs import Result, result, results
from tests.simulation.shrinking import kind_of, shrunk
from tests.simulation.world import Step, plan


def main() -> int:
    """Read the command line, run the seeds, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run one seed, and print the digest of its history")
    parser.add_argument("--seeds", type=_seeds, help="run these seeds, such as 1..1000, or 1..4,17")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--trace", action="store_true", help="print the history of each seed")
    parser.add_argument("--first", action="store_true", help="end with the first seed that finds a fault")
    parser.add_argument("--shrink", action="store_true", help="make the history of a seed that fails short")
    parser.add_argument("--steps", type=_steps, help="do only these steps, such as 0.3,0.7,1.2")
    given = parser.parse_args()
    seeds = given.seeds or [given.seed or 1]
    began_s, virtual_s, lines, failed = time.monotonic(), 0.0, 0, 0
    reached: Counter[str] = Counter()
    for found in results(seeds, given.jobs, given.steps):
        if found.outcome is None:
            failed += 1
            _tell(_short(found, given.steps) if given.shrink else found)
            if given.first:
                break
            continue
        if given.trace:
            print("\n".join(found.outcome.trace))
        if len(seeds) <= 20:
            print(f"seed {found.seed}: {found.outcome.digest}")
        reached.update(found.outcome.reached)
        virtual_s += found.outcome.virtual_s
        lines += len(found.outcome.trace)
    took_s = time.monotonic() - began_s
    first = min(seeds)
    for what in sorted({*reached, *_rare(first)}):
        print(f"{reached[what]:>9}  {what}{'' if reached[what] else '  NEVER REACHED'}")
    hours = virtual_s / 3600
    print(
        f"{len(seeds)} seeds, {failed} failed; {lines} answers in {hours:.0f} simulated hours, {took_s:.0f} s"
    )
    return int(failed > 0)


def _rare(first: int) -> Sequence[str]:
    """What many seeds from `first` on must reach."""
    if first < DIVIDED_FROM:
        return RARE
    if first >= SPREAD_FROM:
        return RARE_OF_SPREAD
    if first >= MACHINES_FROM:
        return RARE_OF_MACHINES
    since = (
        (DIVIDED_FROM, RARE_OF_PROCESSES),
        (MOVES_FROM, RARE_OF_MOVES),
        (TIMED_FROM, RARE_OF_TIMES),
        (DOORS_FROM, RARE_OF_DOORS),
    )
    return [what for seed, rare in since if seed <= first for what in rare]


def _seeds(text: str) -> list[int]:
    parts = [part.partition("..") for part in text.split(",")]
    return [seed for first, _, last in parts for seed in range(int(first), int(last or first) + 1)]


def _steps(text: str) -> list[Step]:
    return [Step(*map(int, each.split("."))) for each in text.split(",")]


def _short(found: Result, steps: list[Step] | None) -> Result:
    """The same fault after fewer steps."""
    kind = kind_of(found.broken)
    left = shrunk(steps or plan(found.seed), lambda fewer: kind_of(result(found.seed, fewer).broken) == kind)
    print(f"--seed {found.seed} --steps {','.join(f'{step.life}.{step.number}' for step in left)}")
    return result(found.seed, left)


def _tell(found: Result) -> None:
    print(f"seed {found.seed} FAILED: {found.broken}")
    print(found.fault)
    print(f"Replay it: python -m tests.simulation --seed {found.seed} --trace")


if __name__ == "__main__":
    sys.exit(main())
