"""The queue of jobs in memory: of ids only; what a job is stands on disk.

Applications take turns, so that one with many jobs does not keep the others waiting. Within an application jobs are
taken in the order in which they were queued.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable

import trio

from trunkline.actors.jobs.job import JobKind


class JobQueue:
    """The jobs that wait, and the kinds of jobs that there are. `ended` counts by status the jobs that have ended."""

    def __init__(self, kinds: Iterable[JobKind], *, calls_private_networks: bool) -> None:
        self.kinds = {kind.operation: kind for kind in kinds}
        self.ended: Counter[str] = Counter()
        self.calls_private_networks = calls_private_networks
        """Whether callbacks may go to addresses that are not public."""
        self._waiting: OrderedDict[bytes, deque[bytes]] = OrderedDict()
        self._length = 0
        self._woken = trio.Event()

    def __len__(self) -> int:
        """How many jobs wait."""
        return self._length

    def add(self, application: bytes, id: bytes) -> None:
        """A job is on disk and waits."""
        self._waiting.setdefault(application, deque()).append(id)
        self._length += 1
        woken, self._woken = self._woken, trio.Event()
        woken.set()

    def count(self, status: str) -> None:
        """A job has ended."""
        self.ended[status] += 1

    async def next(self) -> tuple[bytes, bytes]:
        """Wait for a job and take it: its application and its id."""
        while not self._waiting:
            await self._woken.wait()
        application, ids = self._waiting.popitem(last=False)
        id = ids.popleft()
        self._length -= 1
        if ids:
            self._waiting[application] = ids  # at the end: the others are next
        return application, id
