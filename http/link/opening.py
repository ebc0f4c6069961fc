"""The request for a link: which handshakes are accepted."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.read_messages import GetDevice
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.upgraded_calls import accept, upgrade_needed
from trunkline.http.link.outgoing import CBOR, JSON, Outgoing
from trunkline.http.link.session import LinkSession

PROTOCOLS: Final[dict[str, Outgoing]] = {
    "trunkline.link.v1+cbor": CBOR,
    "trunkline.link.v1+json": JSON,
}


async def open_link(call: Call) -> Response:
    """Open the link of the device in the path. The token may come in the first frame instead of the header."""
    refusal = upgrade_needed(call)
    if refusal is not None:
        return refusal
    system, offer = call.service.system, call.request.offer
    assert offer is not None
    protocol = next((each for each in offer.protocols if each in PROTOCOLS), None)
    if protocol is None:
        raise Invalid(f"Sec-WebSocket-Protocol: offer one of {' and '.join(PROTOCOLS)}.")
    system.check_load()
    if not call.is_anonymous:
        await call.service.read(call, GetDevice)
    return accept(call, LinkSession(call, PROTOCOLS[protocol]), protocol, system.limits.link_frame_bytes_max)
