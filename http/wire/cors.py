"""Cross-origin resource sharing (CORS): which pages of other origins may call this server from a browser.

Owns the headers that let a browser show a response to the page, and those of a preflight response. Follows the Fetch
standard (fetch.spec.whatwg.org, "CORS protocol"). Responses of the API never allow credentials: it takes bearer tokens,
no cookies. What a version of an experience allows is in its settings (`http/experiences/answers.py`).

`CrossOrigin` is an ASGI layer in front of the whole application. The engine's own refusals (a request that cannot be
parsed, too many connections) do not pass through it, so a page sees them only as failed requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from trunkline.http.wire.asgi import Application
from trunkline.http.wire.headers import Fields

ANY_ORIGIN: Final = "*"
METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"
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


class AllowedOrigins:
    """The origins whose pages may read responses, as browsers send them (`https://example.com`), or `*` for all.

    `exposed` are the headers that a page sees. With `credentials` browsers also send cookies, which they do for named
    origins only.
    """

    def __init__(self, origins: Iterable[str], exposed: bytes, *, credentials: bool = False) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self._any = ANY_ORIGIN.encode() in self._origins
        self._more: Fields = [(b"access-control-expose-headers", exposed)]
        if credentials:
            self._more.append((b"access-control-allow-credentials", b"true"))

    def headers_for(self, origin: bytes | None) -> Fields:
        """The headers of a response to a request from `origin`; None if the request names no origin."""
        if self._any:
            return [(b"access-control-allow-origin", b"*"), *self._more]
        # A cache must not give the response for one origin to a page of another.
        vary = (b"vary", b"Origin")
        if origin is None or origin not in self._origins:
            return [vary]
        return [(b"access-control-allow-origin", origin), vary, *self._more]


def preflight_headers(methods: bytes, requested: bytes | None) -> Fields:
    """The headers of a preflight response, beside those for its origin: the methods and headers that a page may use."""
    headers: Fields = [
        (b"access-control-allow-methods", methods),
        (b"access-control-max-age", _PREFLIGHT_AGE_S),
    ]
    return headers if requested is None else [*headers, (b"access-control-allow-headers", requested)]


class CrossOrigin:
    """Lets pages of `origins` use `app`. `origins` are as browsers send them (`https://example.com`), or `*`."""

    def __init__(self, app: Application, origins: Iterable[str]) -> None:
        self._app = app
        self._allowed = AllowedOrigins(origins, _RESPONSE_HEADERS)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        origin: bytes | None = headers.get(b"origin")
        added = self._allowed.headers_for(origin)
        preflight = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
        if origin is not None and preflight:
            await _send_preflight(send, added)
            return

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and not _is_for_all(message["headers"]):
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _is_for_all(headers: Fields) -> bool:
    """Whether a response is for pages of all origins by itself, as public files are."""
    return any(name == b"access-control-allow-origin" for name, _ in headers)


async def _send_preflight(send: Any, added: Fields) -> None:
    """Answer a preflight request. Without an allowed origin in `added`, the browser does not send the call."""
    headers = [*added, *preflight_headers(METHODS, _REQUEST_HEADERS)]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
