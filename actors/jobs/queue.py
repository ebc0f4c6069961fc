"""The queue of jobs in memory. It contains only ids; the jobs themselves are on disk.

Applications alternate, so that one with many jobs does not delay the others. The jobs of one application are taken
in the order in which they were queued.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable

import trio

from trunkline.actors.jobs.job import JobKind


class JobQueue:
    """The waiting jobs, and the kinds of jobs. `ended` counts the jobs that have ended, by status."""

    def __init__(self, kinds: Iterable[JobKind], *, calls_private_networks: bool) -> None:
        self.kinds = {kind.operation: kind for kind in kinds}
        self.ended: Counter[str] = Counter()
        self.calls_private_networks = calls_private_networks
        """Whether callbacks may go to addresses that are not public."""
        self._waiting: OrderedDict[bytes, deque[bytes]] = OrderedDict()
        self._length = 0
        self._woken = trio.Event()

    def __len__(self) -> int:
        """The number of waiting jobs."""
        return self._length

    def add(self, application: bytes, id: bytes) -> None:
        """Add a job that is on disk."""
        self._waiting.setdefault(application, deque()).append(id)
        self._length += 1
        woken, self._woken = self._woken, trio.Event()
        woken.set()

    def count(self, status: str) -> None:
        """Count a job that has ended."""
        self.ended[status] += 1

    async def next(self) -> tuple[bytes, bytes]:
        """Wait for a job and take it: its application and its id."""
        while not self._waiting:
            await self._woken.wait()
        application, ids = self._waiting.popitem(last=False)
        id = ids.popleft()
        self._length -= 1
        if ids:
            self._waiting[application] = ids  # at the end, so that the other applications are next
        return application, id
