"""A log in memory that does to its clients what a real one may do: answers are late or lost, appends come late, readers
are behind. What it has acknowledged it has.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from random import Random
from typing import Final

import trio

from trunkline.store.errors import LogUnreachable
from trunkline.store.log import LogState, NotNext, Placed, Trimmed

LONGEST_S: Final = 12.0
"""As long as an election takes, and some more."""


class SimulatedLog:
    """Implements `Log`. Appends that come late do so in tasks of `nursery`. `trouble` is how often something fails, and
    `way_s` how long something takes to the log or back, on average."""

    def __init__(
        self, random: Random, nursery: trio.Nursery, trouble: float = 0, way_s: float = 0.01
    ) -> None:
        self.entries: list[Placed] = []
        self.name = ""
        self._random = random
        self._nursery = nursery
        self._trouble = trouble
        self._way_s = way_s
        self._grown = trio.Event()
        self._trimmed = 0
        self._answers = trio.Event()
        self._answers.set()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Meanwhile it takes and answers nothing."""
        self._answers = trio.Event()
        try:
            yield
        finally:
            self._answers.set()

    async def identity(self) -> str:
        return self.name

    @property
    def last(self) -> int:
        return self.entries[-1].place if self.entries else 0

    def length(self, data: bytes) -> int:
        return 1 + len(data) // 100

    async def append(self, data: bytes, after: int) -> int:
        await self._delay()
        random = self._random
        if random.random() >= self._trouble:
            place = self._stored(data, after)
            await self._delay()
            return place
        fate = random.choice(("lost", "stored", "late", "behind"))
        if fate == "stored":
            self._stored(data, after)
        elif fate == "late":
            self._nursery.start_soon(self._store_later, data, after)
        elif fate == "behind":  # a server answers that is cut off from the others
            raise NotNext(random.choice([0, *(each.place for each in self.entries[-3:])]))
        await trio.sleep(random.uniform(0, 2))
        raise LogUnreachable("no answer")

    def _stored(self, data: bytes, after: int) -> int:
        if after != self.last:
            raise NotNext(self.last)
        place = after + self.length(data)
        self.entries.append(Placed(place, data))
        grown, self._grown = self._grown, trio.Event()
        grown.set()
        return place

    async def _store_later(self, data: bytes, after: int) -> None:
        await trio.sleep(self._random.uniform(0, LONGEST_S))
        try:
            self._stored(data, after)
        except NotNext:
            return

    @asynccontextmanager
    async def follow(self, after: int) -> AsyncGenerator[AsyncGenerator[Placed, None], None]:
        entries = self._followed(after)
        try:
            yield entries
        finally:
            await entries.aclose()

    async def _followed(self, after: int) -> AsyncGenerator[Placed, None]:
        while True:
            if after < self._trimmed:
                raise Trimmed(self.entries[0].place)
            for placed in [each for each in self.entries if each.place > after]:
                await self._delay()
                if self._random.random() < self._trouble / 4:
                    raise LogUnreachable("the connection broke")
                after = placed.place
                yield placed
            await self._grown.wait()

    async def trim(self, before: int) -> None:
        kept = [each for each in self.entries if each.place >= before]
        self._trimmed = max([0, *(each.place for each in self.entries if each.place < before)])
        self.entries = kept

    async def state(self) -> LogState:
        first = self.entries[0].place if self.entries else 1
        return LogState(first, self.last, sum(len(each.data) for each in self.entries))

    async def _delay(self) -> None:
        await self._answers.wait()
        await trio.sleep(self._random.expovariate(1 / self._way_s))
