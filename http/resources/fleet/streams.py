"""Streams of devices, and of whole applications for consoles and for programs that follow many devices."""

from __future__ import annotations

from trunkline.actors.data.events.messages import EventChangeView
from trunkline.actors.fleet.devices.record.messages import KeepAlive, StateStream
from trunkline.actors.fleet.devices.record.views import (
    CommandEntry,
    ConnectionChange,
    DeviceStateEntry,
    StateEntry,
)
from trunkline.http.calls.route import APP_PATH, DEVICE_PATH, Route
from trunkline.http.streams.sse import (
    application_state_stream,
    command_stream,
    connection_stream,
    event_stream,
    state_stream,
)

ROUTES = (
    Route(
        method="GET",
        path=DEVICE_PATH + "/commandStream",
        operation="device.commandStream",
        summary="Stream the commands of a device",
        query=KeepAlive,
        device="read",
        handler=command_stream,
        event=("deviceCommand", CommandEntry),
    ),
    Route(
        method="GET",
        path=DEVICE_PATH + "/stateStream",
        operation="device.stateStream",
        summary="Stream the states of a device",
        query=KeepAlive,
        device="read",
        handler=state_stream,
        event=("deviceState", StateEntry),
        resets=True,
    ),
    Route(
        method="GET",
        path=APP_PATH + "/stateStream",
        operation="application.stateStream",
        summary="Stream the states of the devices of an application",
        query=StateStream,
        handler=application_state_stream,
        event=("deviceState", DeviceStateEntry),
        resets=True,
    ),
    Route(
        method="GET",
        path=APP_PATH + "/eventStream",
        operation="application.eventStream",
        summary="Stream the changes of the events of an application",
        query=KeepAlive,
        handler=event_stream,
        event=("eventChange", EventChangeView),
        resets=True,
    ),
    Route(
        method="GET",
        path=APP_PATH + "/connectionStream",
        operation="application.connectionStream",
        summary="Stream the connections of the devices of an application",
        query=KeepAlive,
        handler=connection_stream,
        event=("deviceConnection", ConnectionChange),
    ),
)
