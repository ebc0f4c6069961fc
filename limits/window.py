"""An exact sliding window over allowed calls.

Owns the decision whether one more call is within a `Rate` at a given time. Does not own a clock (`now` is passed
in, in seconds of any monotonic origin) nor the windows themselves (one for each device, application or button,
kept by its actor).

Why not a token bucket or a fixed window: both allow up to twice as many calls in some window of that length, and
the API promises exactly "30 calls per 15-second window". The price of exactness is storing the time of each
allowed call: at most `calls` floats of 8 bytes, in a ring buffer that grows only when it is used.
"""

from __future__ import annotations

import math
from array import array

import msgspec

from trunkline.limits.table import Rate


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The decision of a window on a call. A struct, not a dataclass, because each call creates one (0.1 us)."""

    allowed: bool
    limit: int
    """Calls that are allowed in a window."""
    remaining: int
    """Calls that would still be allowed now, after this one."""
    window_s: float
    reset_s: float
    """Allowed: seconds until the oldest counted call leaves the window (0.0 if none counts). Refused: seconds until
    a call is allowed; a call at exactly `now + reset_s`, in float arithmetic, is allowed."""


class SlidingWindow:
    """At most `rate.calls` allowed calls in any half-open interval of `rate.window_s` seconds.

    A call at `t` is allowed if and only if fewer than `calls` allowed calls are in `(t - window_s, t]`; refused
    calls do not count. If the clock goes backwards, the latest time so far is used, so no call is dropped too
    early. `now` must be finite. Each operation is O(1) amortised: every allowed call is written and dropped once.
    """

    __slots__ = ("_calls", "_count", "_first", "_latest", "_ring", "_window_s")

    def __init__(self, rate: Rate) -> None:
        self._calls = rate.calls
        self._window_s = float(rate.window_s)
        self._ring = array("d")
        self._first = 0
        self._count = 0
        self._latest = -math.inf

    def allow(self, now: float) -> Verdict:
        """Allow the call at `now` and count it, or refuse it without counting."""
        if now > self._latest:
            self._latest = now
        else:
            now = self._latest
        ring, window_s = self._ring, self._window_s
        # The difference is compared, never `now >= oldest + window_s`: rounded subtraction is monotonic in
        # `oldest`, so checking only the oldest call gives the same result as checking all of them.
        if self._count and now - ring[self._first] >= window_s:
            self._drop_left(now)
        count, calls = self._count, self._calls
        if count == calls:
            return Verdict(False, calls, 0, window_s, seconds_until_left(ring[self._first], window_s, now))
        slot = self._first + count
        if slot >= calls:
            slot -= calls
        if slot == len(ring):
            ring.append(now)
        else:
            ring[slot] = now
        self._count = count = count + 1
        return Verdict(
            True, calls, calls - count, window_s, seconds_until_left(ring[self._first], window_s, now)
        )

    def take_back(self) -> None:
        """Count the latest allowed call no longer: what it was for was refused before any other call came."""
        self._count -= 1

    def peek(self, now: float) -> Verdict:
        """The verdict on a call at `now`, without counting one: `remaining` includes that call."""
        if now > self._latest:
            self._latest = now
        else:
            now = self._latest
        self._drop_left(now)
        count, calls = self._count, self._calls
        reset_s = seconds_until_left(self._ring[self._first], self._window_s, now) if count else 0.0
        return Verdict(count < calls, calls, calls - count, self._window_s, reset_s)

    def empty(self, now: float) -> bool:
        """Whether no allowed call counts any more, so that deleting this window changes no later verdict."""
        return not self._count or now - self._newest() >= self._window_s

    def _drop_left(self, now: float) -> None:
        """Drop the calls that have left the window ending at `now`."""
        ring, window_s, first, count = self._ring, self._window_s, self._first, self._count
        if count and now - self._newest() >= window_s:
            count = 0
        while count and now - ring[first] >= window_s:
            count -= 1
            first += 1
            if first == self._calls:
                first = 0
        # An empty window starts at slot 0 again, so the ring of a rarely used window never grows.
        self._first = first if count else 0
        self._count = count

    def _newest(self) -> float:
        slot = self._first + self._count - 1
        return self._ring[slot if slot < self._calls else slot - self._calls]


def seconds_until_left(oldest: float, window_s: float, now: float) -> float:
    """Seconds after which the call at `oldest` has left, long enough that a call at `now + wait` is allowed.

    Rounding may make `oldest + window_s` one float too low, and `now + wait` as well; each is then increased by
    one float, which is enough because rounding is monotonic.
    """
    leaves = oldest + window_s
    if leaves - oldest < window_s:
        leaves = math.nextafter(leaves, math.inf)
    wait = leaves - now
    if now + wait < leaves:
        wait = math.nextafter(wait, math.inf)
    return wait
