"""The exceptions of the load tools.

A network failure says whether the server may have executed the request nevertheless (``maybe_done``), because an
audit must distinguish "lost" from "unknown". An error answered by the server keeps the server's type and message.
"""

from __future__ import annotations


class BenchError(Exception):
    """A load tool cannot continue; the message is a sentence for the user."""


class WireError(BenchError):
    """A request got no complete answer. ``maybe_done``: the server may have executed it."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class ConnectFailed(WireError):
    """No connection could be made, so nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, maybe_done=False)


class ConnectionBroken(WireError):
    """The peer closed or reset the connection before its answer was complete."""


class TimedOut(WireError):
    """No complete answer came in time."""


class ProtocolViolation(WireError):
    """The peer's answer is not valid for its protocol, or exceeds a bound of this client."""

    def __init__(self, message: str) -> None:
        super().__init__(message, maybe_done=True)


class ApiError(BenchError):
    """The server refused: ``status``, and the ``type`` and ``message`` of its error body.

    ``retry_after_s`` is the server's Retry-After in seconds, or None if it sent none.
    """

    def __init__(self, status: int, type_: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {type_}: {message}")
        self.status = status
        self.type = type_
        self.message = message
        self.retry_after_s = retry_after_s


class Unauthorized(ApiError):
    """401: the credentials or the token are not accepted."""


class NotFound(ApiError):
    """404: the application, the device or another record does not exist."""


class TryLater(ApiError):
    """429 or 503: nothing was executed; the same call may succeed later."""


_BY_STATUS: dict[int, type[ApiError]] = {401: Unauthorized, 404: NotFound, 429: TryLater, 503: TryLater}


def api_error(status: int, type_: str, message: str, *, retry_after_s: float | None = None) -> ApiError:
    """The exception for an error answer, chosen by its status."""
    return _BY_STATUS.get(status, ApiError)(status, type_, message, retry_after_s=retry_after_s)
