"""The constrained types that the messages share: ids, names, tags, attributes, moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from trunkline.actors.query import schema as query_schema
from trunkline.actors.query.fields import (
    APPLICATION_KEY_FIELDS,
    DEVICE_FIELDS,
    EVENT_FIELDS,
    JOB_LOG_FIELDS,
    Field,
)
from trunkline.actors.values.structs import Body, View

Id = Annotated[str, Meta(pattern=r"^[A-Fa-f0-9]{24}$", max_length=24, description="24 hexadecimal digits")]
"""`$` alone would let a line feed follow; so would it in `Key`."""
Name = Annotated[str, Meta(min_length=1, max_length=255)]
Description = Annotated[str, Meta(max_length=32767)]
Key = Annotated[str, Meta(pattern=r"^[0-9a-zA-Z_-]{1,255}(?!\n)$")]
"""A name of an attribute or the key of a tag."""

Moment = str | int | float | dict[Literal["$date"], str]
"""A time as callers give it: ISO text, epoch seconds or milliseconds, `{"$date": iso}`, or milliseconds ago."""

IsoTime = Annotated[str, Meta(description="ISO 8601, UTC, milliseconds")]
Scalar = str | int | float | bool
SortDirection = Literal["asc", "desc"]
DeviceClass = Literal["standalone", "gateway", "peripheral", "floating", "edgeCompute", "system", "embedded"]
DataType = Literal["string", "number", "gps", "boolean", "blob"]
FilterType = Literal["all", "whitelist", "blacklist", "none"]
Aggregation = Literal["FIRST", "LAST", "COUNT", "MAX", "MIN", "MEDIAN", "MEAN", "SUM", "STD_DEV"]

Links = Annotated[dict[str, dict[str, str]], Meta(description="`self` and parents, each as {href}")]


class Tag(Body, frozen=True):
    """A key and a value by which devices are found."""

    key: Key
    value: Annotated[str, Meta(min_length=1, max_length=255)]


class TagFilter(Body, frozen=True):
    """Matches a device that has a tag with this key, with this value, or with both."""

    key: Key | msgspec.UnsetType = msgspec.UNSET
    value: Annotated[str, Meta(min_length=1, max_length=255)] | msgspec.UnsetType = msgspec.UNSET


QUERY_FIELDS = "queryFields"
"""Under this name in the `extra` of its `Meta`, an advanced query carries the table of its fields."""


def query_over(fields: Mapping[str, Field]) -> Meta:
    """What marks a JSON object as an advanced query over these fields."""
    return Meta(extra={QUERY_FIELDS: fields}, extra_json_schema=query_schema.reference(fields))


DeviceQuery = Annotated[dict[str, Any], query_over(DEVICE_FIELDS)]
KeyQuery = Annotated[dict[str, Any], query_over(APPLICATION_KEY_FIELDS)]
EventQuery = Annotated[dict[str, Any], query_over(EVENT_FIELDS)]
JobLogQuery = Annotated[dict[str, Any], query_over(JOB_LOG_FIELDS)]

Tags = Annotated[list[Tag], Meta(max_length=100)]
TagFilters = Annotated[list[TagFilter], Meta(max_length=100)]
Ids = Annotated[list[Id], Meta(max_length=1000)]


class ChildAttribute(Body, frozen=True):
    """Which children's attribute a system device's attribute gathers."""

    name: Key
    mode: Literal["all", "whitelist", "blacklist"]
    device_ids: Ids | msgspec.UnsetType = msgspec.UNSET
    device_tags: TagFilters | msgspec.UnsetType = msgspec.UNSET


class SystemAttribute(Body, frozen=True):
    """How a system device's attribute is computed from its children. Stored; nothing computes it yet."""

    aggregation: Aggregation | msgspec.UnsetType = msgspec.UNSET
    aggregation_options: Annotated[list[dict[str, Any]], Meta(max_length=0)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    child_attributes: Annotated[list[ChildAttribute], Meta(max_length=256)] | msgspec.UnsetType = (
        msgspec.UNSET
    )


class Attribute(Body, frozen=True):
    """A declared attribute of a device: only declared attributes are accepted in its state."""

    name: Key
    data_type: DataType
    content_type: Annotated[str, Meta(max_length=64)] | msgspec.UnsetType = msgspec.UNSET
    description: Description | msgspec.UnsetType = msgspec.UNSET
    attribute_tags: dict[Key, Annotated[str, Meta(min_length=1, max_length=255)]] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    system: SystemAttribute | msgspec.UnsetType = msgspec.UNSET


Attributes = Annotated[list[Attribute], Meta(max_length=256)]


class Success(View, frozen=True):
    """The call did what it was asked to."""

    success: Literal[True]


class Page(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Paging and filtering of a list, from the query string. `page` counts from zero."""

    page: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=1000)] = 100
    sort_direction: SortDirection = "asc"
    filter: Annotated[str, Meta(max_length=1024)] | None = None
