"""A bound on lines of a log that others can cause: so many a minute are written, the rest are counted."""

from __future__ import annotations

from typing import Final

from trunkline.limits.table import Rate
from trunkline.limits.window import SlidingWindow

_MINUTE_S: Final = 60.0


class LogLines:
    """The bound for one kind of line."""

    __slots__ = ("_left_out", "_window")

    def __init__(self, per_minute_max: int) -> None:
        self._window = SlidingWindow(Rate(calls=per_minute_max, window_s=_MINUTE_S))
        self._left_out = 0

    def take(self, now_s: float) -> dict[str, int] | None:
        """None if no line may be written now; else its fields about those before it that were not: `left_out`."""
        if not self._window.allow(now_s).allowed:
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        return {"left_out": left_out} if left_out else {}
