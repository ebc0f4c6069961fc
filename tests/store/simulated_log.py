"""A log in memory that does to its clients what a real one may do: answers are late or lost, appends come late, readers
are behind. What it has acknowledged it has.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from operator import attrgetter
from random import Random
from typing import Final

import trio

from trunkline.store.errors import LogUnreachable
from trunkline.store.log import LogState, NotNext, Placed, Trimmed

LONGEST_S: Final = 12.0
"""As long as an election takes, and some more."""


class Kept:
    """What all partitions of a log have in common."""

    def __init__(self) -> None:
        self.entries: defaultdict[int, list[Placed]] = defaultdict(list)
        self.appended: defaultdict[int, list[Placed]] = defaultdict(list)
        self.trimmed: defaultdict[int, int] = defaultdict(int)
        self.last = 0
        self.grown = trio.Event()
        self.answers = trio.Event()
        self.answers.set()


class SimulatedLog:
    """Implements `Log`. Appends that come late do so in tasks of `nursery`. `trouble` is how often something fails, and
    `way_s` how long something takes to the log or back, on average. `of` is the same log for another partition."""

    def __init__(
        self,
        random: Random,
        nursery: trio.Nursery,
        trouble: float = 0,
        way_s: float = 0.01,
        kept: Kept | None = None,
    ) -> None:
        """`kept` is what it has already."""
        self.partition = 0
        self.name = ""
        self._kept = kept or Kept()
        self._random = random
        self._nursery = nursery
        self._trouble = trouble
        self._way_s = way_s

    def of(self, partition: int) -> SimulatedLog:
        """This log for another partition."""
        found = copy.copy(self)
        found.partition = partition
        return found

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Meanwhile it takes and answers nothing."""
        self._kept.answers = trio.Event()
        try:
            yield
        finally:
            self._kept.answers.set()

    def fails(self, share: float = 1.0) -> bool:
        """Whether something goes wrong now, of which only a share does."""
        return self._random.random() < self._trouble * share

    async def identity(self) -> str:
        return self.name

    @property
    def entries(self) -> list[Placed]:
        return self._kept.entries[self.partition]

    @property
    def appended(self) -> list[Placed]:
        """All entries, also those that were removed."""
        return self._kept.appended[self.partition]

    @property
    def last(self) -> int:
        return self.entries[-1].place if self.entries else 0

    def length(self, data: bytes) -> int:
        return 1 + len(data) // 100

    async def append(self, data: bytes, after: int) -> int:
        await self._delay()
        if not self.fails():
            place = self._stored(data, after)
            await self._delay()
            return place
        random = self._random
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
        kept = self._kept
        if after != self.last:
            raise NotNext(self.last)
        kept.last += self.length(data)
        self.entries.append(Placed(kept.last, data))
        self.appended.append(Placed(kept.last, data))
        grown, kept.grown = kept.grown, trio.Event()
        grown.set()
        return kept.last

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
            if after < self._kept.trimmed[self.partition]:
                raise Trimmed(self.entries[0].place)
            begin = bisect_right(self.entries, after, key=attrgetter("place"))
            for placed in self.entries[begin:]:
                await self._delay()
                if self.fails(0.25):
                    raise LogUnreachable("the connection broke")
                after = placed.place
                yield placed
            await self._kept.grown.wait()

    async def entry(self, place: int) -> bytes | None:
        await self._delay()
        if self.fails():
            if self._random.random() < 0.5:
                return None  # a server answers that is cut off from the others
            raise LogUnreachable("no answer")
        await self._delay()
        return next((placed.data for placed in self.entries if placed.place == place), None)

    async def trim(self, before: int) -> None:
        for partition, entries in self._kept.entries.items():
            removed = [each.place for each in entries if each.place < before]
            self._kept.trimmed[partition] = max([self._kept.trimmed[partition], *removed])
            del entries[: len(removed)]

    async def state(self) -> LogState:
        first = self.entries[0].place if self.entries else 1
        return LogState(first, self.last, sum(len(each.data) for each in self.entries))

    def lose_end(self, count: int) -> None:
        """Lose the last entries, as all servers do that lose power and do not sync what they acknowledge."""
        del self.entries[-count:]
        self._kept.last = self.last

    def lose_one(self, at: int) -> None:
        """Lose one of the entries, as servers may whose disks rot."""
        del self.entries[at]

    async def _delay(self) -> None:
        await self._kept.answers.wait()
        await trio.sleep(self._random.expovariate(1 / self._way_s))
