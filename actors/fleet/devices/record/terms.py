"""Shared types of devices: data types, attribute declarations, and the fields that a query may use."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from trunkline.actors.core.query.fields import ID, IDS, TAGS, TEXT, TEXTS, TIME, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import (
    Description,
    Ids,
    Key,
    TagFilters,
)

DEVICE_FIELDS: Final = Fields(
    "device",
    {
        "id": ID,
        "creationDate": TIME,
        "lastUpdated": TIME,
        "deletedAt": TIME,
        "name": TEXT,
        "deviceClass": TEXT,
        "gatewayId": ID,
        "parentId": ID,
        "ancestorId": IDS,
        "attributeName": TEXTS,
        # The groups to which a device belongs, and their users (`memberships.py`).
        "experienceUserId": IDS,
        "experienceGroupId": IDS,
        "tags": TAGS,
        "connectedAt": TIME,
        "disconnectedAt": TIME,
        "connectionStatus": TEXT,
        "lastSeen": TIME,
        "expectedBy": TIME,
    },
)

DataType = Literal["string", "number", "gps", "boolean", "blob"]

Aggregation = Literal["FIRST", "LAST", "COUNT", "MAX", "MIN", "MEDIAN", "MEAN", "SUM", "STD_DEV"]

DeviceQuery = Annotated[dict[str, Any], query_over(DEVICE_FIELDS)]


class ChildAttribute(Body, frozen=True):
    """The attribute of children that a system device's attribute aggregates."""

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


AttributeTags = Annotated[dict[Key, Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=100)]
"""As many as a device may have."""


class Attribute(Body, frozen=True):
    """A declared attribute of a device: only declared attributes are accepted in its state."""

    name: Key
    data_type: DataType
    content_type: Annotated[str, Meta(max_length=64)] | msgspec.UnsetType = msgspec.UNSET
    description: Description | msgspec.UnsetType = msgspec.UNSET
    attribute_tags: AttributeTags | msgspec.UnsetType = msgspec.UNSET
    system: SystemAttribute | msgspec.UnsetType = msgspec.UNSET


ExpectedInterval = Annotated[int, Meta(ge=5, le=2_592_000)]
"""Seconds within which a device is expected to report, from five seconds to 30 days."""

Attributes = Annotated[list[Attribute], Meta(max_length=256)]
