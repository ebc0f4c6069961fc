"""The access log: one line for each response, the same for all protocols.

Owns what a line contains. Does not own where lines go, which is the configuration of structlog.

Why the query of a request is left out: it may hold secrets. So does the path of the address of a webhook, whose last
part is a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol
from urllib.parse import unquote

from trunkline.http.wire.asgi import Address, client_address
from trunkline.http.wire.headers import Headers
from trunkline.http.wire.request_context import Work


class Answered(Protocol):
    """A request and what was answered."""

    method: str
    headers: Headers
    status: int
    sent_bytes: int
    work: Work | None

    @property
    def path(self) -> str:
        """The path without the query."""

    @property
    def request_id(self) -> bytes:
        """The id of the request."""


_ADDRESSES: Final = "webhooks"
"""The first part of the paths whose other parts are secret."""

LogAccess = Callable[[Answered, Address, float], None]
"""Called for each response: the request, the client, and the seconds from the request to the end of the response."""


def access_log(logger: Any, *, trust_forwarded_for: bool) -> LogAccess:
    """Writes a line for each response to a logger of structlog."""

    def log_access(answered: Answered, client: Address, took_s: float) -> None:
        work = answered.work
        kind, _, id = ((work and work.bearer) or "").partition(" ")
        logger.info(
            "request",
            method=answered.method,
            path=_shown(answered.path),
            status=answered.status,
            bytes=answered.sent_bytes,
            duration_ms=round(took_s * 1000, 3),
            client=client_address(client, dict(answered.headers), trusted=trust_forwarded_for),
            operation=work and work.name,
            principal=kind or None,
            principal_id=id or None,
            request_id=answered.request_id.decode("ascii"),
        )

    return log_access


def _shown(path: str) -> str:
    """The path without what is secret in it."""
    first, _, rest = unquote(path).strip("/").partition("/")
    return f"/{_ADDRESSES}/***" if first == _ADDRESSES and rest else path
