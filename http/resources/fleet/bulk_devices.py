"""Changes of many devices in one call: at once if they are few, else by a job."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from trunkline.actors.core.values.errors import ChangeTooLarge, Invalid
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.terms import QueryTime, Tag
from trunkline.actors.core.values.timestamps import resolve_range
from trunkline.actors.fleet.devices.bulk.bulk_change import FIELDS
from trunkline.actors.fleet.devices.bulk.bulk_jobs import change_at_once
from trunkline.actors.fleet.devices.bulk.bulk_messages import (
    AddOperation,
    ChangeDevice,
    ChooseDevices,
    DeviceChange,
    DeviceChoice,
    DevicesPatch,
    DevicesRemoved,
    DevicesRestored,
    DevicesSelection,
    DevicesUpdated,
    Operation,
    RemoveOperation,
    RestoreDevice,
)
from trunkline.actors.fleet.devices.bulk.removal_messages import DataRange, DataRemoval
from trunkline.actors.fleet.devices.record.messages import AttributePatch, DeleteDevice, DevicePatch
from trunkline.actors.platform.jobs.messages import JobQueued, NotifyBody
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH, DEVICE_PATH
from trunkline.http.calls.verbs import job, patch, post
from trunkline.http.resources.platform.jobs import check_no_revision, queue_job

DEVICES = APP_PATH + "/devices"
_NO_REVISION = {412: "If-Match names a revision, and the call changes many records"}


async def patch_devices(call: Call) -> Response:
    """Change all devices that are selected by id or by query. A device that cannot change does not stop the others."""
    body: DevicesPatch = call.body
    fields = DevicePatch() if body.update_fields is UNSET else body.update_fields
    operations = [] if body.update_operations is UNSET else body.update_operations
    if fields == DevicePatch() and not operations:
        raise Invalid("updateFields or updateOperations: say by one of them at least what changes.")
    operations_max = call.service.system.limits.update_operations_max
    if len(operations) > operations_max:
        raise Invalid(f"updateOperations: has {len(operations)} items; give at most {operations_max}.")
    for place, operation in enumerate(operations):
        try:
            _check_operation(operation)
        except Invalid as refusal:
            raise Invalid(f"updateOperations[{place}].{refusal.message}") from None
    if not body.device_ids and body.query is UNSET:
        raise Invalid("deviceIds or query: name the devices by one of them at least.")
    choice = DeviceChoice(
        device_ids=body.device_ids or None, query=None if body.query is UNSET else body.query
    )
    change = DeviceChange(fields, operations)
    input = {"choice": msgspec.to_builtins(choice), "change": msgspec.to_builtins(change)}
    return await _change(call, body, choice, ChangeDevice(change=change), "updated", input)


async def delete_devices(call: Call) -> Response:
    """Delete all devices that match the query; `{}` matches every device. They can be restored for 93 days."""
    return await _delete_or_restore(call, DeleteDevice(), "removed", deleted=False)


async def restore_devices(call: Call) -> Response:
    """Restore all deleted devices that match the query, with everything that they had; `{}` matches all of them."""
    return await _delete_or_restore(call, RestoreDevice(), "restored", deleted=True)


async def _delete_or_restore(call: Call, message: Message, done: str, *, deleted: bool) -> Response:
    body: DevicesSelection = call.body
    choice = DeviceChoice(query=body.query, deleted=deleted)
    input = {"choice": msgspec.to_builtins(choice)}
    return await _change(call, body, choice, message, done, input, always=body.force_job)


async def _change(
    call: Call,
    body: NotifyBody,
    choice: DeviceChoice,
    message: Message,
    done: str,
    input: dict[str, Any],
    *,
    always: bool = False,
) -> Response:
    """Send the message to the chosen devices; queue a job if they are too many, or `always`."""
    check_no_revision(call)
    service = call.service
    chosen: list[bytes] | None = None
    try:
        choose = ChooseDevices(application=call.application, choice=choice, now_ms=call.now_ms)
        chosen = await service.read_message(choose)
    except ChangeTooLarge:
        always = True
    if always or chosen is None:
        return await queue_job(call, call.application, input, notify=(body,))
    return json_response(
        call, 200, await change_at_once(service.system, call.application, chosen, message, done)
    )


async def remove_device_data(call: Call) -> Response:
    """Queue the removal of the states, the commands and the connection log of a device in a range."""
    check_no_revision(call)
    query: DataRange = call.query
    return await queue_job(call, call.ids["device"], _removal(call, query.start, query.end))


async def remove_devices_data(call: Call) -> Response:
    """Queue the removal of what many devices reported in a range; the query `{}` matches every device.

    Payload counts stay. The composite states have the newest values that are left.
    """
    check_no_revision(call)
    body: DataRemoval = call.body
    attributes = body.attributes or None
    some = attributes is not None
    input = {
        **_removal(call, 1 if body.start is UNSET else body.start, 0 if body.end is UNSET else body.end),
        "query": body.query,
        "attributes": attributes,
        "commands": not (some if body.keep_command_history is UNSET else body.keep_command_history),
        "logs": not (some if body.keep_connection_history is UNSET else body.keep_connection_history),
    }
    return await queue_job(call, call.application, input, notify=(body,))


def _removal(call: Call, start: QueryTime, end: QueryTime) -> dict[str, Any]:
    """The input of a job that removes everything in a range."""
    span = resolve_range(call.now_ms, start=start, end=end)
    return {
        "start": span.start_ms,
        "end": span.end_ms,
        "attributes": None,
        "commands": True,
        "logs": True,
    }


_VALUES: dict[str, tuple[Any, str]] = {
    **{target: (DevicePatch, target) for target in FIELDS},
    "tag": (Tag, ""),
    "attributeTag": (Tag, ""),
    "attributeName": (AttributePatch, "name"),
    "attributeDescription": (AttributePatch, "description"),
    "attributeContentType": (AttributePatch, "contentType"),
}
"""The type that knows the values of each target of `set`, and the name of the field in it."""


def _check_operation(operation: Operation) -> None:
    """Raise `Invalid` if the operation lacks what its target needs, has more, or has a value of another type."""
    if isinstance(operation, AddOperation):
        return
    target = operation.target
    needs = {"attributeName": target.startswith("attribute")}
    has = {"attributeName": operation.attribute_name is not UNSET}
    if isinstance(operation, RemoveOperation):
        needs["tagKey"] = target in ("tag", "attributeTag")
        has["tagKey"] = operation.tag_key is not UNSET
    for name, needed in needs.items():
        if needed != has[name]:
            verb = "is missing; give it" if needed else "is not used; leave it out"
            raise Invalid(f"{name}: {verb} with the target {target}.")
    if isinstance(operation, RemoveOperation):
        return
    type, field = _VALUES[target]
    if type is Tag:
        if not isinstance(operation.value, Tag):
            raise Invalid("value: is not a valid tag; give an object with key and value.")
        return
    given = {field: msgspec.to_builtins(operation.value)}
    try:
        msgspec.convert(given, type)
    except msgspec.ValidationError as error:
        sentence = invalid(error, "body", type, given).message
        raise Invalid(f"value: {sentence.removeprefix(f'{field}: ')}") from None


ROUTES = (
    patch(
        DEVICES,
        "devices.patch",
        "Change many devices",
        patch_devices,
        body=DevicesPatch,
        reply=DevicesUpdated,
        job=JobQueued,
    ),
    post(
        DEVICES + "/delete",
        "devices.delete",
        "Delete many devices",
        delete_devices,
        body=DevicesSelection,
        reply=DevicesRemoved,
        job=JobQueued,
        also=_NO_REVISION,
    ),
    post(
        DEVICES + "/restore",
        "devices.restore",
        "Restore many deleted devices",
        restore_devices,
        body=DevicesSelection,
        reply=DevicesRestored,
        job=JobQueued,
        also=_NO_REVISION,
    ),
    job(
        DEVICES + "/removeData",
        "devices.removeData",
        "Remove what many devices reported",
        remove_devices_data,
        body=DataRemoval,
        access="write",
        also=_NO_REVISION | {429: "The application has too many jobs"},
    ),
    job(
        DEVICE_PATH + "/data",
        "device.removeData",
        "Remove what a device reported",
        remove_device_data,
        method="DELETE",
        query=DataRange,
        access="write",
        also={429: "The application has too many jobs"},
    ),
)
