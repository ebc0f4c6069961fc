"""The points of one device as typed columns: what a reader of the timeline gets, and what a block holds.

Owns the types and how points of several sources are merged. The bytes of a block are in `column_codec`.

A column is an array of numpy where its values allow it, so that a reader handles thousands of values without a step
of Python for each. A few points that come as rows stay rows until somebody asks for their columns: for them, making
arrays costs more than it saves.

Points, columns, and the values in them are shared between readers: nobody changes them.

The module is long because merging needs to know how columns are kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MERGES: Final = 0
"""The row overrides the attributes that it has, and leaves those of an older row at the same time."""
REPLACES: Final = 1
"""The row replaces an older row at the same time."""
REMOVES: Final = 2
"""The row has no values and removes an older row at the same time."""

_WHOLE_MAX: Final = 2**53
"""Up to this absolute value every whole number has a float64 of its own."""

Row = tuple[int, dict[int, Any], int]
"""Time in ms, values by attribute number, mark."""

Values: TypeAlias = "NDArray[Any] | list[Any]"
Mask: TypeAlias = "NDArray[np.bool_]"
Times: TypeAlias = "NDArray[np.int64]"
Marks: TypeAlias = "NDArray[np.uint8]"


class Column:
    """The values of one attribute, for the rows where it is present.

    `present` has one bool for each row of the points; None: present in every row. `values` has the present rows only:
    float64, int64 or bool, or a list for texts and everything else. `integers` has one bool for each of float64
    values: whether it is an int in Python; None: none is.
    """

    __slots__ = ("integers", "present", "values")

    def __init__(self, present: Mask | None, values: Values, integers: Mask | None = None) -> None:
        self.present = present
        self.values = values
        self.integers = integers

    @classmethod
    def of(cls, values: list[Any], present: Mask | None = None) -> Column:
        """Return the column of these Python values, with the smallest type that keeps them exactly."""
        return cls(present, *_typed(values))

    def tolist(self) -> list[Any]:
        """Return the Python values of the present rows, exact in value and type."""
        if isinstance(self.values, list):
            return self.values
        values: list[Any] = self.values.tolist()
        if self.integers is not None:
            for index in np.flatnonzero(self.integers).tolist():
                values[index] = int(values[index])
        return values

    def numbers(self) -> NDArray[np.float64] | None:
        """Return the values of the present rows as float64, true as 1.0; None if one of them is no number."""
        if not isinstance(self.values, list):
            return self.values.astype(np.float64, copy=False)
        if not set(map(type, self.values)) <= {int, float, bool}:
            return None
        try:
            return np.array(self.values, np.float64)
        except OverflowError:  # an int beyond all floats
            return None


class Held(NamedTuple):
    """Rows as three lists: times in ms, values by attribute number, marks (None: all MERGES)."""

    times: list[int]
    maps: list[dict[int, Any]]
    marks: list[int] | None

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""
        return zip(self.times, self.maps, repeat(MERGES) if self.marks is None else self.marks, strict=False)


class Points:
    """Points of one device in ascending, distinct times in ms, with columns by attribute number.

    `marks` has one of MERGES, REPLACES and REMOVES for each row; None: all rows are MERGES. A row that REMOVES has no
    values.
    """

    __slots__ = ("_columns", "_held", "_marks", "_times")

    def __init__(self, times: Times, columns: Mapping[int, Column], marks: Marks | None = None) -> None:
        self._held: Held | None = None
        self._times = times
        self._marks = marks
        self._columns: Mapping[int, Column] | None = columns

    @classmethod
    def of(cls, rows: Sequence[tuple[int, Mapping[int, Any] | None, int]]) -> Points:
        """Return the points of rows (time in ms, values, mark) with ascending, distinct times.

        A row that REMOVES has None or no values. The maps of the rows are kept: nobody changes them later.
        """
        marks = [mark for _, _, mark in rows]
        return cls.of_maps(
            [time for time, _, _ in rows],
            [point if type(point) is dict else dict(point or ()) for _, point, _ in rows],
            marks if any(marks) else None,
        )

    @classmethod
    def of_maps(cls, times: list[int], maps: list[dict[int, Any]], marks: list[int] | None = None) -> Points:
        """Return the points with these times, values and marks (None: all MERGES). The lists are kept."""
        points = cls(np.empty(0, np.int64), {})
        points._held = Held(times, maps, marks)
        points._columns = None
        return points

    def __len__(self) -> int:
        return len(self._times) if self._held is None else len(self._held.times)

    @property
    def held(self) -> Held | None:
        """The rows, while there are only rows; None as soon as there are columns."""
        return self._held if self._columns is None else None

    @property
    def first_ms(self) -> int:
        """The time of the first row."""
        return int(self._times[0]) if self._held is None else self._held.times[0]

    @property
    def last_ms(self) -> int:
        """The time of the last row."""
        return int(self._times[-1]) if self._held is None else self._held.times[-1]

    @property
    def times(self) -> Times:
        if self._columns is None:
            self._make_columns()
        return self._times

    @property
    def columns(self) -> Mapping[int, Column]:
        if self._columns is None:
            self._make_columns()
            assert self._columns is not None
        return self._columns

    @property
    def marks(self) -> Marks | None:
        if self._columns is None:
            self._make_columns()
        return self._marks

    def rows(self, numbers: Container[int] | None = None) -> Iterator[tuple[int, dict[int, Any]]]:
        """Yield time and values of the visible rows, in ascending times.

        With `numbers`, only these attributes, and only rows that have one of them.
        """
        if self._held is None and self._marks is None and numbers is None:
            yield from zip(self._times.tolist(), self._points(None), strict=True)
            return
        for time, point, mark in self.marked_rows(numbers):
            if mark != REMOVES and (point or numbers is None):
                yield time, point

    def marked_rows(self, numbers: Container[int] | None = None) -> Iterator[Row]:
        """Yield all rows in ascending times; with `numbers`, with the values of these attributes only."""
        if self._held is None:
            marks = [MERGES] * len(self) if self._marks is None else self._marks.tolist()
            yield from zip(self._times.tolist(), self._points(numbers), marks, strict=True)
            return
        for time, point, mark in self._held.rows():
            if numbers is not None:
                point = {number: value for number, value in point.items() if number in numbers}
            yield time, point, mark

    def between(self, low_ms: int, high_ms: int) -> Points:
        """Return the rows with times from `low_ms` to `high_ms`, both included; itself if that is all."""
        if not len(self) or (low_ms <= self.first_ms and self.last_ms <= high_ms):
            return self
        if self._held is not None:
            times = self._held.times
            return self.part(bisect_left(times, low_ms), bisect_right(times, high_ms))
        start = int(self._times.searchsorted(low_ms, "left"))
        return self.part(start, int(self._times.searchsorted(high_ms, "right")))

    def part(self, start: int, stop: int) -> Points:
        """Return the rows from the index `start` up to `stop`; itself if that is all."""
        stop = max(start, stop)
        if stop - start == len(self):
            return self
        held = self.held
        if held is not None:
            marks = None if held.marks is None else held.marks[start:stop]
            return Points.of_maps(held.times[start:stop], held.maps[start:stop], marks)
        columns = {}
        for number, column in self.columns.items():
            cut = _cut(column, start, stop)
            if cut is not None:
                columns[number] = cut
        return Points(
            self._times[start:stop], columns, None if self._marks is None else self._marks[start:stop]
        )

    def visible(self) -> Points:
        """Return the rows that do not only remove, without marks; itself if there are no marks."""
        held = self.held
        if held is not None:
            if held.marks is None:
                return self
            shown = [mark != REMOVES for mark in held.marks]
            return Points.of_maps(list(compress(held.times, shown)), list(compress(held.maps, shown)))
        if self._marks is None:
            return self
        kept = self._marks != REMOVES
        columns = {
            # A row that is left out has no values: only the mask changes.
            number: Column(_mask(column.present[kept]), column.values, column.integers)
            if column.present is not None
            else column
            for number, column in self.columns.items()
        }
        return Points(self._times[kept], columns)

    def _make_columns(self) -> None:
        """Set the columns of points that came as rows. Two threads may do this at once: they set the same."""
        assert self._held is not None
        times, maps, marks = self._held
        self._times = np.array(times, np.int64)
        self._marks = None if marks is None else np.array(marks, np.uint8)
        columns = {}
        for number in sorted(set().union(*maps)):
            try:
                columns[number] = Column.of(list(map(itemgetter(number), maps)))
            except KeyError:
                present = [number in point for point in maps]
                values = [point[number] for point in compress(maps, present)]
                columns[number] = Column.of(values, np.array(present))
        self._columns = columns  # the last: it says that the others are there

    def _points(self, numbers: Container[int] | None) -> list[dict[int, Any]]:
        """Return the values of each row by attribute number, out of the columns."""
        points: list[dict[int, Any]] = [{} for _ in range(len(self))]
        for number, column in self.columns.items():
            if numbers is None or number in numbers:
                present = column.present
                where = points if present is None else compress(points, present.tolist())
                for point, value in zip(where, column.tolist(), strict=True):
                    point[number] = value
        return points


def merged(older: Points, newer: Points) -> Points:
    """Return one Points of both.

    For a time that both have, a row of `newer` that MERGES overrides the attributes that it has; one that REPLACES or
    REMOVES stands alone. The marks of the result say what the two together do to a row that is older still.
    """
    if not len(older) or not len(newer):
        return older if len(older) else newer
    if older.held is not None and newer.held is not None:
        return Points.of(_merged_rows(older.held.rows(), newer.held.rows()))
    if older.times[-1] < newer.times[0]:
        return concatenated([older, newer])
    if newer.times[-1] < older.times[0]:
        return concatenated([newer, older])
    times, places = np.unique(np.concatenate([older.times, newer.times]), return_inverse=True)
    older_places, newer_places = places[: len(older)], places[len(older) :]
    marks = None
    replaced = None
    if older.marks is not None or newer.marks is not None:
        marks = np.zeros(len(times), np.uint8)
        if older.marks is not None:
            marks[older_places] = older.marks
        above = _marks(newer)
        # MERGES over MERGES merges; MERGES over REPLACES or REMOVES replaces.
        marks[newer_places] = np.where(above == MERGES, np.minimum(marks[newer_places], REPLACES), above)
        replaced = newer_places[above != MERGES]
    columns = {}
    for number in sorted(older.columns.keys() | newer.columns.keys()):
        # For each row of the result: which of the joined values it has, or -1.
        sources = np.full(len(times), -1)
        parts = []
        begin = 0
        for points, own in ((older, older_places), (newer, newer_places)):
            if points is newer and replaced is not None:
                sources[replaced] = -1
            column = points.columns.get(number)
            if column is not None:
                count = len(column.values)
                sources[own if column.present is None else own[column.present]] = range(begin, begin + count)
                parts.append(column)
                begin += count
        present = sources >= 0
        chosen = sources[present]
        if len(chosen):
            columns[number] = _chosen(parts, chosen, _mask(present))
    return Points(times, columns, marks)


def stacked(parts: Sequence[Points]) -> Points:
    """Return one Points of parts, of which each is newer than those before it (`merged`)."""
    while True:
        rows: list[list[Points]] = []
        last_ms = -1
        for part in parts:  # those that follow each other in time need no merging
            if rows and part.first_ms > last_ms:
                rows[-1].append(part)
            else:
                rows.append([part])
            last_ms = part.last_ms
        joined = [concatenated(row) for row in rows]
        if len(joined) == 1:
            return joined[0]
        parts = [
            merged(*joined[at : at + 2]) if at + 1 < len(joined) else joined[at]
            for at in range(0, len(joined), 2)
        ]


def concatenated(parts: Sequence[Points]) -> Points:
    """Return one Points of parts that are ascending and disjoint in time."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    held = [part.held for part in parts if part.held is not None]
    if len(held) == len(parts):
        return Points.of(list(chain.from_iterable(each.rows() for each in held)))
    columns = {}
    for number in sorted(set().union(*(part.columns for part in parts))):
        found = [part.columns.get(number) for part in parts]
        whole = [column for column in found if column is not None and column.present is None]
        if len(whole) == len(parts):
            columns[number] = Column(None, *_joined(whole))
            continue
        masks = [
            np.zeros(len(part), np.bool_)
            if column is None
            else np.ones(len(part), np.bool_)
            if column.present is None
            else column.present
            for part, column in zip(parts, found, strict=True)
        ]
        joined = _joined([column for column in found if column is not None])
        columns[number] = Column(_mask(np.concatenate(masks)), *joined)
    marked = any(part.marks is not None for part in parts)
    return Points(
        np.concatenate([part.times for part in parts]),
        columns,
        np.concatenate([_marks(part) for part in parts]) if marked else None,
    )


def _merged_rows(older: Iterable[Row], newer: Iterable[Row]) -> list[Row]:
    found = {row[0]: row for row in older}
    for time, point, mark in newer:
        under = found.get(time)
        if mark == MERGES and under is not None:
            found[time] = time, {**under[1], **point}, min(under[2], REPLACES)
        else:
            found[time] = time, point, mark
    return [found[time] for time in sorted(found)]


def _typed(values: list[Any]) -> tuple[Values, Mask | None]:
    """Return the values with the smallest type that keeps them exactly, and which of float64 values are ints."""
    types = set(map(type, values))
    if types == {float}:
        return np.array(values, np.float64), None
    if types == {bool}:
        return np.array(values, np.bool_), None
    if types == {int}:
        try:
            return np.array(values, np.int64), None
        except OverflowError:
            return values, None
    if types == {int, float}:
        integers = [type(value) is int for value in values]
        if all(-_WHOLE_MAX <= value <= _WHOLE_MAX for value in compress(values, integers)):
            return np.array(values, np.float64), np.array(integers)
    return values, None


def _joined(parts: Sequence[Column]) -> tuple[Values, Mask | None]:
    """Return the values of all parts, one after the other, and which of float64 values are ints."""
    arrays = [part.values for part in parts if not isinstance(part.values, list)]
    if not arrays:
        return list(chain.from_iterable(part.values for part in parts)), None
    types = {array.dtype.kind for array in arrays}
    if len(arrays) == len(parts):
        if types == {"f", "i"} and all(
            array.min() >= -_WHOLE_MAX and array.max() <= _WHOLE_MAX
            for array in arrays
            if array.dtype.kind == "i"
        ):
            integers = np.concatenate([_integers(part) for part in parts])
            return np.concatenate([array.astype(np.float64, copy=False) for array in arrays]), integers
        if len(types) == 1:
            mixed = any(part.integers is not None for part in parts)
            integers_or_none = np.concatenate([_integers(part) for part in parts]) if mixed else None
            return np.concatenate(arrays), integers_or_none
    return _typed(list(chain.from_iterable(part.tolist() for part in parts)))


def _chosen(parts: Sequence[Column], chosen: NDArray[np.int64], present: Mask | None) -> Column:
    """Return the column of the values of all parts that stand at these indexes."""
    values, integers = _joined(parts)
    if isinstance(values, list):
        return Column.of([values[index] for index in chosen.tolist()], present)
    if integers is not None:
        integers = integers[chosen]
    return Column(present, values[chosen], integers)


def _cut(column: Column, start: int, stop: int) -> Column | None:
    """Return the column of the rows from `start` up to `stop`; None if it is present in none of them."""
    rows = stop - start
    present = column.present
    if present is not None:
        start = int(np.count_nonzero(present[:start]))
        present = present[stop - rows : stop]
        stop = start + int(np.count_nonzero(present))
        if stop - start == rows:
            present = None
    if start == stop:
        return None
    integers = None if column.integers is None else column.integers[start:stop]
    return Column(present, column.values[start:stop], integers)


def _mask(present: Mask) -> Mask | None:
    return None if present.all() else present


def _marks(points: Points) -> Marks:
    return np.zeros(len(points), np.uint8) if points.marks is None else points.marks


def _integers(column: Column) -> Mask:
    if column.integers is not None:
        return column.integers
    assert not isinstance(column.values, list)
    return np.full(len(column.values), column.values.dtype.kind == "i")
