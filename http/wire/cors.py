"""Cross-origin resource sharing (CORS): which pages of other origins may call the API from a browser.

Owns the preflight response and the headers that let a browser show a response to the page. Follows the Fetch standard
(fetch.spec.whatwg.org, "CORS protocol"). Responses never allow credentials: the API takes bearer tokens, no cookies.

It is an ASGI layer in front of the whole application. The engine's own refusals (a request that cannot be parsed, too
many connections) do not pass through it, so a page sees them only as failed requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from trunkline.http.wire.asgi import Application
from trunkline.http.wire.headers import Fields

ANY_ORIGIN: Final = "*"
_METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_REQUEST_HEADERS: Final = b", ".join(
    (
        *(b"Authorization", b"Content-Type", b"Accept", b"Accept-Version"),
        *(b"If-Match", b"If-None-Match", b"Last-Event-ID", b"X-Request-Id"),
        *(b"Range", b"If-Range", b"Idempotency-Key"),
    )
)
_RESPONSE_HEADERS: Final = (
    b"RateLimit, RateLimit-Policy, Retry-After, ETag, X-Request-Id, WWW-Authenticate, Content-Disposition, "
    b"Content-Range, Accept-Ranges, Repr-Digest, Idempotent-Replayed"
)
_PREFLIGHT_AGE_S: Final = b"7200"
"""How long a browser keeps a preflight response; browsers do not keep it longer."""


class CrossOrigin:
    """Lets pages of `origins` use `app`. `origins` are as browsers send them (`https://example.com`), or `*`."""

    def __init__(self, app: Application, origins: Iterable[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.encode("ascii") for origin in origins)
        self._any = ANY_ORIGIN.encode() in self._origins

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        origin: bytes | None = headers.get(b"origin")
        added = self._headers_for(origin)
        preflight = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
        if origin is not None and preflight:
            await _send_preflight(send, added)
            return

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and not _is_for_all(message["headers"]):
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _headers_for(self, origin: bytes | None) -> Fields:
        """The headers of a response to a request from `origin`; None if the request names no origin."""
        if self._any:
            allowed: Fields = [(b"access-control-allow-origin", b"*")]
        elif origin in self._origins:
            assert origin is not None
            allowed = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        else:
            # A cache must not give this response to a page of an allowed origin.
            return [(b"vary", b"Origin")]
        return [*allowed, (b"access-control-expose-headers", _RESPONSE_HEADERS)]


def _is_for_all(headers: Fields) -> bool:
    """Whether a response is for pages of all origins by itself, as public files are."""
    return any(name == b"access-control-allow-origin" for name, _ in headers)


async def _send_preflight(send: Any, added: Fields) -> None:
    """Answer a preflight request. Without an allowed origin in `added`, the browser does not send the call."""
    headers: Fields = [
        *added,
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _REQUEST_HEADERS),
        (b"access-control-max-age", _PREFLIGHT_AGE_S),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
