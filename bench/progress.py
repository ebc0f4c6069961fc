"""A progress bar that does not disturb what is measured.

Owns one line of a terminal. It is written in some 20 us, at most a few times a second; a richer bar takes
milliseconds for each refresh, which would be found again in the slowest percentiles. Where the output is no
terminal, only the finished steps are told.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

PERIOD_S = 0.2
"""Seconds: between two drawings."""

_WIDTH = 24
_LINE = 100


class Bar:
    """Shows one step at a time: ``begin``, ``show`` as often as wanted, ``end``."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._step = ""
        self._drawn_s = 0.0

    def begin(self, step: str) -> None:
        """Start a step."""
        self._step = step
        self._drawn_s = 0.0
        self.show(0.0)

    def show(self, share: float, text: str = "") -> None:
        """Say how much of the step is done, from 0 to 1, and how it goes."""
        now_s = time.monotonic()
        if not self._live or now_s - self._drawn_s < PERIOD_S:
            return
        self._drawn_s = now_s
        done = round(min(max(share, 0.0), 1.0) * _WIDTH)
        line = f"{self._step:<36.36} [{'#' * done}{'.' * (_WIDTH - done)}] {text}"
        self._out.write(f"\r{line:<{_LINE}.{_LINE}}")
        self._out.flush()

    def end(self, text: str = "") -> None:
        """Finish the step and leave its line."""
        line = f"{self._step:<36.36} {text}".rstrip()
        self._out.write(f"\r{line:<{_LINE}}\n" if self._live else f"{line}\n")
        self._out.flush()
