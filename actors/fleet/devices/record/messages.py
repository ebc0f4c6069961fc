"""Devices: bodies, query strings and messages to the actor.

Messages of reads: `fleet/devices/record/read_messages.py`. Answers: `fleet/devices/record/views.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.changes import Removable, changes_of
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import FORM, Body, Message, Query
from trunkline.actors.core.values.terms import (
    Description,
    DeviceClass,
    Id,
    Ids,
    Key,
    Name,
    QueryTime,
    SortDirection,
    TagFilters,
    Tags,
    Timestamp,
)
from trunkline.actors.fleet.devices.record.terms import (
    Attribute,
    Attributes,
    AttributeTags,
    DataType,
    DeviceQuery,
    ExpectedInterval,
    SystemAttribute,
)

# Bodies.


class DevicePost(Body, frozen=True):
    """A new device."""

    name: Name
    description: Description | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    attributes: Attributes | UnsetType = UNSET
    device_class: DeviceClass = "standalone"
    gateway_id: Id | UnsetType = UNSET
    parent_id: Id | UnsetType | None = UNSET
    system_interval: Annotated[int, Meta(ge=5, le=3600)] | UnsetType = UNSET
    keep_duplicates: bool | UnsetType = UNSET
    expected_interval_seconds: Removable[ExpectedInterval] | UnsetType = UNSET


@changes_of(DevicePost)
class DevicePatch(Body, frozen=True):
    """Changes of a device; omitted fields stay as they are. `tags` and `attributes` replace the whole list."""

    name: Name | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    attributes: Attributes | UnsetType = UNSET
    parent_id: Id | UnsetType | None = UNSET


Reported = Annotated[
    dict[str, Any],
    Meta(
        description="Values by attribute; each a number, a string or a boolean that fits the attribute's type.",
        extra_json_schema={"additionalProperties": {"type": ["number", "string", "boolean"]}},
    ),
]
"""Values are not checked when the body is decoded: the device coerces each one and names the one at fault."""


class StateReport(Body, frozen=True, gc=False):
    """One state of a device: values of declared attributes at one time. Without `time`: now."""

    hint: ClassVar[str] = 'the values of the attributes go under data, as in {"data": {"temp": 20}}'

    data: Reported
    time: Timestamp | None = None
    meta: Any = UNSET
    flow_version: Name | UnsetType = UNSET


StateOrStates = StateReport | list[StateReport]


_TimeToLive = Annotated[int, Meta(ge=1, le=31_536_000)]


class CommandPost(Body, frozen=True):
    """A command for a device. Without `time`: now."""

    name: Name
    payload: Any = UNSET
    time: Timestamp | None = None
    ttl_seconds: _TimeToLive | None = None


class CommandToMany(Body, frozen=True):
    """A command for every device that is selected by id, by tags or by an advanced query."""

    name: Name
    payload: Any = UNSET
    time: Timestamp | None = None
    ttl_seconds: _TimeToLive | None = None
    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    device_query: DeviceQuery | UnsetType = UNSET


_Count32 = Annotated[int, Meta(ge=0, le=2147483647)]
_Address = Annotated[str, Meta(min_length=2, max_length=39)]


class Connected(Body, frozen=True, tag_field="status", tag="connected"):
    """The device is connected, as reported by itself or by another client."""

    connected_at: Timestamp | None = None
    ip_address: _Address | UnsetType = UNSET


class Disconnected(Body, frozen=True, tag_field="status", tag="disconnected"):
    """The device is disconnected."""

    connected_at: Timestamp | None = None
    disconnected_at: Timestamp | None = None
    disconnect_reason: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET
    messages_from_client: _Count32 | UnsetType = UNSET
    messages_to_client: _Count32 | UnsetType = UNSET
    ip_address: _Address | UnsetType = UNSET


ConnectionStatus = Connected | Disconnected


class AttributePatch(Body, frozen=True):
    """Changes of one attribute. Its data type is fixed once it is declared."""

    name: Key | UnsetType = UNSET
    content_type: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    attribute_tags: AttributeTags | UnsetType = UNSET
    system: SystemAttribute | UnsetType = UNSET


# Query strings.


class DeviceShape(Query, frozen=True):
    """Options of how a device is shown."""

    exclude_connection_info: bool = False
    tags_as_object: bool = False
    attributes_as_object: bool = False


_IdOrNull = Annotated[
    str,
    Meta(pattern=r"^([A-Fa-f0-9]{24}|null)$", extra={FORM: "an id of 24 hexadecimal digits, or null"}),
]


class DevicePage(Page, frozen=True):
    """A page of the devices of an application."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated", "connectionStatus", "deletedAt"] = "name"
    filter_field: Literal["name"] | None = None
    device_class: list[DeviceClass] | None = None
    tag_filter: TagFilters | None = None
    parent_id: _IdOrNull | None = None
    query: DeviceQuery | None = None
    query_deleted: bool = False
    exclude_connection_info: bool = False
    tags_as_object: bool = False
    attributes_as_object: bool = False


class CompositePage(Page, frozen=True):
    """A page of devices, each with its composite state."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated", "connectionStatus"] = "name"
    start: QueryTime = 1
    end: QueryTime = 0
    attributes: str | None = None
    query: DeviceQuery | None = None


class History(Query, frozen=True):
    """A range of a device's history."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1
    since: QueryTime | None = None
    sort_direction: SortDirection = "desc"
    duration: Annotated[float, Meta(ge=0, description="milliseconds")] | None = None
    start: QueryTime | None = None
    end: QueryTime | None = None


class CompositeRange(Query, frozen=True):
    """The range of reports in the composite state, and its attributes (comma-separated, default: all)."""

    start: QueryTime = 1
    end: QueryTime = 0
    attributes: str | None = None


class StateOptions(Query, frozen=True):
    """Options of how states are stored."""

    backlog: bool = False


class KeepAlive(Query, frozen=True):
    """Seconds between the comments that keep a stream open."""

    keep_alive_interval: Annotated[float, Meta(ge=1, le=60)] = 2


class StateStream(KeepAlive, frozen=True):
    """Which states of an application a stream shows: of which devices, and which attributes.

    A device is selected by its id, by a tag or by the query; without any of them all devices are.
    """

    device_ids: Ids | None = None
    device_tags: TagFilters | None = None
    device_query: DeviceQuery | None = None
    attributes: str | None = None


class AttributeList(Query, frozen=True):
    """Order and filter of a device's attributes."""

    sort_field: Literal["name", "dataType"] = "name"
    sort_direction: SortDirection = "asc"
    filter_field: Literal["name", "dataType"] | None = None
    filter: Annotated[str, Meta(max_length=1024)] | None = None


class NameSearch(Query, frozen=True):
    """The devices whose names are searched, and the beginning of the names."""

    query: DeviceQuery | None = None
    starts_with: Annotated[str, Meta(max_length=255)] | None = None


class AttributeNameSearch(NameSearch, frozen=True):
    """As `NameSearch`, for attributes of some data types only."""

    data_type: list[DataType] | None = None


class TagValueSearch(NameSearch, frozen=True, kw_only=True):
    """As `NameSearch`, for the values of one tag key."""

    key: Key


class PayloadRange(Query, frozen=True):
    """The hours that are counted: ms, 0 is now, negative counts back from now (default: 30 days)."""

    start: QueryTime = -2592000000
    end: QueryTime = 0


# Messages to the actor.


class CreateDevice(Message, frozen=True):
    """Create a device. `is_bulk`: as one of many, which starts no workflows."""

    body: DevicePost
    origin: Origin | None = None
    is_bulk: bool = False


class PatchDevice(Message, frozen=True):
    """Change the device's record."""

    body: DevicePatch
    if_match: str | None = None


class DeleteDevice(Message, frozen=True):
    """Delete a device. Its record and data are kept for `device_restore_days`, so that it can be restored."""

    if_match: str | None = None


class SendState(Message, frozen=True):
    """Store one or more states: one call, one turn, one batch."""

    throttle: ClassVar[str | None] = "send_state"
    body: StateOrStates
    origin: Origin | None = None


class SendKnownState(SendState, frozen=True):
    """Store what a workflow reports, without attributes that the device does not declare and without nulls.

    States without any value are left out. Answers names that were left out, sorted: of those that are not declared all,
    or a thousand and more, and all whose value is null.
    """


class SendBacklog(SendState, frozen=True):
    """Store states of the past, which the device could not send before; in a turn of the backlog lane (`backlog.py`).

    The throttle of states does not count them. Each has its time. Nothing that watches the present hears of them: no
    state stream, and no trigger of inactivity counts them as a sign of life.
    """

    throttle: ClassVar[str | None] = None


class SendCommand(Message, frozen=True):
    """Log a command and push it to the open command streams."""

    throttle: ClassVar[str | None] = "send_command"
    body: CommandPost | CommandToMany
    payload: bytes | None = None
    """The payload as it is stored, if it was checked and encoded once for many devices."""


class FireInactivity(Message, frozen=True):
    """Let the triggers of inactivity fire that are due; answers when to look again, None: after the next report."""


class SetConnectionStatus(Message, frozen=True):
    """Log that the device connected or disconnected."""

    throttle: ClassVar[str | None] = "set_connection_status"
    body: ConnectionStatus
    origin: Origin | None = None


class AddAttribute(Message, frozen=True):
    """Declare one more attribute."""

    body: Attribute


class PatchAttribute(Message, frozen=True):
    """Change a declared attribute."""

    name: str
    body: AttributePatch


class DeleteAttribute(Message, frozen=True):
    """Delete an attribute. Its reported values are no longer shown."""

    name: str


class Listen(Message, frozen=True):
    """Activate the device, so that a stream can be opened on it."""
