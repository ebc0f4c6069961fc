"""Accumulators: they aggregate the samples of one attribute in one bucket. One class for each aggregation.

Owns the arithmetic and its rounding. Does not own buckets, ranges or the selection of values: numeric accumulators
must get only finite numbers. SUM and STD_DEV may overflow to an infinity; the caller leaves those out.

`totals` gives the results of many complete buckets at once, without a step of Python for each sample. An object is for
a bucket that is still open: it takes the samples of the bucket in parts. Both give the same result to the last bit,
however the samples are cut into parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np

from trunkline.actors.fleet.devices.queries.exact_sums import Doubles, ExactSum, means, sums, whole
from trunkline.actors.fleet.devices.queries.samples import Places, Samples, Value, joined

if TYPE_CHECKING:
    import numpy.typing as npt


class Accumulator(Protocol):
    """Add samples, at least one, then ask for the total."""

    numeric: ClassVar[bool]
    """Whether it reads numbers only (true is 1), and not every value unchanged."""

    keeps_samples: ClassVar[bool]
    """Whether an object keeps all samples of its bucket in memory."""

    def add(self, samples: Samples) -> None: ...

    def total(self) -> Value: ...

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        """The totals of buckets that begin at the places `starts`, of which the first is 0. None is empty."""
        ...


def _lengths(samples: Samples, starts: Places) -> Places:
    return np.diff(starts, append=len(samples))


class _First:
    __slots__ = ("_values",)
    numeric: ClassVar[bool] = False
    keeps_samples: ClassVar[bool] = False

    def __init__(self) -> None:
        self._values: list[Value] = []

    def add(self, samples: Samples) -> None:
        if not self._values:
            self._values = self.totals(samples, whole())

    def total(self) -> Value:
        return self._values[0]

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        return samples.at(starts).tolist()


class _Last(_First):
    __slots__ = ()

    def add(self, samples: Samples) -> None:
        self._values = self.totals(samples, whole())

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        return samples.at(starts + _lengths(samples, starts) - 1).tolist()


class _Max(_First):
    """The largest value; of equal ones (1 and 1.0) the first."""

    __slots__ = ()
    numeric = True
    _choose: ClassVar[Callable[..., Any]] = max
    _ufunc: ClassVar[str] = "maximum"

    def add(self, samples: Samples) -> None:
        cls = type(self)
        self._values = [cls._choose([*self._values, *self.totals(samples, whole())])]

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        values = samples.values
        if isinstance(values, list):
            return [cls._choose(values[low:high]) for low, high in pairwise([*starts.tolist(), len(values)])]
        extremes = getattr(np, cls._ufunc).reduceat(values, starts)
        if samples.integers is None:
            found: list[Any] = extremes.tolist()
            return found
        return samples.at(_first_equal(values, extremes, starts)).tolist()


class _Min(_Max):
    """The smallest value; of equal ones (1 and 1.0) the first."""

    __slots__ = ()
    _choose = min
    _ufunc = "minimum"


class _Count:
    __slots__ = ("_count",)
    numeric: ClassVar[bool] = False
    keeps_samples: ClassVar[bool] = False

    def __init__(self) -> None:
        self._count = 0

    def add(self, samples: Samples) -> None:
        self._count += len(samples)

    def total(self) -> Value:
        return self._count

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        found: list[Any] = _lengths(samples, starts).tolist()
        return found


class _Sum:
    __slots__ = ("_count", "_sum")
    numeric: ClassVar[bool] = True
    keeps_samples: ClassVar[bool] = False

    def __init__(self) -> None:
        self._count = 0
        self._sum = ExactSum()

    def add(self, samples: Samples) -> None:
        self._count += len(samples)
        self._sum.add(samples.floats())

    def total(self) -> Value:
        return self._sum.total()

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        found: list[Any] = sums(samples.floats(), starts).tolist()
        return found


class _Mean(_Sum):
    __slots__ = ()

    def total(self) -> Value:
        return self._sum.mean(self._count)

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        return means(samples.floats(), starts)


class _Median:
    """The middle value, or the mean of the two middle values. It is exact, so it keeps all values."""

    __slots__ = ("_parts",)
    numeric: ClassVar[bool] = True
    keeps_samples: ClassVar[bool] = True

    def __init__(self) -> None:
        self._parts: list[Samples] = []

    def add(self, samples: Samples) -> None:
        self._parts.append(samples)

    def total(self) -> Value:
        value: Value = self.totals(joined(self._parts), whole())[0]
        return value

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        """Sort all buckets of the same length together: mostly there are few lengths."""
        lengths = _lengths(samples, starts)
        found: list[Any] = [None] * len(starts)
        for length in np.unique(lengths).tolist():
            buckets = np.flatnonzero(lengths == length)
            middles = _middles(samples, starts[buckets, np.newaxis] + np.arange(length))
            for bucket, *values in zip(buckets.tolist(), *middles, strict=True):
                found[bucket] = values[0] if len(values) == 1 else _between(*values)
        return found


def _between(low: float, high: float) -> float:
    """The mean of two numbers, also where their sum is beyond all doubles."""
    mean = (low + high) / 2
    return mean if math.isfinite(mean) else low / 2 + high / 2


def _middles(samples: Samples, places: Places) -> list[list[Any]]:
    """Of each row of places: the middle value, or the two middle values as two lists."""
    length = places.shape[1]
    wanted = sorted({(length - 1) // 2, length // 2})
    if isinstance(samples.values, list):
        rows = [sorted(samples.at(row).tolist()) for row in places]
        return [[row[place] for row in rows] for place in wanted]
    if samples.integers is None:
        values = np.sort(samples.values[places], axis=1)
        return [values[:, place].tolist() for place in wanted]
    order = np.argsort(samples.values[places], axis=1, kind="stable")
    chosen = np.take_along_axis(places, order, axis=1)
    return [samples.at(chosen[:, place]).tolist() for place in wanted]


class _StdDev:
    """The standard deviation of the population, sqrt(sum((x - mean)^2) / n), of differences to the first value.

    With d = x - first: sqrt((sum(d^2) - sum(d)^2 / n) / n), "shifted data" in Chan, Golub and LeVeque 1983,
    "Algorithms for computing the sample variance". The first value lies among the values, so no two large squares are
    subtracted unless it is far from all others; then n digits in 10^16 may be lost. Both sums are rounded once, so
    the result does not depend on the order or the parts.
    """

    __slots__ = ("_count", "_deltas", "_first", "_squares")
    numeric: ClassVar[bool] = True
    keeps_samples: ClassVar[bool] = False

    def __init__(self) -> None:
        self._count = 0
        self._first = 0.0
        self._deltas = ExactSum()
        self._squares = ExactSum()

    def add(self, samples: Samples) -> None:
        values = samples.floats()
        if not self._count:
            self._first = float(values[0])
        self._count += len(values)
        with np.errstate(over="ignore"):
            deltas = values - self._first
            self._deltas.add(deltas)
            self._squares.add(deltas * deltas)

    def total(self) -> Value:
        deltas, squares = np.array([self._deltas.total()]), np.array([self._squares.total()])
        return float(_deviations(deltas, squares, np.array([self._count]))[0])

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        values, lengths = samples.floats(), _lengths(samples, starts)
        with np.errstate(over="ignore"):
            deltas = values - np.repeat(values[starts], lengths)
            squares = sums(deltas * deltas, starts)
        found: list[Any] = _deviations(sums(deltas, starts), squares, lengths).tolist()
        return found


def _deviations(deltas: Doubles, squares: Doubles, lengths: Places) -> Doubles:
    with np.errstate(over="ignore", invalid="ignore"):
        variances = (squares - deltas * (deltas / lengths)) / lengths
        return np.sqrt(np.maximum(variances, 0.0))


class FourOfEach:
    """The first, the last, the smallest and the largest sample of a bucket; the total is a list of (time, value).

    This is M4 of Jugel, Jerzak, Hackenbroich and Markl 2014, "M4: a visualization-oriented time series data
    aggregation": a line chart whose columns of pixels are the buckets looks the same with these as with all samples.
    """

    __slots__ = ("_samples",)
    numeric: ClassVar[bool] = True
    keeps_samples: ClassVar[bool] = False

    def __init__(self) -> None:
        self._samples: list[Samples] = []

    def add(self, samples: Samples) -> None:
        kept = joined([*self._samples, samples])
        self._samples = [kept.at(_four_of_each(kept, whole()))]

    def total(self) -> Any:
        return self.totals(self._samples[0], whole())[0]

    @classmethod
    def totals(cls, samples: Samples, starts: Places) -> list[Any]:
        places = _four_of_each(samples, starts)
        kept = samples.at(places)
        pairs = list(zip(kept.times.tolist(), kept.tolist(), strict=True))
        bounds = [*np.searchsorted(places, starts).tolist(), len(places)]
        return [pairs[low:high] for low, high in pairwise(bounds)]


def _four_of_each(samples: Samples, starts: Places) -> Places:
    """The places of the first, last, smallest and largest sample of each bucket, in ascending order."""
    values, last = samples.floats(), starts + _lengths(samples, starts) - 1
    smallest = _first_equal(values, np.minimum.reduceat(values, starts), starts)
    largest = _first_equal(values, np.maximum.reduceat(values, starts), starts)
    return np.unique(np.concatenate([starts, last, smallest, largest]))


def _first_equal(values: npt.NDArray[Any], wanted: npt.NDArray[Any], starts: Places) -> Places:
    """The first place in each bucket that has the value that is wanted of it."""
    equal = np.flatnonzero(values == np.repeat(wanted, np.diff(starts, append=len(values))))
    return equal[np.searchsorted(equal, starts)]


ACCUMULATORS: Final[dict[str, type[Accumulator]]] = {
    "FIRST": _First,
    "LAST": _Last,
    "COUNT": _Count,
    "MAX": _Max,
    "MIN": _Min,
    "MEDIAN": _Median,
    "MEAN": _Mean,
    "SUM": _Sum,
    "STD_DEV": _StdDev,
}
