"""Queries over the states of many devices: last values and time series. Pure reads of a snapshot."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import iso, resolve_range
from trunkline.actors.fleet.devices.queries.downsampling import POINTS_MIN, downsample
from trunkline.actors.fleet.devices.queries.measurement_messages import (
    DownsamplingMethod,
    QueryLastValues,
    QueryTimeSeries,
)
from trunkline.actors.fleet.devices.queries.selection import select
from trunkline.actors.fleet.devices.queries.series import aggregate
from trunkline.actors.fleet.devices.queries.series_terms import (
    FULL,
    SeriesTooLarge,
    parse_aggregation,
    parse_resolution,
)
from trunkline.actors.fleet.devices.record.reads import tags_as_object
from trunkline.actors.fleet.devices.state.history import (
    composite_span,
    last_values,
    oldest_state_ms,
    text_length,
)


def query_last_values(reading: Reading, message: QueryLastValues) -> dict[str, Any]:
    """Return `{device id: {time, data}}` for each device that has a value of the attribute (default: of any)."""
    snapshot = reading.snapshot
    reading.check_time(is_long=True)
    body = message.body
    devices = select(
        reading,
        message.application,
        body.device_ids,
        body.device_tags,
        body.device_query,
        default_all=True,
        reach=message.reach,
    )
    span = composite_span(1, body.end, message.now_ms)
    oldest_ms = oldest_state_ms(reading, message.now_ms)
    answer: dict[str, Any] = {}
    size = reading.answer_size()
    for device in devices:
        names = device.attributes.names
        if body.attribute is not msgspec.UNSET:
            number = device.attributes.number(body.attribute)
            names = {} if number is None else {number: body.attribute}
        values = last_values(snapshot, device.id, span, names, oldest_ms)
        if values:
            newest_ms = max(time_ms for time_ms, _ in values.values())
            data = {
                names[number]: value for number, (time_ms, value) in values.items() if time_ms == newest_ms
            }
            size.add(text_length(data.values()))
            answer[device.id.hex()] = {"time": iso(newest_ms), "data": data}
    return answer


def query_time_series(reading: Reading, message: QueryTimeSeries) -> dict[str, Any]:
    """Return the points of each device, raw or aggregated. Raises `SeriesTooLarge` over `time_series_bytes_max`."""
    snapshot = reading.snapshot
    reading.check_time(is_long=True)
    body = message.body
    span = resolve_range(
        message.now_ms,
        start=_given(body.start),
        end=body.end,
        duration=_given(body.duration),
        default_duration=86_400_000,
    )
    oldest_ms = oldest_state_ms(reading, message.now_ms)
    aggregation = parse_aggregation(msgspec.to_builtins(body.aggregation))
    resolution_ms = parse_resolution(_given(body.resolution))
    limit = _limit(_given(body.limit))
    chosen = _method(message, reading.limits.downsampled_points_max)
    attributes = None if body.attributes is msgspec.UNSET else frozenset(body.attributes)
    devices = select(
        reading,
        message.application,
        body.device_ids,
        body.device_tags,
        body.device_query,
        default_all=True,
        reach=message.reach,
    )
    shown: dict[str, Any] = {}
    size = 0
    for device in devices:
        names = {
            number: name
            for number, name in device.attributes.names.items()
            if attributes is None or name in attributes
        }
        initial = {}
        if aggregation.type == "TIMEATVALUE":
            before = last_values(snapshot, device.id, (0, span.start_ms - 1), names, oldest_ms)
            initial = {names[number]: value for number, (_, value) in before.items()}
        # Only raw points may be read from the newest on; all else takes what it reads in order of time.
        reverse = aggregation.type == "NONE" and chosen is None and body.order == "desc"
        low_ms = max(span.start_ms, oldest_ms)
        parts = (
            snapshot.points(
                device.id,
                low_ms,
                span.end_ms,
                reverse=reverse,
                numbers=names,
                rows=limit if reverse else None,
            )
            if low_ms <= span.end_ms
            else ()
        )
        bytes_max = reading.limits.time_series_bytes_max - size
        if chosen is None:
            found = aggregate(
                parts,
                names=names,
                start_ms=span.start_ms,
                end_ms=min(span.end_ms, message.now_ms) if aggregation.type == "TIMEATVALUE" else span.end_ms,
                resolution_ms=resolution_ms,
                aggregation=aggregation,
                limit=limit,
                order=body.order,
                points_max=reading.limits.time_series_values_max,
                json_bytes_max=bytes_max,
                initial=initial,
            )
        else:
            found = downsample(
                parts,
                names=names,
                start_ms=span.start_ms,
                end_ms=span.end_ms,
                method=chosen,
                count=message.query.downsample,
                order=body.order,
                points_max=reading.limits.time_series_values_max,
                json_bytes_max=bytes_max,
            )
        doc = device.found.doc
        entry = {
            "name": doc["name"],
            "tags": tags_as_object(doc["tags"]),
            "points": [{"time": iso(time_ms), "data": data} for time_ms, data in found],
        }
        size += len(msgspec.json.encode(entry))
        if size > reading.limits.time_series_bytes_max:
            raise SeriesTooLarge(f"{FULL} ({reading.limits.time_series_bytes_max} bytes)")
        shown[device.id.hex()] = entry
    return {
        "start": iso(span.start_ms),
        "end": iso(span.end_ms),
        "resolution": resolution_ms,
        "aggregation": msgspec.to_builtins(body.aggregation),
        "limit": limit,
        "order": body.order,
        "devices": shown,
    }


def _given(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


def _limit(value: float | None) -> int | None:
    if value is None:
        return None
    if value != int(value) or value < 1:
        raise Invalid(f"limit: {value} is not a count; give a whole number of points, 1 or more.")
    return int(value)


def _method(message: QueryTimeSeries, points_max: int) -> DownsamplingMethod | None:
    """How raw points are downsampled; None: they are not. Raises `Invalid` for what does not go together."""
    query, body = message.query, message.body
    if not query.downsample:
        if query.method is not None:
            raise Invalid("method: is for `downsample` only; give both.")
        return None
    method = query.method or "LTTB"
    if not POINTS_MIN[method] <= query.downsample <= points_max:
        raise Invalid(f"downsample: give {POINTS_MIN[method]} to {points_max} points for {method}.")
    if parse_aggregation(msgspec.to_builtins(body.aggregation)).type != "NONE":
        raise Invalid("downsample: is for raw points; leave `aggregation` out, or give no `downsample`.")
    if _given(body.limit) is not None or parse_resolution(_given(body.resolution)):
        raise Invalid("downsample: is itself the limit of points; leave `limit` and `resolution` out.")
    return method
