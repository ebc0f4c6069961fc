"""MQTT over WebSocket, on the port of HTTP (docs/reference/mqtt.md)."""

from __future__ import annotations

from trunkline.http.calls.route import Route
from trunkline.http.mqtt.opening import open_mqtt

ROUTES = (
    Route(
        method="GET",
        path="/mqtt",
        operation="mqtt.open",
        summary="Speak MQTT over a WebSocket connection",
        access="none",
        area="public",
        upgrades=True,
        handler=open_mqtt,
        ok=101,
        also={
            400: "The request does not offer the protocol mqtt",
            426: "The request does not ask for WebSocket as RFC 6455 says",
        },
    ),
)
