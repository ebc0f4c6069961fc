"""An exact sliding window over a volume: the items of allowed calls count, not the calls.

Owns the decision whether so many more items are within a `Rate` at a given time. `rate.calls` are items. As in
`window.py`, the clock is the caller's.
"""

from __future__ import annotations

import math
from collections import deque

from trunkline.limits.table import Rate
from trunkline.limits.window import Verdict, seconds_until_left


class VolumeWindow:
    """At most `rate.calls` allowed items in any half-open interval of `rate.window_s` seconds.

    A call is allowed whole or not at all, and a refused one does not count. If the clock goes backwards, the latest
    time so far is used. Calls of the same time are stored as one entry.
    """

    __slots__ = ("_count", "_entries", "_latest", "_rate")

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._entries: deque[tuple[float, int]] = deque()
        self._count = 0
        self._latest = -math.inf

    def allow(self, now: float, items: int) -> Verdict:
        """Allow `items` at `now` and count them, or refuse them without counting.

        The `reset_s` of a refusal is after how long they would be allowed. `items` are at most `rate.calls`.
        """
        now = self._advance(now)
        entries, most = self._entries, self._rate.calls
        if self._count + items > most:
            return self._verdict(now, items, allowed=False)
        if entries and entries[-1][0] == now:
            entries[-1] = (now, entries[-1][1] + items)
        else:
            entries.append((now, items))
        self._count += items
        return self._verdict(now, 1, allowed=True)

    def peek(self, now: float) -> Verdict:
        """The verdict on one more item at `now`, without counting it."""
        now = self._advance(now)
        return self._verdict(now, 1, allowed=self._count < self._rate.calls)

    def empty(self, now: float) -> bool:
        """Whether nothing counts any more, so that deleting this window changes no later verdict."""
        self._advance(now)
        return not self._entries

    def _advance(self, now: float) -> float:
        """Drop what has left the window that ends at `now`; return the time that counts."""
        entries, window_s = self._entries, self._rate.window_s
        now = self._latest = max(now, self._latest)
        while entries and now - entries[0][0] >= window_s:
            self._count -= entries.popleft()[1]
        return now

    def _verdict(self, now: float, items: int, *, allowed: bool) -> Verdict:
        """`reset_s`: until the oldest entry leaves; of a refusal, until there is room for the items."""
        most, window_s = self._rate.calls, float(self._rate.window_s)
        missing = 1 if allowed else self._count + items - most
        reset_s = 0.0
        for time_s, count in self._entries:
            reset_s = seconds_until_left(time_s, window_s, now)
            missing -= count
            if missing <= 0:
                break
        return Verdict(allowed, most, most - self._count, window_s, reset_s)
