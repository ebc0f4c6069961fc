"""The other owners of partitions, as one of them reaches them: a passage to each, and what is asked through it."""

from __future__ import annotations

from typing import Final

import trio

from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.machines import Machines
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.store_partitions import partition_directory
from trunkline.http.processes.channel import OWNERS_PROTOCOL, Flushes, OwnConnections
from trunkline.http.processes.passage import Passage
from trunkline.http.processes.peers import ProcessPeers

READERS_LOOKS: Final = 100
"""In so many of those, readers of the store are forgotten whose process was killed: their pages can be used again."""
FOLLOW_S: Final = 0.05
"""How often it is looked whose access other processes have ended, for streams on which nothing comes; and whether an
application was moved."""


class Neighbours:
    """The owners of the other partitions. `run` it in a nursery."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.places = system.component(Places)
        self._flushes = Flushes()
        self._connections = OwnConnections()
        self.passages = {
            number: Passage(
                partition_directory(self.places.directory, number),
                self._flushes,
                self._connections,
                system.limits,
                protocol=OWNERS_PROTOCOL,
                machine=system.component(Machines).name,
            )
            for number in self.places.others
        }
        self.doors = {number: passage.door for number, passage in self.passages.items()}
        system.peers = ProcessPeers(self.places, self.doors)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep a channel to each of them, until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._connections.run)
            nursery.start_soon(self._flushes.run)
            for passage in self.passages.values():
                nursery.start_soon(passage.keep)
            nursery.start_soon(self._follow)
            task_status.started()

    async def connected(self) -> None:
        """Return when each of them was reached."""
        for passage in self.passages.values():
            await passage.opened.wait()

    async def _follow(self) -> None:
        store, looks = self._system.store, 0
        while True:
            await trio.sleep(FOLLOW_S)
            self._system.revocations.follow()
            self.places.follow()
            looks += 1
            store.tidy(readers=looks % READERS_LOOKS == 0)

    async def leave(self) -> None:
        """Close each channel when nothing is under way on it: the others wait for that when they stop."""
        async with trio.open_nursery() as nursery:
            for passage in self.passages.values():
                nursery.start_soon(passage.leave)
