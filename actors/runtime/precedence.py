"""The event loop goes first: threads that compute pause while it has something to do.

All threads share one interpreter. Whenever the loop leaves it, to send, to receive, to write, a thread that computes
takes it, and keeps it for a whole switch interval; one call leaves it some ten times. So a few long reads of one tenant
would make each call of all others wait a hundred times as long as it takes. Therefore work in threads calls `give_way`
at least once a millisecond: it waits while the loop is busy, for PAUSE_MAX_S at most, so it goes on under any load.

What is short needs no pauses: each owner has a credit of thread time, in which work goes on beside a busy loop. It is
filled again at a rate that a few short reads a second need, so who reads much pauses as said, and who reads little is
not slowed down by what others have the loop do.

Owns the signs of the loop, which `LoopWatch` sets, the pause and the credits. Does not own the threads, nor the calls
whose time is counted here (`http/calls/call_turns.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

PAUSE_S: Final = 0.0002
"""Between two looks at the loop. A look needs the interpreter for some microseconds."""
PAUSE_MAX_S: Final = 0.002
"""The longest pause at one time: work that looks each third of a millisecond keeps an eighth of the time."""

CREDIT_NS: Final = 15_000_000
"""The most credit of an owner, in nanoseconds."""
CREDIT_SHARE: Final = 0.05
"""So much credit is added for each second: 50 ms."""
_FILLING_NS: Final = round(CREDIT_NS / CREDIT_SHARE)
"""After so long without a read the credit is full."""
_OWNERS_MAX: Final = 1_024

T = TypeVar("T")


class _Loop:
    """What the event loop does: it alone writes this."""

    __slots__ = ("busy", "calls_ns", "tasks_ns")

    def __init__(self) -> None:
        self.busy = False
        """Whether it has something to do."""
        self.calls_ns = 0
        """The time that calls have taken in this pass of the loop."""
        self.tasks_ns = 0
        """The time that calls have taken in tasks, since whoever reads it has set it to 0."""


LOOP: Final = _Loop()


class _Thread(threading.local):
    """Until when the work of a thread has credit, by `time.perf_counter_ns`."""

    credit_ends_ns = 0


_thread = _Thread()

_full_at_ns: dict[Hashable, int] = {}
"""When the credit of an owner is full again; of all others it is full now."""


def with_credit(owner: Hashable, work: Callable[[], T]) -> T:
    """Do some work in a thread, with the credit of an owner. The time it takes is charged to it."""
    began_ns = time.perf_counter_ns()
    missing_ns = round(max(0, _full_at_ns.get(owner, 0) - began_ns) * CREDIT_SHARE)
    _thread.credit_ends_ns = began_ns + CREDIT_NS - missing_ns
    try:
        return work()
    finally:
        _thread.credit_ends_ns = 0
        now_ns = time.perf_counter_ns()
        if len(_full_at_ns) >= _OWNERS_MAX:
            _forget_full(now_ns)
        full_ns = max(_full_at_ns.get(owner, 0), began_ns) + round((now_ns - began_ns) / CREDIT_SHARE)
        _full_at_ns[owner] = min(full_ns, now_ns + _FILLING_NS)


def _forget_full(now_ns: int) -> None:
    """Forget the owners whose credit is full; if it is of none, all of them."""
    for owner in [owner for owner, full_ns in list(_full_at_ns.items()) if full_ns <= now_ns]:
        _full_at_ns.pop(owner, None)
    if len(_full_at_ns) >= _OWNERS_MAX:
        _full_at_ns.clear()


def give_way() -> None:
    """In a thread that computes: let the event loop go first, unless its owner has credit left."""
    if LOOP.busy and time.perf_counter_ns() >= _thread.credit_ends_ns:
        until_s = time.monotonic() + PAUSE_MAX_S
        while LOOP.busy and time.monotonic() < until_s:
            time.sleep(PAUSE_S)
