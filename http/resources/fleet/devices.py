"""Devices: their records, state, commands, connection and attributes."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.fleet.devices.actor.commands import command_for_many
from trunkline.actors.fleet.devices.queries.counts import (
    BreakDownDevicePayloads,
    CountDevicePayloads,
    DevicePayloadPeriods,
)
from trunkline.actors.fleet.devices.queries.health import DeviceHealthList, HealthChoice, ListDeviceHealth
from trunkline.actors.fleet.devices.record.messages import (
    AddAttribute,
    AttributeList,
    AttributeNameSearch,
    AttributePatch,
    CommandPost,
    CommandToMany,
    CompositePage,
    CompositeRange,
    ConnectionStatus,
    CreateDevice,
    DeleteAttribute,
    DeleteDevice,
    DevicePage,
    DevicePatch,
    DevicePost,
    DeviceShape,
    History,
    NameSearch,
    PatchAttribute,
    PatchDevice,
    PayloadRange,
    SendBacklog,
    SendCommand,
    SendState,
    SetConnectionStatus,
    StateOptions,
    StateOrStates,
    TagValueSearch,
)
from trunkline.actors.fleet.devices.record.read_messages import (
    GetAttribute,
    GetCommand,
    GetCompositeState,
    GetDevice,
    GetLogEntries,
    GetState,
    ListAttributeNames,
    ListAttributes,
    ListCompositeStates,
    ListDeviceNames,
    ListDevices,
    ListTagKeys,
    ListTagValues,
    SelectDevices,
)
from trunkline.actors.fleet.devices.record.terms import Attribute
from trunkline.actors.fleet.devices.record.views import (
    AttributeNames,
    AttributeView,
    CommandEntry,
    CompositeValue,
    DeviceComposite,
    DeviceNames,
    DevicePayloadCounts,
    DeviceView,
    LogEntry,
    StateEntry,
    TagKeys,
    TagValues,
)
from trunkline.actors.platform.applications.payload_counts import PayloadBreakdown
from trunkline.http.calls.access import check_resource_access
from trunkline.http.calls.backlog import send_backlog
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS
from trunkline.http.calls.route import APP_PATH, APPLICATION_ACTOR, DEVICE_ACTOR, DEVICE_PATH
from trunkline.http.calls.verbs import Shown, delete, get, list_of, patch, post

DEVICES = APP_PATH + "/devices"
ATTRIBUTES = DEVICE_PATH + "/attributes"
_THROTTLED = {429: "More calls to this device than RateLimit-Policy allows in its window"}


async def send_command_to_many(call: Call) -> Response:
    """Send one command to all devices that the body selects, or to none of them."""
    service = call.service
    chosen: list[bytes] = await service.read(call, SelectDevices)
    for id in chosen:
        call.ids["device"] = id
        check_resource_access(call)
    refs = [Ref("device", call.application, id) for id in chosen]
    response = Response(200, [JSON], SUCCESS)
    verdict = await service.system.ask_all(refs, command_for_many(call.body), call.keeping(response))
    if verdict is not None:
        assert call.route.throttle is not None
        response.headers += rate_limit(call.route.throttle, verdict)
    return response


_DEVICE = Shown(GetDevice, DeviceView, DeviceShape)
_ATTRIBUTE = Shown(GetAttribute, AttributeView)
ROUTES = (
    list_of(
        DEVICES,
        "devices.get",
        "List devices",
        ListDevices,
        DeviceView,
        DevicePage,
        device="read",
        beside={"deviceClass": str, "tagFilter": list[dict[str, Any]], "parentId": str | None},
    ),
    post(
        DEVICES,
        "devices.post",
        "Create a device",
        CreateDevice,
        _DEVICE,
        body=DevicePost,
        to=DEVICE_ACTOR,
        ok=201,
    ),
    list_of(
        DEVICES + "/compositeState",
        "devices.getCompositeState",
        "List devices with their composite states",
        ListCompositeStates,
        DeviceComposite,
        CompositePage,
        device="read",
    ),
    get(
        DEVICES + "/health",
        "devices.getHealth",
        "Show the signs of life and the newest values of some devices",
        ListDeviceHealth,
        DeviceHealthList,
        query=HealthChoice,
        device="read",
    ),
    post(
        DEVICES + "/command",
        "devices.sendCommand",
        "Send a command to many devices: to all of them or to none",
        SendCommand,
        takes_key=True,
        to=APPLICATION_ACTOR,
        uses=(SelectDevices,),
        body=CommandToMany,
        device="any",
        handler=send_command_to_many,
        also=_THROTTLED,
    ),
    get(
        DEVICES + "/attributeNames",
        "devices.attributeNames",
        "Search attribute names",
        ListAttributeNames,
        AttributeNames,
        query=AttributeNameSearch,
    ),
    get(
        DEVICES + "/deviceNames",
        "devices.deviceNames",
        "Search device names",
        ListDeviceNames,
        DeviceNames,
        query=NameSearch,
    ),
    get(DEVICES + "/tagKeys", "devices.tagKeys", "Search tag keys", ListTagKeys, TagKeys, query=NameSearch),
    get(
        DEVICES + "/tagValues",
        "devices.tagValues",
        "Search tag values",
        ListTagValues,
        TagValues,
        query=TagValueSearch,
    ),
    get(DEVICE_PATH, "device.get", "Get a device", _DEVICE, device="read"),
    patch(
        DEVICE_PATH,
        "device.patch",
        "Change a device",
        PatchDevice,
        _DEVICE,
        body=DevicePatch,
        to=DEVICE_ACTOR,
    ),
    delete(DEVICE_PATH, "device.delete", "Delete a device", DeleteDevice, to=DEVICE_ACTOR),
    post(
        DEVICE_PATH + "/state",
        "device.sendState",
        "Send a state, or an array of states",
        SendState,
        takes_key=True,
        fast_path=True,
        uses=(SendBacklog,),
        query=StateOptions,
        backlog_handler=send_backlog,
        body=StateOrStates,
        takes_many=True,
        to=DEVICE_ACTOR,
        device="self",
        also=_THROTTLED,
    ),
    get(
        DEVICE_PATH + "/state",
        "device.getState",
        "List states",
        GetState,
        list[StateEntry],
        fast_path=True,
        query=History,
        device="read",
    ),
    post(
        DEVICE_PATH + "/command",
        "device.sendCommand",
        "Send a command",
        SendCommand,
        takes_key=True,
        fast_path=True,
        body=CommandPost,
        to=DEVICE_ACTOR,
        device="any",
        also=_THROTTLED,
    ),
    get(
        DEVICE_PATH + "/command",
        "device.getCommand",
        "List commands by time of arrival",
        GetCommand,
        list[CommandEntry],
        query=History,
        device="read",
    ),
    get(
        DEVICE_PATH + "/logs",
        "device.getLogEntries",
        "List the connection log",
        GetLogEntries,
        list[LogEntry],
        query=History,
        device="read",
    ),
    post(
        DEVICE_PATH + "/setConnectionStatus",
        "device.setConnectionStatus",
        "Report that the device connected or disconnected",
        SetConnectionStatus,
        fast_path=True,
        body=ConnectionStatus,
        to=DEVICE_ACTOR,
        device="self",
        also=_THROTTLED,
    ),
    get(
        DEVICE_PATH + "/compositeState",
        "device.getCompositeState",
        "Get the newest value of each attribute",
        GetCompositeState,
        dict[str, CompositeValue],
        fast_path=True,
        query=CompositeRange,
        device="read",
    ),
    get(
        DEVICE_PATH + "/payloadCounts",
        "device.payloadCounts",
        "Count the payloads of a device by kind",
        CountDevicePayloads,
        DevicePayloadCounts,
        query=PayloadRange,
    ),
    get(
        DEVICE_PATH + "/payloadCountsBreakdown",
        "device.payloadCountsBreakdown",
        "Count the payloads of a device per hour or day",
        BreakDownDevicePayloads,
        PayloadBreakdown,
        query=DevicePayloadPeriods,
    ),
    list_of(
        ATTRIBUTES,
        "deviceAttributes.get",
        "List attributes",
        ListAttributes,
        AttributeView,
        AttributeList,
        device="read",
    ),
    post(
        ATTRIBUTES,
        "deviceAttributes.post",
        "Declare an attribute",
        AddAttribute,
        _ATTRIBUTE,
        new_id="name",
        body=Attribute,
        to=DEVICE_ACTOR,
        ok=201,
    ),
    get(ATTRIBUTES + "/{name}", "deviceAttribute.get", "Get an attribute", _ATTRIBUTE, device="read"),
    patch(
        ATTRIBUTES + "/{name}",
        "deviceAttribute.patch",
        "Change an attribute",
        PatchAttribute,
        _ATTRIBUTE,
        body=AttributePatch,
        to=DEVICE_ACTOR,
    ),
    delete(
        ATTRIBUTES + "/{name}",
        "deviceAttribute.delete",
        "Delete an attribute",
        DeleteAttribute,
        to=DEVICE_ACTOR,
    ),
)
