"""What can go wrong between a load tool and a server.

Owns the exceptions of the room. A failure on the wire says whether the request may have been carried out
all the same (``maybe_done``), because a loss audit must tell "lost" from "unknown"; an error that the
server itself answered keeps the server's own type and message.
"""

from __future__ import annotations


class BenchError(Exception):
    """A load tool cannot go on; the message is a sentence for the person at the terminal."""


class WireError(BenchError):
    """A request got no whole answer. ``maybe_done`` tells whether the server may have carried it out."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class ConnectFailed(WireError):
    """No connection could be made, so nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, maybe_done=False)


class ConnectionBroken(WireError):
    """The peer closed or reset the connection before its answer was whole."""


class TimedOut(WireError):
    """No whole answer came in time."""


class ProtocolViolation(WireError):
    """The peer's answer is not HTTP/1.1, or passes a bound of this client."""

    def __init__(self, message: str) -> None:
        super().__init__(message, maybe_done=True)


class ApiError(BenchError):
    """The server refused: ``status``, and the ``type`` and ``message`` of its error body.

    ``retry_after_s`` is the server's Retry-After in seconds, or None where it sent none.
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
    """429 or 503: the same call may pass later; nothing of it was carried out."""


_BY_STATUS: dict[int, type[ApiError]] = {401: Unauthorized, 404: NotFound, 429: TryLater, 503: TryLater}


def api_error(status: int, type_: str, message: str, *, retry_after_s: float | None = None) -> ApiError:
    """The exception for an error answer, by its status."""
    return _BY_STATUS.get(status, ApiError)(status, type_, message, retry_after_s=retry_after_s)
