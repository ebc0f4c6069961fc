"""The same question of a time series for several peers: the mean by minute of the points of some devices.

Owns the points, the question, the right answer and the time that a peer takes. Does not own how a peer stores the
points or is asked.
"""

from __future__ import annotations

import math
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from trunkline.bench.errors import BenchError
from trunkline.bench.result import Record

DEVICES = 10
POINTS_OF_EACH = 10_000
STEP_MS = 1000
MINUTE_MS = 60_000
POINTS_PER_CALL = 1000

ASKED = 5
"""Times that a peer is asked and measured, after once that is not."""

SERIES = f"mean by minute over {DEVICES * POINTS_OF_EACH:,} points of {DEVICES} devices"

Means = dict[tuple[int, int], float]
"""The mean by the number of the device and the begin of the minute in milliseconds."""


class SeriesTurn(Record, frozen=True):
    """What a peer reached. ``ratio`` is the rate of the first peer divided by that of this peer."""

    seconds: list[float]
    points_a_second: float
    ratio: float | None = None


@dataclass(frozen=True)
class SeriesPoints:
    """Points of ``devices``, ``each`` of them STEP_MS apart, with values of two decimals that change slowly."""

    first_ms: int
    devices: int = DEVICES
    each: int = POINTS_OF_EACH

    @classmethod
    def until(cls, now_ms: int, devices: int = DEVICES, each: int = POINTS_OF_EACH) -> SeriesPoints:
        """Points that end before ``now_ms`` and begin with a minute."""
        return cls((now_ms - each * STEP_MS) // MINUTE_MS * MINUTE_MS, devices, each)

    @cached_property
    def values(self) -> list[list[float]]:
        """The values of each device."""
        random = Random(7)
        found = []
        for _ in range(self.devices):
            value, values = 2000, []
            for _ in range(self.each):
                value += random.randint(-9, 9)
                values.append(value / 100)
            found.append(values)
        return found

    @property
    def end_ms(self) -> int:
        """The end of the range, which has no point."""
        return self.first_ms + self.each * STEP_MS

    def calls(self) -> Iterator[tuple[int, Sequence[tuple[int, float]]]]:
        """The points as calls: the number of the device, and times with values."""
        for device, values in enumerate(self.values):
            points = [(self.first_ms + n * STEP_MS, value) for n, value in enumerate(values)]
            for first in range(0, len(points), POINTS_PER_CALL):
                yield device, points[first : first + POINTS_PER_CALL]

    def means(self) -> Means:
        """The right answer."""
        buckets: dict[tuple[int, int], list[float]] = {}
        for device, points in self.calls():
            for time_ms, value in points:
                buckets.setdefault((device, time_ms // MINUTE_MS * MINUTE_MS), []).append(value)
        return {key: math.fsum(values) / len(values) for key, values in buckets.items()}


class SeriesSource(ABC):
    """A peer that stores points and answers the question."""

    @abstractmethod
    async def store(self, points: SeriesPoints) -> None:
        """Store all points."""

    @abstractmethod
    async def ask(self, points: SeriesPoints) -> bytes:
        """Ask once, for all devices and the whole range; return the answer as it came."""

    @abstractmethod
    def read(self, answer: bytes) -> Means:
        """The means in an answer."""


async def ask_series(source: SeriesSource, points: SeriesPoints) -> SeriesTurn:
    """Ask some times, and measure until the answer has come. Raises BenchError if an answer is not right.

    The points have to be stored before.
    """
    wanted, seconds = points.means(), []
    for _ in range(ASKED + 1):
        began_s = time.perf_counter()
        answer = await source.ask(points)
        seconds.append(time.perf_counter() - began_s)
        if not same_means(source.read(answer), wanted):
            raise BenchError("its means by minute are not those of the points")
    del seconds[0]
    return SeriesTurn(
        seconds=seconds, points_a_second=points.devices * points.each / statistics.median(seconds)
    )


def same_means(found: Means, wanted: Means) -> bool:
    """Whether there are the same means, but for the rounding of sums."""
    return found.keys() == wanted.keys() and all(
        math.isclose(found[key], wanted[key], rel_tol=1e-9) for key in wanted
    )
