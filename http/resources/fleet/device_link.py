"""The device link, one WebSocket connection that a device keeps (docs/reference/device-link.md)."""

from __future__ import annotations

from trunkline.actors.fleet.devices.record.messages import DeviceShape
from trunkline.actors.fleet.devices.record.read_messages import GetDevice
from trunkline.http.calls.route import DEVICE_PATH, Route
from trunkline.http.link.opening import open_link

ROUTES = (
    Route(
        method="GET",
        path=DEVICE_PATH + "/link",
        operation="device.link",
        summary="Open the link of a device, a WebSocket connection",
        uses=(GetDevice,),
        query=DeviceShape,
        access="write",
        device="self",
        anonymous=True,
        upgrades=True,
        handler=open_link,
        ok=101,
        also={426: "The request does not ask for WebSocket as RFC 6455 says"},
    ),
)
