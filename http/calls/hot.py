"""The hot door: rows that heavy traffic goes through are dispatched before Quart sees them.

Quart costs about 180 us a request, which is several times what the rest of a state report costs. This ASGI
layer takes the requests of rows marked `hot` straight to the same dispatcher; everything else goes on to
Quart. Both doors hand over the same plain request and send the same bytes (`tests/http/calls/test_doors.py`
compares them).

It has two entrances. Our own engine, which has a whole request at hand, calls `begin`: a call that came before
and asks an actor is then handled without a task of its own ever waiting, and its answer leaves right from the
commit. `__call__` is ASGI: for the stock engine, for bodies that come in pieces, and for all else.

A client that leaves does not cancel a hot call: it is a few microseconds of work and a wait for the commit
that holds it, and looking out for the client would cost more than both.
"""

from __future__ import annotations

from typing import Any

import msgspec
import trio

from trunkline.actors.values.errors import PayloadTooLarge
from trunkline.http.calls.admissions import Repeat
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import JSON, answer
from trunkline.http.calls.request import Request, Response, address_of
from trunkline.http.wire.asgi import EXTENSIONS, Application
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import Respond

_DEADLINES = next(iter(EXTENSIONS))
_BODILESS = frozenset({204, 304})


class HotDoor:
    """An ASGI application in front of another one."""

    def __init__(self, dispatcher: Dispatcher, cold: Application, *, trust_forwarded_for: bool) -> None:
        self._dispatcher = dispatcher
        self._cold = cold
        self._trust_forwarded_for = trust_forwarded_for
        self._body_bytes_max = dispatcher.system.limits.body_bytes_max
        self._body_timeout_s = dispatcher.system.limits.body_timeout_s

    def begin(self, exchange: Exchange, done: Respond) -> bool:
        """Handle a whole request, if it is of a kind that needs no waiting. Never raises, and takes microseconds.

        True where it was taken: `done` is called once with status, fields and body, now or with the commit.
        """
        head = exchange.known
        repeat: Repeat | None = None if head is None else head.memo
        if repeat is None or not self._dispatcher.holds(repeat.admission):
            repeat = self._recalled(exchange)
            if repeat is None:
                return False
            if head is not None:
                head.memo = repeat
        body = exchange.whole_body()
        if len(body) > self._body_bytes_max:
            return False
        return self._dispatcher.begin(repeat, body, done)

    def _recalled(self, exchange: Exchange) -> Repeat | None:
        """What calls with the head of this request have in common, if such calls came before."""
        target, _, query = exchange.target.partition(b"?")
        path = target.decode("ascii")
        headers = dict(exchange.headers)
        known = self._dispatcher.known(exchange.method, path, headers.get(b"authorization"))
        if known is None:
            return None
        return self._dispatcher.recall(Request(exchange.method, path, query, headers, b"", ""), known)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._cold(scope, receive, send)
            return
        path: str = scope["path"]
        if path[:1] != "/":
            # The stock protocol leaves a target in absolute form as it is.
            path = _path_of(path)
            scope = {**scope, "path": path}
        method: str = scope["method"]
        headers = dict(scope["headers"])
        found = None
        known = self._dispatcher.known(method, path, headers.get(b"authorization"))
        if known is None:
            found = self._dispatcher.table.match(path)
            route = None if found is None else found[0].get(method)
            if route is None or not route.hot:
                await self._cold(scope, receive, send)
                return
        if int(headers.get(b"content-length") or 0) > self._body_bytes_max:
            # Said before the body is taken, so a client that asked with `Expect` does not send it.
            await _send(send, _too_large(self._body_bytes_max))
            return
        if _DEADLINES in scope["extensions"]:
            body = await self._body(receive)
        else:
            with trio.move_on_after(self._body_timeout_s) as timer:
                body = await self._body(receive)
            if timer.cancelled_caught:
                await _send(send, _too_slow())
                return
        if body is None:
            return
        if len(body) > self._body_bytes_max:
            await _send(send, _too_large(self._body_bytes_max))
            return
        address = address_of(scope["client"], headers, trusted=self._trust_forwarded_for)
        request = Request(method, path, scope["query_string"], headers, body, address)
        await _send(send, await self._dispatcher.handle(request, found, known))

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


def _path_of(target: str) -> str:
    """`/path` of `http://host/path`; anything else (`*`) as it is."""
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        return target
    return "/" + rest.partition("/")[2]


def _too_large(body_bytes_max: int) -> Response:
    return Response(
        *answer(
            PayloadTooLarge(f"The body is larger than {body_bytes_max} bytes, which a call takes at most.")
        )
    )


def _too_slow() -> Response:
    text = {"type": "RequestTimeout", "message": "The body came too slowly."}
    return Response(408, [JSON], msgspec.json.encode(text))


async def _send(send: Any, response: Response) -> None:
    body, headers = response.body, response.headers
    if response.status not in _BODILESS:
        headers = [(b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
