"""Time-outs of what a client sends, which a loop that was held up does not use up.

Where the loop was held up, as by a slow disk, the time of a wait may be over although what it waits for has come: the
task that reads the connection has not run yet. So the wait goes on for a little. The deadlines of whole connections
have the same (`Engine._reap`).

Owns the rule. Does not own how long a client may take.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

LATE_S: Final = 0.5
"""A wait that ends by so much later than its deadline was held up. Then it goes on for as long."""

HOLD_UPS_MAX: Final = 10
"""After so many in a row the wait ends nevertheless."""

T = TypeVar("T")


async def until(deadline_s: float, wait: Callable[[], Awaitable[T]]) -> T:
    """Return what `wait` returns by `deadline_s` of Trio's clock, which may have passed.

    `wait` is called again after it was cancelled. Raises trio.TooSlowError.
    """
    for _ in range(HOLD_UPS_MAX):
        with trio.move_on_at(deadline_s):
            return await wait()
        now_s = trio.current_time()
        if now_s < deadline_s + LATE_S:
            break
        deadline_s = now_s + LATE_S
    raise trio.TooSlowError
