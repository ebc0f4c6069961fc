"""What a request to an experience is answered with, before it is bytes: a text, a page, a redirection, or a stream.

A workflow makes a reply, and so do the replies that are stored in endpoints and versions. Pages are rendered by whoever
answers the request, who knows what they may name.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.records.kind import Doc

FRAMING_HEADERS: Final = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the server sets itself, so a reply has none of them."""
HOST_HEADERS: Final = frozenset(
    {
        "alt-svc",
        "clear-site-data",
        "nel",
        "public-key-pins",
        "refresh",
        "report-to",
        "reporting-endpoints",
        "service-worker-allowed",
        "set-cookie",
        "strict-transport-security",
    }
)
"""Headers that concern more of a host than one path. Replies on a path have none of them; there cookies are
set by name (`Cookie`)."""


class Cookie(NamedTuple):
    """A cookie that is set, or removed if its value is empty. Without `max_age_ms` it ends with the browser."""

    name: str
    value: str
    max_age_ms: float | None = None
    path: str = ""
    same_site: str = ""


class Page(NamedTuple):
    """A page to render: its id, that of another layout than its own, and what it calls `pageData` and `flow`.

    `version` is another version than that of the request, by name.
    """

    id: str
    layout: str = ""
    data: Any = UNDEFINED
    flow: Doc | None = None
    version: str = ""


class Reply(NamedTuple):
    """A reply. One of `page`, `location` and `topics` may be set; otherwise `body` is sent as it is.

    `topics` are those whose messages are streamed (`topic_streams.py`).
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    cookies: tuple[Cookie, ...] = ()
    page: Page | None = None
    location: str | None = None
    topics: tuple[str, ...] = ()


def stored_reply(stored: Doc | None, page_status: int) -> Reply | None:
    """A reply that an endpoint or a version stores. `page_status` is that of a page without a status of its own."""
    if stored is None:
        return None
    if stored["type"] == "redirect":
        return Reply(redirect_status(stored.get("statusCode")), location=stored["value"])
    status = stored.get("statusCode", page_status)
    # Codes below 200 announce an answer and are none themselves.
    return Reply(status if status >= 200 else page_status, page=Page(stored["value"].lower()))


def redirect_status(status: int | None) -> int:
    """The status of a redirection: one that browsers follow."""
    return status if status in (301, 302, 303, 307, 308) else 302
