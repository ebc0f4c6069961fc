"""The states of several devices taken together: one series of buckets, or one value, for each attribute.

Owns what it means that devices are taken together: an aggregation of a bucket reads the samples of all of them, as if
one device had reported them. FIRST and LAST are by time. For TIMEATVALUE the times of the devices are added. Buckets
and numbers are as in `series.py`. Pure reads of a snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import TimeRange
from trunkline.actors.fleet.devices.queries.aggregates import ACCUMULATORS, Accumulator
from trunkline.actors.fleet.devices.queries.samples import Samples, Value, selected
from trunkline.actors.fleet.devices.queries.series import aggregate, within
from trunkline.actors.fleet.devices.queries.series_terms import Aggregation, too_many
from trunkline.actors.fleet.devices.record.coercion import COERCE
from trunkline.actors.fleet.devices.record.reads import Opened
from trunkline.actors.fleet.devices.state.history import last_values, oldest_state_ms
from trunkline.store.columns import Column

Series = dict[str, dict[int, Value]]
"""By attribute and by the time at which a bucket begins, in ms: the value of the bucket."""


class Asked(NamedTuple):
    """The attributes, the range, the width of a bucket in ms (0 for the whole range), and the aggregation.

    `order` and `limit` are for who shows the series.
    """

    attributes: Sequence[str]
    span: TimeRange
    resolution_ms: int
    aggregation: Aggregation
    now_ms: int
    order: str = "asc"
    limit: int | None = None


def newest(reading: Reading, devices: Sequence[Opened], asked: Asked) -> dict[str, list[tuple[int, Value]]]:
    """By attribute: the time in ms and the value of the newest report of each device until the end of the range."""
    oldest_ms = oldest_state_ms(reading, asked.now_ms)
    found: dict[str, list[tuple[int, Value]]] = {}
    for device in devices:
        names = _names(device, asked)
        values = last_values(reading.snapshot, device.id, (0, asked.span.end_ms), names, oldest_ms)
        for number, (time_ms, value) in values.items():
            found.setdefault(names[number], []).append((time_ms, value))
    return found


def together(values: Sequence[tuple[int, Value]], aggregation: Aggregation) -> Value | None:
    """One value of several, each with its time in ms. None if there is none, as of texts for a MEAN."""
    ordered = sorted(values, key=lambda each: each[0])
    times = np.array([time_ms for time_ms, _ in ordered], np.int64)
    make = ACCUMULATORS[aggregation.type]
    samples = Samples.of(times, Column.of([value for _, value in ordered]), numeric=make.numeric)
    if not len(samples):
        return None
    accumulator = make()
    accumulator.add(samples)
    return _safe(accumulator.total())


def combine(reading: Reading, devices: Sequence[Opened], asked: Asked) -> Series:
    """The series of the devices together. Raises `SeriesTooLarge`."""
    if asked.aggregation.type == "TIMEATVALUE":
        return _times_at_value(reading, devices, asked)
    if asked.aggregation.type in ("FIRST", "LAST"):
        return _first_or_last(reading, devices, asked)
    make, most = ACCUMULATORS[asked.aggregation.type], reading.limits.time_series_values_max
    cells: dict[str, dict[int, Accumulator]] = {}
    kept = 0
    for name, bucket_ms, samples in _pieces(reading, devices, asked, numeric=make.numeric):
        buckets = cells.setdefault(name, {})
        is_new = bucket_ms not in buckets
        kept += len(samples) if make.keeps_samples else is_new
        if kept > most:
            raise too_many(most)
        if is_new:
            buckets[bucket_ms] = make()
        buckets[bucket_ms].add(samples)
    totals = {
        name: {bucket_ms: _safe(cell.total()) for bucket_ms, cell in sorted(buckets.items())}
        for name, buckets in cells.items()
    }
    return {
        name: {bucket_ms: value for bucket_ms, value in buckets.items() if value is not None}
        for name, buckets in totals.items()
    }


def _first_or_last(reading: Reading, devices: Sequence[Opened], asked: Asked) -> Series:
    is_last, most = asked.aggregation.type == "LAST", reading.limits.time_series_values_max
    found: dict[str, dict[int, tuple[int, Value]]] = {}
    kept = 0
    for name, bucket_ms, samples in _pieces(reading, devices, asked, numeric=False):
        place = -1 if is_last else 0
        time_ms, value = int(samples.times[place]), samples.tolist()[place]
        buckets = found.setdefault(name, {})
        old = buckets.get(bucket_ms)
        if old is None:
            kept += 1
            if kept > most:
                raise too_many(most)
        if old is None or (time_ms >= old[0] if is_last else time_ms < old[0]):
            buckets[bucket_ms] = time_ms, value
    return {
        name: {bucket_ms: value for bucket_ms, (_, value) in sorted(buckets.items())}
        for name, buckets in found.items()
    }


def _pieces(
    reading: Reading, devices: Sequence[Opened], asked: Asked, *, numeric: bool
) -> Iterator[tuple[str, int, Samples]]:
    """Yield the samples of each device, cut at the buckets, with the attribute and the beginning of the bucket."""
    span, low_ms = asked.span, _low_ms(reading, asked)
    if low_ms > span.end_ms:
        return
    for device in devices:
        names = _names(device, asked)
        points = reading.snapshot.points(device.id, low_ms, span.end_ms, numbers=names)
        for part in within(points, low_ms, span.end_ms):
            for name, samples in selected(part, names, numeric=numeric):
                if not asked.resolution_ms:
                    yield name, span.start_ms, samples
                    continue
                starts_ms = samples.times // asked.resolution_ms * asked.resolution_ms
                starts = np.flatnonzero(np.diff(starts_ms, prepend=starts_ms[0] - 1)).tolist()
                for low, high in pairwise([*starts, len(samples)]):
                    yield name, int(starts_ms[low]), samples.cut(low, high)


def _times_at_value(reading: Reading, devices: Sequence[Opened], asked: Asked) -> Series:
    span, oldest_ms = asked.span, oldest_state_ms(reading, asked.now_ms)
    low_ms, most = max(span.start_ms, oldest_ms), reading.limits.time_series_values_max
    end_ms = min(span.end_ms, asked.now_ms)
    found: Series = {}
    for device in devices:
        for number, name in _names(device, asked).items():
            target = _target(device, name, asked.aggregation.value)
            if target is None:
                continue
            before = last_values(reading.snapshot, device.id, (0, span.start_ms - 1), [number], oldest_ms)
            points = reading.snapshot.points(device.id, low_ms, end_ms, numbers=[number])
            times = aggregate(
                points if low_ms <= end_ms else (),
                names={number: name},
                start_ms=span.start_ms,
                end_ms=end_ms,
                resolution_ms=asked.resolution_ms,
                aggregation=Aggregation("TIMEATVALUE", target),
                limit=None,
                order="asc",
                points_max=most,
                initial={name: before[number][1]} if number in before else None,
            )
            buckets = found.setdefault(name, {})
            for bucket_ms, data in times:
                buckets[bucket_ms] = buckets.get(bucket_ms, 0) + data[name]  # type: ignore[operator]
            if sum(map(len, found.values())) > most:
                raise too_many(most)
    return {name: dict(sorted(buckets.items())) for name, buckets in found.items()}


def _target(device: Opened, name: str, value: Value | None) -> Value | None:
    """The value to look for, as the attribute has it; None if it never has it."""
    try:
        return COERCE[device.attributes.find(name)["dataType"]](name, value)
    except Invalid:
        return None


def _names(device: Opened, asked: Asked) -> dict[int, str]:
    wanted = set(asked.attributes)
    return {number: name for number, name in device.attributes.names.items() if name in wanted}


def _low_ms(reading: Reading, asked: Asked) -> int:
    return max(asked.span.start_ms, oldest_state_ms(reading, asked.now_ms))


def _safe(value: Any) -> Value | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
