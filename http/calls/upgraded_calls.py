"""Calls of routes with `upgrades`: a GET that asks for WebSocket.

This ASGI layer is in front of Quart, which would keep a task and its contexts for as long as the connection lasts. The
handler of the route accepts the offer with a session and returns; the connection then calls the session back. A call
that is refused is answered as any other, so a client learns from the status and the sentence why.
"""

from __future__ import annotations

from typing import Any

from trunkline.http.calls.asgi_request import request_of
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import protocol_error
from trunkline.http.calls.request import Response
from trunkline.http.wire.asgi import WEBSOCKET, Application
from trunkline.http.wire.websocket import Offer, Session, SocketBounds

_VERSION = (b"sec-websocket-version", b"13")


class UpgradedCalls:
    """An ASGI layer: requests for WebSocket to routes with `upgrades` go to the dispatcher, all others to `app`."""

    def __init__(self, app: Application, dispatcher: Dispatcher, *, trust_forwarded_for: bool) -> None:
        self._app = app
        self._dispatcher = dispatcher
        self._trust_forwarded_for = trust_forwarded_for

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        offer: Offer | None = None
        if scope["type"] == "http":
            offer = scope.get("extensions", {}).get(WEBSOCKET)
        match = None if offer is None else self._dispatcher.table.match(scope["path"])
        route = None if match is None else match[0].get("GET")
        if offer is None or route is None or not route.upgrades:
            await self._app(scope, receive, send)
            return
        request = request_of(scope, b"", trust_forwarded_for=self._trust_forwarded_for, offer=offer)
        response = await self._dispatcher.handle(request, match)
        if offer.accepted is None:
            start = {"type": "http.response.start", "status": response.status, "headers": response.headers}
            await send(start)
            await send({"type": "http.response.body", "body": response.body})


def upgrade_needed(call: Call) -> Response | None:
    """The response to a call that does not ask for WebSocket as RFC 6455 says; None where it does."""
    offer = call.request.offer
    if offer is not None and offer.problem is None:
        return None
    problem = "Upgrade: this path is only for WebSocket connections." if offer is None else offer.problem
    headers, body = protocol_error(426, problem or "")
    return Response(426, [(b"upgrade", b"websocket"), _VERSION, *headers], body)


def accept(call: Call, session: Session, protocol: str | None, message_bytes_max: int) -> Response:
    """Accept the offer of a call. The response is sent by the connection."""
    offer, limits = call.request.offer, call.service.system.limits
    assert offer is not None
    bounds = SocketBounds(
        message_bytes_max=message_bytes_max,
        unsent_bytes_max=limits.websocket_buffer_bytes_max,
        ping_interval_s=limits.websocket_ping_interval_s,
        pong_timeout_s=limits.websocket_pong_timeout_s,
    )
    offer.accept(session, protocol, bounds)
    return Response(101, [])
