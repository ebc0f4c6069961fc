"""Exports: what a call asks to be written into a file."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.accounts.messages import Email
from trunkline.actors.tables.messages import AdvancedQuery
from trunkline.actors.values.structs import Body
from trunkline.actors.values.terms import DeviceQuery, EventQuery, Ids, Key, TagFilters

CallbackUrl = Annotated[
    str,
    Meta(
        max_length=1024,
        pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+(?!\n)$",
        description="an http or https URL that a POST tells of the end of the job",
    ),
]


class Told(Body, frozen=True):
    """Who is told when the job has ended; by default the address of the caller's account."""

    email: Email | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET


class ToldQuery(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Who is told when the job has ended; by default the address of the caller's account."""

    email: Email | None = None
    callback_url: CallbackUrl | None = None


class DeviceExportOptions(Body, frozen=True):
    """Which columns stand beside the attributes, and whether attributes of the type blob are written."""

    include_date: bool = True
    include_id: bool = msgspec.field(default=True, name="includeID")
    include_blob_data: bool = False


class DataExportOptions(DeviceExportOptions, frozen=True):
    """Also: whether each device gets a file of its own, all of them in one archive."""

    file_per_device: bool = False


class DataExport(Told, frozen=True):
    """Whose states are exported: times in ms, 0 is now, negative counts back from now.

    The devices are those that are named by id, by tag or by query; without any of the three all of them.
    """

    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    device_query: DeviceQuery | UnsetType = UNSET
    start: int | float | UnsetType = UNSET
    end: int | float | UnsetType = UNSET
    options: DataExportOptions = DataExportOptions()


class DevicesExport(Told, frozen=True):
    """Whose records are exported, and how; without `query` those of all devices."""

    query: DeviceQuery | UnsetType = UNSET
    format: Literal["csv", "json"] = "csv"


class DeviceExport(Told, frozen=True):
    """Which states of a device are exported: times in ms, 0 is now, negative counts back from now."""

    attributes: Annotated[list[Key], Meta(max_length=256)] | UnsetType = UNSET
    start: int | float | UnsetType = UNSET
    end: int | float | UnsetType = UNSET
    options: DeviceExportOptions = DeviceExportOptions()


class RowExportOptions(Body, frozen=True):
    """In which order rows are exported, and how many: without `limit` all of them."""

    sort_column: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    sort_direction: Literal["asc", "desc", "ASC", "DESC", ""] = "asc"
    limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class RowExport(Told, frozen=True):
    """Which rows of a data table are exported; without `query` all of them."""

    query: AdvancedQuery | UnsetType = UNSET
    query_options: RowExportOptions = RowExportOptions()


class EventExport(Told, frozen=True):
    """Which events are exported, and how; without `query` all of them."""

    query: EventQuery | UnsetType = UNSET
    format: Literal["csv", "json"] = "csv"
    exclude_updates: bool = False


class DeviceExportQuery(ToldQuery, frozen=True):
    """The same in the query string: everything, unless it says otherwise."""

    start: int = 1
    end: int = 0
    include_blob_data: bool = False
