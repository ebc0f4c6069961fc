"""The queue of jobs in memory. It contains only ids; the jobs themselves are on disk.

Those who pay for jobs (`core/records/owners.py`) take turns, and so do the owners of records, mostly applications, of
one who pays. The jobs of one owner are taken in the order in which they were queued. For each job of theirs that runs,
one place stays free for others: many long jobs of one, in however many applications, do not delay the first of another.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable

import trio

from trunkline.actors.core.runtime.held_back import HeldBack
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.jobs.job import JobKind
from trunkline.actors.platform.jobs.messages import ENDED


class JobQueue:
    """The waiting jobs, and the kinds of jobs. `ended` counts the jobs that have ended, by operation and status."""

    def __init__(
        self,
        kinds: Iterable[JobKind],
        *,
        places: int,
        payer_of: Callable[[Ref], Hashable],
        calls_private_networks: bool,
    ) -> None:
        self.kinds = {kind.operation: kind for kind in kinds}
        # With zeros, so that the first failure of a kind is an increase for those who watch it.
        self.ended = Counter({(name, status): 0 for name in self.kinds for status in ENDED})
        self.calls_private_networks = calls_private_networks
        """Whether callbacks may go to addresses that are not public."""
        self._awaited: dict[bytes, trio.Event] = {}
        self.payer_of = payer_of
        """Who pays for the jobs of an actor."""
        self._places = places
        self._taken: dict[bytes, Hashable] = {}
        """The jobs that are being done, and who pays for them."""
        self._waiting: OrderedDict[Hashable, OrderedDict[Ref, deque[bytes]]] = OrderedDict()
        """By who pays; at the front those that were not served for the longest time."""
        self._length = 0
        self.held = HeldBack[tuple[Ref, bytes]]()
        self._woken = trio.Event()

    def __len__(self) -> int:
        """The number of waiting jobs."""
        return self._length

    def add(self, owner: Ref, id: bytes) -> None:
        """Add a job that is on disk. `owner` is the actor of its record."""
        if self.held and self.held.takes(owner.id, (owner, id)):
            return
        waiting = self._waiting.setdefault(self.payer_of(owner), OrderedDict())
        waiting.setdefault(owner, deque()).append(id)
        self._length += 1
        self._wake()

    def forget(self, application: bytes) -> None:
        """Forget the waiting jobs of an application, which stay in the store."""
        owner = Ref("application", ROOT, application)
        for payer, waiting in list(self._waiting.items()):
            self._length -= len(waiting.pop(owner, ()))
            if not waiting:
                del self._waiting[payer]

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

    def waiting_of(self, owner: Ref) -> int:
        """The number of waiting jobs of who pays for this owner."""
        return sum(map(len, self._waiting.get(self.payer_of(owner), {}).values()))

    async def next(self) -> tuple[Ref, bytes]:
        """Wait for a job and take it: its owner and its id. `leave` gives its place back."""
        while (payer := self._next_payer()) is None:
            await self._woken.wait()
        owners = self._waiting.pop(payer)
        owner, ids = owners.popitem(last=False)
        id = ids.popleft()
        self._length -= 1
        if ids:
            owners[owner] = ids  # at the end, so that the other owners are next
        if owners:
            self._waiting[payer] = owners
        self._taken[id] = payer
        return owner, id

    def leave(self, id: bytes) -> None:
        """A job that `next` gave is not being done any more."""
        del self._taken[id]
        self._wake()

    def _next_payer(self) -> Hashable | None:
        """Who has the fewest jobs that run, if one more leaves as many places free for others as they have."""
        running = Counter(self._taken.values())
        if not self._waiting:
            return None
        payer = min(self._waiting, key=running.__getitem__)
        return payer if running[payer] < self._places - len(self._taken) else None

    def _wake(self) -> None:
        woken, self._woken = self._woken, trio.Event()
        woken.set()
