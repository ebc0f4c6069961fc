"""The order in which calls begin: in each pass of the event loop as many as take a millisecond, owners in turns.

In a pass the loop does a step of each task, and all who wait for their next step wait for a whole pass. If all calls
that have come began in the same pass, sixty connections of one owner that are always answered would make each pass as
long as sixty calls, for everybody. So calls for which a pass has no room begin in a later one.

Owns which call begins next. Does not own the time that calls have taken in this pass (`core/runtime/precedence.py`,
where the watchdog of the loop notes it), nor who is charged for a call (`core/records/owners.py`).

The order is that of FQ-CoDel (RFC 8290, section 4.2) with calls in place of bytes: each owner has a queue. Owners who
had no call waiting come first, for one call; then the others take turns, a call at a time. So who makes few calls waits
for about one pass, whoever else makes many. A call that waits keeps its connection, or its stream of HTTP/2, so these
bound how many wait.

Short passes have a price: fewer calls share a commit. So a pass has room for half as long as a commit takes, which is
as long again for what begun calls have left to do; and while all calls are those of one owner, nothing waits.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

import trio

from trunkline.actors.core.runtime.precedence import LOOP
from trunkline.actors.core.runtime.work import Work, current_work

PASS_NS: Final = 1_000_000
"""A pass has room until calls have taken so many nanoseconds in it, those that had begun before among them; or until
they have taken half as long as a commit, if that is longer."""
ALONE_NS: Final = 1_000_000_000
"""After so long with calls of one owner only, nothing waits."""
_SAMPLE: Final = 16
"""After so many calls of tasks it is found out how long one takes."""
_BEGINNING: Final = Work("call", "")
"""A call of which nothing is known yet."""

Again = Callable[[], None]
_Call = Again | trio.lowlevel.Task


class CallTurns:
    """Says which calls begin. `run` has to run meanwhile.

    `charged` says who is charged for some work, `commits` how many there have been and how many seconds they took, and
    `lap` is called after each call that `run` has begun.
    """

    def __init__(
        self,
        charged: Callable[[Work], Hashable],
        commits: Callable[[], tuple[int, float]],
        lap: Callable[[], None] = lambda: None,
    ) -> None:
        self.waiting = 0
        """Calls that wait for a pass with room."""
        self._charged = charged
        self._commits = commits
        self._commits_before = (0, 0.0)
        self._lap = lap
        self._pass_ns = PASS_NS
        self._queues: dict[Hashable, deque[_Call]] = {}
        self._new: deque[Hashable] = deque()
        self._old: deque[Hashable] = deque()
        self._come = trio.Event()
        self._latest: Hashable = None
        self._alone_application: bytes | None = None
        """An application of the owner who is alone: most calls are for it, and need no look at who pays for them."""
        self._alone_from_ns = 0
        self._begun = 0
        self._call_ns = 0

    # Beginning.

    @property
    def has_room(self) -> bool:
        """Whether a call may begin at once, whose it may be: this pass has time left, and no other call waits."""
        return not self.waiting and LOOP.calls_ns < self._pass_ns

    def put_off(self, work: Work, again: Again) -> bool:
        """Put a call off for which there is no room: True if `again` is called later, False if it may begin now."""
        if not self.waiting and work.application == self._alone_application is not None:
            return False
        owner = self._charged(work)
        if self._is_alone(owner):
            self._alone_application = work.application
            return False
        self._add(owner, again)
        return True

    async def begin(self, work: Work | str) -> None:
        """Return when a call may begin in the task that waits for it. One without a token is charged to its address."""
        if not self.has_room and not self._is_alone(
            owner := work if isinstance(work, str) else self._charged(work)
        ):
            task = trio.lowlevel.current_task()
            queue = self._add(owner, task)

            def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
                queue.remove(task)
                self.waiting -= 1
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        current_work.set(_BEGINNING)
        self._begun += 1
        if self._begun == _SAMPLE:
            self._call_ns = LOOP.tasks_ns // _SAMPLE
            self._begun = LOOP.tasks_ns = 0

    async def run(self) -> None:
        """Begin the calls that wait, until cancelled."""
        while True:
            await self._come.wait()
            self._come = trio.Event()
            self._measure_commits()
            while self.waiting:
                await trio.lowlevel.checkpoint()
                self._begin_some()

    def _begin_some(self) -> None:
        """Begin as many calls as this pass has room for; those of tasks run in the next."""
        woken_ns = 0
        while self.waiting and LOOP.calls_ns + woken_ns < self._pass_ns:
            call = self._take()
            if isinstance(call, trio.lowlevel.Task):
                trio.lowlevel.reschedule(call)
                woken_ns += self._call_ns
            else:
                call()
                self._lap()

    def _measure_commits(self) -> None:
        before, before_s = self._commits_before
        commits, total_s = self._commits_before = self._commits()
        if commits > before:
            self._pass_ns = max(PASS_NS, round((total_s - before_s) / (commits - before) / 2 * 1e9))

    # The order.

    def _is_alone(self, owner: Hashable) -> bool:
        """Whether for some time all calls that found no room were those of this owner."""
        if owner != self._latest:
            self._latest = owner
            self._alone_application = None
            self._alone_from_ns = time.perf_counter_ns() + ALONE_NS
            return False
        return not self.waiting and time.perf_counter_ns() > self._alone_from_ns

    def _add(self, owner: Hashable, call: _Call) -> deque[_Call]:
        queue = self._queues.get(owner)
        if queue is None:
            queue = self._queues[owner] = deque()
            self._new.append(owner)
        queue.append(call)
        self.waiting += 1
        self._come.set()
        return queue

    def _take(self) -> _Call:
        """The call whose turn it is; at least one waits."""
        while True:
            owner = (self._new or self._old).popleft()
            queue = self._queues[owner]
            if queue:
                self._old.append(owner)
                self.waiting -= 1
                return queue.popleft()
            # Who comes again only after the others have had a turn comes first again.
            del self._queues[owner]
