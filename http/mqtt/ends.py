"""Connections that the server ends because of what their clients do, in the log: who, and why.

Clients of MQTT 3.1.1 are told nothing, so it is here that an operator sees the reason. Whoever comes again and again
must not be able to fill the log: only so many lines a minute are written, the others are counted.
"""

from __future__ import annotations

from typing import Final

import structlog

from trunkline.limits.log_lines import LogLines

_LINES_PER_MINUTE_MAX: Final = 60
_log = structlog.get_logger("trunkline.mqtt")


class LoggedEnds:
    """Logs them. `count` is how many there were since the start."""

    def __init__(self) -> None:
        self.count = 0
        self._lines = LogLines(_LINES_PER_MINUTE_MAX)

    def note(
        self, application: bytes, client_id: str, address: str | None, code: int, reason: str, now_s: float
    ) -> None:
        """Count an end, and log it if the bound allows. `code` is the reason code, which MQTT 5 tells the client."""
        self.count += 1
        left_out = self._lines.take(now_s)
        if left_out is None:
            return
        _log.warning(
            "an MQTT connection was ended",
            application=application.hex(),
            client_id=client_id[:100],
            client=address,
            code=f"0x{code:02X}",
            reason=reason,
            **left_out,
        )
