"""Whether a server grows: the slope of each figure from a minute on, against what it may have.

Owns the bounds and the table. The slope is the median of those between all pairs of readings (Theil and Sen), which a
few outliers do not change; times the minutes it is the growth.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from typing import Final, NamedTuple

from tests.soak.meter import Reading

MB: Final = 1e6


class Bound(NamedTuple):
    """How much a figure may grow from the first reading that counts to the last: a part of its median, or so much."""

    part: float
    least: float


GROWTH: Final = {
    "memory": Bound(0.05, 5 * MB),
    "descriptors": Bound(0.05, 4),
    "threads": Bound(0.05, 2),
    "processes": Bound(0, 1),
    "directory": Bound(0.05, 5 * MB),
    "store": Bound(0.05, 2 * MB),
    "actors": Bound(0.1, 10),
    "connections": Bound(0.1, 5),
    "streams": Bound(0.1, 3),
}
P50: Final = Bound(0.5, 0.002)
P99: Final = Bound(1.0, 0.05)
"""Of the duration of the calls of a kind in a minute, in seconds: other programs run on the machine too."""
CALLS_MIN: Final = 30
"""In a minute: the durations of a kind with fewer are only judged together with all others."""
ALL: Final = "all calls"
READINGS_MIN: Final = 5


class Minute(NamedTuple):
    """A reading, and the durations of the calls since the one before, in seconds."""

    at: float
    """Minutes since the begin."""
    reading: Reading
    latencies: Mapping[str, Sequence[float]]


class Growth(NamedTuple):
    """How a figure has changed."""

    name: str
    median: float
    growth: float
    allowed: float

    @property
    def is_too_much(self) -> bool:
        """Whether it has grown by more than it may."""
        return self.growth > self.allowed


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points."""
    slopes = [(value - before) / (at - earlier) for (earlier, before), (at, value) in combinations(points, 2)]
    return statistics.median(slopes)


def growths(minutes: Sequence[Minute], from_minute: float) -> list[Growth]:
    """The growth of everything that has a bound, from that minute on. Empty if there are too few readings."""
    judged = [each for each in minutes if each.at >= from_minute]
    if len(judged) < READINGS_MIN:
        return []
    found = []
    for name, bound in GROWTH.items():
        points = [(each.at, _figure(each.reading, name)) for each in judged]
        found.append(_growth(name, points, bound))
    durations = [(each.at, {ALL: list(chain(*each.latencies.values())), **each.latencies}) for each in judged]
    for kind in sorted({kind for _, kinds in durations for kind in kinds}):
        for name, part, bound in (("p50", 0.5, P50), ("p99", 0.99, P99)):
            points = [
                (at, percentile(kinds[kind], part))
                for at, kinds in durations
                if len(kinds.get(kind, ())) >= CALLS_MIN
            ]
            if len(points) >= READINGS_MIN:
                found.append(_growth(f"{kind}, {name}", points, bound))
    return found


def percentile(values: Sequence[float], part: float) -> float:
    """The value that this part of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _growth(name: str, points: Sequence[tuple[float, float]], bound: Bound) -> Growth:
    median = statistics.median(value for _, value in points)
    grown = slope(points) * (points[-1][0] - points[0][0])
    return Growth(name, median, grown, max(bound.part * median, bound.least))


def _figure(reading: Reading, name: str) -> float:
    return reading.said[name] if name in reading.said else float(getattr(reading, name))
