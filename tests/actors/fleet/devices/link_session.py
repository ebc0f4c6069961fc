"""A link of a device without a wire: a session in the hands of a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
import trio.testing

from tests.actors.house import House
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.fleet.devices.commands.command_messages import AcknowledgeCommand, LinkCommand
from trunkline.actors.fleet.devices.commands.link_session import LinkEnd
from trunkline.actors.fleet.devices.commands.links import Link, Links
from trunkline.actors.fleet.devices.record import read_messages
from trunkline.actors.fleet.devices.record.messages import (
    History,
)


class Session:
    """A link's session in the hands of a test: what it was given, and how much it still takes."""

    def __init__(self, house: House, device: bytes) -> None:
        self.house = house
        self.device = device
        self.given: list[LinkCommand] = []
        self.room = 1000
        self.ended: list[LinkEnd] = []
        self.opened: list[DomainError | None] = []
        self.link: Link | None = None

    def deliver(self, commands: Sequence[LinkCommand]) -> None:
        assert not self.ended
        assert self.opened == [None], "nothing comes before the link is open"
        self.given += commands
        self.room -= len(commands)

    def has_room(self) -> bool:
        return self.room > 0

    def end(self, why: LinkEnd) -> None:
        self.ended.append(why)

    def counts(self) -> tuple[int, int]:
        return 7, len(self.given)

    @property
    def names(self) -> list[str]:
        return [command.name for command in self.given]

    def close(self, reason: str = "The client left.") -> None:
        assert self.link is not None
        links(self.house).close(self.link, reason)

    async def acknowledge(self, number: int, device: bytes | None = None) -> bool:
        gateway = None if device is None else self.device
        message = AcknowledgeCommand(id=number, gateway=gateway)
        answer: bool = await self.house.ask(device or self.device, message)
        return answer


def links(house: House) -> Links:
    return house.system.component(Links)


def begin(house: House, device: bytes, *, room: int = 1000) -> Session:
    session = Session(house, device)
    session.room = room
    opening = links(house).open(house.application, device, session, session.opened.append, address="10.0.0.9")
    session.link = opening[0]
    return session


async def committed(house: House) -> None:
    """Everything that was submitted is on disk, and what follows from it."""
    while house.system.journal.pending_batches:
        await trio.lowlevel.checkpoint()
    await trio.testing.wait_all_tasks_blocked()


async def connect(house: House, device: bytes, *, room: int = 1000) -> Session:
    session = begin(house, device, room=room)
    await committed(house)
    assert session.opened == [None]
    return session


async def log_of(house: House, device: bytes) -> list[dict[str, Any]]:
    query = History(limit=1000, sort_direction="asc")
    found: list[dict[str, Any]] = await house.read(
        read_messages.GetLogEntries(
            application=house.application, device=device, query=query, now_ms=house.clock.wall_ms()
        )
    )
    return found
