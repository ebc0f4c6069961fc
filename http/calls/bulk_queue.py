"""The queue of bulk calls: it bounds the items in progress, and further calls wait in order of arrival.

A call with a thousand items takes about ten milliseconds of the event loop, and its commit as long again. Ten such
calls that arrive together would block all others for the sum of their times. In the queue each is committed before the
next begins, and other calls run in between. Small calls run concurrently, so that they still share a commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from trunkline.actors.values.errors import Overloaded


class BulkQueue:
    """At most `items_max` items are in progress; a call with more runs alone. `waiting_max` calls may wait."""

    __slots__ = ("_free", "_items_max", "_waiting", "_waiting_max")

    def __init__(self, items_max: int, waiting_max: int) -> None:
        self._items_max = items_max
        self._waiting_max = waiting_max
        self._free = items_max
        self._waiting: deque[tuple[int, trio.Event]] = deque()

    @property
    def waiting(self) -> int:
        """The number of calls that wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def slot(self, items: int) -> AsyncIterator[None]:
        """Wait until `items` may be processed, and reserve them. Raises `Overloaded` if too many calls wait."""
        items = min(items, self._items_max)
        await self._acquire(items)
        try:
            yield
        finally:
            self._release(items)

    async def _acquire(self, items: int) -> None:
        if not self._waiting and items <= self._free:
            self._free -= items
            return
        if len(self._waiting) >= self._waiting_max:
            raise Overloaded(
                f"{self._waiting_max} bulk calls wait already, which is the bound of this server. "
                "Try again in a second."
            )
        entry = (items, trio.Event())
        self._waiting.append(entry)
        try:
            await entry[1].wait()
        except BaseException:
            if entry[1].is_set():
                self._release(items)
            else:
                self._waiting.remove(entry)
                self._admit_waiting()  # smaller calls may have waited behind this one
            raise

    def _release(self, items: int) -> None:
        self._free += items
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            items, event = self._waiting.popleft()
            self._free -= items
            event.set()
