"""SendGrid: sends a mail with the account of a tenant, by the HTTP API of the service.

Owns one attempt and what its answer means: every status from 200 to 299 is an accepted mail. Does not own what a mail
says, nor whose account sends it (`engine/nodes/sendgrid.py`). The API key is in the request only.
"""

from __future__ import annotations

from typing import Any, Final

import httpx
import msgspec

from trunkline.actors.core.outgoing.http_calls import Received, Undelivered
from trunkline.actors.core.outgoing.http_requests import Request, fetch

ANSWER_BYTES_MAX: Final = 65_536
_REASON_CHARS_MAX: Final = 300


class SendGrid:
    """The service at `url`, which the operator has chosen, so it may be in a private network."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._url = f"{url.rstrip('/')}/v3/mail/send"
        self._timeout_s = timeout_s

    async def send(self, api_key: str, mail: bytes) -> None:
        """Send a mail, given as JSON. Raises `Undelivered` with a sentence if it was not accepted."""
        headers = httpx.Headers({"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"})
        request = Request("POST", self._url, headers, mail, follows_redirects=False, field="sendgrid_url")
        received = await fetch(
            request, timeout_s=self._timeout_s, bytes_max=ANSWER_BYTES_MAX, private=lambda _url: True
        )
        if not 200 <= received.status < 300:
            reason = _reason(received).replace(api_key, "(hidden)")[:_REASON_CHARS_MAX]
            raise Undelivered(
                f"SendGrid answered with {received.status}" + (f": {reason}" if reason else ".")
            )


def _reason(received: Received) -> str:
    """What the service says is wrong, as `errors[0].message`; nothing if it says nothing."""
    try:
        answer: Any = msgspec.json.decode(received.content)
        return str(answer["errors"][0]["message"])
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return ""
