"""The event loop goes first: threads that compute pause while it has something to do.

All threads share one interpreter. Whenever the loop leaves it, to send, to receive, to write, a thread that computes
takes it, and keeps it for a whole switch interval; one call leaves it some ten times. So a few long reads of one tenant
would make each call of all others wait a hundred times as long as it takes. Therefore work in threads calls `give_way`
at least once a millisecond: it waits while the loop is busy, for PAUSE_MAX_S at most, so it goes on under any load.

Of several threads that compute only one goes on at a time, and they take turns. They share one interpreter, so they
would not be faster side by side, and the loop would have to wait for it for much longer: it gets the interpreter from
one thread that computes after the switch interval, but two that leave it to each other make it wait for another one
with each change. And each thread leaves the interpreter for a moment once a millisecond (`DOOR_S`).

What is short needs no pauses: each owner has a credit of thread time, in which work goes on beside a busy loop. It is
filled again at a rate that a few short reads a second need, so who reads much pauses as said, and who reads little is
not slowed down by what others have the loop do.

Owns the signs of the loop, which `LoopWatch` sets, the turns, the pauses and the credits. Does not own the threads, nor
the calls whose time is counted here (`http/calls/call_turns.py`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

PAUSE_S: Final = 0.0002
"""Between two looks at the loop. A look needs the interpreter for some microseconds."""
PAUSE_MAX_S: Final = 0.002
"""The longest pause at one time: work that looks each third of a millisecond keeps an eighth of the time."""

TURN_WAIT_S: Final = 0.02
"""The longest wait for a turn. Work that waits for the disk keeps its turn, so others go on without one."""
WORK_NS: Final = 1_000_000
"""So many nanoseconds a thread computes before it leaves the interpreter, whether the loop seems to be busy or not."""
DOOR_S: Final = 0.00005
"""The time in which the loop can take the interpreter. A loop that waited for its sockets cannot say that it is busy
before it has the interpreter again. And a thread that reads the store leaves it often, but for too short a time: the
loop is woken, comes too late, and never waits for a whole switch interval, after which it would be given it."""
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


class _Turns:
    """Whose turn it is among the threads that compute. Any thread may call its methods."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    @property
    def wanted(self) -> bool:
        """Whether a thread waits for its turn."""
        return bool(self._waiting)

    def take(self, *, first: bool) -> bool:
        """Wait for the turn, behind all that wait or before them. False if it was not given in time."""
        with self._mutex:
            if not self._taken:
                self._taken = True
                return True
            given = threading.Lock()
            given.acquire()
            (self._waiting.appendleft if first else self._waiting.append)(given)
        if given.acquire(timeout=TURN_WAIT_S):
            return True
        with self._mutex:
            if given not in self._waiting:
                return True  # it was given just now
            self._waiting.remove(given)
            return False

    def leave(self) -> None:
        """Give the turn to who waits first."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


_turns = _Turns()


class _Thread(threading.local):
    """What is known of a thread."""

    computes = False
    """Whether it does work that computes."""
    has_turn = False
    """Whether it is its turn; it may also compute without, if none was given in time."""
    credit_ends_ns = 0
    """Until when its work has credit, by `time.perf_counter_ns`."""
    works_until_ns = 0
    """How long it goes on without leaving the interpreter to the loop."""


_thread = _Thread()

_full_at_ns: dict[Hashable, int] = {}
"""When the credit of an owner is full again; of all others it is full now."""


def compute_in_turn(owner: Hashable, work: Callable[[], T]) -> T:
    """Do work that computes, in a thread: in turns with that of others, and with the credit of its owner.

    The work calls `give_way` at least once a millisecond. The time that it takes is charged to the owner.
    """
    missing_ns = round(max(0, _full_at_ns.get(owner, 0) - time.perf_counter_ns()) * CREDIT_SHARE)
    thread = _thread
    thread.computes, thread.has_turn = True, _turns.take(first=missing_ns < CREDIT_NS)
    began_ns = time.perf_counter_ns()
    thread.credit_ends_ns = began_ns + CREDIT_NS - missing_ns
    try:
        return work()
    finally:
        if thread.has_turn:
            _turns.leave()
        thread.computes, thread.has_turn, thread.credit_ends_ns = False, False, 0
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
    """In a thread that computes: let the event loop go first, and others in turn, unless its owner has credit left."""
    thread = _thread
    now_ns = time.perf_counter_ns()
    if now_ns < thread.credit_ends_ns:
        return
    pauses = LOOP.busy
    if not pauses and now_ns < thread.works_until_ns and not (thread.has_turn and _turns.wanted):
        return
    if thread.has_turn:
        thread.has_turn = False
        _turns.leave()
    try:
        time.sleep(DOOR_S)
        if pauses:
            until_s = time.monotonic() + PAUSE_MAX_S
            while LOOP.busy and time.monotonic() < until_s:
                time.sleep(PAUSE_S)
    finally:
        if thread.computes:
            thread.has_turn = _turns.take(first=False)
        thread.works_until_ns = time.perf_counter_ns() + WORK_NS
