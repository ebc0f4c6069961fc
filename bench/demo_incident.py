"""The incident of the demo: one night of the past week, in which a compressor tripped and a freezer became too warm.

Owns when what happened, and what it did to temperatures. No I/O.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86_400

FREEZER, COMPRESSOR, STANDBY = "freezer-2", "compressor-2", "compressor-3"
"""What became too warm, what had tripped, and what was started in its place."""

REPORT_S: Final = 604
"""Seconds between two reports of the freezer in that night."""

_WARMEST: Final = 30.0
"""Degrees above its target that the freezer would reach without any cooling."""
_WARMS_S, _COOLS_S = 5.5 * _HOUR_S, 2.06 * _HOUR_S
"""How fast the freezer becomes warm and cold: the seconds in which it does about two thirds of it."""


@dataclass(frozen=True, slots=True)
class Incident:
    """When what happened, in seconds since the epoch."""

    began_s: float

    @property
    def seen_s(self) -> float:
        """Somebody acknowledged the alarm."""
        return self.began_s + 81 * _MINUTE_S

    @property
    def standby_s(self) -> float:
        """The standby compressor was started."""
        return self.began_s + 84 * _MINUTE_S

    @property
    def over_s(self) -> float:
        """The freezer was cold again, and some time has passed."""
        return self.began_s + 5 * _HOUR_S

    @property
    def repaired_s(self) -> float:
        """The compressor ran again, and the standby was stopped."""
        return self.began_s + 7 * _HOUR_S

    def is_tripped(self, at_s: float) -> bool:
        """Whether the compressor stands still."""
        return self.began_s <= at_s < self.repaired_s

    def is_helped(self, at_s: float) -> bool:
        """Whether the standby runs."""
        return self.standby_s <= at_s < self.repaired_s

    def warmth(self, at_s: float) -> float:
        """Degrees by which the freezer is warmer than in another night."""
        if at_s < self.began_s:
            return 0.0
        warm_s = min(at_s, self.standby_s) - self.began_s
        warmest = _WARMEST * (1 - math.exp(-warm_s / _WARMS_S))
        return warmest * math.exp(-max(0.0, at_s - self.standby_s) / _COOLS_S)


def incident_before(now_s: float) -> Incident:
    """The incident of a demo that begins now: at ten past one (UTC), two or three nights ago."""
    night_s = (now_s - 2 * _DAY_S) // _DAY_S * _DAY_S
    return Incident(night_s + _HOUR_S + 10 * _MINUTE_S)
