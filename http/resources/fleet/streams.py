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
from trunkline.http.calls.route import APP_PATH, DEVICE_PATH
from trunkline.http.calls.verbs import stream
from trunkline.http.streams.sse import (
    application_state_stream,
    command_stream,
    connection_stream,
    event_stream,
    state_stream,
)

ROUTES = (
    stream(
        DEVICE_PATH + "/commandStream",
        "device.commandStream",
        "Stream the commands of a device",
        command_stream,
        ("deviceCommand", CommandEntry),
        query=KeepAlive,
        device="read",
    ),
    stream(
        DEVICE_PATH + "/stateStream",
        "device.stateStream",
        "Stream the states of a device",
        state_stream,
        ("deviceState", StateEntry),
        query=KeepAlive,
        device="read",
        resets=True,
    ),
    stream(
        APP_PATH + "/stateStream",
        "application.stateStream",
        "Stream the states of the devices of an application",
        application_state_stream,
        ("deviceState", DeviceStateEntry),
        query=StateStream,
        resets=True,
    ),
    stream(
        APP_PATH + "/eventStream",
        "application.eventStream",
        "Stream the changes of the events of an application",
        event_stream,
        ("eventChange", EventChangeView),
        query=KeepAlive,
        resets=True,
    ),
    stream(
        APP_PATH + "/connectionStream",
        "application.connectionStream",
        "Stream the connections of the devices of an application",
        connection_stream,
        ("deviceConnection", ConnectionChange),
        query=KeepAlive,
    ),
)
