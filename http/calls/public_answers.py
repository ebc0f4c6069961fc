"""Answers for readers without a token: made once and kept for a time, so that strangers who poll cost little.

For each public dashboard one answer is made at a time, and so many in a window as `public_dashboard_data` says; those
that are kept are not counted. Also remembers which password was right, because checking one costs a core for 50 ms.
Both are forgotten with the process, and for the dashboards that were asked for longest ago.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import trio

from trunkline.actors.core.values.errors import Overloaded, TooManyRequests
from trunkline.limits.table import Limits
from trunkline.limits.window import SlidingWindow

_BUCKET = "public_dashboard_data"


class Answer(NamedTuple):
    """What was read at a time, and how many bytes it has."""

    time_ms: int
    value: Any
    size: int


class _Kept(NamedTuple):
    answer: Answer
    until_s: float


class _Dashboard:
    """What is known of one dashboard."""

    def __init__(self, window: SlidingWindow | None) -> None:
        self.window = window
        self.lock = trio.Lock()
        self.waiting = 0
        self.kept: dict[bytes, _Kept] = {}
        self.right_password = b""

    def find(self, key: bytes, now_s: float) -> Answer | None:
        """The answer that is kept under a key and not too old."""
        kept = self.kept.get(key)
        return kept.answer if kept is not None and now_s < kept.until_s else None


class PublicAnswers:
    """The answers of all dashboards. Clocks are monotonic, in seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._dashboards: dict[bytes, _Dashboard] = {}
        """Those that were asked for longest ago come first."""
        self._size = 0
        self._secret = secrets.token_bytes(32)

    async def get(
        self,
        id: bytes,
        key: bytes,
        keep_s: float,
        now_s: Callable[[], float],
        make: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        """The answer under `key` that is kept, or a new one, which is then kept for `keep_s`.

        Raises `TooManyRequests` if too many were made for the dashboard, `Overloaded` if too many callers wait.
        """
        dashboard = self._dashboard(id)
        found = dashboard.find(key, now_s())
        if found is not None:
            return found
        if dashboard.waiting >= self._limits.public_dashboard_waiting_calls_max:
            raise Overloaded(f"{dashboard.waiting} calls wait for the data of this dashboard.")
        dashboard.waiting += 1
        try:
            async with dashboard.lock:
                found = dashboard.find(key, now_s())
                if found is not None:
                    return found
                self._count(dashboard, now_s())
                answer = await make()
                self._keep(id, key, _Kept(answer, now_s() + keep_s), now_s())
                return answer
        finally:
            dashboard.waiting -= 1

    def knows_password(self, id: bytes, stored: str, given: str) -> bool:
        """Whether the password is the one that was found to be right last."""
        return hmac.compare_digest(self._dashboard(id).right_password, self._digest(stored, given))

    def note_password(self, id: bytes, stored: str, given: str) -> None:
        """Remember that a password is right."""
        self._dashboard(id).right_password = self._digest(stored, given)

    def _digest(self, stored: str, given: str) -> bytes:
        text = f"{stored}\0{given}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._secret).digest()

    def _dashboard(self, id: bytes) -> _Dashboard:
        found = self._dashboards.pop(id, None)
        if found is None:
            rate = self._limits.public_dashboard_data
            found = _Dashboard(None if rate is None else SlidingWindow(rate))
            if len(self._dashboards) >= self._limits.public_dashboards_length_max:
                self._forget_one()
        self._dashboards[id] = found
        return found

    def _forget_one(self) -> None:
        """Forget the dashboard that was asked for longest ago, and for which nobody waits."""
        for id, dashboard in self._dashboards.items():
            if not dashboard.waiting:
                self._empty(dashboard)
                del self._dashboards[id]
                return

    def _empty(self, dashboard: _Dashboard) -> None:
        self._size -= sum(kept.answer.size for kept in dashboard.kept.values())
        dashboard.kept.clear()

    def _count(self, dashboard: _Dashboard, now_s: float) -> None:
        verdict = None if dashboard.window is None else dashboard.window.allow(now_s)
        if verdict is not None and not verdict.allowed:
            raise TooManyRequests(
                "Too many answers were made for readers of this dashboard without a token; "
                f"the next one is possible in {math.ceil(verdict.reset_s)} seconds.",
                bucket=_BUCKET,
                verdict=verdict,
                retry_after_s=verdict.reset_s,
            )

    def _keep(self, id: bytes, key: bytes, new: _Kept, now_s: float) -> None:
        dashboard = self._dashboard(id)
        current = {
            name: each for name, each in dashboard.kept.items() if now_s < each.until_s and name != key
        }
        self._empty(dashboard)
        dashboard.kept = {**current, key: new}
        self._size += sum(kept.answer.size for kept in dashboard.kept.values())
        for other in self._dashboards.values():
            if self._size <= self._limits.public_answers_bytes_max:
                return
            self._empty(other)
