"""The event loop goes first: threads that compute pause while it has something to do.

All threads share one interpreter. Whenever the loop leaves it, to send, to receive, to write, a thread that computes
takes it, and keeps it for a whole switch interval; one call leaves it some ten times. So a few long reads of one tenant
would make each call of all others wait a hundred times as long as it takes. Therefore work in threads calls `give_way`
at least once a millisecond: it waits while the loop is busy, for PAUSE_MAX_S at most, so it goes on under any load.

Owns the sign of the loop, which `LoopWatch` sets, and the pause. Does not own the threads.
"""

from __future__ import annotations

import time
from typing import Final

PAUSE_S: Final = 0.0002
"""Between two looks at the loop. A look needs the interpreter for some microseconds."""
PAUSE_MAX_S: Final = 0.002
"""The longest pause at one time: work that looks each third of a millisecond keeps an eighth of the time."""


class _Loop:
    """Whether the event loop has something to do: it alone writes this."""

    __slots__ = ("busy",)

    def __init__(self) -> None:
        self.busy = False


LOOP: Final = _Loop()


def give_way() -> None:
    """In a thread that computes: let the event loop go first."""
    if LOOP.busy:
        until_s = time.monotonic() + PAUSE_MAX_S
        while LOOP.busy and time.monotonic() < until_s:
            time.sleep(PAUSE_S)
