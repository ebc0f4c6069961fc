"""Exports of devices: bodies and query strings."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Ids, Key, QueryTime, TagFilters
from trunkline.actors.fleet.devices.record.terms import DeviceQuery
from trunkline.actors.platform.jobs.messages import NotifyBody, NotifyQuery

ExportedAttributes = Annotated[
    list[Key],
    Meta(
        max_length=256,
        description="the attributes that get a column, in this order; without it, or if it is empty, all",
    ),
]


class DeviceExportOptions(Body, frozen=True):
    """The columns beside the attributes, and whether attributes of the type blob are written."""

    include_date: bool = True
    include_id: bool = msgspec.field(default=True, name="includeID")
    include_blob_data: bool = False


class DataExportOptions(DeviceExportOptions, frozen=True):
    """Also: whether each device has its own file, all of them in one archive."""

    file_per_device: bool = False


class DataExport(NotifyBody, frozen=True):
    """The devices and the range of the states that are exported.

    Devices are selected by id, by tag or by query; without any of the three all devices are.
    """

    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    device_query: DeviceQuery | UnsetType = UNSET
    attributes: ExportedAttributes | UnsetType = UNSET
    start: QueryTime | UnsetType = UNSET
    end: QueryTime | UnsetType = UNSET
    options: DataExportOptions = DataExportOptions()


class DevicesExport(NotifyBody, frozen=True):
    """The devices whose records are exported (without `query` all of them), and the format."""

    query: DeviceQuery | UnsetType = UNSET
    format: Literal["csv", "json"] = "csv"


class PayloadCountsExport(NotifyBody, frozen=True):
    """The devices whose payloads are counted (without `query` all of them), and the hours (by default 30 days)."""

    query: DeviceQuery | UnsetType = UNSET
    start: QueryTime | UnsetType = UNSET
    end: QueryTime | UnsetType = UNSET


class DeviceExport(NotifyBody, frozen=True):
    """The states of a device that are exported."""

    attributes: ExportedAttributes | UnsetType = UNSET
    start: QueryTime | UnsetType = UNSET
    end: QueryTime | UnsetType = UNSET
    options: DeviceExportOptions = DeviceExportOptions()


class DeviceExportQuery(NotifyQuery, frozen=True):
    """The range and the options of an export in the query string; the default is all states."""

    start: QueryTime = 1
    end: QueryTime = 0
    include_blob_data: bool = False
