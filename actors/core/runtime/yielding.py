"""Yielding the event loop: work that can wait leaves the loop to what devices send, as long as that is much."""

from __future__ import annotations

import time
from typing import Final

import trio

IDLE_NS: Final = 200_000
"""A turn of the loop that is shorter had next to nothing to do."""


async def yield_loop(most_ns: int) -> None:
    """Let other tasks work for so many nanoseconds, or until they have next to nothing to do."""
    left_ns = most_ns
    while left_ns > 0:
        began_ns = time.perf_counter_ns()
        await trio.lowlevel.checkpoint()
        took_ns = time.perf_counter_ns() - began_ns
        if took_ns < IDLE_NS:
            break
        left_ns -= took_ns
