"""Reports that are read at once are the same as decoded one by one, to the type of each column."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounds import examples
from trunkline.store import codec
from trunkline.store.columns import Column, Points
from trunkline.store.report_items import (
    decoded,
    head_item,
    link_item,
    points_of,
    removed,
    replaced,
    reported,
    wiped,
)
from trunkline.store.reports_at_once import points_at_once

whole = (
    st.integers(-300, 300)
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([23, 24, 255, 256, 65_535, 65_536, 2**53, 2**53 + 1, -(2**53) - 1, 2**63, -(2**63) - 1])
)
kinds = [
    whole,
    st.integers(-300, 300),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(max_size=40) | st.just("x" * 300),
    st.integers(-5, 5) | st.floats(-1, 1),
    st.integers(-5, 5) | st.booleans() | st.text(max_size=2),
]
odd_values = st.sampled_from([None, float("inf"), float("nan"), 2**80, [1], {"a": 1}, b"x"])


@st.composite
def commits(draw: st.DrawFn, *, odd: bool) -> list[list[bytes]]:
    """The items of some commits: mostly one report, with heads and marks of the link; `odd`: also anything else."""
    pools = {
        number: draw(st.sampled_from(kinds))
        for number in draw(st.sets(st.integers(0, 23) | st.integers(24, 255), min_size=1, max_size=4))
    }
    is_whole, time_ms = draw(st.booleans()), 1_700_000_000_000
    found: list[list[bytes]] = []
    for _ in range(draw(st.integers(1, 12))):
        items: list[bytes] = []
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 5]))):
            names = (
                list(pools)
                if is_whole
                else draw(st.lists(st.sampled_from(list(pools)), min_size=1, unique=True))
            )
            point: dict[int, Any] = {number: draw(pools[number]) for number in names}
            time_ms += draw(st.sampled_from([1, 1, 1, 1000, 0, -1, -2500]))
            if odd and draw(st.integers(0, 8)) == 0:
                point[draw(st.sampled_from([-1, -2, *pools]))] = draw(odd_values)
            if odd and draw(st.integers(0, 8)) == 0:
                point = {}
            items.append(reported(time_ms, codec.encode_numbered(point)))
            if odd and draw(st.integers(0, 8)) == 0:
                other = draw(st.integers(0, 2))
                items.append((removed(time_ms), replaced(time_ms, codec.encode({0: 1})), wiped())[other])
        if draw(st.integers(0, 3)) == 0:
            items.append(head_item(draw(st.binary(max_size=300))))
        if draw(st.integers(0, 3)) == 0:
            items.append(link_item(draw(st.lists(st.integers(-1, 2**64 - 1), min_size=3, max_size=6))))
        found.append(items)
    return found


def joined(of: list[list[bytes]]) -> tuple[bytes, np.ndarray[Any, np.dtype[np.int64]]]:
    """All items one after the other, and where the commits begin."""
    raw = [b"".join(items) for items in of]
    return b"".join(raw), np.array(list(accumulate(map(len, raw[:-1]), initial=0)), np.int64)


def shown(column: Column) -> tuple[Any, ...]:
    """All of a column, its types too."""
    kind = "list" if isinstance(column.values, list) else column.values.dtype.str
    listed = [(type(value), repr(value)) for value in column.tolist()]
    present = None if column.present is None else column.present.tolist()
    return kind, listed, present, None if column.integers is None else column.integers.tolist()


def assert_same(found: Points, expected: Points) -> None:
    assert found.times.tolist() == expected.times.tolist()
    assert found.marks is None
    assert {number: shown(column) for number, column in found.columns.items()} == {
        number: shown(column) for number, column in expected.columns.items()
    }
    assert list(found.columns) == list(expected.columns)


@given(of=commits(odd=False))
@settings(max_examples=examples(75))
def test_plain_reports_are_read_at_once(of: list[list[bytes]]) -> None:
    raw, starts = joined(of)
    expected, _ = points_of(decoded(raw))
    found = points_at_once(raw, starts)
    assert expected is not None
    assert found is not None
    assert_same(found, expected)
    wanted = set(list(expected.columns)[::2])
    some = points_at_once(raw, starts, wanted)
    assert some is not None
    assert_same(some, Points(expected.times, {number: expected.columns[number] for number in sorted(wanted)}))


@given(of=commits(odd=True))
@settings(max_examples=examples(100))
def test_what_is_not_plain_is_left_to_the_ordinary_decoder(of: list[list[bytes]]) -> None:
    raw, starts = joined(of)
    expected, is_wiped = points_of(decoded(raw))
    found = points_at_once(raw, starts)
    if found is not None:
        assert expected is not None
        assert expected.marks is None
        assert not is_wiped
        assert_same(found, expected)


@given(of=commits(odd=False), chance=st.randoms(use_true_random=False))
def test_damaged_reports_are_never_an_error_of_another_kind(
    of: list[list[bytes]], chance: random.Random
) -> None:
    raw, starts = joined(of)
    changed = bytearray(raw)
    for _ in range(10):
        changed[chance.randrange(len(changed))] = chance.choice([0, 0x1B, 0x3B, 0x7B, 0xA1, 0xB7, 0xFB, 0xFF])
        points_at_once(bytes(changed), starts)


@pytest.mark.parametrize("items", [[head_item(b"x" * 70_000)], [link_item([-1, 0, 0])]])
def test_items_without_points_are_none(items: list[bytes]) -> None:
    raw, starts = joined([items])
    assert points_at_once(raw, starts) is None
