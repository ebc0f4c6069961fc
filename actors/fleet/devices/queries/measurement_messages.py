"""Queries over the states of many devices: bodies, messages of reads and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import (
    Id,
    Ids,
    IsoTime,
    Key,
    QueryTime,
    Scalar,
    SortDirection,
    TagFilters,
)
from trunkline.actors.fleet.devices.record.terms import DeviceQuery
from trunkline.actors.people.accounts.reach import Reach

AggregationName = Literal[
    "FIRST", "LAST", "COUNT", "MAX", "MIN", "MEDIAN", "MEAN", "SUM", "STD_DEV", "NONE", "TIMEATVALUE"
]
DownsamplingMethod = Literal["LTTB", "M4", "MIN", "MAX", "MEAN"]
PlainAggregation = Literal["FIRST", "LAST", "COUNT", "MAX", "MIN", "MEDIAN", "MEAN", "SUM", "STD_DEV", "NONE"]


class AggregationOptions(Body, frozen=True):
    """`value`: the value that TIMEATVALUE compares with. The other aggregations have no options."""

    value: Annotated[str, Meta(max_length=255)] | int | float | bool | UnsetType = UNSET


class AggregationChoice(Body, frozen=True):
    """An aggregation with its options."""

    type: AggregationName
    options: AggregationOptions | UnsetType = UNSET


class TimeSeriesQuery(Body, frozen=True):
    """The devices, the range of points, and their aggregation.

    `duration` in ms back from `end`, `resolution` in ms: the width of a bucket; 0 for one bucket over the whole range.
    """

    start: QueryTime | UnsetType = UNSET
    end: QueryTime = 0
    duration: int | float | UnsetType = UNSET
    resolution: int | float | UnsetType = UNSET
    aggregation: PlainAggregation | AggregationChoice = "NONE"
    attributes: list[Key] | UnsetType = UNSET
    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    device_query: DeviceQuery | UnsetType = UNSET
    limit: int | float | UnsetType = UNSET
    order: SortDirection = "asc"


class Downsampling(Query, frozen=True):
    """The most raw points that an attribute of a device gets, for charts, and how they are chosen; 0: all points."""

    downsample: Annotated[int, Meta(ge=0)] = 0
    method: DownsamplingMethod | None = None


class LastValueQuery(Body, frozen=True):
    """The newest value of one attribute, not later than `end`, of each of the devices."""

    attribute: Key | UnsetType = UNSET
    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    device_query: DeviceQuery | UnsetType = UNSET
    end: QueryTime = 0


class Point(View, frozen=True):
    """Values at a time."""

    time: IsoTime
    data: dict[str, Scalar]


class DeviceSeries(View, frozen=True):
    """The points of one device."""

    name: str
    tags: dict[str, list[str]]
    points: list[Point]


class TimeSeries(View, frozen=True):
    """The points of each device, by device id."""

    start: IsoTime
    end: IsoTime
    resolution: int | float | None
    aggregation: Any
    limit: int | float | None
    order: SortDirection
    devices: dict[Id, DeviceSeries]


LastValues = dict[Id, Point]


class QueryLastValues(Message, frozen=True):
    """The newest value of one attribute of many devices."""

    application: bytes
    body: LastValueQuery
    now_ms: int
    reach: Reach | None


class QueryTimeSeries(Message, frozen=True):
    """Points of many devices."""

    application: bytes
    body: TimeSeriesQuery
    now_ms: int
    reach: Reach | None
    query: Downsampling = Downsampling()
