"""How many messages somebody sends: some at once, then one in each interval. In memory only."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

SENDERS_MAX: Final = 10_000
"""Senders that are remembered; those that sent longest ago go first."""


class MailRate:
    """The messages of each sender: `most` at once, then one each `interval_s`."""

    def __init__(self, most: int, interval_s: float) -> None:
        self._most = most
        self._interval_s = interval_s
        self._free_s: OrderedDict[bytes, float] = OrderedDict()
        """When all messages that somebody has sent no longer count."""

    def take(self, sender: bytes, now_s: float, messages: int = 1) -> float:
        """Count messages and return 0, or return the seconds to wait. More than `most` count as so many."""
        interval_s = min(messages, self._most) * self._interval_s
        free_s = max(self._free_s.get(sender, now_s), now_s) + interval_s
        wait_s = free_s - now_s - self._most * self._interval_s
        if wait_s > 0:
            return wait_s
        self._free_s[sender] = free_s
        self._free_s.move_to_end(sender)
        if len(self._free_s) > SENDERS_MAX:
            self._free_s.popitem(last=False)
        return 0.0
