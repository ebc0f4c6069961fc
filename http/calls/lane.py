"""A lane for bulk calls: so many items at a time, and the other calls wait in the order in which they came.

The turn of a call that brings a thousand items takes about ten milliseconds of the event loop, and its commit as
long again. Ten such calls that arrive together would hold everybody for as long as all of them take; in a lane
each goes to its commit before the next begins, and between them all other calls come to their turn. Small
calls pass side by side, so that they still share a commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from trunkline.actors.values.errors import Overloaded


class Lane:
    """At most `items_max` items are under way, a call of more than that alone; `waiting_max` calls may wait."""

    __slots__ = ("_free", "_items_max", "_waiting", "_waiting_max")

    def __init__(self, items_max: int, waiting_max: int) -> None:
        self._items_max = items_max
        self._waiting_max = waiting_max
        self._free = items_max
        self._waiting: deque[tuple[int, trio.Event]] = deque()

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def taken(self, items: int) -> AsyncIterator[None]:
        """Wait for room for so many items and hold it. Raises `Overloaded` where too many calls wait."""
        items = min(items, self._items_max)
        await self._take(items)
        try:
            yield
        finally:
            self._give_back(items)

    async def _take(self, items: int) -> None:
        if not self._waiting and items <= self._free:
            self._free -= items
            return
        if len(self._waiting) >= self._waiting_max:
            raise Overloaded(
                f"{self._waiting_max} bulk calls wait already, which is the bound of this server. "
                "Try again in a second."
            )
        place = (items, trio.Event())
        self._waiting.append(place)
        try:
            await place[1].wait()
        except BaseException:
            if place[1].is_set():
                self._give_back(items)
            else:
                self._waiting.remove(place)
                self._let_in()  # smaller ones may have waited behind this one
            raise

    def _give_back(self, items: int) -> None:
        self._free += items
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            items, event = self._waiting.popleft()
            self._free -= items
            event.set()
