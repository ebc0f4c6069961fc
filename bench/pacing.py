"""When the next call to a throttled route may be made, learned from the server's own headers.

Owns reading ``RateLimit`` (what is left and when it refills) and ``Retry-After``. A client that obeys them
is never refused twice, and needs no table of the server's limits: where a server has lifted its throttles
it sends no ``RateLimit``, and nothing waits.

The fields are those of the IETF draft "RateLimit header fields for HTTP" (``"bucket";r=29;t=15``); its
older form (``limit=30, remaining=29, reset=15``) is read too.
"""

from __future__ import annotations

import re

from trunkline.bench.framing import Response
from trunkline.bench.session import retry_after_s

RETRY_DEFAULT_S = 1.0
"""Seconds: after a refusal that names no time."""

_LEFT = re.compile(r"(?:^|[;,\s])(?:r|remaining)\s*=\s*(\d{1,9})")
_RESET = re.compile(r"(?:^|[;,\s])(?:t|reset)\s*=\s*(\d{1,9}(?:\.\d+)?)")


class Pacer:
    """The earliest time of the next call to one bucket, on the clock that the caller passes in."""

    __slots__ = ("next_s", "refusals")

    def __init__(self) -> None:
        self.next_s = 0.0
        self.refusals = 0

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next call may be made; 0 if at once."""
        return max(0.0, self.next_s - now_s)

    def learn(self, response: Response, now_s: float) -> None:
        """Take what an answer says about the bucket."""
        if response.status in (429, 503):
            self.refusals += 1
            pause_s = retry_after_s(response)
            self.next_s = now_s + (RETRY_DEFAULT_S if pause_s is None else pause_s)
            return
        text = response.headers.get("ratelimit", "")
        left, reset = _LEFT.search(text), _RESET.search(text)
        if left and reset and int(left[1]) == 0:
            self.next_s = now_s + float(reset[1])
