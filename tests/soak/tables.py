"""What a soak prints: a line for each minute, and tables of ranges of minutes.

Owns the words. Does not own the figures.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from tests.soak.meter import Reading
from tests.soak.verdict import Growth, Minute, percentile

MB: Final = 1e6
RANGE_MINUTES: Final = 10
KINDS_MIN: Final = 0.002
"""A kind with a smaller part of all calls is left out of the tables of durations."""


def line_of(minute: Minute) -> str:
    """One minute."""
    calls = [value for values in minute.latencies.values() for value in values]
    times = f"p50 {_ms(percentile(calls, 0.5))}, p99 {_ms(percentile(calls, 0.99))}" if calls else ""
    return f"minute {minute.at:.1f}: {len(calls)} calls, {times}; {words(minute.reading)}"


def words(reading: Reading) -> str:
    """What a server uses."""
    said = ", ".join(f"{name} {value:,.0f}" for name, value in reading.said.items())
    return (
        f"memory {reading.memory / MB:.1f} MB, {reading.descriptors} descriptors, {reading.threads} threads, "
        f"{reading.processes} processes, directory {reading.directory / MB:.2f} MB; {said}"
    )


def tables(minutes: Sequence[Minute]) -> Iterator[str]:
    """The medians of what was used, and the durations of each kind of call, by ranges of minutes."""
    ranges = [
        (f"{number * RANGE_MINUTES:.0f} to {(number + 1) * RANGE_MINUTES:.0f}", list(group))
        for number, group in groupby(minutes, lambda each: max(0.0, each.at - 0.5) // RANGE_MINUTES)
    ]
    yield "| Minutes | Calls | Memory | Descriptors | Threads | Directory | Store | Actors | p50 | p99 |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name, group in ranges:
        readings = [each.reading for each in group]
        calls = [value for each in group for values in each.latencies.values() for value in values]
        cells = [
            name,
            f"{len(calls):,}",
            f"{statistics.median(each.memory for each in readings) / MB:.1f} MB",
            f"{statistics.median(each.descriptors for each in readings):.0f}",
            f"{statistics.median(each.threads for each in readings):.0f}",
            f"{statistics.median(each.directory for each in readings) / MB:.1f} MB",
            f"{statistics.median(each.said['store'] for each in readings) / MB:.1f} MB",
            f"{statistics.median(each.said['actors'] for each in readings):.0f}",
            _ms(percentile(calls, 0.5)),
            _ms(percentile(calls, 0.99)),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield f"| Kind, p50 / p99 in ms | {' | '.join(name for name, _ in ranges)} |"
    yield f"|---|{'---|' * len(ranges)}"
    total = sum(len(values) for each in minutes for values in each.latencies.values())
    for kind in sorted({kind for each in minutes for kind in each.latencies}):
        found = [[value for each in group for value in each.latencies.get(kind, ())] for _, group in ranges]
        if sum(map(len, found)) >= KINDS_MIN * total:
            cells = [
                f"{1e3 * percentile(values, 0.5):.1f} / {1e3 * percentile(values, 0.99):.0f}"
                if values
                else ""
                for values in found
            ]
            yield f"| {kind} | {' | '.join(cells)} |"


def row_of(growth: Growth) -> str:
    """How one figure has changed."""
    mark = "GROWS" if growth.is_too_much else ""
    return (
        f"{growth.name:45} median {growth.median:16,.4f}  growth {growth.growth:+16,.4f}"
        f"  allowed {growth.allowed:14,.4f}  {mark}"
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms"
