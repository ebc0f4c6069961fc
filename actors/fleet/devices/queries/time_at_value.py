"""Time at a value: for how many milliseconds of each bucket an attribute had a given value.

Owns the aggregation TIMEATVALUE; `series.aggregate` tells its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trunkline.actors.fleet.devices.queries.samples import EXACT_MAX, Samples, Times, Value, by_time, selected
from trunkline.actors.fleet.devices.queries.series_terms import Order, Point, too_many
from trunkline.store.columns import Points

if TYPE_CHECKING:
    import numpy.typing as npt

Marks: TypeAlias = "npt.NDArray[np.bool_]"


def times_at_value(
    points: Iterable[Points],
    names: Mapping[int, str],
    initial: Mapping[str, Value],
    target: Value | None,
    *,
    start_ms: int,
    end_ms: int,
    resolution_ms: int,
    limit: int | None,
    order: Order,
    values_max: int,
) -> list[Point]:
    """Return the milliseconds of each bucket, in ascending order. `points` end at `end_ms` and may begin earlier.

    Only buckets that can be among the first `limit` in `order` are counted. Raises SeriesTooLarge for more than
    `values_max` values.
    """
    if limit is not None and resolution_ms and order == "desc":
        start_ms = max(start_ms, ((end_ms - 1) // resolution_ms - limit + 1) * resolution_ms)
    first = limit if order == "asc" else None
    buckets = _Buckets(start_ms, end_ms, resolution_ms, first, values_max)
    wanted = set(names.values())
    for name, value in initial.items():
        if name in wanted:
            buckets.hold(name, _same(value, target))
    for part in points:
        for name, samples in selected(part, names, numeric=False):
            buckets.add(name, samples.times, _matches(samples, target))
    return buckets.points()


def _same(value: Value, target: Value | None) -> bool:
    return value == target and isinstance(value, bool) == isinstance(target, bool)


def _matches(samples: Samples, target: Value | None) -> Marks:
    values = samples.values
    if isinstance(values, list):
        return np.array([_same(value, target) for value in values], np.bool_)
    if not isinstance(target, int | float) or isinstance(target, bool) != (values.dtype == np.bool_):
        return np.zeros(len(values), np.bool_)
    if abs(target) >= EXACT_MAX:  # An array compares as doubles, Python exactly.
        return np.array([value == target for value in samples.tolist()], np.bool_)
    marks: Marks = values == target
    return marks


class _Buckets:
    """The milliseconds at the value, by attribute and bucket."""

    __slots__ = (
        "_end_ms",
        "_first",
        "_held",
        "_resolution_ms",
        "_start_ms",
        "_totals",
        "_values",
        "_values_max",
    )

    def __init__(
        self, start_ms: int, end_ms: int, resolution_ms: int, first: int | None, values_max: int
    ) -> None:
        self._start_ms = start_ms
        self._end_ms = end_ms
        self._resolution_ms = resolution_ms
        self._first = first
        self._values_max = values_max
        self._values = 0
        # What an attribute has since when, and the totals of its buckets from the first in which it had a value.
        self._held: dict[str, tuple[int, bool]] = {}
        self._totals: dict[str, tuple[int, npt.NDArray[np.int64]]] = {}

    def hold(self, name: str, matches: bool) -> None:
        """Let an attribute have its value from the start on."""
        self._begin(self._start_ms)
        self._held[name] = self._start_ms, matches

    def add(self, name: str, times: Times, marks: Marks) -> None:
        """Count until the last of these reports, of which `marks` tells which have the value."""
        self._begin(max(int(times[0]), self._start_ms))
        edges = np.clip(times, self._start_ms, self._end_ms)
        if name in self._held:
            since_ms, matches = self._held[name]
            edges, marks = np.append(since_ms, edges), np.append(matches, marks)
        self._count(name, edges, marks)
        self._held[name] = int(edges[-1]), bool(marks[-1])

    def points(self) -> list[Point]:
        """Count until the end, and return what was counted."""
        for name, (since_ms, matches) in self._held.items():
            self._count(name, np.array([since_ms, self._end_ms]), np.array([matches, matches]))
        return by_time(
            (name, self._start_of(np.arange(first, first + len(totals))).tolist(), totals.tolist())
            for name, (first, totals) in self._totals.items()
        )

    def _begin(self, time_ms: int) -> None:
        """An attribute has a value from a time on: each bucket after it has a point, so end after the first of them."""
        if self._first is not None and self._resolution_ms:
            last_ms = (self._bucket(time_ms) + self._first) * self._resolution_ms
            self._end_ms, self._first = min(self._end_ms, last_ms), None

    def _count(self, name: str, edges: Times, marks: Marks) -> None:
        """Add the time between the first and the last edge. `marks` tells what holds from each edge to the next."""
        low_ms, high_ms = int(edges[0]), int(edges[-1])
        if low_ms == high_ms:
            return
        first, last = self._bucket(low_ms), self._bucket(high_ms - 1)
        if name not in self._totals:
            length = self._bucket(self._end_ms - 1) - first + 1
            self._values += length
            if self._values > self._values_max:
                raise too_many(self._values_max)
            self._totals[name] = first, np.zeros(length, np.int64)
        # The time at the value from the first edge to each edge, then to each boundary of a bucket.
        to_edge = np.append(0, np.cumsum(np.diff(edges) * marks[:-1]))
        boundaries = np.concatenate([[low_ms], self._start_of(np.arange(first + 1, last + 1)), [high_ms]])
        before = np.searchsorted(edges, boundaries, side="right") - 1
        to_boundary = to_edge[before] + (boundaries - edges[before]) * marks[before]
        known, totals = self._totals[name]
        totals[first - known : last - known + 1] += np.diff(to_boundary)

    def _bucket(self, time_ms: int) -> int:
        return time_ms // self._resolution_ms if self._resolution_ms else 0

    def _start_of(self, buckets: Times) -> Times:
        return buckets * self._resolution_ms if self._resolution_ms else buckets + self._start_ms
