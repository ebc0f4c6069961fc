"""The hot door: rows that heavy traffic goes through are dispatched before Quart sees them.

Quart costs about 180 us a request, which is several times what the rest of a state report costs. This ASGI
layer takes the requests of rows marked `hot` straight to the same dispatcher; everything else goes on to
Quart. Both doors hand over the same plain request and send the same bytes (a test compares them).
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.errors import PayloadTooLarge
from trunkline.http.call import Request, Response
from trunkline.http.dispatch import Dispatcher
from trunkline.http.errors import answer
from trunkline.http.http1 import Application


class HotDoor:
    """An ASGI application in front of another one."""

    def __init__(self, dispatcher: Dispatcher, cold: Application, *, trust_forwarded_for: bool) -> None:
        self._dispatcher = dispatcher
        self._cold = cold
        self._trust_forwarded_for = trust_forwarded_for
        self._body_bytes_max = dispatcher.system.limits.body_bytes_max

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._cold(scope, receive, send)
            return
        found = self._dispatcher.table.match(scope["path"])
        route = None if found is None else found[0].get(scope["method"])
        if route is None or not route.hot:
            await self._cold(scope, receive, send)
            return
        body = await self._body(receive)
        if body is None:
            return
        if len(body) > self._body_bytes_max:
            await _send(send, _too_large(self._body_bytes_max))
            return
        headers = {name.decode("latin1"): value.decode("latin1") for name, value in scope["headers"]}
        request = Request(
            scope["method"],
            scope["path"],
            scope["query_string"],
            headers,
            body,
            self._address(scope, headers),
        )
        await _send(send, await self._dispatcher.handle(request, found))

    async def _body(self, receive: Any) -> bytes | None:
        """The whole body, or as much as shows that it is too large; None where the client left."""
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body: bytes = message["body"]
        if not message["more_body"]:
            return body
        pieces = [body]
        size = len(body)
        while message["more_body"] and size <= self._body_bytes_max:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message["body"])
            size += len(message["body"])
        return b"".join(pieces)

    def _address(self, scope: dict[str, Any], headers: dict[str, str]) -> str:
        if self._trust_forwarded_for and headers.get("x-forwarded-for"):
            # As in `app.py`: the entry of the proxy, not what the client claims.
            return headers["x-forwarded-for"].rpartition(",")[2].strip()
        client = scope["client"]
        return str(client[0]) if client else ""


def _too_large(body_bytes_max: int) -> Response:
    return Response(
        *answer(
            PayloadTooLarge(f"The body is larger than {body_bytes_max} bytes, which a call takes at most.")
        )
    )


async def _send(send: Any, response: Response) -> None:
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body})
