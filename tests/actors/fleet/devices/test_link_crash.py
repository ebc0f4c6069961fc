"""Commands for links when the server is killed: each is delivered at least once, in order, until it is acknowledged.

The files are copied at some point of the event loop, as `kill -9` would leave them there, and a new server starts on
the copy. What was answered before that point is on disk; of what was not answered nothing is known.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
import trio

from tests.actors.fleet.devices.link_session import Session, begin, committed, connect, links, log_of
from tests.actors.house import House, running_again, running_house

pytestmark = pytest.mark.disk


class Load:
    """Commands, links that come and go, and acknowledgements, at random; and what is known of them."""

    def __init__(self, house: House, device: bytes, seed: int) -> None:
        self.house = house
        self.device = device
        self.chance = random.Random(seed)
        self.sent = 0
        self.answered: set[int] = set()
        """Commands that were answered, so they must not be lost."""
        self.maybe_acknowledged: set[int] = set()
        """Commands whose acknowledgement was begun, so they need not come again."""
        self.acknowledged: set[int] = set()
        """Commands whose acknowledgement was answered, so they must not come again."""
        self.session: Session | None = None
        self.is_killed = False

    def name(self, number: int) -> str:
        return f"c{number:04}"

    async def send(self) -> None:
        self.sent += 1
        number = self.sent
        await self.house.command(self.device, self.name(number))
        if not self.is_killed:
            self.answered.add(number)

    async def acknowledge(self, session: Session, at: int) -> None:
        command = session.given[at]
        number = int(command.name[1:])
        self.maybe_acknowledged.add(number)
        await session.acknowledge(command.id)
        if not self.is_killed:
            self.acknowledged.add(number)

    async def step(self, nursery: trio.Nursery) -> None:
        match self.chance.randrange(10):
            case 0:
                if self.session is not None:
                    self.session.close()
                self.session = None
            case 1 | 2:
                if self.session is None:
                    self.session = begin(self.house, self.device, room=self.chance.choice((1, 5, 1000)))
            case 3 | 4 | 5 if self.session is not None and self.session.given:
                at = self.chance.randrange(len(self.session.given))
                nursery.start_soon(self.acknowledge, self.session, at)
            case 6 if self.session is not None and self.session.link is not None:
                self.session.room = 1000
                links(self.house).pump(self.session.link)
            case _:
                nursery.start_soon(self.send)
        for _ in range(self.chance.randrange(3)):
            await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("seed", range(12))
async def test_commands_survive_kills(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        (await connect(house, device)).close()
        load = Load(house, device, seed)
        async with trio.open_nursery() as nursery:
            for _ in range(chance.randrange(10, 120)):
                await load.step(nursery)
            shutil.copytree(tmp_path / "d", tmp_path / "copy")
            load.is_killed = True
            await committed(house)
    async with running_again(tmp_path / "copy", house, 1000) as again:
        log = await log_of(again, device)
        assert log[-1]["connected"] == 0, "no link is open after a start"
        assert [entry["connected"] for entry in log] == [1, 0] * (len(log) // 2)
        session = await connect(again, device)
        await again.command(device, "after")
        numbers = [int(name[1:]) for name in session.names[:-1]]
        assert session.names[-1] == "after"
        assert numbers == sorted(set(numbers)), "in order, each once on one link"
        assert load.answered - load.maybe_acknowledged <= set(numbers), "nothing is lost"
        assert not load.acknowledged & set(numbers), "nothing comes again that was acknowledged"
        known = {command["name"]: command["status"] for command in await again.commands(device)}
        for number in load.acknowledged:
            assert known[load.name(number)] == "acknowledged"
