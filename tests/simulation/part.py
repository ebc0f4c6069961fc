"""A part of the clients of a run: what one sort of them does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Final, NamedTuple

Action = Callable[[Any, Random], Awaitable[None]]
Look = Callable[[Any], Awaitable[None]]
"""What clients do in a `World`, which imports this module."""

NEWER_FROM: Final = 100_000
"""The first seed with the clients that were written after all others."""
TIMED_FROM: Final = 400_000
"""The first seed with several partitions in which the parts are that wait for due times and for removals."""


class Part(NamedTuple):
    """Clients of one sort: how they prepare in the first life, what they do, and how they look at everything.

    `actions` have weights. A part that is not `always` there is in some runs only, and in none of the seeds before
    `since`: the histories of those stay as they were before the part was written. `divided`: it is in runs with several
    partitions, in none of the seeds before `divided_since`; `undivided`: in those with one. `divided` is it
    as well where there are several machines, unless it is not `with_log`.
    """

    prepare: Look
    actions: Mapping[Action, float]
    look: Look
    always: bool = False
    since: int = 0
    divided: bool = False
    divided_since: int = 0
    undivided: bool = True
    with_log: bool = True

    def may_act(self, seed: int, partitions: int, machines: int) -> bool:
        """Whether it is there in some runs of such seeds, with so many partitions or machines."""
        if machines > 1 and not self.with_log:
            return False
        if partitions > 1 or machines > 1:
            return self.divided and seed >= max(self.since, self.divided_since)
        return self.undivided and seed >= self.since
