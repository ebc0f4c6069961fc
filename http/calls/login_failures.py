"""Failed logins in the log: where they come from and why, never a password.

They are logged whether or not the access log is on, because an operator has to see that somebody guesses. Whoever
guesses must not be able to fill the log, so only so many lines a minute are written; the others are counted.
"""

from __future__ import annotations

from typing import Final

import structlog

from trunkline.actors.core.values.errors import DomainError
from trunkline.limits.table import Rate
from trunkline.limits.window import SlidingWindow

_MINUTE_S: Final = 60.0
_log = structlog.get_logger("trunkline.login")


class LoginFailures:
    """Logs failed logins. `count` is how many there were since the start."""

    def __init__(self, lines_per_minute_max: int) -> None:
        self.count = 0
        self._window = SlidingWindow(Rate(calls=lines_per_minute_max, window_s=_MINUTE_S))
        self._left_out = 0

    def note(
        self, operation: str, address: str, subject: str | None, refusal: DomainError, now_s: float
    ) -> None:
        """Count a failed login, and log it if the bound allows. `subject` is the id of a user or device."""
        self.count += 1
        if not self._window.allow(now_s).allowed:
            self._left_out += 1
            return
        left_out = {"left_out": self._left_out} if self._left_out else {}
        self._left_out = 0
        _log.warning(
            "login failed",
            operation=operation,
            client=address,
            subject=subject,
            reason=refusal.type,
            message=refusal.message,
            **left_out,
        )
