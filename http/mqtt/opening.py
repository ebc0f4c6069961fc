"""The request for MQTT over WebSocket: which handshakes are accepted."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.values.errors import Invalid
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.upgraded_calls import accept, upgrade_needed
from trunkline.http.mqtt.service import MqttService
from trunkline.http.wire.byte_session import Peer
from trunkline.http.wire.byte_websocket import ByteWebSocket

PROTOCOL: Final = "mqtt"


async def open_mqtt(call: Call) -> Response:
    """Open a connection for MQTT. The client logs in with its CONNECT."""
    refusal = upgrade_needed(call)
    if refusal is not None:
        return refusal
    system, request = call.service.system, call.request
    assert request.offer is not None
    if PROTOCOL not in request.offer.protocols:
        raise Invalid(f"Sec-WebSocket-Protocol: offer {PROTOCOL}.")
    system.check_load()
    is_secure = request.certificate is not None
    peer = Peer((request.address, 0), is_secure, request.certificate, websocket=True, machine=request.machine)
    service = system.component(MqttService)
    session = ByteWebSocket(service.session_for(peer), service.bounds.established_s)
    return accept(call, session, PROTOCOL, system.limits.mqtt_packet_bytes_max)
