"""Devices: answers."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from trunkline.actors.core.values.structs import View
from trunkline.actors.core.values.terms import DeviceClass, Id, IsoTime, Links, RecordView, Scalar
from trunkline.actors.fleet.devices.record.terms import DataType


class ConnectionInfo(View, frozen=True):
    """Whether the device is connected (1, 0, or null if it never was), and since when."""

    connected: Literal[0, 1] | None = None
    time: IsoTime | None = None


class DeviceView(RecordView, frozen=True, kw_only=True):
    """A device."""

    device_id: Id
    application_id: Id
    name: str
    device_class: DeviceClass
    tags: list[Any] | dict[str, Any]
    attributes: list[Any] | dict[str, Any]
    description: str | None = None
    gateway_id: Id | None = None
    parent_id: Id | None = None
    ancestor_ids: list[Id] | None = None
    system_interval: int | None = None
    keep_duplicates: bool | None = None
    expected_interval_seconds: int | None = None
    connection_info: ConnectionInfo | None = None
    deleted_at: IsoTime | None = None
    links: Links | None = msgspec.field(default=None, name="_links")


class StateEntry(View, frozen=True):
    """One stored state. `data` contains only attributes that are currently declared."""

    time: IsoTime
    data: dict[str, Scalar]
    meta: Any = None
    flow_version: str | None = None


class DeviceStateEntry(StateEntry, frozen=True, kw_only=True):
    """A state of one of the devices of an application, as its streams show it."""

    device_id: Id


class CommandEntry(View, frozen=True):
    """One logged command; also the data of a `deviceCommand` event, which has only the name, the time and the payload.

    A command that waits for the device, or did, has an `id`, by which the device knows it, and a `status`.
    """

    name: str
    time: IsoTime
    payload: Any = None
    id: int | None = None
    status: Literal["queued", "sent", "acknowledged", "expired"] | None = None
    sent_at: IsoTime | None = None
    acknowledged_at: IsoTime | None = None
    expires_at: IsoTime | None = None


class LogEntry(View, frozen=True):
    """One change of the connection."""

    connected: Literal[0, 1]
    time: IsoTime
    disconnect_reason: str | None = None
    messages_from_client: int | None = None
    messages_to_client: int | None = None
    ip_address: str | None = None


class ConnectionChange(LogEntry, frozen=True, kw_only=True):
    """A change of the connection of one of the devices of an application, as its streams show it."""

    device_id: Id
    device_name: str


class CompositeValue(View, frozen=True):
    """The newest value of one attribute and when it was reported."""

    value: Scalar
    time: IsoTime


class DeviceComposite(View, frozen=True):
    """A device of a page with its composite state."""

    id: Id
    name: str
    composite_state: dict[str, CompositeValue]


class AttributeView(View, frozen=True):
    """One attribute of a device."""

    name: str
    data_type: DataType
    application_id: Id
    device_id: Id
    content_type: str | None = None
    description: str | None = None
    attribute_tags: dict[str, str] | None = None
    system: Any = None
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


class AttributeNames(View, frozen=True):
    """At most 1,000 attribute names, sorted."""

    attribute_names: list[str]


class DeviceSummary(View, frozen=True):
    """The id, class and name of a device."""

    id: Id
    device_class: DeviceClass
    name: str


class DeviceNames(View, frozen=True):
    """At most 1,000 devices, sorted by name."""

    device_summary: list[DeviceSummary]


class TagKeys(View, frozen=True):
    """At most 1,000 tag keys, sorted."""

    tag_keys: list[str]


class TagValues(View, frozen=True):
    """At most 1,000 values of one tag key, sorted."""

    tag_key: str
    tag_values: list[str]


class DevicePayloadCounts(View, frozen=True):
    """Payloads of one device by kind."""

    device_command: int
    device_connect: int
    device_disconnect: int
    device_state: int
    mqtt_in: int
    mqtt_out: int
