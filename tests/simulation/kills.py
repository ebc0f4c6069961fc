"""Processes of a server that die: between two commits, right before one, or right after it.

Of several machines one may also be cut off, or end in order.
"""

from __future__ import annotations

from random import Random
from typing import Final

import trio

from tests.simulation.machines import CUT_OFF_S, Machine
from tests.simulation.part import Part
from tests.simulation.processes import Process
from tests.simulation.site import nothing
from tests.simulation.spread import strike
from tests.simulation.spread_processes import SpreadProcess
from tests.simulation.world import World


async def kill(world: World, chance: Random) -> None:
    """Let a process die, now or at a commit that comes."""
    process = chance.choice(world.life.all_processes)
    if isinstance(process, SpreadProcess):
        await strike(world, process, chance)
        return
    if isinstance(process, Machine) and chance.random() < 0.6:
        if chance.random() < 0.3:
            process.end()
        else:
            world.callers.start_soon(process.cut_off, chance.choice(CUT_OFF_S))
            await _use_both(world, process, chance)
        return
    if chance.random() < 0.4 or not isinstance(process, Process | Machine):
        process.kill()
    else:
        process.disk.kill_soon(chance.choice((1, 1, 2, 5)))


async def _use_both(world: World, cut: Machine, chance: Random) -> None:
    """Make calls one after the other while a machine that is cut off and another one both think to serve."""
    await trio.lowlevel.checkpoint()  # it is cut off now
    while cut.way.is_cut and cut.is_up and not world.life.over:
        if sum(each.is_up for each in world.life.all_processes) > 1:
            world.reached["calls while two machines thought to serve"] += 1
            for _ in range(chance.choice((10, 30, 60))):
                await world.act(chance)
                await trio.sleep(chance.choice((0, 0.005, 0.05, 0.2)))
            return
        await trio.sleep(0.1)


PART: Final = Part(nothing, {kill: 6}, nothing, divided=True, undivided=False)
