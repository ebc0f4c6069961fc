"""An alarm rule about a value that each state has: one is open for a device if its newest state is hot, else none.

States of a backlog change no alarm, and neither do states that come when a newer one is there, also one of a backlog.
The model does not know in which order the two came.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import trio

from tests.simulation.determinism import START_MS
from tests.simulation.devices import HOT, TAG, Fleet, Meter, heat_of
from tests.simulation.model import Broken
from tests.simulation.part import Part
from tests.simulation.site import Site, surely
from tests.simulation.world import World

ALARMS_S: Final = 300.0
"""After so long the alarms must agree with the states; a failed commit puts one off by some seconds."""
_LOOKS: Final = 100


async def prepare(world: World) -> None:
    rule = {
        "name": "hot",
        "deviceTags": [TAG],
        "condition": {"type": "attribute", "attribute": "heat", "comparison": "above", "value": HOT - 1},
    }
    answer = await world.call("POST", f"{world.of(Site).path}/alarm-rules", rule)
    assert answer is not None
    assert answer.status == 201, answer


async def look(world: World) -> None:
    """Wait until the alarms agree with the newest states, and their events with them."""
    if world.quota is not None:
        return  # there may be no room for the event of an alarm
    fleet = world.of(Fleet)
    due = {id: _due(meter) for id, meter in fleet.meters.items() if surely(fleet.records, id)}
    opened: Counter[str] = Counter()
    unresolved: Counter[str] = Counter()
    for attempt in range(_LOOKS):
        opened, unresolved = await _open(world), await _unresolved(world)
        if opened == unresolved and _agree(opened, due):
            world.reached["an alarm was open"] += bool(opened)
            return
        world.reached["alarms were waited for"] += attempt == 0
        await trio.sleep(ALARMS_S / _LOOKS)
    hot = {id[-4:]: sorted(counts) for id, counts in sorted(due.items()) if counts != {0}}
    raise Broken(f"alarms of {_said(opened)} are open, events of {_said(unresolved)}; due are {hot}")


def _agree(opened: Counter[str], due: dict[str, set[int]]) -> bool:
    return opened.keys() <= due.keys() and all(opened[id] in counts for id, counts in due.items())


def _due(meter: Meter) -> set[int]:
    """How many alarms of a device may be open: one or none, by the newest state that may have changed something."""
    states, counts = meter.states.sure(), set()
    past = max((time for time in meter.states.things if time - START_MS in meter.past), default=0)
    for time in sorted((time for time, n in states.items() if n not in meter.past), reverse=True):
        counts.add(int(heat_of(time - START_MS) == HOT))
        if time > past:
            return counts
    return counts | {0}


async def _open(world: World) -> Counter[str]:
    return Counter(alarm["deviceId"] for alarm in await _items(world, "alarms"))


async def _unresolved(world: World) -> Counter[str]:
    """The events of alarms that are not resolved, by device."""
    return Counter(
        event["deviceId"]
        for event in await _items(world, "events")
        if "alarmRuleId" in event["eventTags"] and event["state"] != "resolved"
    )


async def _items(world: World, what: str) -> list[dict[str, Any]]:
    answer = await world.call("GET", f"{world.of(Site).path}/{what}?perPage=1000")
    assert answer is not None
    items: list[dict[str, Any]] = answer.body["items"]
    return items


def _said(devices: Counter[str]) -> str:
    return str({id[-4:]: count for id, count in sorted(devices.items())})


PART: Final = Part(prepare, {}, look, divided=True)
