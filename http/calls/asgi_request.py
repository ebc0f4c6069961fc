"""A `Request` from the scope of an ASGI call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.http.calls.body_stream import BodyStream
from trunkline.http.calls.request import Request
from trunkline.http.wire.asgi import CLIENT_CERTIFICATE, MACHINE, client_address
from trunkline.http.wire.websocket import Offer


def request_of(
    scope: Mapping[str, Any],
    body: bytes,
    *,
    trust_forwarded_for: bool,
    stream: BodyStream | None = None,
    offer: Offer | None = None,
) -> Request:
    """The request of a scope; with `trust_forwarded_for` its address is the one that a proxy has added."""
    headers, state = dict(scope["headers"]), scope.get("state", {})
    return Request(
        scope["method"],
        scope["path"],
        scope["query_string"],
        headers,
        body,
        client_address(scope.get("client"), headers, trusted=trust_forwarded_for),
        state.get(CLIENT_CERTIFICATE),
        stream,
        offer=offer,
        machine=state.get(MACHINE, ""),
    )
