"""Measures how many points a second a time series query aggregates on one core. Run it in the checkout:

    python -m tests.bench.series_rate [--points 2000000] [--block 1024] [--columns 1] [--resolution-ms 60000] [--noise]

The points of one device, one a second, lie in encoded blocks, as the store keeps them after flushing. For each
aggregation the blocks are decoded and one attribute is aggregated. The rate by rows is measured beside it: points as
one CBOR map each, decoded and aggregated one by one with the functions of Python's standard library. All rates are of
processor time, so other programs on the machine disturb them less.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from typing import Any, get_args

from tests.actors.fleet.devices.series_oracle import naive
from trunkline.actors.fleet.devices.queries.series import aggregate
from trunkline.actors.fleet.devices.queries.series_terms import Aggregation, AggregationType
from trunkline.store.codec import decode as decode_row
from trunkline.store.codec import encode_numbered as encode_row
from trunkline.store.column_codec import decode, encode
from trunkline.store.columns import MERGES, Points

FIRST_MS = 1_700_000_000_000
ROWS_MAX = 200_000
"""Points of the measurement by rows, which is slow."""


def rows(count: int, columns: int, *, noise: bool) -> Iterator[tuple[int, dict[int, Any]]]:
    """Points of values with two decimals that change slowly; with noise, at irregular times and without any order."""
    dice = random.Random(1)
    values = [20.0] * columns
    for number in range(count):
        late_ms = dice.randrange(200) if noise else 0
        values = [dice.uniform(0, 100) if noise else value + dice.gauss(0, 0.05) for value in values]
        yield (
            FIRST_MS + number * 1000 + late_ms,
            {column: round(value, 2) for column, value in enumerate(values, start=1)},
        )


def blocks(count: int, columns: int, length: int, *, noise: bool) -> list[bytes]:
    """The points as encoded blocks."""
    found: list[bytes] = []
    waiting: list[tuple[int, dict[int, Any], int]] = []
    for time_ms, point in rows(count, columns, noise=noise):
        waiting.append((time_ms, point, MERGES))
        if len(waiting) == length:
            found.append(encode(Points.of(waiting)))
            waiting = []
    if waiting:
        found.append(encode(Points.of(waiting)))
    return found


def by_column(stored: list[bytes], count: int, kind: AggregationType, resolution_ms: int) -> float:
    """Points a second, decoding of the blocks included."""
    began_s = time.process_time()
    found = aggregate(
        (decode(raw, {1}) for raw in stored),
        names={1: "a"},
        start_ms=FIRST_MS,
        end_ms=FIRST_MS + count * 1000,
        resolution_ms=resolution_ms,
        aggregation=Aggregation(kind, 20.0),
        limit=None,
        order="asc",
        points_max=count,
    )
    elapsed_s = time.process_time() - began_s
    assert len(found) >= count * 1000 // resolution_ms or kind == "NONE"
    return count / elapsed_s


def by_row(stored: list[tuple[int, bytes]], kind: AggregationType, resolution_ms: int) -> float:
    """Points a second, decoding of the maps included."""
    began_s = time.process_time()
    points = [(time_ms, {"a": decode_row(raw)[1]}) for time_ms, raw in stored]
    naive(points, kind, FIRST_MS, FIRST_MS + len(stored) * 1000, resolution_ms)
    return len(stored) / (time.process_time() - began_s)


def write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(arguments: list[str]) -> None:
    """Print a line for each aggregation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--block", type=int, default=1024, help="rows of a block")
    parser.add_argument("--columns", type=int, default=1, help="columns of a block, of which one is read")
    parser.add_argument("--resolution-ms", type=int, default=60_000)
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many rounds counts")
    parser.add_argument("--noise", action="store_true", help="irregular times and values")
    given = parser.parse_args(arguments)
    stored = blocks(given.points, given.columns, given.block, noise=given.noise)
    maps = [
        (time_ms, encode_row(point))
        for time_ms, point in rows(min(given.points, ROWS_MAX), given.columns, noise=given.noise)
    ]
    size = sum(map(len, stored)) / given.points
    write(f"{given.points} points in {len(stored)} blocks, {size:.1f} bytes a point")
    began_s = time.process_time()
    for raw in stored:
        assert len(decode(raw, {1}).times)
    write(f"decoding alone: {given.points / (time.process_time() - began_s):,.0f} points/s")
    write(f"{'':12}{'by column, points/s':>22}{'by row, points/s':>22}")
    for kind in get_args(AggregationType):
        rounds = range(given.repeat)
        column = max(by_column(stored, given.points, kind, given.resolution_ms) for _ in rounds)
        shown = (
            "" if kind in ("NONE", "TIMEATVALUE") else f"{by_row(maps, kind, given.resolution_ms):>22,.0f}"
        )
        write(f"{kind:12}{column:>22,.0f}{shown}")


if __name__ == "__main__":
    main(sys.argv[1:])
