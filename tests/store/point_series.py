"""Rows of points for the tests of columns: of every type and presence, and series as sensors send them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from trunkline.store.columns import MERGES, REMOVES, REPLACES, Row

_ints = (
    st.integers() | st.integers(-100, 100) | st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1, 2**63])
)
_decimals = st.integers(-10_000, 10_000).map(lambda number: number / 100)
_nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
)
_KINDS = (
    _ints,
    st.integers(-(2**53), 2**53),
    _decimals,
    st.floats(),
    st.booleans(),
    st.text(max_size=8),
    _decimals | st.integers(-(2**53), 2**53),
    st.none() | st.booleans() | _ints | st.floats() | st.text(max_size=3) | _nested,
)


@st.composite
def rows_of_points(
    draw: st.DrawFn, rows_min: int = 0, rows_max: int = 70, *, marked: bool = True
) -> list[Row]:
    """Draw rows with ascending times, each attribute of one kind of values, in all or in some rows."""
    pools = {
        number: (draw(st.lists(kind, min_size=1, max_size=6)), draw(st.sampled_from([1.0, 0.9, 0.3])))
        for number, kind in draw(
            st.dictionaries(st.integers(-3, 40), st.sampled_from(_KINDS), max_size=5)
        ).items()
    }
    count = draw(st.integers(rows_min, rows_max))
    chance = draw(st.randoms(use_true_random=False))
    gap = draw(st.sampled_from([1, 3, 1_000, 2**40]))
    marks = draw(st.sampled_from([[MERGES], [MERGES, REPLACES, REMOVES]])) if marked else [MERGES]
    time = draw(st.integers(-5, 20) | st.just(1_700_000_000_000))
    rows: list[Row] = []
    for _ in range(count):
        mark = chance.choice(marks)
        point = {
            number: chance.choice(pool)
            for number, (pool, presence) in pools.items()
            if mark != REMOVES and chance.random() < presence
        }
        rows.append((time, point, mark))
        time += chance.randint(1, gap)
    return rows


def random_series(count: int) -> list[Row]:
    """Three numbers with two decimals that have nothing to do with those before them, about once a second."""
    chance = random.Random(1)
    return [
        (_jittered(index, chance), {number: round(chance.random() * 100, 2) for number in range(3)}, MERGES)
        for index in range(count)
    ]


def slow_series(count: int) -> list[Row]:
    """Three numbers with two decimals that change slowly, about once a second."""
    chance = random.Random(1)
    levels = [20.0, 50.0, 1_000.0]
    rows: list[Row] = []
    for index in range(count):
        levels = [level + chance.gauss(0, 0.05) for level in levels]
        point = {number: round(level, 2) for number, level in enumerate(levels)}
        rows.append((_jittered(index, chance), point, MERGES))
    return rows


def shown(rows: Iterable[tuple[int, Mapping[int, Any]] | Row]) -> list[str]:
    """The rows as texts, which differ where a value, its type or a bit of a float differs."""
    return [repr((time, sorted(point.items()), *mark)) for time, point, *mark in rows]


def _jittered(index: int, chance: random.Random) -> int:
    return 1_700_000_000_000 + 1_000 * index + chance.randrange(-50, 50)
