"""The fast path: calls of frequent routes are dispatched without Quart.

Quart costs about 180 us a request, several times the rest of the cost of a state report. This ASGI layer passes
requests of routes marked `fast_path` directly to the dispatcher, and all others to Quart, which calls the same
dispatcher. Both paths build the same `Request` and send the same bytes (`tests/http/calls/test_fast_path.py` compares
them).

It has two entry points. Our own engine calls `begin` with a whole request: a repeated call that asks an actor or reads
is handled without a task that waits, and the response to a write is sent directly from the commit. `__call__` is ASGI:
for the stock engine, for bodies that arrive in several parts, and for all other requests.

A call on the fast path is not cancelled when its client disconnects: it is a few microseconds of work and a wait for
its commit, and watching the client would cost more than both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from trunkline.http.calls.admissions import CallTemplate, work_by
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import body_too_large, body_too_slow
from trunkline.http.calls.idempotency import HEADER as IDEMPOTENCY_KEY
from trunkline.http.calls.request import Request, Response
from trunkline.http.wire.asgi import EXTENSIONS, Application, client_address
from trunkline.http.wire.exchange import BODILESS
from trunkline.http.wire.fast_path import Respond, WholeRequest

_DEADLINES = next(iter(EXTENSIONS))


class FastPath:
    """An ASGI application in front of another one.

    `cross_origin`: calls of pages of another origin need headers that only the ASGI layers add (`wire/cors.py`).
    `is_foreign` says whether a host, as the header has it, is not one of the API; the ASGI layers answer for it.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        app: Application,
        *,
        trust_forwarded_for: bool,
        cross_origin: bool = False,
        is_foreign: Callable[[bytes], bool] = lambda _host: False,
    ) -> None:
        self._dispatcher = dispatcher
        self._admissions = dispatcher.admissions
        self._app = app
        self._trust_forwarded_for = trust_forwarded_for
        self._cross_origin = cross_origin
        self._is_foreign = is_foreign
        self._turns = dispatcher.call_turns
        self._body_bytes_max = dispatcher.system.limits.body_bytes_max
        self._body_timeout_s = dispatcher.system.limits.body_timeout_s

    def begin(self, exchange: WholeRequest, done: Respond, again: Callable[[], None] | None) -> bool:
        """Handle a whole request if that is possible without waiting. Never raises, and takes microseconds.

        True if it is handled: `done` is called once with status, headers and body, now or after the commit. Or, if this
        pass of the loop has no room for it, `again` is called in the turn of who pays for it.
        """
        head = exchange.known
        template: CallTemplate | None = None if head is None else head.memo
        if template is None or not self._admissions.is_valid(template.admission):
            template = self._template_for(exchange)
            if template is None:
                return False
            if head is not None:
                head.memo = template
        exchange.work = template.admission.work
        body = exchange.whole_body()
        if len(body) > self._body_bytes_max:
            return False
        turns = self._turns
        if again is not None and not turns.has_room and turns.put_off(template.admission.work, again):
            return True
        return self._dispatcher.begin(template, body, done)

    def _template_for(self, exchange: WholeRequest) -> CallTemplate | None:
        """The template for calls with this request head, None if no such call has an admission."""
        target, _, query = exchange.target.partition(b"?")
        path = target.decode("ascii")
        headers = dict(exchange.headers)
        if (self._cross_origin and b"origin" in headers) or self._is_foreign(headers.get(b"host", b"")):
            return None
        if IDEMPOTENCY_KEY in headers:
            return None  # each call has a head of its own, and may have to wait
        admission = self._admissions.find_by_token(exchange.method, path, headers.get(b"authorization"))
        if admission is None:
            return None
        return self._dispatcher.make_template(
            Request(exchange.method, path, query, headers, b"", ""), admission
        )

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path[:1] != "/":
            # The stock engine does not resolve a target in absolute form.
            path = _path_of(path)
            scope = {**scope, "path": path}
        method: str = scope["method"]
        headers = dict(scope["headers"])
        match = None
        address = client_address(scope["client"], headers, trusted=self._trust_forwarded_for)
        caller = self._admissions.caller(headers.get(b"authorization"))
        await self._turns.begin(address if caller is None else work_by(caller))
        admission = None if caller is None else self._admissions.find(method, path, caller)
        if admission is None:
            match = self._dispatcher.table.match(path)
            route = None if match is None else match[0].get(method)
            if route is None or not route.fast_path:
                await self._app(scope, receive, send)
                return
        if int(headers.get(b"content-length") or 0) > self._body_bytes_max:
            # Sent before the body is read, so that a client that sent `Expect` does not send it.
            await _send(send, Response(*body_too_large(self._body_bytes_max)))
            return
        if _DEADLINES in scope["extensions"]:
            body = await self._body(receive)
        else:
            with trio.move_on_after(self._body_timeout_s) as timer:
                body = await self._body(receive)
            if timer.cancelled_caught:
                await _send(send, Response(*body_too_slow()))
                return
        if body is None:
            return
        if len(body) > self._body_bytes_max:
            await _send(send, Response(*body_too_large(self._body_bytes_max)))
            return
        request = Request(method, path, scope["query_string"], headers, body, address)
        await _send(send, await self._dispatcher.handle(request, match, admission))

    async def _body(self, receive: Any) -> bytes | None:
        """The whole body, or enough of it to see that it is too large; None if the client disconnected."""
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


def _path_of(target: str) -> str:
    """`/path` of `http://host/path`; anything else (`*`) is returned unchanged."""
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        return target
    return "/" + rest.partition("/")[2]


async def _send(send: Any, response: Response) -> None:
    body, headers = response.body, response.headers
    if response.status not in BODILESS:
        headers = [(b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
