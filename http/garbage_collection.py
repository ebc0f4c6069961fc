"""The collector of cycles: run seldom, and watched, because it stops everything while it runs.

A call in flight holds some fifty containers. With Python's default, which looks at the youngest generation
whenever 700 more were made than freed, the collector went through everything in flight many times a turn of
the loop: at 256 connections that was a third of the time, and the oldest generation stopped everything for
70 ms. Reference counts free what a call leaves behind; the collector is for the few cycles that faults make.
"""

from __future__ import annotations

import gc
import time
from typing import Any

COLLECT_AFTER = (50_000, 10, 10)
"""Containers made and not freed before the youngest generation is looked at; runs of each before the next older."""


class Pauses:
    """How long the collector has stopped this process, in seconds."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self.longest_s = 0.0
        self._began_s = 0.0

    def __call__(self, phase: str, _info: dict[str, Any]) -> None:
        """For `gc.callbacks`."""
        if phase == "start":
            self._began_s = time.perf_counter()
            return
        took_s = time.perf_counter() - self._began_s
        self.total_s += took_s
        self.longest_s = max(self.longest_s, took_s)


PAUSES = Pauses()
"""Those of this process, since `configure`."""


def configure() -> None:
    """Let the collector run seldom, never look at what was loaded before the first call, and be watched."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    if PAUSES not in gc.callbacks:
        gc.callbacks.append(PAUSES)
