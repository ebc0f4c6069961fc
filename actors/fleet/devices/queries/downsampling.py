"""Downsampling: raw points reduced to as many as a chart can show, for each attribute of a device.

Owns the meaning of each method. `points` is the most that an attribute gets; one with fewer samples keeps them all,
except that MIN, MAX and MEAN give a value for each bucket.

- **LTTB** keeps the first, the last, and of each bucket of equally many samples the one that forms the largest
  triangle with its neighbours.
- **M4** keeps the first, the last, the smallest and the largest sample of each of `points / 4` buckets of time.
- **MIN**, **MAX** and **MEAN** give one value for each of `points` buckets of time, at the beginning of the bucket.

Buckets of time are equally long, in whole milliseconds, and begin at the start of the range. As in numeric
aggregations true is 1, and texts, NaN and infinities are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from trunkline.actors.fleet.devices.queries.aggregates import ACCUMULATORS, FourOfEach
from trunkline.actors.fleet.devices.queries.measurement_messages import DownsamplingMethod
from trunkline.actors.fleet.devices.queries.samples import Places, Samples, Value, by_time, joined, selected
from trunkline.actors.fleet.devices.queries.series import bucketed, limited, within
from trunkline.actors.fleet.devices.queries.series_terms import Order, Point, too_many
from trunkline.store.columns import Points

POINTS_MIN: Final[dict[DownsamplingMethod, int]] = {"LTTB": 2, "M4": 4, "MIN": 2, "MAX": 2, "MEAN": 2}


def downsample(
    points: Iterable[Points],
    *,
    names: Mapping[int, str],
    start_ms: int,
    end_ms: int,
    method: DownsamplingMethod,
    count: int,
    order: Order,
    points_max: int,
    json_bytes_max: int | None = None,
) -> list[Point]:
    """Reduce the points from `start_ms` to `end_ms`, both included, and return them in `order` of time.

    `points` must ascend in time, without marks. `names` are the attributes to use, by their numbers; each gets at most
    `count` values, so a point has the attributes of which it is kept. LTTB keeps all samples of a device in memory,
    the other methods only what they return.

    Raises SeriesTooLarge as soon as more than `points_max` values would be kept, or points whose JSON is certainly
    larger than `json_bytes_max`.
    """
    if start_ms > end_ms:
        return []
    inside = within(points, start_ms, end_ms)
    span_ms = end_ms - start_ms + 1
    found: Iterable[Point]
    if method == "LTTB":
        found = _largest_triangles(inside, names, count, points_max)
    elif method == "M4":
        width_ms = -(-span_ms // (count // 4))
        found = _flat(bucketed(inside, names, start_ms, width_ms, FourOfEach, points_max))
    else:
        width_ms = -(-span_ms // count)
        found = bucketed(inside, names, start_ms, width_ms, ACCUMULATORS[method], points_max)
    return limited(found, None, order, points_max, json_bytes_max)


def _flat(buckets: Iterable[tuple[int, dict[str, list[tuple[int, Value]]]]]) -> Iterator[Point]:
    """Points from the kept samples of each bucket."""
    for _, data in buckets:
        yield from by_time(
            (name, [time_ms for time_ms, _ in pairs], [value for _, value in pairs])
            for name, pairs in data.items()
        )


def _largest_triangles(
    points: Iterable[Points], names: Mapping[int, str], count: int, values_max: int
) -> list[Point]:
    parts: dict[str, list[Samples]] = {}
    values = 0
    for part in points:
        for name, samples in selected(part, names, numeric=True):
            values += len(samples)
            if values > values_max:
                raise too_many(values_max)
            parts.setdefault(name, []).append(samples)
    kept = ((name, lttb(joined(found), count)) for name, found in parts.items())
    return by_time((name, samples.times.tolist(), samples.tolist()) for name, samples in kept)


def lttb(samples: Samples, count: int) -> Samples:
    """Keep `count` samples, at least 2, by largest triangle three buckets.

    Steinarsson 2013, "Downsampling time series for visual representation", section 4.2: the samples between the first
    and the last are cut into `count - 2` buckets of equally many. From the left, each bucket keeps the sample that
    forms the largest triangle with the sample kept before it and the mean of the next bucket; of equal ones the first.
    """
    length = len(samples)
    if length <= count:
        return samples
    with np.errstate(over="ignore", invalid="ignore"):
        return samples.at(_kept(samples, count))


def _kept(samples: Samples, count: int) -> Places:
    length = len(samples)
    x = (samples.times - samples.times[0]).astype(np.float64)
    y = samples.floats()
    starts = np.arange(count - 1) * (length - 2) // max(count - 2, 1) + 1
    lengths = np.diff(starts, append=length)
    mean_x, mean_y = np.add.reduceat(x, starts) / lengths, np.add.reduceat(y, starts) / lengths
    places = np.zeros(count, np.intp)
    places[-1] = length - 1
    bounds = starts.tolist()
    for bucket in range(count - 2):
        low, high = bounds[bucket], bounds[bucket + 1]
        from_x, from_y = x[places[bucket]], y[places[bucket]]
        to_x, to_y = mean_x[bucket + 1] - from_x, mean_y[bucket + 1] - from_y
        twice_areas = np.abs(to_x * (y[low:high] - from_y) - to_y * (x[low:high] - from_x))
        places[bucket + 1] = low + int(twice_areas.argmax())
    return places
