"""How long the turns of a server's loop were, in processor time of the loop's thread, on any machine.

The time that another process or thread takes away does not count, nor does what the garbage collector takes: those are
no property of the work. What is left is compared with how fast this machine is now (`pace`).
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import trio.lowlevel

from trunkline.actors.core.runtime.loop_watch import LongTurn, LoopWatch
from trunkline.http.wire.garbage_collection import PAUSES
from trunkline.limits.table import Limits

NOTED_MS = 1.0
"""Shorter turns are not looked at."""
PACE_MS = 6.3
"""What `pace` takes on the machine for which the limit of a turn is meant."""

_TEXT = json.dumps([{"name": f"n{number}", "value": number} for number in range(2000)])


class Held(NamedTuple):
    """The longest turn of some work."""

    ms: float
    turn: LongTurn | None


def pace() -> float:
    """How much slower than the machine of the limit this one is now: 1.0 if it is as fast or faster."""
    took_ms = []
    for _ in range(5):
        began_ns = time.thread_time_ns()
        for _ in range(4):
            values = json.loads(_TEXT)
            sum(len(each["name"]) + each["value"] for each in values)
        took_ms.append((time.thread_time_ns() - began_ns) / 1e6)
    return max(1.0, min(took_ms) / PACE_MS)


class _Watch(LoopWatch):
    """A watch that keeps all turns that it would look at, and logs none."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits, lambda: 0)
        self.collected_s = lambda: PAUSES.total_s
        self.noted: list[LongTurn] = []

    def _note(self, turn: LongTurn) -> None:
        self.noted.append(turn)


class LoopMeter:
    """Meters the turns of this loop that a server takes; those of tests and their clients are not its own."""

    def __init__(self) -> None:
        self._watch = _Watch(dataclasses.replace(Limits(), loop_turn_ms_max=NOTED_MS))

    @contextmanager
    def running(self) -> Iterator[None]:
        trio.lowlevel.add_instrument(self._watch)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(self._watch)

    def noted(self) -> list[tuple[str, float]]:
        """The kinds of the turns since the last time, and their milliseconds."""
        return [(turn.kind, _own_ms(turn)) for turn in self._taken()]

    def _taken(self) -> list[LongTurn]:
        turns = [turn for turn in self._watch.noted if turn.kind != "other" or _is_ours(turn.name)]
        self._watch.noted.clear()
        return turns

    def take(self) -> Held:
        """The longest turn since the last time."""
        turns = self._taken()
        worst = max(turns, key=_own_ms, default=None)
        return Held(0.0 if worst is None else _own_ms(worst), worst)


def _own_ms(turn: LongTurn) -> float:
    return turn.cpu_ms - turn.gc_ms


def _is_ours(name: str) -> bool:
    return not name.startswith(("<", '"', "tests.", "__main__")) and "test" not in name
