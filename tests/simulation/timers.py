"""Timers of workflows, by an interval and by a cron expression: each moment has its one run, or is counted as missed.

A run names the moment for which it is, and how many further ones had passed. So the moment of the next run follows from
each: none is left out and none is there twice, whatever happens in between. Where the clock was set back a chain of
moments may end and another one begin, and a failed commit may cost the row of a run.

The runs of the interval wait for a while and write a second row: power is cut during waits as well.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Final

from tests.simulation.faults import Clock
from tests.simulation.life import Life
from tests.simulation.model import Broken
from tests.simulation.part import TIMED_FROM, Part
from tests.simulation.world import World
from tests.simulation.written import Row, Written, create_flow, until
from trunkline.actors.core.values.timestamps import parse_iso

INTERVAL_S: Final = 700
CRON_MS: Final = 1_200_000
_SLACK_MS: Final = 15_000
"""The server looks at the clock every ten seconds."""
_BACK_S: Final = 3600
"""What was due before the clock was set back by less is not due twice."""


class Chain:
    """The runs of one timer. `ends` are the moments for which a run may be the next, which is one if all is clear."""

    def __init__(self, what: str, step_ms: int, silence_s: int) -> None:
        self.what = what
        self.step_ms = step_ms
        self.silence_s = silence_s
        """So long after a run in the same life there must be another one, whatever the clock says."""
        self.count = 0
        self.ends: Counter[int] = Counter()
        self.allowed = 1
        """So many runs may have no predecessor: the first one, one for each clock that was set back, and so on."""
        self.backs = 0
        """How often the clock was set back: only then a moment may come twice."""
        self.seen_s = 0.0
        self.failed_s = -inf
        """When a commit has failed."""

    def take(self, rows: list[Row], now_s: float) -> None:
        """Hold all rows against each other."""
        moments = [(parse_iso(due), int(missed)) for what, due, missed in rows if what == self.what]
        if len(moments) > self.count:
            self.seen_s = now_s
        self.count = len(moments)
        found = Counter(due for due, _ in moments)
        if found.total() > len(found) and not self.backs:
            raise Broken(f"timer {self.what}: it ran more than once for one of {found}")
        after = Counter(due + (missed + 1) * self.step_ms for due, missed in moments)
        begun = found - after
        if begun.total() > self.allowed:
            raise Broken(
                f"timer {self.what}: the runs for {sorted(begun.elements())} follow no other; {self.allowed} may"
            )
        self.ends = after - found

    def is_late(self, now_ms: int, now_s: float) -> bool:
        """Whether a run is due and not there. A failed commit may have cost its row; then the next one comes."""
        if now_s - self.failed_s < self.silence_s:
            return False
        is_silent = now_s - self.seen_s > self.silence_s
        return is_silent or (bool(self.ends) and max(self.ends) < now_ms - _SLACK_MS)


class Timers:
    """Both timers, the rows of their runs, and how often the clock had been set back."""

    def __init__(self) -> None:
        self.written = Written(("what", "due", "missed"))
        self.interval = Chain("interval", INTERVAL_S * 1000, INTERVAL_S + 60)
        self.cron = Chain("cron", CRON_MS, CRON_MS // 1000 + _BACK_S + 60)
        self.backs = 0
        self.lost = 0
        """So many second rows may be missing: a commit failed, or took so long that the time of the run was over."""
        self.stalls = 0
        self.life: Life | None = None

    @property
    def chains(self) -> tuple[Chain, Chain]:
        return self.interval, self.cron


async def prepare(world: World) -> None:
    timers = world.of(Timers)
    written = timers.written
    await written.create(world, "timers")
    told = ("{{timer.dueTime}}", "{{timer.missedCount}}")
    triggers = [
        {"type": "timer", "key": "i", "config": {"seconds": INTERVAL_S}, "outputIds": [["i"]]},
        {"type": "timer", "key": "c", "config": {"cron": "*/20 * * * *"}, "outputIds": [["c"]]},
    ]
    nodes = [
        written.node("i", "interval", *told, to="wait"),
        {"id": "wait", "type": "DelayNode", "config": {"delay": 15}, "outputIds": [["late"]]},
        written.node("late", "late", *told),
        written.node("c", "cron", *told),
    ]
    await create_flow(world, "timers", triggers, nodes)


async def look(world: World) -> None:
    """Wait until all runs that are due have written their rows, and hold them against each other."""
    if world.quota is not None:
        return  # there may be no room for a row
    timers, clock = world.of(Timers), world.of(Clock)
    if timers.life is not world.life:
        timers.life = world.life
        for chain in timers.chains:
            chain.seen_s = world.virtual.now_s  # a clock that was set back is noticed by a server that runs

    async def missing() -> str:
        more = clock.backs - timers.backs
        failures = timers.written.failures(world) + clock.stalls - timers.stalls
        timers.backs += more
        timers.lost += failures
        timers.stalls = clock.stalls
        rows = await timers.written.rows(world)
        for chain in timers.chains:
            chain.seen_s = max(chain.seen_s, world.life.home_since_s)
            chain.allowed += more + failures
            chain.backs += more
            if failures:
                chain.failed_s = world.virtual.now_s
            chain.take(rows, world.virtual.now_s)
        for chain in timers.chains:
            if chain.is_late(world.virtual.wall_ms(), world.virtual.now_s):
                return f"the run of the timer {chain.what} that follows {sorted(chain.ends)}"
        return _second_rows(rows, timers.lost)

    await until(world, missing, "timers")
    world.reached["a timer missed moments"] += any(row[2] != "0" for row in await timers.written.rows(world))


def _second_rows(rows: list[Row], lost: int) -> str:
    """What is missing of the rows after the wait. Each run has written its first one before."""
    first = Counter(row[1:] for row in rows if row[0] == "interval")
    second = Counter(row[1:] for row in rows if row[0] == "late")
    if second - first:
        raise Broken(
            f"timer interval: {dict(second - first)} went on after the wait more often than they began"
        )
    left = first - second
    return f"the second row of {dict(left)}" if left.total() > lost else ""


PART: Final = Part(prepare, {}, look, divided=True, divided_since=TIMED_FROM)
