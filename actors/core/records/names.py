"""Names that are unique in a server whose partitions may belong to several machines: who may claim one now.

One process at a time may, as it has to look whether a name is free before it claims it. On one machine a lock on a file
decides that (`store/partitioned.py`). Here the owner of the root does: who asks it may claim names until another one
asks, and then first commits what is under way. The owner of the root that has just started does not know who may, and
asks all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trunkline.actors.core.records.places import ROOT_PARTITION
from trunkline.actors.core.values.errors import Overloaded

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.partitioned import Partitions

ASK_S: Final = 5.0
"""How long a turn waits until it may claim a name."""


class Names:
    """The right to claim names. A component of a system with several partitions."""

    def __init__(self, system: System, partitions: Partitions) -> None:
        self._system = system
        self._partitions = partitions
        self._holder: int | None = None
        """The partition whose process may, as the root knows it."""
        self._giving = trio.Lock()
        self._claiming = trio.Lock()
        self._asked: object = None
        """What stands for the question that is under way, or was answered last."""
        system.tells |= {"names.take": self._take, "names.end": self._end}

    async def claim(self) -> None:
        """Return when this process may claim names. Raises `Overloaded` if that takes too long."""
        with trio.move_on_after(ASK_S):
            async with self._claiming:
                while not self._partitions.may_name:
                    await self._ask()
                return
        raise Overloaded("Another process of the server claims a name just now. Try again in a second.")

    async def _ask(self) -> None:
        """Ask the root. Its answer means nothing if it has given the right to another process since, of which this one
        may hear first."""
        own, peers = self._partitions.own, self._system.peers
        assert own is not None
        assert peers is not None
        asked = self._asked = object()
        if own == ROOT_PARTITION:
            await self._take(own)
        else:
            await peers.command(ROOT_PARTITION, "names.take", own)
        if self._asked is asked:
            self._partitions.may_name = True

    async def _end(self) -> None:
        """This process may not claim names any more. Returns when those that it has claimed are committed."""
        self._asked = None
        self._partitions.may_name = False
        await self._partitions.names_committed()

    async def _take(self, partition: int) -> None:
        """Let a partition claim names, and no other one. Only the root does."""
        peers = self._system.peers
        assert peers is not None
        async with self._giving:
            others = range(self._partitions.count) if self._holder is None else (self._holder,)
            self._holder = None
            for each in others:
                if each == partition:
                    continue
                await (self._end() if each == ROOT_PARTITION else peers.command(each, "names.end"))
            self._holder = partition
