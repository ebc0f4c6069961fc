"""Time series: every aggregation agrees with a naive one that looks at all the points at once.

It is long because each of the eleven aggregations has its own oracle and its own edges.
"""

from __future__ import annotations

import json
import math
import random
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.actors.fleet.devices.series_oracle import NAMES, Rows, blocks, dense, naive
from tests.rounds import examples
from trunkline.actors.core.values.timestamps import TimestampError
from trunkline.actors.fleet.devices.queries.samples import Value
from trunkline.actors.fleet.devices.queries.series import aggregate
from trunkline.actors.fleet.devices.queries.series_terms import (
    Aggregation,
    AggregationType,
    Order,
    Point,
    SeriesError,
    SeriesTooLarge,
    parse_aggregation,
    parse_resolution,
)
from trunkline.store.columns import Column, Points

KINDS: tuple[AggregationType, ...] = get_args(AggregationType)
BUCKETED = [kind for kind in KINDS if kind not in ("NONE", "TIMEATVALUE")]
TIME_MAX = 60

numbers = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)
values = numbers | st.booleans() | st.sampled_from(["", "on", "off"])
times = st.integers(0, TIME_MAX)
reports = st.tuples(times, st.dictionaries(st.sampled_from("abc"), values, max_size=3))
series = st.lists(reports, max_size=25).map(lambda found: sorted(dict(found).items())) | st.builds(
    dense, st.integers(0, 2**32), st.integers(0, 60), st.just(TIME_MAX)
)
cuts = st.lists(st.integers(1, 9), max_size=5)
resolutions = st.none() | st.integers(0, 70)
orders: st.SearchStrategy[Order] = st.sampled_from(["asc", "desc"])


def run(
    rows: Iterable[tuple[int, Mapping[str, Value]]],
    kind: AggregationType,
    *,
    cuts: Sequence[int] = (),
    start_ms: int = 0,
    end_ms: int = TIME_MAX,
    resolution_ms: int | None = None,
    attributes: str = "abcd",
    limit: int | None = None,
    order: Order = "asc",
    points_max: int = 10_000,
    initial: Mapping[str, Value] | None = None,
    value: Value | None = None,
) -> list[Point]:
    points: Iterable[Points] = blocks(rows, cuts)
    if kind == "NONE" and order == "desc":
        points = reversed(list(points))
    return aggregate(
        points,
        names={number: name for number, name in NAMES.items() if name in attributes},
        start_ms=start_ms,
        end_ms=end_ms,
        resolution_ms=resolution_ms,
        aggregation=Aggregation(kind, value),
        limit=limit,
        order=order,
        points_max=points_max,
        initial=initial,
    )


# -- the oracle of TIMEATVALUE --------------------------------------------------------------------------------


def naive_times_at_value(
    points: Rows,
    start_ms: int,
    end_ms: int,
    resolution_ms: int | None,
    initial: dict[str, Value],
    value: Value,
) -> dict[int, dict[str, int]]:
    """Ask for each single millisecond what every attribute held then."""
    answer: dict[int, dict[str, int]] = {}
    held = dict(initial)
    waiting = list(points)
    for now_ms in range(start_ms, end_ms):
        while waiting and waiting[0][0] <= now_ms:
            held.update(waiting.pop(0)[1])
        bucket_ms = now_ms // resolution_ms * resolution_ms if resolution_ms else start_ms
        for name, holds in held.items():
            data = answer.setdefault(bucket_ms, {})
            same = holds == value and isinstance(holds, bool) == isinstance(value, bool)
            data[name] = data.get(name, 0) + same
    return answer


def close(left: list[Point], right: list[Point]) -> bool:
    """Whether both say the same but for the last digits that a recurrence may lose."""
    return [(time_ms, data.keys()) for time_ms, data in left] == [
        (time_ms, data.keys()) for time_ms, data in right
    ] and all(
        math.isclose(float(data[name]), float(right[place][1][name]), rel_tol=1e-9, abs_tol=1e-6)
        for place, (_, data) in enumerate(left)
        for name in data
    )


# -- buckets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BUCKETED)
@settings(max_examples=examples(25))
@given(points=series, cuts=cuts, start_ms=times, end_ms=times, resolution_ms=resolutions)
def test_agrees_with_the_naive_reading(
    kind: AggregationType,
    points: Rows,
    cuts: list[int],
    start_ms: int,
    end_ms: int,
    resolution_ms: int | None,
) -> None:
    found = run(points, kind, cuts=cuts, start_ms=start_ms, end_ms=end_ms, resolution_ms=resolution_ms)
    expected = naive(points, kind, start_ms, end_ms, resolution_ms)
    assert close(found, expected) if kind == "STD_DEV" else found == expected


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(15))
@given(points=series, cuts=cuts, resolution_ms=resolutions, limit=st.none() | st.integers(0, 5))
def test_order_and_limit_choose_from_the_same_points(
    kind: AggregationType, points: Rows, cuts: list[int], resolution_ms: int | None, limit: int | None
) -> None:
    everything = run(points, kind, resolution_ms=resolution_ms, value="on")
    oldest, newest = (
        run(points, kind, cuts=cuts, resolution_ms=resolution_ms, value="on", limit=limit, order=order)
        for order in get_args(Order)
    )
    assert oldest == everything[:limit]
    assert newest == everything[::-1][:limit]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(15))
@given(points=series, chosen=st.text("abcx"), resolution_ms=resolutions)
def test_only_the_attributes_asked_for_count(
    kind: AggregationType, points: Rows, chosen: str, resolution_ms: int | None
) -> None:
    bare = [(time_ms, {name: data[name] for name in data if name in chosen}) for time_ms, data in points]
    assert run(points, kind, resolution_ms=resolution_ms, attributes=chosen, value=True) == run(
        bare, kind, resolution_ms=resolution_ms, value=True
    )


@given(points=series, cuts=cuts, start_ms=times, end_ms=times, resolution_ms=resolutions)
def test_none_gives_the_points_as_they_are(
    points: Rows, cuts: list[int], start_ms: int, end_ms: int, resolution_ms: int | None
) -> None:
    found = run(points, "NONE", cuts=cuts, start_ms=start_ms, end_ms=end_ms, resolution_ms=resolution_ms)
    assert found == [(time_ms, data) for time_ms, data in points if start_ms <= time_ms <= end_ms and data]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("resolution_ms", [None, 0, 10])
def test_nothing_comes_of_nothing(kind: AggregationType, resolution_ms: int | None) -> None:
    assert run([], kind, resolution_ms=resolution_ms) == []
    assert run([(5, {})], kind, resolution_ms=resolution_ms) == []
    assert run([(5, {"a": 1})], kind, start_ms=6, end_ms=5, resolution_ms=resolution_ms) == []


@pytest.mark.parametrize("kind", BUCKETED)
def test_one_point_is_its_own_aggregate(kind: AggregationType) -> None:
    expected = {"COUNT": 1, "STD_DEV": 0}.get(kind, 7)
    assert run([(25, {"a": 7})], kind, resolution_ms=10) == [(20, {"a": expected})]
    assert run([(25, {"a": 7})], kind, start_ms=3) == [(3, {"a": expected})]


def test_buckets_stand_at_multiples_of_the_resolution_whatever_the_start() -> None:
    points: Rows = [(time_ms, {"a": time_ms}) for time_ms in (14, 15, 19, 20, 29, 30, 31)]
    found = run(points, "COUNT", start_ms=15, end_ms=30, resolution_ms=10)
    assert found == [(10, {"a": 2}), (20, {"a": 2}), (30, {"a": 1})]


def test_empty_buckets_are_left_out() -> None:
    points: Rows = [(0, {"a": 1}), (59, {"a": 1}), (20, {"a": "x"})]
    assert run(sorted(points, key=lambda p: p[0]), "SUM", resolution_ms=10) == [(0, {"a": 1}), (50, {"a": 1})]


def test_a_step_back_in_time_is_a_fault_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="ascend"):
        run([(2, {"a": 1}), (1, {"a": 1})], "SUM", cuts=[1])


def test_a_negative_resolution_is_refused() -> None:
    with pytest.raises(SeriesError, match=r"^resolution: -1 is negative"):
        run([], "SUM", resolution_ms=-1)


def test_reads_no_further_than_it_must() -> None:
    def endless() -> Iterator[tuple[int, dict[str, Value]]]:
        for time_ms in range(100):
            yield time_ms, {"a": time_ms}
        raise AssertionError("read on past what was wanted")

    assert run(endless(), "LAST", cuts=[1], resolution_ms=10, limit=2) == [(0, {"a": 9}), (10, {"a": 19})]
    assert run(endless(), "LAST", cuts=[10], end_ms=99) == [(0, {"a": 99})]


# -- numbers -------------------------------------------------------------------------------------------------


def test_booleans_count_as_one_and_zero_where_numbers_are_wanted() -> None:
    points: Rows = [(1, {"a": True}), (2, {"a": False}), (3, {"a": True}), (4, {"a": True})]
    assert run(points, "MEAN") == [(0, {"a": 0.75})]
    assert run(points, "SUM") == [(0, {"a": 3})]
    for kind in ("MAX", "MIN", "MEDIAN"):
        (_, data) = run(points, kind)[0]
        assert not isinstance(data["a"], bool)
    assert run(points, "LAST")[0][1]["a"] is True


def test_strings_are_passed_over_where_numbers_are_wanted() -> None:
    points: Rows = [(1, {"a": "zz", "b": "5"}), (2, {"a": 4}), (3, {"a": "1"})]
    for kind in ("MAX", "MIN", "MEDIAN", "MEAN", "SUM"):
        assert run(points, kind) == [(0, {"a": 4})]
    assert run(points, "COUNT") == [(0, {"a": 3, "b": 1})]


@given(st.lists(st.floats(-1e300, 1e300) | st.integers(-(10**20), 10**20), min_size=1, max_size=40))
@example([1e100, 1.0, -1e100, 1e-300])
@example([0.1] * 10)
def test_sum_and_mean_are_rounded_once(found: list[float]) -> None:
    points: Rows = [(place, {"a": value}) for place, value in enumerate(found)]
    assert run(points, "SUM") == [(0, {"a": math.fsum(found)})]
    assert run(points, "MEAN") == [(0, {"a": math.fsum(found) / len(found)})]


@pytest.mark.parametrize(
    ("found", "mean", "median"),
    [
        ([1e308, 1e308], 1e308, 1e308),
        ([-1e308, -1e308, -1e308], -1e308, -1e308),
        ([1.5e308, 1.7e308], 1.6e308, 1.6e308),
        ([10**308, 1.0, 1.2e308], 7.333333333333333e307, 1e308),
        ([1.7e308, 1e308, 1.7e308, -1.0], 1.1e308, 1.35e308),
    ],
)
def test_a_mean_has_no_sum_that_overflows(found: list[float], mean: float, median: float) -> None:
    kinds: dict[AggregationType, float] = {"MEAN": mean, "MEDIAN": median}
    points: Rows = [(place, {"a": value, "b": 1}) for place, value in enumerate(found)]
    later: Rows = [(place + 10, {"a": 2.0, "b": 1}) for place in range(20)]
    for cuts in ([], [1], [2]):
        for kind, wanted in kinds.items():
            for rows in (points, points + later):
                ((_, data), *_) = run(rows, kind, cuts=cuts, resolution_ms=10)
                assert data["a"] == pytest.approx(wanted, rel=1e-15), (kind, cuts)


def test_a_long_sum_is_as_exact_as_a_short_one() -> None:
    source = random.Random(7)
    found = [source.uniform(-1, 1) * 10.0 ** source.randint(-200, 200) for _ in range(5000)]
    points: Rows = [(place, {"a": value}) for place, value in enumerate(found)]
    assert run(points, "SUM", end_ms=10_000, cuts=[7]) == [(0, {"a": math.fsum(found)})]
    cancelled: Rows = points + [(5000 + place, {"a": -value}) for place, value in enumerate(reversed(found))]
    assert run(cancelled, "SUM", end_ms=10_000) == [(0, {"a": 0.0})]


@pytest.mark.parametrize("kind", BUCKETED)
@settings(max_examples=examples(15))
@given(found=st.lists(st.floats(allow_nan=False) | st.integers(), max_size=40), cuts=cuts)
@example(found=[1.7e308, 1.7e308, -1.7e308], cuts=[1])
@example(found=[1, 1.0, 1, 2, 2.0], cuts=[2])
def test_how_points_are_cut_into_blocks_changes_no_digit(
    kind: AggregationType, found: list[float], cuts: list[int]
) -> None:
    points: Rows = [(place, {"a": value}) for place, value in enumerate(found)]
    for resolution_ms in (None, 7):
        whole = run(points, kind, resolution_ms=resolution_ms)
        assert repr(run(points, kind, cuts=cuts, resolution_ms=resolution_ms)) == repr(whole)


@pytest.mark.parametrize("kind", ["FIRST", "LAST", "MAX", "MIN", "MEDIAN", "NONE"])
def test_a_whole_number_stays_one(kind: AggregationType) -> None:
    for value in (2, 2.0, 2**60 + 1, 2**70):
        for other in (-1, -1.5) if kind == "MAX" else (2**71, 1e300):
            data: Rows = [(place, {"a": value}) for place in (1, 2, 4, 5)]
            found = [data["a"] for _, data in run(sorted([*data, (3, {"a": other})]), kind)]
            assert repr(value) in map(repr, found), (value, other)


def test_a_small_spread_round_a_large_mean_keeps_its_digits() -> None:
    found = [1e9 + value for value in (4.0, 7.0, 13.0, 16.0)] * 500
    points: Rows = [(place, {"a": value}) for place, value in enumerate(found)]
    for resolution_ms in (None, 500):
        for _, data in run(points, "STD_DEV", end_ms=1999, resolution_ms=resolution_ms):
            assert math.isclose(float(data["a"]), math.sqrt(22.5), rel_tol=1e-9)


def test_the_example_of_a_population() -> None:
    points: Rows = [(place, {"a": value}) for place, value in enumerate((9, 4, 2, 5, 7, 4, 5, 4))]
    assert run(points, "STD_DEV") == [(0, {"a": 2.0})]
    assert run(points, "MEDIAN") == [(0, {"a": 4.5})]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(15))
@given(found=st.lists(st.floats() | st.integers() | st.just(10**400), max_size=8), resolution_ms=resolutions)
@example(found=[1.7e308, 1.7e308], resolution_ms=None)
@example(found=[1.7e308, -1.7e308], resolution_ms=None)
@example(found=[-1.7e308] * 1100, resolution_ms=None)
@example(found=[float("nan")], resolution_ms=None)
def test_every_answer_is_json(kind: AggregationType, found: list[float], resolution_ms: int | None) -> None:
    points: Rows = [(place, {"a": value}) for place, value in enumerate(found)]
    answer = run(points, kind, end_ms=1100, resolution_ms=resolution_ms, value=0)
    json.dumps(answer, allow_nan=False)


# -- time at value -------------------------------------------------------------------------------------------

few_values = st.sampled_from(["on", "off", 1, 0, True, False, 1.0])
few_reports = st.tuples(times, st.dictionaries(st.sampled_from("ab"), few_values, max_size=2))
few_series = st.lists(few_reports, max_size=12).map(lambda found: sorted(dict(found).items()))


@given(
    points=few_series,
    cuts=cuts,
    start_ms=times,
    end_ms=times,
    resolution_ms=resolutions,
    initial=st.dictionaries(st.sampled_from("abc"), few_values),
    value=few_values,
)
def test_time_at_value_agrees_with_asking_every_millisecond(
    points: Rows,
    cuts: list[int],
    start_ms: int,
    end_ms: int,
    resolution_ms: int | None,
    initial: dict[str, Value],
    value: Value,
) -> None:
    found = run(
        points,
        "TIMEATVALUE",
        cuts=cuts,
        start_ms=start_ms,
        end_ms=end_ms,
        resolution_ms=resolution_ms,
        initial=initial,
        value=value,
    )
    expected = naive_times_at_value(points, start_ms, end_ms, resolution_ms, initial, value)
    assert found == sorted(expected.items())


def test_a_value_is_split_between_the_buckets_it_crosses() -> None:
    points: Rows = [(5, {"a": "on"}), (32, {"a": "off"})]
    found = run(points, "TIMEATVALUE", end_ms=45, resolution_ms=10, value="on")
    assert found == [(0, {"a": 5}), (10, {"a": 10}), (20, {"a": 10}), (30, {"a": 2}), (40, {"a": 0})]


def test_a_value_from_before_the_start_is_held_until_the_first_report() -> None:
    points: Rows = [(25, {"a": "off"})]
    whole = run(points, "TIMEATVALUE", start_ms=10, initial={"a": "on", "b": "on"}, value="on")
    assert whole == [(10, {"a": 15, "b": 50})]
    only = run(points, "TIMEATVALUE", start_ms=10, initial={"a": "on", "b": "on"}, value="on", attributes="a")
    assert only == [(10, {"a": 15})]


def test_a_value_is_held_no_longer_than_the_end() -> None:
    points: Rows = [(5, {"a": 1}), (70, {"a": 2})]
    assert run(points, "TIMEATVALUE", value=1) == [(0, {"a": 55})]
    assert run([(TIME_MAX, {"a": 1})], "TIMEATVALUE", value=1) == []


def test_a_number_is_no_boolean() -> None:
    points: Rows = [(0, {"a": 1, "b": True, "c": 1.0, "d": "1"})]
    assert run(points, "TIMEATVALUE", value=1) == [(0, {"a": 60, "b": 0, "c": 60, "d": 0})]
    assert run(points, "TIMEATVALUE", value=True) == [(0, {"a": 0, "b": 60, "c": 0, "d": 0})]
    for value, other in ((2.0**53, 2**53 + 1), (2**53 + 1, 2.0**53), (2**63, 2.0**62), (10**400, 1)):
        assert run([(0, {"a": other})], "TIMEATVALUE", value=value) == [(0, {"a": 0})]


# -- bounds --------------------------------------------------------------------------------------------------


def test_more_points_than_may_be_kept_are_refused_with_advice() -> None:
    points: Rows = [(time_ms, {"a": time_ms, "b": 1}) for time_ms in range(50)]
    assert len(run(points, "NONE", points_max=100)) == 50
    with pytest.raises(SeriesTooLarge, match=r"more than 99 values.*coarser resolution"):
        run(points, "NONE", points_max=99)
    with pytest.raises(SeriesTooLarge):
        run(points, "COUNT", resolution_ms=1, points_max=99)
    assert run(points, "COUNT", points_max=2) == [(0, {"a": 50, "b": 50})]


@pytest.mark.parametrize("kind", ["COUNT", "MAX", "SUM", "STD_DEV", "TIMEATVALUE"])
def test_a_long_range_takes_no_more_memory_than_a_short_one(kind: AggregationType) -> None:
    length = 5000

    def parts(count: int) -> Iterator[Points]:
        for part in range(count):
            times = np.arange(part * length, (part + 1) * length)
            yield Points(times, {1: Column(None, np.sin(times))})

    def peak_bytes(count: int) -> int:
        tracemalloc.start()
        try:
            (point,) = aggregate(
                parts(count),
                names=NAMES,
                start_ms=0,
                end_ms=count * length,
                resolution_ms=None,
                aggregation=Aggregation(kind, 0),
                limit=None,
                order="asc",
                points_max=100,
            )
            assert point[1]
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak_bytes(200) < 1.2 * peak_bytes(20)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_limit_bounds_what_is_kept(order: Order) -> None:
    points: Rows = [(time_ms, {"a": time_ms}) for time_ms in range(50)]
    assert len(run(points, "NONE", limit=10, order=order, points_max=10)) == 10


def test_the_values_of_a_median_count() -> None:
    points: Rows = [(time_ms, {"a": time_ms}) for time_ms in range(60)]
    for cuts in ([], [7]):
        assert run(points, "MEDIAN", cuts=cuts, points_max=60) == [(0, {"a": 29.5})]
        with pytest.raises(SeriesTooLarge):
            run(points, "MEDIAN", cuts=cuts, points_max=59)
    assert len(run(points, "MEDIAN", resolution_ms=10, points_max=10)) == 6


@given(
    points=few_series,
    cuts=cuts,
    start_ms=times,
    end_ms=times,
    resolution_ms=resolutions,
    initial=st.dictionaries(st.sampled_from("abc"), few_values),
    value=few_values,
    limit=st.integers(1, 9),
)
def test_a_limit_of_time_at_value_takes_the_first_buckets(limit: int, points: Rows, **asked: Any) -> None:
    whole = run(points, "TIMEATVALUE", **asked)
    assert run(points, "TIMEATVALUE", limit=limit, **asked) == whole[:limit]
    assert run(points, "TIMEATVALUE", limit=limit, order="desc", **asked) == whole[::-1][:limit]


def test_a_value_held_for_ages_is_not_split_without_end() -> None:
    held: Any = {"end_ms": 10**15, "resolution_ms": 1, "initial": {"a": 1}, "value": 1, "points_max": 100}
    with pytest.raises(SeriesTooLarge):
        run([], "TIMEATVALUE", **held)
    assert run([], "TIMEATVALUE", limit=2, **held) == [(0, {"a": 1}), (1, {"a": 1})]
    last = [(10**15 - 1, {"a": 1}), (10**15 - 2, {"a": 1})]
    assert run([], "TIMEATVALUE", limit=2, order="desc", **held) == last


# -- reading the query ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "TIMEATVALUE"])
def test_reads_an_aggregation_by_name_or_as_an_object(kind: AggregationType) -> None:
    assert parse_aggregation(kind) == Aggregation(kind)
    assert parse_aggregation({"type": kind}) == Aggregation(kind)
    assert parse_aggregation({"type": kind, "options": {}}) == Aggregation(kind)


@pytest.mark.parametrize("value", ["on", "", 1, 0, 1.5, True, False])
def test_reads_the_value_of_time_at_value(value: Value) -> None:
    found = parse_aggregation({"type": "TIMEATVALUE", "options": {"value": value}})
    assert found == Aggregation("TIMEATVALUE", value)
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("mean", "'mean' is none; give one of FIRST, LAST"),
        ("x" * 1000, "x' is none; give one of"),
        (None, "this is none"),
        (5, "this is none"),
        ({}, "an object has a type"),
        ({"type": "MEAN", "extra": 1}, "an object has a type"),
        ({"type": ["MEAN"]}, "this is none"),
        ({"type": "MEAN", "options": {"value": 1}}, "MEAN has no options"),
        ("TIMEATVALUE", "needs exactly one option"),
        ({"type": "TIMEATVALUE"}, "needs exactly one option"),
        ({"type": "TIMEATVALUE", "options": {"value": 1, "x": 2}}, "needs exactly one option"),
        ({"type": "TIMEATVALUE", "options": {"value": None}}, "give a string, a number or a boolean"),
        ({"type": "TIMEATVALUE", "options": {"value": float("nan")}}, "give a string, a number or a boolean"),
    ],
)
def test_other_aggregations_are_refused_with_a_sentence(value: object, problem: str) -> None:
    with pytest.raises(SeriesError, match=r"^aggregation[a-z.]*: ") as caught:
        parse_aggregation(value)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 250


def test_reads_a_resolution() -> None:
    assert [parse_resolution(value) for value in (None, "", 0, "0", 0.0)] == [None] * 5
    assert [parse_resolution(value) for value in (60_000, "60000", 60_000.0)] == [60_000] * 3
    assert [parse_resolution(value) for value in (0.5, 1000.4)] == [1, 1000]
    for wrong in (-1, -0.5, "hour", True):
        with pytest.raises(TimestampError, match=r"^resolution: "):
            parse_resolution(wrong)
