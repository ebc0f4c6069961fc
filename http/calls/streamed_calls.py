"""Calls of routes with `streams_body`: their bodies are read in pieces while they arrive.

This ASGI layer is in front of Quart, which reads a body as fast as the client sends it and keeps all of it. Here a
piece is read from the connection only when the call asks for it, so a slow disk slows its client, and memory stays
constant. A call that is refused before it asks is answered without its body; the connection then ends. So is any other
call whose body is announced to be too long.
"""

from __future__ import annotations

from typing import Any

from trunkline.http.calls.asgi_request import request_of
from trunkline.http.calls.body_stream import BodyStream
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import body_too_large
from trunkline.http.calls.request import Response
from trunkline.http.wire.asgi import Application, announced_bytes, header_of


class StreamedCalls:
    """An ASGI layer: calls of routes with `streams_body` go to the dispatcher, all others to `app`."""

    def __init__(self, app: Application, dispatcher: Dispatcher, *, trust_forwarded_for: bool) -> None:
        self._app = app
        self._dispatcher = dispatcher
        self._trust_forwarded_for = trust_forwarded_for
        self._timeout_s = dispatcher.system.limits.body_timeout_s
        self._bytes_max = dispatcher.system.limits.body_bytes_max

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match = None
        if scope["type"] == "http" and scope["method"] in ("POST", "PATCH", "PUT"):
            match = self._dispatcher.table.match(scope["path"])
        route = None if match is None else match[0].get(scope["method"])
        if route is not None and route.streams_body:
            length = header_of(scope["headers"], b"content-length")
            stream = BodyStream(receive, length, self._timeout_s)
            request = request_of(scope, b"", trust_forwarded_for=self._trust_forwarded_for, stream=stream)
            response = await self._dispatcher.handle(request, match)
        elif scope["type"] == "http" and announced_bytes(scope["headers"]) > self._bytes_max:
            # Quart would begin to read, and so ask a client that sent `Expect` for the body.
            response = Response(*body_too_large(self._bytes_max))
        else:
            await self._app(scope, receive, send)
            return
        headers = [(b"content-length", b"%d" % len(response.body)), *response.headers]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})
