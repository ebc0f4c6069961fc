"""The tasks that run workflows: as many as may run at a time, each begun when it is first needed.

Owns which task takes the next trigger, and the end of the runs of one application. Does not own the order of triggers
(`workflows/triggers/queue.py`), nor a run (`runner.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from trunkline.actors.core.runtime import work

if TYPE_CHECKING:
    from trunkline.actors.engine.share import Share
    from trunkline.actors.workflows.triggers.queue import Queued, TriggerQueue


class _Worker:
    """A task: what it runs, and the scope in which it works."""

    __slots__ = ("entry", "scope")

    def __init__(self) -> None:
        self.entry: Queued | None = None
        self.scope = trio.CancelScope()


class Workers:
    """The tasks. `run` runs a trigger. With the turn, `begin` is called before the first one, `end` after the last."""

    def __init__(
        self,
        queue: TriggerQueue,
        share: Share,
        most: int,
        *,
        run: Callable[[Queued], Awaitable[None]],
        begin: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        self.running = 0
        self._queue = queue
        self._share = share
        self._most = most
        self._run = run
        self._begin = begin
        self._end = end
        self._workers: list[_Worker] = []
        self._idle = trio.lowlevel.ParkingLot()
        self._woken = False
        self._cancelled = trio.lowlevel.ParkingLot()
        """Who waits for the end of cancelled runs."""
        self._nursery: trio.Nursery | None = None

    def open(self, nursery: trio.Nursery) -> None:
        """Work from now on, in tasks of a nursery."""
        self._nursery = nursery
        self._queue.on_work = self._share.on_free = self.wake
        self.wake()

    def close(self) -> None:
        """Begin no more tasks."""
        self._nursery = None
        self._queue.on_work = self._share.on_free = lambda: None

    def wake(self) -> None:
        """Have a task take what is to be run, if none is about to."""
        if self._woken or not self._queue.has_work or self._nursery is None:
            return
        if self._idle:
            self._idle.unpark()
        elif len(self._workers) < self._most:
            worker = _Worker()
            self._workers.append(worker)
            self._nursery.start_soon(self._work, worker)
        else:
            return
        self._woken = True

    async def end_runs(self, application: bytes) -> None:
        """Cancel the runs of an application, and wait until they have ended."""
        while running := [each for each in self._workers if _runs_for(each, application)]:
            for each in running:
                each.scope.cancel()
            await self._cancelled.park()

    async def _work(self, worker: _Worker) -> None:
        """Run triggers until cancelled; also after a run was cancelled by itself."""
        while True:
            with worker.scope:
                await self._run_all(worker)
            worker.scope = trio.CancelScope()
            self._cancelled.unpark_all()

    async def _run_all(self, worker: _Worker) -> None:
        """Run triggers, one after the other, while there are some and the turn lasts."""
        while True:
            self._woken = False
            await self._share.enter()
            try:
                self._begin()
                while not worker.scope.cancel_called and (entry := self._queue.take()) is not None:
                    worker.entry = entry
                    self.running += 1
                    try:
                        await self._run(entry)
                    finally:
                        worker.entry = None
                        self.running -= 1
                        self._queue.done(entry)
                        work.end()
                    if self._share.is_used_up:
                        self._end()
                        await self._share.pause()
                self._end()
            finally:
                self._share.leave()
            await self._idle.park()


def _runs_for(worker: _Worker, application: bytes) -> bool:
    return worker.entry is not None and worker.entry.application == application
