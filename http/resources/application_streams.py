"""Streams of a whole application, for consoles and for programs that follow many devices."""

from __future__ import annotations

from trunkline.actors.devices.messages import StateStream
from trunkline.actors.devices.views import DeviceStateEntry
from trunkline.http.calls.route import APP_PATH, Route
from trunkline.http.streams.sse import application_state_stream

ROUTES = (
    Route(
        method="GET",
        path=APP_PATH + "/stateStream",
        operation="application.stateStream",
        summary="Stream the states of the devices of an application",
        query=StateStream,
        handler=application_state_stream,
        event=("deviceState", DeviceStateEntry),
    ),
)
