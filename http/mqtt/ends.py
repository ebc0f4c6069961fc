"""Connections that the server ends because of what their clients do, in the log: who, and why.

Clients of MQTT 3.1.1 are told nothing, so it is here that an operator sees the reason. Whoever comes again and again
must not be able to fill the log: only so many lines a minute are written, the others are counted.
"""

from __future__ import annotations

from typing import Final

import structlog

from trunkline.limits.table import Rate
from trunkline.limits.window import SlidingWindow

_LINES: Final = Rate(calls=60, window_s=60.0)
_log = structlog.get_logger("trunkline.mqtt")


class LoggedEnds:
    """Logs them. `count` is how many there were since the start."""

    def __init__(self) -> None:
        self.count = 0
        self._window = SlidingWindow(_LINES)
        self._left_out = 0

    def note(
        self, application: bytes, client_id: str, address: str | None, code: int, reason: str, now_s: float
    ) -> None:
        """Count an end, and log it if the bound allows. `code` is the reason code, which MQTT 5 tells the client."""
        self.count += 1
        if not self._window.allow(now_s).allowed:
            self._left_out += 1
            return
        left_out = {"left_out": self._left_out} if self._left_out else {}
        self._left_out = 0
        _log.warning(
            "an MQTT connection was ended",
            application=application.hex(),
            client_id=client_id[:100],
            client=address,
            code=f"0x{code:02X}",
            reason=reason,
            **left_out,
        )
