"""Sums of doubles that are rounded once, like those of `math.fsum`, for many buckets of an array at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from trunkline.actors.fleet.devices.queries.samples import Places

if TYPE_CHECKING:
    import numpy.typing as npt

Doubles: TypeAlias = "npt.NDArray[np.float64]"


@cache
def whole() -> Places:
    """The start of a single bucket."""
    return np.zeros(1, np.intp)


class ExactSum:
    """The sum of any number of doubles, rounded once like `math.fsum` over all of them.

    Keeps a few doubles for each call of `add`, not its values.
    """

    __slots__ = ("_large", "_overflow", "_parts")

    def __init__(self) -> None:
        self._parts: list[float] = []
        self._large = Fraction()
        self._overflow = False

    def add(self, values: Doubles) -> None:
        levels = _levels(values, whole())
        if levels is not None:
            self._parts += [float(level[0]) for level in levels]
        elif np.isfinite(values).all():
            self._large += sum(map(Fraction, values.tolist()))
        else:
            self._overflow = True

    def total(self) -> float:
        if self._overflow:
            return math.inf
        if not self._large:
            return math.fsum(self._parts)
        try:
            return float(self._large + sum(map(Fraction, self._parts)))
        except OverflowError:
            return math.inf

    def mean(self, count: int) -> float:
        """The total divided by the number of values, also where only the total is beyond all doubles."""
        total = self.total()
        if math.isfinite(total) or self._overflow:
            return total / count
        return float((self._large + sum(map(Fraction, self._parts))) / count)


_LARGE: Final = 2.0**900
"""From this size on doubles are summed as fractions, so that no step overflows before the sum does."""


def sums(values: Doubles, starts: Places) -> Doubles:
    """Return the sum of each of the buckets that begin at `starts`, rounded once; infinity for one beyond all doubles.

    The first of the places `starts` is 0, and no bucket is empty.
    """
    levels = _levels(values, starts)
    if levels is None:
        found = []
        for low, high in pairwise([*starts.tolist(), len(values)]):
            bucket = ExactSum()
            bucket.add(values[low:high])
            found.append(bucket.total())
        return np.array(found)
    if len(levels) == 1:
        return levels[0]
    if len(levels) == 2:
        return levels[0] + levels[1]
    return np.array([math.fsum(parts) for parts in zip(*levels, strict=True)])


def means(values: Doubles, starts: Places) -> list[float]:
    """The mean of each of these buckets, as `ExactSum.mean` has it."""
    bounds = np.append(starts, len(values))
    totals = sums(values, starts)
    found: list[float] = (totals / np.diff(bounds)).tolist()
    for place in np.flatnonzero(~np.isfinite(totals)).tolist():
        low, high = bounds[place : place + 2].tolist()
        bucket = ExactSum()
        bucket.add(values[low:high])
        found[place] = bucket.mean(high - low)
    return found


def _levels(values: Doubles, starts: Places) -> list[Doubles] | None:
    """Doubles for each bucket that together are exactly its sum; None if a value is too large for that.

    Each level takes the leading bits of all values, so few that their sum has no rounding error: `ExtractVector` of
    Rump, Ogita and Oishi 2008, "Accurate floating-point summation, part I". Numbers with a few decimals need two.
    """
    largest = max(float(values.max()), -float(values.min()))
    if not largest < _LARGE:
        return None
    longest = int(np.diff(starts, append=len(values)).max())
    spare_bits = (longest + 1).bit_length()
    sigma = math.ldexp(1.0, math.frexp(largest)[1] + spare_bits)
    levels: list[Doubles] = []
    rest = values
    while True:
        leading = (rest + sigma) - sigma
        levels.append(np.add.reduceat(leading, starts))
        rest = rest - leading
        if not rest.any():
            return levels
        sigma = math.ldexp(sigma, spare_bits - 53)
