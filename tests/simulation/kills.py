"""Processes of a server that die: between two commits, right before one, or right after it.

Of several machines one may also be cut off, or end in order.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.machines import CUT_OFF_S, Machine
from tests.simulation.part import Part
from tests.simulation.processes import Process
from tests.simulation.site import nothing
from tests.simulation.world import World


async def kill(world: World, chance: Random) -> None:
    """Let a process die, now or at a commit that comes."""
    process = chance.choice(world.life.all_processes)
    if isinstance(process, Machine) and chance.random() < 0.6:
        if chance.random() < 0.3:
            process.end()
        else:
            world.callers.start_soon(process.cut_off, chance.choice(CUT_OFF_S))
        return
    if chance.random() < 0.4 or not isinstance(process, Process | Machine):
        process.kill()
    else:
        process.disk.kill_soon(chance.choice((1, 1, 2, 5)))


PART: Final = Part(nothing, {kill: 6}, nothing, divided=True, undivided=False)
