"""A progress bar that does not disturb a measurement.

Owns one line of a terminal. Writing it takes some 20 us, at most a few times a second; the bar of a library takes
milliseconds for each refresh, which would show up in the slowest percentiles. If the output is no terminal, only
finished steps are printed.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

PERIOD_S = 0.2
"""Seconds: the minimum between two updates of the line."""

_WIDTH = 24
_LINE = 100


class ProgressBar:
    """Shows one step at a time: ``begin``, any number of ``show``, ``end``."""

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
        """Show the part of the step that is done, from 0 to 1, and a text."""
        now_s = time.monotonic()
        if not self._live or now_s - self._drawn_s < PERIOD_S:
            return
        self._drawn_s = now_s
        done = round(min(max(share, 0.0), 1.0) * _WIDTH)
        line = f"{self._step:<36.36} [{'#' * done}{'.' * (_WIDTH - done)}] {text}"
        self._out.write(f"\r{line:<{_LINE}.{_LINE}}")
        self._out.flush()

    def end(self, text: str = "") -> None:
        """Finish the step; its line stays visible."""
        line = f"{self._step:<36.36} {text}".rstrip()
        self._out.write(f"\r{line:<{_LINE}}\n" if self._live else f"{line}\n")
        self._out.flush()
