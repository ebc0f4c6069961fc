"""Points as columns are the same points as rows: cut, merged, concatenated and listed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.point_series import rows_of_points, shown
from trunkline.store.columns import MERGES, REMOVES, REPLACES, Column, Points, Row, concatenated, merged


def as_points(rows: list[Row], *, columns: bool) -> Points:
    """The points of these rows, held as rows or as columns only."""
    points = Points.of(rows)
    return Points(points.times, points.columns, points.marks) if columns else points


def applied(state: dict[int, dict[int, Any]], rows: Iterable[Row]) -> dict[int, dict[int, Any]]:
    """The model: what rows do to what is there, one after the other."""
    state = {time: dict(point) for time, point in state.items()}
    for time, point, mark in rows:
        if mark == REMOVES:
            state.pop(time, None)
        elif mark == REPLACES:
            state[time] = dict(point)
        else:
            state.setdefault(time, {}).update(point)
    return state


def as_shown(state: dict[int, dict[int, Any]]) -> list[str]:
    return shown(sorted(state.items()))


@given(rows_of_points(), st.booleans())
def test_columns_have_the_rows_they_came_from(rows: list[Row], columns: bool) -> None:
    points = as_points(rows, columns=columns)
    assert len(points) == len(rows)
    assert shown(points.marked_rows()) == shown(rows)
    visible = [(time, point) for time, point, mark in rows if mark != REMOVES]
    assert shown(points.rows()) == shown(visible)
    wanted = [
        (time, {number: point[number] for number in point if number in (0, 1, 2)}) for time, point in visible
    ]
    assert shown(points.rows({0, 1, 2})) == shown(row for row in wanted if row[1])
    assert shown(points.visible().marked_rows()) == shown((*row, MERGES) for row in visible)
    assert points.visible().marks is None


@given(rows_of_points(rows_min=1))
def test_columns_have_exactly_the_attributes_and_rows_that_are_present(rows: list[Row]) -> None:
    points = Points.of(rows)
    assert set(points.columns) == {number for row in rows for number in row[1]}
    for number, column in points.columns.items():
        present = [number in row[1] for row in rows]
        assert (column.present is None) == all(present)
        assert column.present is None or column.present.tolist() == present
        assert len(column.values) == sum(present)


@given(rows_of_points(), st.integers(-10, 80), st.integers(-10, 80), st.booleans())
def test_a_cut_has_the_rows_between(rows: list[Row], low: int, high: int, columns: bool) -> None:
    base = rows[len(rows) // 2][0] if rows else 0
    points = as_points(rows, columns=columns)
    for low_ms, high_ms in ((low, high), (base - abs(low), base + high)):
        cut = points.between(low_ms, high_ms)
        wanted = [row for row in rows if low_ms <= row[0] <= high_ms]
        assert shown(cut.marked_rows()) == shown(wanted)
        assert set(cut.columns) == {number for row in wanted for number in row[1]}
        assert (cut is points) == (len(wanted) == len(rows))


@given(*[rows_of_points(rows_max=20)] * 3, st.tuples(st.booleans(), st.booleans()))
def test_merged_points_do_what_both_do_one_after_the_other(
    oldest: list[Row], older: list[Row], newer: list[Row], columns: tuple[bool, bool]
) -> None:
    """The marks of the result count as well: it is applied to what is older than both."""
    both = merged(as_points(older, columns=columns[0]), as_points(newer, columns=columns[1]))
    before = applied({}, oldest)
    assert as_shown(applied(before, both.marked_rows())) == as_shown(applied(applied(before, older), newer))
    times = both.times.tolist()
    assert times == sorted({row[0] for row in older} | {row[0] for row in newer})
    for column in both.columns.values():
        assert len(column.values) == (len(both) if column.present is None else column.present.sum()) > 0


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(
    ("under", "above", "result"),
    [
        (MERGES, MERGES, (5, {1: 1, 2: 3}, MERGES)),
        (REPLACES, MERGES, (5, {1: 1, 2: 3}, REPLACES)),
        (REMOVES, MERGES, (5, {2: 3}, REPLACES)),
        (MERGES, REPLACES, (5, {2: 3}, REPLACES)),
        (REMOVES, REPLACES, (5, {2: 3}, REPLACES)),
        (REPLACES, REMOVES, (5, {}, REMOVES)),
    ],
)
def test_marks_of_the_same_time(under: int, above: int, result: Row, columns: bool) -> None:
    older = as_points([(5, {} if under == REMOVES else {1: 1, 2: 2}, under)], columns=columns)
    newer = as_points([(5, {} if above == REMOVES else {2: 3}, above)], columns=columns)
    assert shown(merged(older, newer).marked_rows()) == shown([result])


@given(
    rows_of_points(),
    st.lists(st.integers(0, 70), max_size=4),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_parts_concatenated_are_all_rows(rows: list[Row], cuts: list[int], columns: list[bool]) -> None:
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [
        as_points(rows[start:stop], columns=as_columns)
        for start, stop, as_columns in zip(edges[:-1], edges[1:], columns, strict=False)
    ]
    whole = concatenated(parts)
    assert shown(whole.marked_rows()) == shown(rows)
    assert whole.times.tolist() == [row[0] for row in rows]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "i"),
        ([1.0, 2.0], "f"),
        ([1, 2.5], "f"),
        ([2**53, 0.5], "f"),
        ([2**53 + 1, 0.5], None),
        ([True, False], "b"),
        ([True, 1], None),
        ([2**63], None),
        (["on", "off"], None),
        ([None, 1.0], None),
    ],
)
def test_values_get_the_type_that_keeps_them(values: list[Any], kind: str | None) -> None:
    column = Column.of(values)
    assert repr(column.tolist()) == repr(values)
    assert (None if isinstance(column.values, list) else column.values.dtype.kind) == kind


def test_numbers_are_floats_and_true_is_one() -> None:
    for values in ([1, 2.5], [True, False], [7, 8], [True, 1, 2.5], [2**70, 1.0]):
        numbers = Column.of(values).numbers()
        assert numbers is not None
        assert numbers.dtype == np.float64
        assert numbers.tolist() == [float(value) for value in values]
    for others in (["1"], [None, 1.0], [[1.0]], [10**400]):
        assert Column.of(others).numbers() is None


def test_parts_of_one_type_keep_it() -> None:
    parts = [as_points([(time, {1: time, 2: time / 2}, MERGES)], columns=True) for time in range(5)]
    whole = concatenated(parts)
    types = {number: getattr(column.values, "dtype", None) for number, column in whole.columns.items()}
    assert types == {1: np.int64, 2: np.float64}
    mixed = concatenated([*parts, as_points([(9, {1: 0.5, 2: 3}, MERGES)], columns=True)])
    assert {getattr(column.values, "dtype", None) for column in mixed.columns.values()} == {
        np.dtype(np.float64)
    }


def test_parts_of_ints_and_floats_stay_exact() -> None:
    """As float64 where that keeps every int, and as a list where it does not."""
    floats = as_points([(1, {1: 0.5}, MERGES), (2, {1: 2.0}, MERGES)], columns=True)
    for whole, is_array in ((2**53, True), (2**53 + 1, False), (-(2**53) - 1, False)):
        ints = as_points([(2, {1: 7}, MERGES), (4, {1: whole}, MERGES)], columns=True)
        for newer, older in ((ints, floats), (floats, ints)):
            rows = {**dict(older.rows()), **dict(newer.rows())}
            both = merged(older, newer)
            assert shown(both.rows()) == shown(sorted(rows.items()))
            assert isinstance(both.columns[1].values, np.ndarray) is is_array
        after = ints.between(4, 4)
        assert shown(concatenated([floats, after]).rows()) == shown([*floats.rows(), *after.rows()])
