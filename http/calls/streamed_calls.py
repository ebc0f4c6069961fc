"""Calls of routes with `streams_body`: their bodies are read in pieces while they arrive.

This ASGI layer is in front of Quart, which reads a body as fast as the client sends it and keeps all of it. Here a
piece is read from the connection only when the call asks for it, so a slow disk slows its client, and memory stays
constant. A call that is refused before it asks is answered without its body; the connection then ends.
"""

from __future__ import annotations

from typing import Any

from trunkline.http.calls.asgi_request import request_of
from trunkline.http.calls.body_stream import BodyStream
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.wire.asgi import Application


class StreamedCalls:
    """An ASGI layer: calls of routes with `streams_body` go to the dispatcher, all others to `app`."""

    def __init__(self, app: Application, dispatcher: Dispatcher, *, trust_forwarded_for: bool) -> None:
        self._app = app
        self._dispatcher = dispatcher
        self._trust_forwarded_for = trust_forwarded_for
        self._timeout_s = dispatcher.system.limits.body_timeout_s

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match = None
        if scope["type"] == "http" and scope["method"] in ("POST", "PATCH", "PUT"):
            match = self._dispatcher.table.match(scope["path"])
        route = None if match is None else match[0].get(scope["method"])
        if route is None or not route.streams_body:
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), None)
        stream = BodyStream(receive, length, self._timeout_s)
        request = request_of(scope, b"", trust_forwarded_for=self._trust_forwarded_for, stream=stream)
        response = await self._dispatcher.handle(request, match)
        start = {"type": "http.response.start", "status": response.status, "headers": response.headers}
        await send(start)
        await send({"type": "http.response.body", "body": response.body})
