"""Tuning of Python's cyclic garbage collector: it runs rarely, and its pauses are measured.

It stops the whole process while it runs. A call in progress holds some fifty containers. With Python's default, which
examines the youngest generation whenever 700 more containers were created than freed, the collector examined
all calls in progress many times per turn of the event loop: at 256 connections that was a third of the time, and the
oldest generation stopped the process for 70 ms. Reference counts free the objects of a call; the collector is only
needed for the few reference cycles that exceptions create.
"""

from __future__ import annotations

import gc
import time
from typing import Any

COLLECT_AFTER = (50_000, 10, 10)
"""Containers created and not freed until the youngest generation is examined; runs of each until the next older one."""


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
"""The pauses of this process since `configure`."""


def pause() -> None:
    """Let the collector rest until `configure`. Imports create much and free little, so a start does this first."""
    gc.disable()


def configure() -> None:
    """Make the collector run rarely, skip all objects created so far, and report its pauses to `PAUSES`.

    Nothing is collected before: a start leaves few cycles, and finding them takes a tenth of a second.
    """
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
    if PAUSES not in gc.callbacks:
        gc.callbacks.append(PAUSES)
