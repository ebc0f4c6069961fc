"""Makes the history of a failing seed short: leaves out steps as long as the same promise is broken.

Owns the search. Steps have random numbers of their own, so those that stay do the same; but the order of tasks and the
ids change with what is left out, so a fault may hide, and the result is short, not the shortest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from tests.simulation.world import Step

RUNS_MAX: Final = 80


def kind_of(broken: str) -> str:
    """A sentence without what differs between runs: numbers, ids, names of things."""
    return re.sub(r"\S*\d\S*|\[.*?\]", "#", broken)[:60]


def shrunk(
    steps: Sequence[Step], fails: Callable[[list[Step]], bool], runs_max: int = RUNS_MAX
) -> list[Step]:
    """A short part of the steps for which `fails` is true, as it is for all of them. It is asked `runs_max` times."""
    left, size, runs = list(steps), max(1, len(steps) // 2), 0
    while size:
        at = 0
        while at < len(left) and runs < runs_max:
            fewer = left[:at] + left[at + size :]
            runs += 1
            if fewer and fails(fewer):
                left = fewer
            else:
                at += size
        size //= 2
    return left
