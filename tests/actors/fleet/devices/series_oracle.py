"""The oracle of time series: it looks at all points at once, row by row, with Python's standard library.

Also turns the rows of a test into blocks.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice

from trunkline.actors.fleet.devices.queries.samples import Value
from trunkline.actors.fleet.devices.queries.series_terms import AggregationType, Point
from trunkline.store.columns import MERGES, Points

Rows = list[tuple[int, dict[str, Value]]]

NAMES = {1: "a", 2: "b", 3: "c", 4: "d"}
NUMBERS = {name: number for number, name in NAMES.items()}


def dense(seed: int, length: int, time_max: int) -> Rows:
    """Up to so many rows at random times: most have a number of few different ones, some a text or a boolean."""
    dice = random.Random(seed)
    choices: list[Value] = [dice.choice([1, 2, -3, 4.5, 1.0, -2.0, 0.1]) for _ in range(9)]
    choices += dice.choice([[], ["x", True]])
    rows: dict[int, dict[str, Value]] = {}
    for _ in range(length):
        names = dice.choice(["a", "ab", "ab", "b"])
        rows[dice.randint(0, time_max)] = {name: dice.choice(choices) for name in names}
    return sorted(rows.items())


def blocks(rows: Iterable[tuple[int, Mapping[str, Value]]], cuts: Sequence[int]) -> Iterator[Points]:
    """The rows as blocks of these lengths in turn (without any: one block of all)."""
    numbered = ((time_ms, {NUMBERS[name]: data[name] for name in data}, MERGES) for time_ms, data in rows)
    for length in cycle(cuts or [None]):
        part = list(islice(numbered, length))
        if not part:
            return
        yield Points.of(part)


def naive_value(kind: AggregationType, found: list[Value]) -> Value | None:
    if kind == "FIRST":
        return found[0]
    if kind == "LAST":
        return found[-1]
    if kind == "COUNT":
        return len(found)
    sums = [float(value) for value in found if not isinstance(value, str)]
    if not sums:
        return None
    naive: dict[str, Callable[[list[float]], float]] = {
        "MAX": max,
        "MIN": min,
        "MEDIAN": statistics.median,
        "MEAN": statistics.fmean,
        "SUM": math.fsum,
        "STD_DEV": statistics.pstdev,
    }
    return naive[kind](sums)


def naive_buckets(points: Rows, start_ms: int, end_ms: int, resolution_ms: int | None) -> dict[int, Rows]:
    buckets: dict[int, Rows] = {}
    for time_ms, data in points:
        if start_ms <= time_ms <= end_ms:
            bucket_ms = time_ms // resolution_ms * resolution_ms if resolution_ms else start_ms
            buckets.setdefault(bucket_ms, []).append((time_ms, data))
    return buckets


def naive(
    points: Rows, kind: AggregationType, start_ms: int, end_ms: int, resolution_ms: int | None
) -> list[Point]:
    answer: list[Point] = []
    for bucket_ms, inside in naive_buckets(points, start_ms, end_ms, resolution_ms).items():
        names = {name for _, data in inside for name in data}
        totals = {
            name: naive_value(kind, [data[name] for _, data in inside if name in data]) for name in names
        }
        known = {name: total for name, total in totals.items() if total is not None}
        if known:
            answer.append((bucket_ms, known))
    return sorted(answer, key=lambda point: point[0])
