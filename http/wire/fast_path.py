"""The interface of an application that can answer a whole request without a task.

Owns what the engine and such an application agree on. Whoever starts the engine passes it in, or None: then each
request is answered by awaiting the ASGI application.

Why: a request of a busy device is answered by a commit that many requests share. Waking a task to begin it and
again to send its response costs as much as parsing it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.headers import Fields, Headers
from trunkline.http.wire.request_context import Work
from trunkline.http.wire.request_heads import KnownHead

Respond = Callable[[int, Fields, bytes], None]
"""Takes the response to one request: status, header fields, body. Never raises and does not wait."""


class WholeRequest(Protocol):
    """What an application needs of a complete request: that of a connection, or one that another process passes on."""

    method: str
    target: bytes
    headers: Headers
    known: KnownHead | None
    work: Work | None

    def whole_body(self) -> bytes:
        """The body."""
        ...


class FastPath(Protocol):
    """Answers whole requests by callback, in front of the ASGI application."""

    def begin(self, exchange: Exchange, respond: Respond, again: Callable[[], None] | None, /) -> bool:
        """Take a complete request, if it can be answered without waiting for anything but a callback.

        True where it was taken: `respond` is then called exactly once, before this returns or later, from the
        event loop. False where the request was left untouched: the ASGI application is awaited for it. Must not
        raise, and must not take longer than a task may keep the loop to itself.

        With `again`, the request may also be put off: then the result is True, and `again` is called exactly once in
        place of `respond`. The connection then offers the request once more, without `again`.
        """
        ...
