"""How many mails workflows send: some at once, then one in each interval. In memory only."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from trunkline.limits.table import Limits

FLOWS_MAX: Final = 10_000
"""Workflows that are remembered; those that sent longest ago go first."""


class FlowMails:
    """The mails of each workflow. A component of the system."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.flow_mails_max
        self._interval_s = limits.flow_mail_interval_s
        self._free_s: OrderedDict[bytes, float] = OrderedDict()
        """When all mails that a workflow has sent no longer count."""

    def take(self, flow: bytes, now_s: float) -> float:
        """Count one more mail and return 0, or return the seconds to wait."""
        free_s = max(self._free_s.get(flow, now_s), now_s) + self._interval_s
        wait_s = free_s - now_s - self._most * self._interval_s
        if wait_s > 0:
            return wait_s
        self._free_s[flow] = free_s
        self._free_s.move_to_end(flow)
        if len(self._free_s) > FLOWS_MAX:
            self._free_s.popitem(last=False)
        return 0.0
