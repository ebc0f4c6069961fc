"""Changes of many devices in one call: bodies, messages to the devices, and answers."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.actors.core.values.structs import Body, Message, View
from trunkline.actors.core.values.terms import Id, Ids, Key, Tag
from trunkline.actors.fleet.devices.record.messages import DevicePatch
from trunkline.actors.fleet.devices.record.terms import Attribute, DeviceQuery
from trunkline.actors.platform.jobs.messages import NotifyBody

# Bodies.


class SetOperation(Body, frozen=True, tag_field="operation", tag="set"):
    """Sets a field of the device, a tag, or a part of an attribute that the device declares."""

    target: Literal[
        "name",
        "description",
        "deviceClass",
        "gatewayId",
        "parentId",
        "systemInterval",
        "keepDuplicates",
        "expectedIntervalSeconds",
        "tag",
        "attributeName",
        "attributeDescription",
        "attributeContentType",
        "attributeTag",
    ]
    value: str | int | bool | Tag
    attribute_name: Key | UnsetType = UNSET


class RemoveOperation(Body, frozen=True, tag_field="operation", tag="remove"):
    """Removes a field of the device, a tag, an attribute, or a part of an attribute. What is not there is no error."""

    target: Literal[
        "description",
        "parentId",
        "expectedIntervalSeconds",
        "tag",
        "attribute",
        "attributeDescription",
        "attributeTag",
    ]
    tag_key: Key | UnsetType = UNSET
    attribute_name: Key | UnsetType = UNSET


class AddOperation(Body, frozen=True, tag_field="operation", tag="add"):
    """Declares an attribute, or sets how an attribute of a system device is computed, declaring it if necessary."""

    target: Literal["attribute", "attributeSystem"]
    value: Attribute


Operation = SetOperation | RemoveOperation | AddOperation


class DevicesPatch(NotifyBody, frozen=True):
    """A change of all devices that are selected by id or by query: first the fields, then the operations in order."""

    update_fields: DevicePatch | UnsetType = UNSET
    update_operations: list[Operation] | UnsetType = UNSET
    device_ids: Ids | UnsetType = UNSET
    query: DeviceQuery | UnsetType = UNSET


class DevicesSelection(NotifyBody, frozen=True, kw_only=True):
    """The devices that are deleted, or the deleted devices that are restored. `{}` selects all of them."""

    query: DeviceQuery
    force_job: bool = False


# Messages to the device actor.


class DeviceChange(msgspec.Struct, frozen=True):
    """What changes on each device: first the fields, then the operations in order."""

    fields: DevicePatch = DevicePatch()
    operations: list[Operation] = []


class ChangeDevice(Message, frozen=True):
    """Change one of many devices. The answer is whether anything changed."""

    change: DeviceChange


class RestoreDevice(Message, frozen=True):
    """Restore a deleted device with everything that it had. Nothing restores it after `device_restore_days`."""


# Messages of reads.


class DeviceChoice(msgspec.Struct, frozen=True):
    """Devices by id, by query, or both: those that either selects. `deleted`: of the deleted devices."""

    device_ids: list[str] | None = None
    query: dict[str, Any] | None = None
    deleted: bool = False


class ChooseDevices(Message, frozen=True):
    """The ids of the devices of a choice, at most as many as one call may change."""

    application: bytes
    choice: DeviceChoice
    now_ms: int


# Answers.


class DeviceError(View, frozen=True):
    """Why a device did not change."""

    device_id: Id
    message: str


class DevicesUpdated(View, frozen=True):
    """How many devices changed, how many refused the change, and how many were as requested already."""

    updated: int
    failed: int
    skipped: int
    errors: list[DeviceError] | None = None


class DevicesRemoved(View, frozen=True):
    """How many devices were deleted, and how many were not."""

    removed: int
    failed: int
    errors: list[DeviceError] | None = None


class DevicesRestored(View, frozen=True):
    """How many devices were restored, and how many were not."""

    restored: int
    failed: int
    errors: list[DeviceError] | None = None
