"""What each owner of a partition tells of the last hour: how busy its event loop was, and with which applications.

Owns what is told, and that it is asked of all owners. Does not own what is counted (`core/runtime/busy_hour.py`,
`fleet/devices/state/traffic.py`), nor what follows from it (`balance.py`). Each tells its `TOLD_MAX` busiest
applications; the others are in its sums.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from trunkline.actors.core.records.places import ROOT_PARTITION, Places
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.fleet.devices.state.traffic import Traffic

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

TRAFFIC: Final = "traffic"
"""The subject of what each process tells the others (`System.tells`)."""
TOLD_MAX: Final = 1_000
_AT_ONCE: Final = 1_000
"""So many applications are looked at in a turn of the loop."""


class ApplicationHour(NamedTuple):
    """The seconds that an owner has worked for an application, and the states that it has stored, in the last hour."""

    id: str
    busy_s: float
    states: int


class OwnerTraffic(NamedTuple):
    """The last hour of an owner, of which it has counted `counted_s`. `quota_bytes` is None without a quota.

    The busiest applications come first. `busy_s` and `states` are of all.
    """

    counted_s: float
    busy_s: float
    states: int
    used_bytes: int
    quota_bytes: int | None
    applications: list[ApplicationHour]


async def own_traffic(system: System) -> OwnerTraffic:
    """The last hour of this process."""
    busy = system.component(LoopWatch).hour.told(time.perf_counter_ns())
    states: dict[bytes, int] = {}
    for at, (application, counts) in enumerate(system.component(Traffic).applications().items()):
        if number := counts.states_of_hour(system.clock.wall_ms()):
            states[application] = number
        if at % _AT_ONCE == _AT_ONCE - 1:
            await trio.lowlevel.checkpoint()
    busiest = heapq.nlargest(TOLD_MAX, busy.applications.items(), key=lambda item: (item[1], item[0]))
    sizes = system.store.sizes()
    return OwnerTraffic(
        busy.counted_s,
        busy.busy_s,
        sum(states.values()),
        sizes.used,
        sizes.quota,
        [ApplicationHour(id.hex(), busy_s, states.get(id, 0)) for id, busy_s in busiest],
    )


async def all_traffic(system: System) -> dict[int, OwnerTraffic | None]:
    """The last hour of each owner by the number of its partition; None for one that does not answer in time."""
    if system.peers is None:
        return {ROOT_PARTITION: await own_traffic(system)}
    told: dict[int, OwnerTraffic | None] = await system.peers.ask_each(TRAFFIC)
    told[system.component(Places).own] = await own_traffic(system)
    return dict(sorted(told.items()))
