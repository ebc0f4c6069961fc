"""Reading what a call sends: its query and its body. Both raise `DomainError` for what is not valid."""

from __future__ import annotations

import trio

from trunkline.http.calls.call import Call
from trunkline.http.calls.json_body import check, check_none, decode, decode_beside, is_long_work
from trunkline.http.calls.late_decoder import LateDecoder


def parse_query(call: Call) -> None:
    """Decode the query. Raises `DomainError` if it is not valid."""
    if not call.route.free_query:
        call.query, call.with_links = call.route.parser.parse(call.request.query)


async def parse_body(call: Call) -> None:
    """Decode the body. Raises `DomainError` if it is not valid."""
    route, system = call.route, call.service.system
    if route.streams_body:
        limits, stream = system.limits, call.request.stream
        assert stream is not None
        bytes_max = getattr(limits, route.body_limit) + limits.form_fields_bytes_max
        stream.limit(bytes_max, route.body_advice)
    body = call.request.body
    if route.decoder is None:
        if body and not (route.streams_body or route.free_query or route.method == "GET"):
            check_none(body)
    elif body or not route.optional_body:
        if body:
            check(call.request, system.limits.body_bytes_max)
        if isinstance(route.decoder, LateDecoder):
            await trio.to_thread.run_sync(route.decoder.made)
        if is_long_work(body):
            limits, owner = system.limits, system.payer()
            values_max = limits.bulk_body_values_max if route.takes_many else limits.body_values_max
            call.body = await decode_beside(route.decoder, body, values_max, owner)
        else:
            call.body = decode(route.decoder, body)
