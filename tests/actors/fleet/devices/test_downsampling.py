"""Downsampling: each method against a plain reading of its publication, from blocks cut anywhere."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.fleet.devices.series_oracle import NAMES, Rows, blocks, dense, naive
from trunkline.actors.fleet.devices.queries.downsampling import POINTS_MIN, downsample
from trunkline.actors.fleet.devices.queries.measurement_messages import DownsamplingMethod
from trunkline.actors.fleet.devices.queries.series_terms import Order, Point, SeriesTooLarge
from trunkline.store.columns import Column, Points

TIME_MAX = 200

series = st.builds(dense, st.integers(0, 2**32), st.integers(0, 150), st.just(TIME_MAX))
cuts = st.lists(st.integers(1, 30), max_size=4)
times = st.integers(0, TIME_MAX)


def run(
    rows: Rows,
    method: DownsamplingMethod,
    count: int,
    *,
    cuts: list[int] | None = None,
    start_ms: int = 0,
    end_ms: int = TIME_MAX,
    order: Order = "asc",
    points_max: int = 10_000,
) -> list[Point]:
    return downsample(
        blocks(rows, cuts or []),
        names=NAMES,
        start_ms=start_ms,
        end_ms=end_ms,
        method=method,
        count=count,
        order=order,
        points_max=points_max,
    )


def samples_of(rows: list[Point], name: str, start_ms: int = 0, end_ms: int = TIME_MAX) -> list[Any]:
    """The numbers of an attribute in a range, with their times."""
    found = [
        (time_ms, data[name]) for time_ms, data in rows if name in data and start_ms <= time_ms <= end_ms
    ]
    return [
        (time_ms, int(value) if isinstance(value, bool) else value)
        for time_ms, value in found
        if not isinstance(value, str)
    ]


def naive_m4(found: list[Any], count: int, start_ms: int, end_ms: int) -> list[Any]:
    """The query of the paper: the samples of each column of pixels that are first, last, smallest or largest."""
    columns: dict[int, list[Any]] = {}
    width_ms = math.ceil((end_ms - start_ms + 1) / (count // 4))
    for time_ms, value in found:
        columns.setdefault((time_ms - start_ms) // width_ms, []).append((time_ms, value))
    kept = set()
    for column in columns.values():
        kept |= {
            column[0],
            column[-1],
            min(column, key=lambda each: each[1]),
            max(column, key=lambda each: each[1]),
        }
    return sorted(kept)


@given(points=series, cuts=cuts, start_ms=times, end_ms=times, count=st.integers(4, 30))
def test_m4_agrees_with_its_publication(
    points: Rows, cuts: list[int], start_ms: int, end_ms: int, count: int
) -> None:
    found = run(points, "M4", count, cuts=cuts, start_ms=start_ms, end_ms=end_ms)
    for name in "ab":
        expected = naive_m4(samples_of(points, name, start_ms, end_ms), count, start_ms, end_ms)
        assert repr(samples_of(found, name)) == repr(expected)
        assert len(expected) <= count


@given(points=series, cuts=cuts, count=st.integers(2, 30))
def test_lttb_keeps_the_largest_triangle_of_each_bucket(points: Rows, cuts: list[int], count: int) -> None:
    found = run(points, "LTTB", count, cuts=cuts)
    for name in "ab":
        given, kept = samples_of(points, name), samples_of(found, name)
        if len(given) <= count:
            assert repr(kept) == repr(given)
            continue
        assert (len(kept), kept[0], kept[-1]) == (count, given[0], given[-1])
        inner = len(given) - 2
        bounds = [place * inner // max(count - 2, 1) + 1 for place in range(count - 1)]
        for place in range(count - 2):
            low, high = bounds[place], bounds[place + 1]
            following = given[high : bounds[place + 2]] if place + 2 < len(bounds) else given[high:]
            mean = [math.fsum(each) / len(following) for each in zip(*following, strict=True)]
            areas = [triangle(kept[place], sample, mean) for sample in given[low:high]]
            chosen = areas[given[low:high].index(kept[place + 1])]
            assert chosen >= max(areas) * (1 - 1e-9), (place, kept[place + 1])


def triangle(left: Any, middle: Any, right: Any) -> float:
    """The area of the triangle of three samples."""
    (left_x, left_y), (x, y), (right_x, right_y) = left, middle, right
    return float(abs((left_x - right_x) * (y - left_y) - (left_x - x) * (right_y - left_y)) / 2)


@pytest.mark.parametrize("method", ["MIN", "MAX", "MEAN"])
@given(points=series, cuts=cuts, start_ms=times, end_ms=times, count=st.integers(2, 30))
def test_the_others_give_one_value_for_each_bucket(
    method: Literal["MIN", "MAX", "MEAN"],
    points: Rows,
    cuts: list[int],
    start_ms: int,
    end_ms: int,
    count: int,
) -> None:
    found = run(points, method, count, cuts=cuts, start_ms=start_ms, end_ms=end_ms)
    width_ms = math.ceil((end_ms - start_ms + 1) / count)
    moved = [(time_ms - start_ms, data) for time_ms, data in points if start_ms <= time_ms]
    expected = naive(moved, method, 0, end_ms - start_ms, width_ms)
    assert found == [(time_ms + start_ms, data) for time_ms, data in expected]
    assert len(found) <= count


@pytest.mark.parametrize("method", POINTS_MIN)
def test_nothing_is_left_of_texts_and_of_nothing(method: DownsamplingMethod) -> None:
    assert run([], method, 10) == []
    assert run([(1, {"a": "x"}), (2, {"a": "y", "b": True}), (3, {"a": "z"})], method, 10) in (
        [(2, {"b": 1})],
        [(0, {"b": 1})],
    )
    assert run([(1, {"a": 1})], method, 10, start_ms=5, end_ms=4) == []


@pytest.mark.parametrize("method", POINTS_MIN)
def test_values_at_the_end_of_doubles_and_beyond_are_answered_as_json(method: DownsamplingMethod) -> None:
    extremes: list[float] = [1.7e308, -1.7e308, 10**400, math.nan, math.inf, 2**70, 5e-324, 0]
    points: Rows = [(place, {"a": value}) for place, value in enumerate(extremes * 5)]
    found = run(points, method, 4, cuts=[3])
    json.dumps(found, allow_nan=False)
    assert 1 <= len(found) <= 4


@pytest.mark.parametrize("method", POINTS_MIN)
def test_a_spike_among_a_million_samples_is_kept(method: DownsamplingMethod) -> None:
    times = np.arange(1_000_000, dtype=np.int64) * 1000
    values = np.sin(times / 1e6)
    values[456_789] = 50.0
    parts = [
        Points(times[low : low + 5000], {1: Column(None, values[low : low + 5000])})
        for low in range(0, len(times), 5000)
    ]
    found = downsample(
        parts,
        names=NAMES,
        start_ms=0,
        end_ms=int(times[-1]),
        method=method,
        count=200,
        order="desc",
        points_max=1_000_000,
    )
    assert 190 <= len(found) <= 200
    assert found == sorted(found, key=lambda point: -point[0])
    largest = max(float(data["a"]) for _, data in found)
    assert largest == 50.0 if method in ("LTTB", "M4", "MAX") else largest < 2


def test_lttb_keeps_no_more_in_memory_than_it_may() -> None:
    points: Rows = [(time_ms, {"a": time_ms, "b": 1}) for time_ms in range(100)]
    assert len(run(points, "LTTB", 5, points_max=200)) == 5
    with pytest.raises(SeriesTooLarge, match="more than 199 values"):
        run(points, "LTTB", 5, points_max=199)
    assert len(run(points, "M4", 8, end_ms=99, points_max=8)) == 4
