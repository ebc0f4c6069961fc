"""Errors as responses: the only module that knows status codes.

Every error body is `{type, message}`. The message names the field, what is wrong with it and what would be right; it
contains no internals of the server.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import msgspec

from trunkline.actors.core.values import errors
from trunkline.actors.core.values.errors import DomainError
from trunkline.http.calls.request import Headers


class MethodNotAllowed(DomainError):
    """The path exists, but it does not have this method."""

    type = "MethodNotAllowed"

    def __init__(self, message: str, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


class UnsupportedMediaType(DomainError):
    """A JSON body is required and something else was sent."""

    type = "UnsupportedMediaType"


STATUS: dict[str, int] = {
    errors.Invalid.type: 400,
    errors.Unauthorized.type: 401,
    errors.Forbidden.type: 403,
    errors.NotFound.type: 404,
    MethodNotAllowed.type: 405,
    errors.InWork.type: 409,
    errors.Gone.type: 410,
    errors.PreconditionFailed.type: 412,
    errors.PayloadTooLarge.type: 413,
    UnsupportedMediaType.type: 415,
    errors.KeyReused.type: 422,
    errors.TooManyRequests.type: 429,
    errors.Crashed.type: 500,
    errors.Overloaded.type: 503,
    errors.StorageFull.type: 507,
}
"""Error type to status code. `docs/architecture.md` prints the same table and a test compares them."""

ENGINE_STATUS: dict[str, int] = {
    "RequestTimeout": 408,
    "TargetTooLong": 414,
    "RangeNotSatisfiable": 416,
    "ExpectationFailed": 417,
    "UpgradeRequired": 426,
    "HeaderTooLarge": 431,
    "NotImplemented": 501,
    "BadGateway": 502,
    "VersionNotSupported": 505,
}
"""The same for what the engine refuses before any operation sees it, and for a body or range that is not as it
should be."""

JSON = (b"content-type", b"application/json")
RETRY_SOON = (b"retry-after", b"1")
"""For calls that the engine refuses because it is at a bound: they may be repeated once other calls are answered."""


def error_response(error: DomainError) -> tuple[int, Headers, bytes]:
    """Status, headers and body of a domain error."""
    headers: Headers = [JSON]
    if isinstance(error, errors.TooManyRequests):
        headers.append((b"retry-after", str(max(1, math.ceil(error.retry_after_s))).encode()))
        if error.verdict is not None:
            headers += rate_limit(error.bucket, error.verdict)
    elif isinstance(error, errors.Overloaded):
        headers.append((b"retry-after", str(max(1, math.ceil(error.retry_after_s))).encode()))
    elif isinstance(error, errors.InWork):
        headers.append(RETRY_SOON)
    elif isinstance(error, errors.Unauthorized):
        headers.append((b"www-authenticate", b'Bearer realm="trunkline"'))
    elif isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allowed.encode()))
    body: dict[str, Any] = {"type": error.type, "message": error.message}
    if isinstance(error, errors.InvalidParts):
        return 422, headers, msgspec.json.encode({**body, "validationErrors": error.problems})
    return (STATUS | ENGINE_STATUS)[error.type], headers, msgspec.json.encode(body)


def protocol_error(status: int, message: str) -> tuple[Headers, bytes]:
    """Headers and body of an error that the engine answers itself, in the same form as all errors."""
    types = {code: name for name, code in (STATUS | ENGINE_STATUS).items()}
    headers = [JSON, RETRY_SOON] if status in (429, 503) else [JSON]
    return headers, msgspec.json.encode({"type": types[status], "message": message})


def body_too_large(bytes_max: int) -> tuple[int, Headers, bytes]:
    """Status, headers and body for a call whose body is larger than `bytes_max` bytes."""
    return error_response(
        errors.PayloadTooLarge(f"The body is larger than {bytes_max} bytes, which a call takes at most.")
    )


def body_too_slow() -> tuple[int, Headers, bytes]:
    """Status, headers and body for a call whose body did not come in time."""
    return 408, *protocol_error(408, "The body came too slowly.")


def rate_limit(bucket: str, verdict: Any) -> Headers:
    """The RateLimit headers of a bucket (IETF draft-ietf-httpapi-ratelimit-headers): calls left and reset time.

    `t` is the whole number of seconds, rounded up, until the oldest counted call leaves the window. `w` is the window
    in seconds. The draft wants integers; a window is rounded up, so a client that keeps to it is never refused.
    """
    policy = _policy(bucket, verdict.limit, verdict.window_s)
    return [policy, _state(bucket, verdict.remaining, math.ceil(verdict.reset_s))]


@lru_cache(256)
def _policy(bucket: str, limit: int, window_s: float) -> tuple[bytes, bytes]:
    return b"ratelimit-policy", f'"{bucket}";q={limit};w={math.ceil(window_s)}'.encode()


@lru_cache(4096)  # few of the possible values are in use at a time
def _state(bucket: str, remaining: int, reset_s: int) -> tuple[bytes, bytes]:
    return b"ratelimit", f'"{bucket}";r={remaining};t={reset_s}'.encode()
