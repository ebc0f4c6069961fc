"""Python's cyclic garbage collector, run by the event loop instead of by each allocation.

It stops the whole process while it runs, and takes the longer, the more objects are alive: with Python's own rules the
objects of a long payload, which one tenant may have made, were examined again and again, for 20 to 250 ms each time,
while all others waited. Reference counts free the objects of calls, runs and payloads; the collector is only needed
for reference cycles, which few errors and libraries create. So this is done instead:

- At the end of a pass of the loop, when the fewest calls are in progress, the objects created since the last time are
  examined if they are a few. So no examination takes longer than some milliseconds.
- If they are many, they are somebody's long payload, or many calls in progress, and have no cycles. They are then put
  among the old objects without being examined. A cycle that goes with them stays until all objects are examined.
- All objects are examined when the process has grown much since the last time. That stops it for 100 ms or more, and
  for 0.2 s with 100,000 active devices.

Owns when the collector runs, and the measure of its pauses.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trio

YOUNG_MIN: Final = 4_000
"""Containers created and not freed from which on the youngest are examined."""
EXAMINED_MAX: Final = 16_000
"""Of the youngest at one time at most; twice as many with those that have survived once. One takes 50 to 300 ns."""
EXAMINE_S: Final = 0.25
"""Seconds from one examination to the next at least."""
LOOK_S: Final = 60.0
"""Seconds from one look at the size of the process to the next."""
GROWTH_RATIO: Final = 2.0
GROWTH_BYTES: Final = 256 * 1024 * 1024
"""All objects are examined when the process has grown by this ratio, and by so much more."""

_STATM: Final = Path("/proc/self/statm")


class Pauses:
    """The pauses of this process by the collector, in seconds."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self.longest_s = 0.0
        self._began_s = 0.0

    def __call__(self, phase: str, _info: dict[str, Any]) -> None:
        """A callback for `gc.callbacks`."""
        if phase == "start":
            self._began_s = time.perf_counter()
            return
        took_s = time.perf_counter() - self._began_s
        self.total_s += took_s
        self.longest_s = max(self.longest_s, took_s)


PAUSES = Pauses()
"""The pauses of this process while it was `collecting`."""


class Collector(trio.abc.Instrument):
    """Collects at the end of passes of the loop that runs."""

    def __init__(self) -> None:
        self._middle = 0
        """At most so many objects have survived once and are examined once more."""
        self._next_s = trio.current_time()
        self._least_bytes = private_bytes()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - Trio's signature
        """The end of a pass."""
        young = gc.get_count()[0]
        if young < YOUNG_MIN:
            return
        if young > EXAMINED_MAX:
            _keep_unexamined()
            self._middle = 0
            return
        now_s = trio.current_time()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EXAMINE_S
        self._middle += young
        if self._middle > EXAMINED_MAX:
            self._middle = 0
            gc.collect(1)
        else:
            gc.collect(0)

    async def watch_size(self) -> None:
        """Examine all objects whenever the process has grown much. Runs until cancelled."""
        while True:
            await trio.sleep(LOOK_S)
            self.look(private_bytes())

    def look(self, size: int) -> None:
        """Examine all objects if `size`, in bytes, is much more than the least since the last time."""
        self._least_bytes = min(self._least_bytes, size)
        if size > GROWTH_RATIO * self._least_bytes + GROWTH_BYTES:
            gc.unfreeze()
            gc.collect()
            self._middle, self._least_bytes = 0, private_bytes()


@contextmanager
def collecting() -> Iterator[Collector]:
    """Have the loop that runs decide when to collect. What exists now is examined only with everything else.

    Nothing is collected before: a start leaves few cycles, and finding them takes a tenth of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    _keep_unexamined()
    gc.callbacks.append(PAUSES)
    collector = Collector()
    trio.lowlevel.add_instrument(collector)
    try:
        yield collector
    finally:
        trio.lowlevel.remove_instrument(collector)
        gc.callbacks.remove(PAUSES)
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def pause() -> None:
    """Let the collector rest until `collecting`. Imports create much and free little, so a start does this first."""
    gc.disable()


def private_bytes() -> int:
    """The memory of this process alone, without files that are mapped; where that is not known, its peak."""
    try:
        pages = _STATM.read_text().split()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return (int(pages[1]) - int(pages[2])) * resource.getpagesize()


def _keep_unexamined() -> None:
    """Put all objects among those that are examined only with everything else, and count from nothing again."""
    gc.freeze()
    gc.collect(0)
