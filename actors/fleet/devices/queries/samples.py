"""Samples: the values of one attribute of one device, as arrays by time.

Owns which values of a column a calculation gets, and their conversion to numbers. Does not own what is calculated.
A column of numbers or booleans is taken as it is, without a step of Python for each value; only a column that also
has texts, or whole numbers that a double cannot represent, is looked at value by value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from trunkline.store.columns import Column, Points, concatenated

if TYPE_CHECKING:
    import numpy.typing as npt

Value = float | str | bool
"""A value of an attribute. In Python's typing an int is also a float."""

Times: TypeAlias = "npt.NDArray[np.int64]"
Places: TypeAlias = "npt.NDArray[np.intp]"
Array: TypeAlias = "npt.NDArray[Any]"

EXACT_MAX: Final = 2**53
"""All whole numbers up to this size are exact as doubles."""

ROWS_WANTED: Final = 8192
"""Rows of a large chunk: enough that the cost of a call of numpy does not count, few enough for the cache."""


class Samples:
    """Values of one attribute at ascending `times` in ms.

    `values` is an array of float64, int64 or bool; `integers` then tells which of the float64 values are whole numbers
    in Python and JSON (None: none). Values that do not fit one type are a list.
    """

    __slots__ = ("integers", "times", "values")

    def __init__(self, times: Times, values: Array | list[Any], integers: Array | None = None) -> None:
        self.times = times
        self.values = values
        self.integers = integers

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, times: Times, column: Column, *, numeric: bool) -> Samples:
        """Take the values of a column of rows at these times, without NaN and infinities.

        `numeric`: as numbers (true is 1), without texts and numbers that a double cannot represent.
        """
        if column.present is not None:
            times = times[column.present]
        values = column.values
        if isinstance(values, list):
            return _of_list(times, values, numeric=numeric)
        if values.dtype == np.bool_:
            return cls(times, values.astype(np.int64) if numeric else values)
        found = cls(times, values, column.integers)
        if values.dtype == np.float64 and not np.isfinite(values).all():
            return found.at(np.flatnonzero(np.isfinite(values)))
        return found

    def cut(self, low: int, high: int) -> Samples:
        """The samples from place `low` to before place `high`, without a copy."""
        integers = None if self.integers is None else self.integers[low:high]
        return Samples(self.times[low:high], self.values[low:high], integers)

    def at(self, places: Places) -> Samples:
        """The samples at these places, in their order."""
        if isinstance(self.values, list):
            return Samples(self.times[places], [self.values[place] for place in places.tolist()])
        integers = None if self.integers is None else self.integers[places]
        return Samples(self.times[places], self.values[places], integers)

    def tolist(self) -> list[Any]:
        """The values as Python has them: 1, 1.0 and True stay different."""
        if isinstance(self.values, list):
            return self.values
        found: list[Any] = self.values.tolist()
        if self.integers is not None:
            for place in np.flatnonzero(self.integers).tolist():
                found[place] = int(found[place])
        return found

    def floats(self) -> npt.NDArray[np.float64]:
        """The values as doubles. They must be numbers."""
        return np.asarray(self.values, dtype=np.float64)


def selected(points: Points, names: Mapping[int, str], *, numeric: bool) -> Iterator[tuple[str, Samples]]:
    """Yield the samples of each of the attributes `names`, by their numbers, that has any. `numeric` as above."""
    for number, column in points.columns.items():
        if number in names:
            samples = Samples.of(points.times, column, numeric=numeric)
            if len(samples):
                yield names[number], samples


def joined(parts: Sequence[Samples]) -> Samples:
    """All samples of these parts, at least one, each later than the one before."""
    if len(parts) == 1:
        return parts[0]
    found = concatenated(
        [Points(part.times, {0: Column(None, part.values, part.integers)}) for part in parts]
    )
    column = found.columns[0]
    return Samples(found.times, column.values, column.integers)


def as_number(value: Any) -> float | None:
    """Return the value as a number (true is 1); None for a text or a number that a double cannot represent."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def chunks(points: Iterable[Points]) -> Iterator[Points]:
    """Yield the same points, short chunks joined to longer ones. The first stays alone, for readers of little."""
    waiting: list[Points] = []
    rows, rows_wanted, latest_ms = 0, 1, None
    for part in points:
        if not len(part):
            continue
        assert latest_ms is None or part.times[0] > latest_ms, "points must ascend in time"
        latest_ms = part.times[-1]
        waiting.append(part)
        rows += len(part)
        if rows >= rows_wanted:
            yield waiting[0] if len(waiting) == 1 else concatenated(waiting)
            waiting, rows, rows_wanted = [], 0, min(8 * rows_wanted, ROWS_WANTED)
    if waiting:
        yield concatenated(waiting)


def by_time(
    columns: Iterable[tuple[str, Iterable[int], Iterable[Value]]],
) -> list[tuple[int, dict[str, Value]]]:
    """Points in ascending order from the name, the times and the values of each attribute."""
    columns = list(columns)
    if len(columns) == 1:
        ((name, times, values),) = columns
        return [(time_ms, {name: value}) for time_ms, value in zip(times, values, strict=True)]
    found: dict[int, dict[str, Any]] = {}
    for name, times, values in columns:
        for time_ms, value in zip(times, values, strict=True):
            if time_ms in found:
                found[time_ms][name] = value
            else:
                found[time_ms] = {name: value}
    return sorted(found.items())


def _of_list(times: Times, values: list[Any], *, numeric: bool) -> Samples:
    if not numeric:
        found = Samples(times, values)
        kept = [place for place, value in enumerate(values) if not _unsafe(value)]
        return found if len(kept) == len(values) else found.at(np.array(kept, np.intp))
    places, numbers = [], []
    for place, value in enumerate(values):
        number = as_number(value)
        if number is not None:
            places.append(place)
            numbers.append(number)
    column = Column.of(numbers)
    return Samples(times[np.array(places, np.intp)], column.values, column.integers)


def _unsafe(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
