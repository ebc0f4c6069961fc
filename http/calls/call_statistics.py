"""Statistics of calls: how many were answered with which status, and how long they took."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from time import perf_counter
from typing import Final, Literal

from trunkline.http.calls.route import LATENCY_CLASSES, Route

CALL_TIMES_S: Final = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
"""The upper bounds of the classes in which calls are counted by their time; one more class has the longer ones."""

_NO_ROUTE: Literal["none"] = "none"


class CallTimes:
    """The times of some calls, from the whole request to the response: how many in each class of `CALL_TIMES_S`."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(CALL_TIMES_S) + 1)
        self.total_s = 0.0


class CallStatistics:
    """Counts responses: `answered` by operation and status, `times` by class of operations."""

    __slots__ = ("answered", "times")

    def __init__(self) -> None:
        self.answered: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.times = {name: CallTimes() for name in LATENCY_CLASSES}

    def add(self, route: Route | None, status: int, began_s: float, *, is_backlog: bool = False) -> None:
        """Count a response. `route` is None for a request that no operation takes, `began_s` is of `perf_counter`."""
        if route is None:
            self.answered[_NO_ROUTE, status] += 1
            times = self.times[_NO_ROUTE]
        else:
            self.answered[route.operation, status] += 1
            times = self.times["backlog" if is_backlog else route.latency_class]
        took_s = perf_counter() - began_s
        times.counts[bisect_left(CALL_TIMES_S, took_s)] += 1
        times.total_s += took_s
