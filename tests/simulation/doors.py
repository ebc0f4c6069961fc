"""Processes that own nothing: they accept clients, and pass on what those send to the owners. From seed 500,000 on.

Owns how such a process starts, ends and dies. Does not own what it passes on (`http/processes/serve_door.py`).
"""

from __future__ import annotations

from typing import Any, Final

import trio

from tests.simulation.determinism import VirtualTime
from tests.simulation.edge import is_answering, listening_on
from tests.simulation.network import Network
from tests.simulation.processes import AnyProcess
from trunkline.http.processes.serve_door import DoorServer
from trunkline.limits.settings import Settings

DOORS_FROM: Final = 500_000
"""The first seed with doors."""


def doors_of(seed: int) -> int:
    """How many doors a run has."""
    return 0 if seed < DOORS_FROM else 1 + seed % 2


class DoorProcess(AnyProcess):
    """A door, in one life of the machine."""

    def __init__(
        self, number: int, settings: Settings, virtual: VirtualTime, network: Network, seed: str
    ) -> None:
        super().__init__(number, virtual, network, seed)
        self._settings = settings
        self._door: DoorServer

    @property
    def is_quiet(self) -> bool:
        if not self.is_up:
            return False
        ways = [passage.door for passage in self._door._passages.values()]
        config: Any = self._door.config
        asks = any(way._pending for way in ways)
        return all(way.channel.open for way in ways) and not (asks or is_answering(config.engine))

    async def run(self) -> None:
        self._door = door = DoorServer(self._settings, 1)
        places: Any = door._places
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(door.serve, listening_on(self._network), trio.sleep_forever)
                self.serves()
                await trio.sleep_forever()
        finally:
            places._partitions.close()
