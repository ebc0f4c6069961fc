"""The queue of jobs in memory. It contains only ids; the jobs themselves are on disk.

Owners alternate, so that one with many jobs does not delay the others. The jobs of one owner are taken in the order in
which they were queued. The owner is mostly an application.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable

import trio

from trunkline.actors.jobs.job import JobKind
from trunkline.actors.jobs.messages import ENDED
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.values.ids import ROOT


class JobQueue:
    """The waiting jobs, and the kinds of jobs. `ended` counts the jobs that have ended, by operation and status."""

    def __init__(self, kinds: Iterable[JobKind], *, calls_private_networks: bool) -> None:
        self.kinds = {kind.operation: kind for kind in kinds}
        # With zeros, so that the first failure of a kind is an increase for those who watch it.
        self.ended = Counter({(name, status): 0 for name in self.kinds for status in ENDED})
        self.calls_private_networks = calls_private_networks
        """Whether callbacks may go to addresses that are not public."""
        self._awaited: dict[bytes, trio.Event] = {}
        self._waiting: OrderedDict[Ref, deque[bytes]] = OrderedDict()
        self._length = 0
        self._woken = trio.Event()

    def __len__(self) -> int:
        """The number of waiting jobs."""
        return self._length

    def add(self, owner: Ref, id: bytes) -> None:
        """Add a job that is on disk. `owner` is the actor of its record."""
        self._waiting.setdefault(owner, deque()).append(id)
        self._length += 1
        woken, self._woken = self._woken, trio.Event()
        woken.set()

    def end(self, id: bytes, operation: str, status: str) -> None:
        """Count a job that has ended, and wake the call that waits for it."""
        self.ended[operation, status] += 1
        if (awaited := self._awaited.get(id)) is not None:
            awaited.set()

    async def wait_end(self, id: bytes, timeout_s: float) -> None:
        """Wait until a job that was just queued ends, at most `timeout_s`. It may have ended before: then in vain."""
        awaited = self._awaited[id] = trio.Event()
        try:
            with trio.move_on_after(timeout_s):
                await awaited.wait()
        finally:
            del self._awaited[id]

    def owner_of(self, operation: str, id: bytes) -> Ref:
        """The actor that owns the jobs of this kind, if `id` is the parent of their records."""
        kind = self.kinds.get(operation)
        return Ref("application" if kind is None else kind.owner, ROOT, id)

    async def next(self) -> tuple[Ref, bytes]:
        """Wait for a job and take it: its owner and its id."""
        while not self._waiting:
            await self._woken.wait()
        owner, ids = self._waiting.popitem(last=False)
        id = ids.popleft()
        self._length -= 1
        if ids:
            self._waiting[owner] = ids  # at the end, so that the other owners are next
        return owner, id
