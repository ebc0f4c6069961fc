"""Requests on Hypercorn's own protocols: their ids and their lines in the access log.

Owns an ASGI layer that does for these protocols what `http1.py` and `exchange.py` do on our own connections.
Hypercorn's access log is not used: it has no request ids, and some requests twice.
"""

from __future__ import annotations

import time
from typing import Any

from trunkline.http.wire.access_log import LogAccess
from trunkline.http.wire.asgi import Application
from trunkline.http.wire.headers import Headers
from trunkline.http.wire.request_context import (
    REQUEST_ID,
    Work,
    current_request,
    given_id_line,
    id_of_line,
    new_id_lines,
)


class StockRequest:
    """One request and what was answered so far."""

    __slots__ = ("headers", "method", "path", "request_id", "sent_bytes", "status", "work")

    def __init__(self, scope: dict[str, Any]) -> None:
        self.method: str = scope["method"]
        self.path = scope["raw_path"].decode("latin1")
        self.headers: Headers = list(scope["headers"])
        self.request_id = id_of_line(given_id_line(self.headers) or next(new_id_lines))
        self.work: Work | None = None
        self.status = 0
        self.sent_bytes = 0


def with_request_ids(app: Application, log_access: LogAccess | None) -> Application:
    """The application for the stock protocols: each response names its request id, and is logged."""

    async def wrapped(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        request = StockRequest(scope)
        current_request.set(request)
        began_s = time.perf_counter()

        async def send_with_id(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                field = (REQUEST_ID, request.request_id)
                message = {**message, "headers": [*message.get("headers", ()), field]}
            elif message["type"] == "http.response.body" and request.method != "HEAD":
                request.sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await app(scope, receive, send_with_id)
        finally:
            if log_access is not None:
                log_access(request, scope["client"], time.perf_counter() - began_s)

    return wrapped
