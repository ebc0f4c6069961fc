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

The points are read in one pass, as columns: all complete buckets of a chunk are aggregated at once. Since time
ascends, only one bucket is open between two chunks; apart from it only the answer is kept in memory, and for MEDIAN
the bucket's values. `points_max` bounds both. How a bucket is cut into chunks does not change its result.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from trunkline.actors.fleet.devices.queries.aggregates import ACCUMULATORS, Accumulator
from trunkline.actors.fleet.devices.queries.samples import Times, Value, by_time, chunks, selected
from trunkline.actors.fleet.devices.queries.series_terms import (
    FULL,
    Aggregation,
    Order,
    Point,
    SeriesError,
    SeriesTooLarge,
    too_many,
)
from trunkline.actors.fleet.devices.queries.time_at_value import times_at_value
from trunkline.store.columns import Points


def aggregate(
    points: Iterable[Points],
    *,
    names: Mapping[int, str],
    start_ms: int,
    end_ms: int,
    resolution_ms: int | None,
    aggregation: Aggregation,
    limit: int | None,
    order: Order,
    points_max: int,
    json_bytes_max: int | None = None,
    initial: Mapping[str, Value] | None = None,
) -> list[Point]:
    """Aggregate the points from `start_ms` to `end_ms`, both included, and return points in `order` of time.

    `points` must ascend in time (for NONE they must be in `order`), without marks, and may extend beyond the range.
    `names` are the attributes to use, by their numbers. `resolution_ms` None or 0 gives one point for the whole range;
    NONE returns the points unchanged, whatever the resolution. `limit` is the maximum number of points, taken from the
    beginning of the order: the oldest for "asc", the newest for "desc"; None is no limit.

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
    if aggregation.type == "NONE":
        cut = (part.between(start_ms, end_ms) for part in points)
        rows = _rows(cut, names, reverse=order == "desc")
        return limited(rows, limit, "asc", points_max, json_bytes_max)
    found: Iterable[Point]
    if aggregation.type == "TIMEATVALUE":
        found = times_at_value(
            chunks(_up_to(points, end_ms)),
            names,
            initial or {},
            aggregation.value,
            start_ms=start_ms,
            end_ms=end_ms,
            resolution_ms=resolution_ms or 0,
            limit=limit,
            order=order,
            values_max=points_max,
        )
    else:
        origin_ms, width_ms = (0, resolution_ms) if resolution_ms else (start_ms, end_ms - start_ms + 1)
        make = ACCUMULATORS[aggregation.type]
        inside = within(points, start_ms, end_ms)
        found = bucketed(inside, names, origin_ms, width_ms, make, points_max)
    return limited(found, limit, order, points_max, json_bytes_max)


def within(points: Iterable[Points], start_ms: int, end_ms: int) -> Iterator[Points]:
    """Yield the points from `start_ms` to `end_ms`, both included, and read no further. Short chunks are joined."""
    return chunks(part.between(start_ms, end_ms) for part in _up_to(points, end_ms))


def _up_to(points: Iterable[Points], end_ms: int) -> Iterator[Points]:
    for part in points:
        yield part.between(0, end_ms)
        if len(part) and part.times[-1] >= end_ms:
            return


def _rows(points: Iterable[Points], names: Mapping[int, str], *, reverse: bool) -> Iterator[Point]:
    for part in points:
        columns = selected(part, names, numeric=False)
        rows = by_time((name, samples.times.tolist(), samples.tolist()) for name, samples in columns)
        yield from reversed(rows) if reverse else rows


_POINT_BYTES_MIN = 47
_VALUE_BYTES_MIN = 5
"""The minimal size of a point and of each of its values: `{"time":"...","data":{}},` and `"a":1`."""


def limited(
    found: Iterable[Point], limit: int | None, order: Order, points_max: int, json_bytes_max: int | None
) -> list[Point]:
    """Return at most `limit` points in order. Checks the bounds while it reads."""
    kept: deque[Point] = deque()
    values = size = 0
    bytes_max = math.inf if json_bytes_max is None else json_bytes_max
    for point in found:
        kept.append(point)
        values += len(point[1])
        size += _bytes_min(point)
        if limit is not None and len(kept) > limit:
            dropped = kept.popleft()
            values -= len(dropped[1])
            size -= _bytes_min(dropped)
        if values > points_max:
            raise too_many(points_max)
        if size > bytes_max:
            raise SeriesTooLarge(FULL)
        if order == "asc" and len(kept) == limit:
            break
    return list(kept) if order == "asc" else list(reversed(kept))


def _bytes_min(point: Point) -> int:
    size = _POINT_BYTES_MIN + _VALUE_BYTES_MIN * len(point[1])
    for value in point[1].values():
        if isinstance(value, str):
            size += len(value)
    return size


# -- buckets -------------------------------------------------------------------------------------------------


def bucketed(
    points: Iterable[Points],
    names: Mapping[int, str],
    origin_ms: int,
    width_ms: int,
    make: type[Accumulator],
    points_max: int,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the totals of each bucket, by the time at which it begins: a multiple of the width after the origin."""
    open_ms = origin_ms
    cells: dict[str, Accumulator] = {}
    lengths: Counter[int] = Counter()
    for part in points:
        first_ms, last_ms = _starts_ms(part.times[[0, -1]], origin_ms, width_ms).tolist()
        if first_ms != open_ms:
            yield from _closed(open_ms, cells)
            open_ms, cells = first_ms, {}
        later: dict[str, Accumulator] = {}
        complete: list[tuple[str, list[int], list[Any]]] = []
        for name, samples in selected(part, names, numeric=make.numeric):
            starts_ms = _starts_ms(samples.times, origin_ms, width_ms)
            starts = np.flatnonzero(np.diff(starts_ms, prepend=starts_ms[0] - 1))
            buckets: list[int] = starts_ms[starts].tolist()
            bounds = [*starts.tolist(), len(samples)]
            # Between `low` and `high` are the buckets that lie in this part as a whole.
            low = 1 if buckets[0] == open_ms else 0
            high = len(buckets) - 1 if buckets[-1] == last_ms != open_ms else len(buckets)
            if low:
                cells.setdefault(name, make()).add(samples.cut(0, bounds[1]))
            if high < len(buckets):
                later.setdefault(name, make()).add(samples.cut(bounds[high], bounds[-1]))
            if low < high:
                inner = samples.cut(bounds[low], bounds[high])
                totals = make.totals(inner, starts[low:high] - bounds[low])
                complete.append((name, *_finite(buckets[low:high], totals)))
            if make.keeps_samples:
                for bucket, (start, end) in zip(buckets, pairwise(bounds), strict=True):
                    lengths[bucket] += end - start
        if lengths:
            if max(lengths.values()) > points_max:
                raise too_many(points_max)
            lengths = Counter({last_ms: lengths[last_ms]})
        if last_ms != open_ms:
            yield from _closed(open_ms, cells)
            yield from by_time(complete)
            open_ms, cells = last_ms, later
    yield from _closed(open_ms, cells)


def _starts_ms(times: Times, origin_ms: int, width_ms: int) -> Times:
    """The times at which the buckets begin that these times are in."""
    return (times - origin_ms) // width_ms * width_ms + origin_ms


def _closed(bucket_ms: int, cells: dict[str, Accumulator]) -> Iterator[tuple[int, dict[str, Any]]]:
    return iter(by_time((name, *_finite([bucket_ms], [cell.total()])) for name, cell in cells.items()))


def _finite(times: list[int], totals: list[Any]) -> tuple[list[int], list[Any]]:
    """Leave out the totals whose computation overflowed."""
    if not any(map(_is_unsafe, totals)):
        return times, totals
    kept = [place for place, total in enumerate(totals) if not _is_unsafe(total)]
    return [times[place] for place in kept], [totals[place] for place in kept]


def _is_unsafe(total: Any) -> bool:
    return isinstance(total, float) and not math.isfinite(total)
