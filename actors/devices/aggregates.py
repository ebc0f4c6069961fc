"""Accumulators: they aggregate the values of one attribute in one bucket. One class for each aggregation.

Owns the arithmetic and its rounding. Does not own buckets, ranges or the selection of values: numeric accumulators
must get only finite numbers (converted by `as_number`). Results may overflow to an infinity; the caller leaves those
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

Value = float | str | bool
"""A value of an attribute. In Python's typing an int is also a float."""


class Accumulator(Protocol):
    """Add values, at least one, then ask for the total."""

    def add(self, value: Any) -> None: ...

    def total(self) -> Value: ...


def as_number(value: Value) -> float | None:
    """Return the value as a number (true is 1); None for a string or a number that a double cannot represent."""
    if isinstance(value, str):
        return None
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            return None
    return value


class _First:
    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: Value | None = None

    def add(self, value: Any) -> None:
        if self._value is None:
            self._value = value

    def total(self) -> Value:
        assert self._value is not None
        return self._value


class _Last(_First):
    __slots__ = ()

    def add(self, value: Any) -> None:
        self._value = value


class _Max(_First):
    __slots__ = ()

    def add(self, value: Any) -> None:
        self._value = value if self._value is None else max(self._value, value)


class _Min(_First):
    __slots__ = ()

    def add(self, value: Any) -> None:
        self._value = value if self._value is None else min(self._value, value)


class _Count:
    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def add(self, _value: Any) -> None:
        self._count += 1

    def total(self) -> Value:
        return self._count


class _Sum:
    """The sum of any number of doubles, rounded once like `math.fsum` over all of them, in little memory.

    When `_FOLD_LENGTH` values wait, they are replaced by a few doubles with exactly the same sum: the rounded sum,
    the rounded remainder, the rounded remainder of that, until nothing is left (the nonoverlapping expansions of
    Shewchuk 1997, "Adaptive precision floating-point arithmetic").
    """

    __slots__ = ("_count", "_waiting")

    def __init__(self) -> None:
        self._count = 0
        self._waiting: list[float] = []

    def add(self, value: Any) -> None:
        self._count += 1
        self._waiting.append(float(value))
        if len(self._waiting) >= _FOLD_LENGTH:
            self._waiting = _folded(self._waiting)

    def total(self) -> Value:
        return _fsum(self._waiting)


_FOLD_LENGTH = 512
"""Doubles that a sum keeps. An expansion has at most 40 parts (the bit range of a double divided by 53)."""


def _folded(values: list[float]) -> list[float]:
    parts: list[float] = []
    while (rest := _fsum([*values, *(-part for part in parts)])) != 0:
        if not math.isfinite(rest):
            return [rest]
        parts.append(rest)
    return parts


def _fsum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


class _Mean(_Sum):
    __slots__ = ()

    def total(self) -> Value:
        return _fsum(self._waiting) / self._count


class _Median:
    """The middle value, or the mean of the two middle values. It is exact, so it keeps all values."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: list[float] = []

    def add(self, value: Any) -> None:
        self._values.append(value)

    def total(self) -> Value:
        self._values.sort()
        middle, odd = divmod(len(self._values), 2)
        if odd:
            return self._values[middle]
        return (self._values[middle - 1] + self._values[middle]) / 2


class _StdDev:
    """The standard deviation of the population, sqrt(sum((x - mean)^2) / n), by Welford's recurrence.

    Welford 1962, "Note on a method for calculating corrected sums of squares and products": it never
    subtracts two large squares, so a small spread around a large mean keeps its precision.
    """

    __slots__ = ("_count", "_mean", "_squares")

    def __init__(self) -> None:
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0

    def add(self, value: Any) -> None:
        number = float(value)
        self._count += 1
        delta = number - self._mean
        self._mean += delta / self._count
        self._squares += delta * (number - self._mean)

    def total(self) -> Value:
        # If a delta overflowed, the squares may have either sign, or be NaN.
        return math.sqrt(self._squares / self._count) if math.isfinite(self._squares) else math.inf


ACCUMULATORS: dict[str, Callable[[], Accumulator]] = {
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
