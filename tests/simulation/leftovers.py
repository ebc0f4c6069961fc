"""Whether anything goes on when nobody asks for anything any more: what is counted as under way must come to nothing.

A count that stays is a place that nobody can have again: of a mailbox, a queue, a slot, a connection. Connections that
clients keep, their links and their streams are no more than the clients know of.

Owns the comparison, at each look at everything. Does not own the counts: those are the server's own.
"""

from __future__ import annotations

from typing import Final

import trio

from tests.simulation.life import Life
from tests.simulation.model import Broken
from tests.simulation.processes import Server
from tests.simulation.world import World
from trunkline.actors.core.contents.downloads import Downloads
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.fleet.devices.state.backlog import BacklogLane
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.actors.workflows.triggers.queue import TriggerQueue

ENDS_S: Final = 600.0
"""After so long everything has ended: a failed commit puts a run off by some seconds, and a delay lasts for fifteen."""
_LOOKS: Final = 200


def under_way(life: Life) -> dict[str, int]:
    """What is not 0 of what the server counts as under way, in any of its processes."""
    found: dict[str, int] = {}
    for server in life.servers:
        found |= _under_way(server)
    return found


def _under_way(server: Server) -> dict[str, int]:
    system = server.system
    lane, jobs = system.component(BacklogLane), system.component(Jobs)
    counts = {
        "bytes that wait for a commit": system.journal.pending_bytes,
        "messages in a mailbox": max((each.depth for each in system.mailboxes()), default=0),
        "calls that wait for their turn": server.dispatcher.call_turns.waiting,
        "calls of backlogs": lane.waiting,
        "bytes of backlogs": lane.waiting_bytes,
        "jobs that wait": len(jobs.queue),
        "jobs that run": len(jobs.running),
        "results that are fetched": jobs.results.downloads,
        "uploads": system.component(Uploads).running,
        "downloads": system.component(Downloads).running,
        "triggers that wait": system.component(TriggerQueue).waiting,
        "runs": system.component(FlowRunner).running,
        "places of connections that have ended": server.edge.places_too_many,
    }
    return {what: count for what, count in counts.items() if count}


async def look(world: World) -> None:
    """Wait until nothing is under way."""
    if world.quota is not None:
        return  # there may be no room for the end of a run
    left: dict[str, int] = {}
    for _ in range(_LOOKS):
        left = under_way(world.life)
        if not left:
            return
        await trio.sleep(ENDS_S / _LOOKS)
    raise Broken(f"nobody asks for anything, and after {ENDS_S:.0f} seconds there are {left}")
