"""The clock. All code in `actors/` takes the time from this object, so that tests can control it."""

from __future__ import annotations

import time
from typing import Protocol

import trio


class Clock(Protocol):
    """Two clocks: wall time for records, monotonic time for throttles and idle times."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never decreases."""
        ...


class SystemClock:
    """The machine's clocks. The monotonic one is Trio's, so a test's virtual Trio clock drives it."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return trio.current_time()
