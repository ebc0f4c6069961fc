"""Calls with a backlog: states of the past, which wait for their turn in the backlog lane.

The body is decoded in the turn: as bytes it waits in less memory. Before it only the items are counted.
"""

from __future__ import annotations

import msgspec

from trunkline.actors.fleet.devices.record.messages import SendBacklog
from trunkline.actors.fleet.devices.state.backlog import BUCKET, BacklogLane
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.json_body import check, decode
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS

_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


async def send_backlog(call: Call) -> Response:
    """Store states of the past when their turn comes."""
    service, body, decoder = call.service, call.request.body, call.route.decoder
    system = service.system
    assert decoder is not None
    check(call.request, system.limits.body_bytes_max)
    states = _count_items(body)
    if states is None:
        call.body = decode(decoder, body)
    async with system.component(BacklogLane).turn(service.ref(call), states or 1, len(body)) as verdict:
        if states is not None:
            call.body = decode(decoder, body)
        await system.ask(service.ref(call), service.message(call, SendBacklog), call.stamp)
    headers = [JSON] if verdict is None else [JSON, *rate_limit(BUCKET, verdict)]
    return Response(200, headers, SUCCESS)


def _count_items(body: bytes) -> int | None:
    """The number of items of a body that is an array; None if it is no array, or no JSON."""
    try:
        return len(_ITEMS.decode(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
