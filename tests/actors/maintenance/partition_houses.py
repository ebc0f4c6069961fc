"""Two systems in this process, each on a partition of one data directory, that ask each other without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.actors.house import START_MS, House, ManualClock, running_house
from tests.patience import PATIENT
from trunkline.actors import boot, readers
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.answer import Answer
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.structs import Message
from trunkline.actors.maintenance.division import divide
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits


class LocalPeers:
    """Asks the other system of this process (`Peers`). `ended`: those whose process has ended."""

    def __init__(self, systems: list[System], own: int) -> None:
        self._systems = systems
        self._places = systems[own].component(Places)
        self.ended: set[int] = set()
        self.before: Callable[[str], Awaitable[None]] | None = None
        """Called with the subject of each command before it is given."""

    def has(self, ref: Ref) -> bool:
        return self._places.of_ref(ref) != self._places.own

    def has_application(self, application: bytes) -> bool:
        return self._places.of_application(application) != self._places.own

    async def ask(self, ref: Ref, message: Message) -> Answer:
        return await self._systems[self._places.of_ref(ref)].ask(ref, message)

    async def read(self, application: bytes, message: Message) -> Any:
        return await readers.read(self._systems[self._places.of_application(application)], message)

    async def command(self, partition: int, subject: str, *arguments: Any) -> Any:
        if self.before is not None:
            await self.before(subject)
        if partition in self.ended:
            raise Overloaded("its process is not there")
        return await self._systems[partition].tells[subject](*arguments)

    async def ask_each(self, subject: str) -> dict[int, Any]:
        return {
            number: await system.tells[subject]()
            for number, system in enumerate(self._systems)
            if number != self._places.own
        }

    def unreachable(self) -> list[int]:
        return sorted(self.ended)


async def divided(data_dir: Path, count: int = 2) -> bytes:
    """Make a data directory of several partitions; the id of its application, which is in the first one."""
    async with running_house(data_dir) as house:
        application = house.application
    settings = Settings(data_dir=str(data_dir))
    await trio.to_thread.run_sync(partial(divide, settings, count, lambda _line: None))
    return application


@asynccontextmanager
async def partitions(
    data_dir: Path, application: bytes, *, offset_ms: int = 0, count: int = 2
) -> AsyncIterator[list[House]]:
    """A system for each partition, so many ms after the clock's start; each house asks for the same application."""
    clock = ManualClock(START_MS + offset_ms)
    limits = Limits.off().override(PATIENT)
    settings = Settings(data_dir=str(data_dir), limits=limits, experience_domains="*.example")
    async with AsyncExitStack() as stack:
        systems = [stack.enter_context(boot.opened(settings, clock, number)) for number in range(count)]
        for number, system in enumerate(systems):
            system.peers = LocalPeers(systems, number)
        for system in systems:
            await stack.enter_async_context(boot.running(system))
        yield [House(system, clock, application) for system in systems]
