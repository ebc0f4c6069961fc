"""Time series: the points of a device, aggregated into buckets of time.

Owns the meaning of each aggregation of a time series query. Does not own the source of points (any iterable in
ascending time, read once, so a range of a snapshot can be used), the format of times, or the selection of devices.

- **Buckets** are aligned to multiples of the resolution since the epoch, not to the start of the range, so
  that two queries over different ranges agree on every bucket that is inside both. The time of a bucket's point is
  the start of the bucket; the first bucket may therefore begin before the range, but counts no points from there.
  Empty buckets are left out. Without a resolution the range is one bucket at `start_ms`.
- **Numbers.** MAX, MIN, MEDIAN, MEAN, SUM and STD_DEV read true as 1 and false as 0 (so a MEAN is the share of
  reports that were true) and ignore strings; an attribute with only strings is left out. FIRST, LAST, COUNT and
  NONE use every value unchanged.
- **JSON-safe.** NaN and infinities are ignored, and a result whose computation overflows a double is left out.

The points are read in one pass. Since time ascends, only the current bucket is open; apart from it only the answer is
kept in memory, and for MEDIAN the bucket's values. `points_max` bounds both.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from trunkline.actors.devices.aggregates import ACCUMULATORS, Accumulator, Value, as_number
from trunkline.actors.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.values.timestamps import parse_duration

Point = tuple[int, dict[str, Value]]
"""A time in milliseconds, and the values (or aggregates) of attributes at that time."""

AggregationType = Literal[
    "FIRST",
    "LAST",
    "COUNT",
    "MAX",
    "MIN",
    "MEDIAN",
    "MEAN",
    "SUM",
    "STD_DEV",
    "NONE",
    "TIMEATVALUE",
]
Order = Literal["asc", "desc"]


class SeriesError(Invalid, ValueError):
    """An invalid aggregation. The text is a sentence for the caller."""


class SeriesTooLarge(SeriesError):
    """More values than one query may keep at a time. The text says how to request less."""

    type = PayloadTooLarge.type

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the query {problem}; "
            "ask for a shorter range, a coarser resolution, fewer attributes, fewer devices or a lower limit."
        )


FULL = "finds more data than one answer may hold"


def _too_many(points_max: int) -> SeriesTooLarge:
    return SeriesTooLarge(f"needs more than {points_max} values at a time")


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation of the values in a bucket. `value` is the one that TIMEATVALUE compares with, else None."""

    type: AggregationType
    value: Value | None = None


def aggregate(
    points: Iterable[tuple[int, Mapping[str, Value]]],
    *,
    start_ms: int,
    end_ms: int,
    resolution_ms: int | None,
    aggregation: Aggregation,
    attributes: Collection[str] | None,
    limit: int | None,
    order: Order,
    points_max: int,
    json_bytes_max: int | None = None,
    initial: Mapping[str, Value] | None = None,
) -> list[Point]:
    """Aggregate the points from `start_ms` to `end_ms`, both included, and return points in `order` of time.

    `points` must ascend in time (equal times are allowed) and may extend beyond the range. `attributes` are those
    to use, None for all. `resolution_ms` None or 0 gives one point for the whole range; NONE returns the points
    unchanged, whatever the resolution. `limit` is the maximum number of points, taken from the beginning of the
    order: the oldest for "asc", the newest for "desc"; None is no limit.

    TIMEATVALUE counts the milliseconds of each bucket during which an attribute had the value. A value lasts from
    its report to the attribute's next report, at most to `end_ms`; `initial` are the values at `start_ms`. A bucket
    in which the attribute had only other values gets 0, one in which its value is unknown gets nothing. Numbers and
    booleans are different values (1 is not true). If the range extends into the future, the caller passes the
    present as `end_ms`; otherwise the last value would last until the end of the range.

    Raises SeriesTooLarge as soon as more than `points_max` values would be kept, or points whose JSON is certainly
    larger than `json_bytes_max`, and SeriesError for a negative resolution.
    """
    if resolution_ms is not None and resolution_ms < 0:
        raise SeriesError(
            f"resolution: {resolution_ms} is negative; give milliseconds, 0 for the whole range."
        )
    if start_ms > end_ms or limit == 0:
        return []
    names = None if attributes is None else frozenset(attributes)
    selected = _selected(points, end_ms, names)
    found: Iterable[Point]
    if aggregation.type == "TIMEATVALUE":
        durations = _Durations(start_ms, end_ms, resolution_ms or 0, points_max)
        found = _times_at_value(selected, _values_of(initial or {}, names), aggregation.value, durations)
    elif aggregation.type == "NONE":
        found = ((time_ms, data) for time_ms, data in selected if time_ms >= start_ms and data)
    else:
        inside = (point for point in selected if point[0] >= start_ms)
        found = _bucketed(inside, start_ms, resolution_ms or 0, aggregation.type, points_max)
    return _limited(found, limit, order, points_max, json_bytes_max)


def parse_aggregation(value: object, *, field: str = "aggregation") -> Aggregation:
    """Read an aggregation from JSON: its name, or `{type, options}` with `options.value` for TIMEATVALUE."""
    name, options = value, None
    if isinstance(value, dict):
        if not {"type"} <= value.keys() <= {"type", "options"}:
            raise SeriesError(f"{field}: an object has a type and may have options, nothing else.")
        name, options = value["type"], value.get("options")
    if not isinstance(name, str) or name not in get_args(AggregationType):
        shown = repr(name[:40]) if isinstance(name, str) else "this"
        raise SeriesError(f"{field}: {shown} is none; give one of {', '.join(get_args(AggregationType))}.")
    kind = cast("AggregationType", name)
    if kind != "TIMEATVALUE":
        if options:
            raise SeriesError(f"{field}.options: {kind} has no options.")
        return Aggregation(kind)
    if not isinstance(options, dict) or options.keys() != {"value"}:
        raise SeriesError(f"{field}.options: TIMEATVALUE needs exactly one option, the value to look for.")
    target = options["value"]
    if not isinstance(target, str | int | float) or _unsafe(target):
        raise SeriesError(f"{field}.options.value: give a string, a number or a boolean.")
    return Aggregation(kind, target)


def parse_resolution(value: object, *, field: str = "resolution") -> int | None:
    """Read a resolution in whole milliseconds. None, an empty text and 0 give None: the whole range."""
    return None if value is None or value == "" else parse_duration(value, field=field) or None


# -- points --------------------------------------------------------------------------------------------------


def _selected(
    points: Iterable[tuple[int, Mapping[str, Value]]], end_ms: int, names: frozenset[str] | None
) -> Iterator[Point]:
    """Yield the points up to `end_ms`, also those before the start, with only the attributes in `names`."""
    latest_ms = None
    for time_ms, data in points:
        assert latest_ms is None or time_ms >= latest_ms, "points must ascend in time"
        latest_ms = time_ms
        if time_ms > end_ms:
            return
        yield time_ms, _values_of(data, names)


def _values_of(data: Mapping[str, Value], names: frozenset[str] | None) -> dict[str, Value]:
    return {
        name: value for name, value in data.items() if (names is None or name in names) and not _unsafe(value)
    }


def _unsafe(value: Value) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


_POINT_BYTES_MIN = 47
_VALUE_BYTES_MIN = 5
"""The minimal size of a point and of each of its values: `{"time":"...","data":{}},` and `"a":1`."""


def _limited(
    found: Iterable[Point], limit: int | None, order: Order, points_max: int, json_bytes_max: int | None
) -> list[Point]:
    """Return at most `limit` points in order. Checks the bounds while it reads."""
    kept: deque[Point] = deque()
    values = size = 0
    for point in found:
        kept.append(point)
        values += len(point[1])
        if json_bytes_max is not None:
            size += _bytes_min(point)
        if limit is not None and len(kept) > limit:
            dropped = kept.popleft()
            values -= len(dropped[1])
            if json_bytes_max is not None:
                size -= _bytes_min(dropped)
        if values > points_max:
            raise _too_many(points_max)
        if json_bytes_max is not None and size > json_bytes_max:
            raise SeriesTooLarge(FULL)
        if order == "asc" and len(kept) == limit:
            break
    return list(kept) if order == "asc" else list(reversed(kept))


def _bytes_min(point: Point) -> int:
    texts = sum(len(value) for value in point[1].values() if isinstance(value, str))
    return _POINT_BYTES_MIN + _VALUE_BYTES_MIN * len(point[1]) + texts


# -- buckets -------------------------------------------------------------------------------------------------


def _bucketed(
    points: Iterable[Point], start_ms: int, resolution_ms: int, kind: AggregationType, points_max: int
) -> Iterator[Point]:
    make = ACCUMULATORS[kind]
    numeric, keeps_values = kind not in ("FIRST", "LAST", "COUNT"), kind == "MEDIAN"
    bucket_ms, values = start_ms, 0
    cells: dict[str, Accumulator] = {}
    for time_ms, data in points:
        of_ms = time_ms - time_ms % resolution_ms if resolution_ms else start_ms
        if of_ms != bucket_ms:
            yield from _closed(bucket_ms, cells)
            bucket_ms, cells, values = of_ms, {}, 0
        for name, value in data.items():
            number = as_number(value) if numeric else value
            if number is None:
                continue
            if name not in cells:
                cells[name] = make()
            cells[name].add(number)
            values += keeps_values
        if values > points_max:
            raise _too_many(points_max)
    yield from _closed(bucket_ms, cells)


def _closed(bucket_ms: int, cells: dict[str, Accumulator]) -> Iterator[Point]:
    totals = {name: cell.total() for name, cell in cells.items()}
    data = {name: total for name, total in totals.items() if not _unsafe(total)}
    if data:
        yield bucket_ms, data


# -- time at value -------------------------------------------------------------------------------------------


def _times_at_value(
    points: Iterable[Point], initial: Mapping[str, Value], target: Value | None, durations: _Durations
) -> list[Point]:
    # Only whether a value equals the target is kept, so a repeated report ends no interval.
    held = {name: (_same(value, target), durations.start_ms) for name, value in initial.items()}
    for time_ms, data in points:
        now_ms = max(time_ms, durations.start_ms)
        for name, value in data.items():
            matches = _same(value, target)
            before = held.get(name)
            if before is None or before[0] != matches:
                if before is not None:
                    durations.add(name, *before, now_ms)
                held[name] = (matches, now_ms)
    for name, (matches, since_ms) in held.items():
        durations.add(name, matches, since_ms, durations.end_ms)
    return durations.points()


def _same(value: Value, target: Value | None) -> bool:
    return value == target and isinstance(value, bool) == isinstance(target, bool)


class _Durations:
    """Milliseconds at the target value, for each bucket and attribute."""

    __slots__ = ("_buckets", "_points_max", "_resolution_ms", "_values", "end_ms", "start_ms")

    def __init__(self, start_ms: int, end_ms: int, resolution_ms: int, points_max: int) -> None:
        self.start_ms = start_ms
        self.end_ms = end_ms
        self._resolution_ms = resolution_ms
        self._points_max = points_max
        self._buckets: dict[int, dict[str, int]] = {}
        self._values = 0

    def add(self, name: str, matches: bool, from_ms: int, to_ms: int) -> None:
        """Count an interval, split at the boundaries of buckets."""
        while from_ms < to_ms:
            if self._resolution_ms:
                bucket_ms = from_ms - from_ms % self._resolution_ms
                next_ms = min(bucket_ms + self._resolution_ms, to_ms)
            else:
                bucket_ms, next_ms = self.start_ms, to_ms
            data = self._buckets.setdefault(bucket_ms, {})
            if name not in data:
                self._values += 1
                if self._values > self._points_max:
                    raise _too_many(self._points_max)
            data[name] = data.get(name, 0) + (next_ms - from_ms if matches else 0)
            from_ms = next_ms

    def points(self) -> list[Point]:
        return [(bucket_ms, dict(data)) for bucket_ms, data in sorted(self._buckets.items())]
