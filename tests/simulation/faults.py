"""What goes wrong around the server: commits that fail or take long, power that is cut, clocks that are set."""

from __future__ import annotations

import errno
from random import Random
from typing import Any, Final

from tests.simulation.disk import Fault
from tests.simulation.model import Throttle
from tests.simulation.part import Part
from tests.simulation.site import nothing
from tests.simulation.world import World
from trunkline.actors.core.runtime.actor import Actor

CLOCK_MS: Final = 6 * 3_600_000
"""So far is the wall clock set forward or back at most."""


class Clock:
    """How often the wall clock was set: `sets` in all, `backs` of them back. `stalls` are commits that took seconds."""

    def __init__(self) -> None:
        self.sets = 0
        self.backs = 0
        self.stalls = 0
        self.ends: list[int] = []
        """What it has shown before each time that it was set."""

    def read(self, world: World) -> tuple[int, int]:
        """How often it was set, and what it shows, in ms."""
        return self.sets, world.virtual.wall_ms()


async def fail_commit(world: World, chance: Random) -> None:
    number = chance.choice((errno.EIO, errno.ENOSPC))
    world.life.any_disk(chance).next_fault = Fault(error=OSError(number, "told to fail"))


async def slow_commit(world: World, chance: Random) -> None:
    delay_s = chance.choice((0.01, 0.3, 4, 40))
    world.life.any_disk(chance).next_fault = Fault(delay_s=delay_s)
    world.of(Clock).stalls += delay_s > 1


async def no_memory(world: World, chance: Random) -> None:
    """The next entry that a turn of any actor puts into its batch finds no memory."""
    actors: Any = Actor
    put = actors.put
    if put.__module__ == __name__:
        return  # the one before has not come yet

    def fail(_actor: Actor, _db: str, _key: bytes, _value: bytes) -> None:
        actors.put = put
        Throttle.crashes += 1
        world.failed_commits += 1  # its call is refused as if its commit had failed
        world.number_at_failure = world.number
        world.reached["a turn found no memory"] += 1
        world.note("a turn found no memory")
        raise MemoryError

    actors.put = fail


async def cut_power(world: World, chance: Random) -> None:
    if chance.random() < 0.3:
        world.life.any_disk(chance).cut_soon(chance.choice((1, 1, 4, 15)))


async def set_clock(world: World, chance: Random) -> None:
    """Somebody sets the wall clock: it is never further from the true time than `CLOCK_MS`."""
    if chance.random() < 0.5:
        clock, before_ms = world.of(Clock), world.virtual.skew_ms
        clock.ends.append(world.virtual.wall_ms())
        world.virtual.skew_ms = chance.randrange(-CLOCK_MS, CLOCK_MS)
        clock.sets += 1
        clock.backs += world.virtual.skew_ms < before_ms
        world.reached["the clock was set"] += 1


PART: Final = Part(
    nothing,
    {fail_commit: 2, slow_commit: 2, no_memory: 1, cut_power: 1, set_clock: 0.5},
    nothing,
    always=True,
    divided=True,
)
