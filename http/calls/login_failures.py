"""Failed logins in the log: where they come from and why, never a password.

They are logged whether or not the access log is on, because an operator has to see that somebody guesses. Whoever
guesses must not be able to fill the log, so only so many lines a minute are written; the others are counted.
"""

from __future__ import annotations

import structlog

from trunkline.actors.core.values.errors import DomainError
from trunkline.limits.log_lines import LogLines

_log = structlog.get_logger("trunkline.login")


class LoginFailures:
    """Logs failed logins. `count` is how many there were since the start."""

    def __init__(self, lines_per_minute_max: int) -> None:
        self.count = 0
        self._lines = LogLines(lines_per_minute_max)

    def note(
        self, operation: str, address: str, subject: str | None, refusal: DomainError, now_s: float
    ) -> None:
        """Count a failed login, and log it if the bound allows. `subject` is the id of a user or device."""
        self.count += 1
        left_out = self._lines.take(now_s)
        if left_out is None:
            return
        _log.warning(
            "login failed",
            operation=operation,
            client=address,
            subject=subject,
            reason=refusal.type,
            message=refusal.message,
            **left_out,
        )
