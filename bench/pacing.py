"""The time of the next call to a throttled route, taken from the server's headers.

Owns reading ``RateLimit`` (the remaining calls and when the window resets) and ``Retry-After``. A client that
follows them is never refused twice and needs no table of the server's limits. A server without throttles sends
no ``RateLimit``, and then nothing waits.

The fields are those of the IETF draft "RateLimit header fields for HTTP" (``"bucket";r=29;t=15``); its
older form (``limit=30, remaining=29, reset=15``) is accepted too.
"""

from __future__ import annotations

import re

from trunkline.bench.framing import Response
from trunkline.bench.session import retry_after_s

RETRY_DEFAULT_S = 1.0
"""Seconds: after a refusal without Retry-After."""

_LEFT = re.compile(r"(?:^|[;,\s])(?:r|remaining)\s*=\s*(\d{1,9})")
_RESET = re.compile(r"(?:^|[;,\s])(?:t|reset)\s*=\s*(\d{1,9}(?:\.\d+)?)")


class Pacer:
    """The earliest time of the next call to one bucket, on the clock of the caller."""

    __slots__ = ("next_s", "refusals")

    def __init__(self) -> None:
        self.next_s = 0.0
        self.refusals = 0

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next call may be made; 0 if it may be made now."""
        return max(0.0, self.next_s - now_s)

    def learn(self, response: Response, now_s: float) -> None:
        """Update the time of the next call from the headers of an answer."""
        if response.status in (429, 503):
            self.refusals += 1
            pause_s = retry_after_s(response)
            self.next_s = now_s + (RETRY_DEFAULT_S if pause_s is None else pause_s)
            return
        text = response.headers.get("ratelimit", "")
        left, reset = _LEFT.search(text), _RESET.search(text)
        if left and reset and int(left[1]) == 0:
            self.next_s = now_s + float(reset[1])
