"""States as columns: the rows and the points of an item are what was put into it, exact in value and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.store import state_columns
from trunkline.store.report_items import decoded, points_of, range_of, range_of_decoded
from trunkline.store.state_columns import KEY, StateColumns, encoded

Row = tuple[int, dict[int, Any]]

KINDS = ["u1", "<u2", "<u4", "<u8", "i1", "<i2", "<i4", "<i8", "<f4", "<f8", "?"]


def array(kind: str, numbers: list[int]) -> Any:
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return np.array(numbers, dtype) / 8
    if dtype.kind == "b":
        return np.array(numbers) % 2 == 0
    return np.array(numbers).astype(dtype)  # what does not fit wraps


@st.composite
def states(draw: st.DrawFn) -> tuple[Any, dict[int, Any]]:
    count = draw(st.integers(1, 6))
    times = draw(
        st.lists(st.integers(0, 2**48), min_size=count, max_size=count) | st.just(list(range(count)))
    )
    numbers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count)
    listed = st.lists(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False)
        | st.text(max_size=3),
        min_size=count,
        max_size=count,
    )
    values = st.builds(array, st.sampled_from(KINDS), numbers) | listed | st.text(max_size=3)
    columns = draw(st.dictionaries(st.integers(-2, 300), values, min_size=1, max_size=4))
    return np.array(times, np.int64), columns


def plain(times: Any, columns: dict[int, Any]) -> list[Row]:
    """The states one by one."""
    rows: list[Row] = []
    for at, time_ms in enumerate(times.tolist()):
        point = {}
        for number, values in columns.items():
            value = values.tolist()[at] if isinstance(values, np.ndarray) else values
            if isinstance(value, list):
                value = value[at]
            if value is not None:
                point[number] = value
        rows.append((time_ms, point))
    return rows


def exact(rows: list[Row]) -> str:
    return repr([(time_ms, sorted(point.items())) for time_ms, point in rows])


@given(given=states())
def test_rows_and_points_are_the_states(given: tuple[Any, dict[int, Any]]) -> None:
    times, columns = given
    item = encoded(times, columns)
    found = decoded(item)
    assert range_of([item]) == range_of_decoded(found) == (times.min(), times.max())
    key, value = found
    assert key == KEY
    rows = plain(times, columns)
    assert exact(StateColumns(value).rows()) == exact(state_columns.rows(times, columns)) == exact(rows)
    points, is_wiped = points_of(found)
    assert points is not None
    assert not is_wiped
    folded: dict[int, dict[int, Any]] = {}
    for time_ms, point in rows:
        folded.setdefault(time_ms, {}).update(point)
    assert exact(list(points.rows())) == exact(sorted(folded.items()))
    points.columns  # noqa: B018 - they can be made


@pytest.mark.parametrize(
    "value", [None, [], [1, 2], [1, 2, 3], [1, 2, b"12345678", 0], [0, 1, b"\0\1", 0, b"\0"]]
)
def test_a_damaged_item_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError):
        StateColumns(value).rows()
