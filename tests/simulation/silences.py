"""A trigger of inactivity: a silent device starts the workflow once, until it reports again.

What counts is when a report arrived. After a restart it may be the time that the report names, which is at most a
minute before.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.simulation.devices import TAG, Fleet, Meter
from tests.simulation.faults import Clock
from tests.simulation.life import Life
from tests.simulation.model import Broken
from tests.simulation.part import TIMED_FROM, Part
from tests.simulation.site import surely
from tests.simulation.world import World
from tests.simulation.written import Row, Written, create_flow, until
from trunkline.actors.core.values.timestamps import parse_iso

SILENCE_S: Final = 400
_SLACK_S: Final = 90.0
_MINUTE_MS: Final = 60_000


class Silences:
    """The rows of runs. `excused` are the devices whose runs a failed commit may have cost."""

    def __init__(self) -> None:
        self.written = Written(("device", "last"))
        self.begun_s = 0.0
        self.excused: dict[str, float] = {}
        self.life: Life | None = None
        self.life_s = 0.0


async def prepare(world: World) -> None:
    silences = world.of(Silences)
    await silences.written.create(world, "silences")
    trigger = {
        "type": "deviceTagInactivity",
        "key": f"{TAG['key']}/{TAG['value']}",
        "config": {"seconds": SILENCE_S},
        "outputIds": [["row"]],
    }
    node = silences.written.node("row", "{{triggerId}}", "{{data.lastActivity}}")
    await create_flow(world, "silences", [trigger], [node])
    silences.begun_s = world.virtual.now_s


async def look(world: World) -> None:
    """Wait until each device that has long been silent has its row."""
    if world.quota is not None:
        return  # there may be no room for a row
    silences, fleet = world.of(Silences), world.of(Fleet)
    if silences.life is not world.life:
        silences.life, silences.life_s = world.life, world.virtual.now_s

    async def missing() -> str:
        if silences.written.failures(world):
            silences.excused |= {id: meter.active_s for id, meter in fleet.meters.items()}
        rows = await silences.written.rows(world)
        _check_once(world, rows)
        return ", ".join(meter.id for meter in fleet.meters.values() if _is_missing(world, meter, rows))

    await until(world, missing, "the runs for silent devices")
    world.reached["a device was silent"] += bool(await silences.written.rows(world))


def _check_once(world: World, rows: list[Row]) -> None:
    twice = [row for row, count in Counter(rows).items() if count > 1]
    if twice:
        raise Broken(f"the silences {twice} have started the workflow more than once")
    if not world.of(Clock).sets:
        latest_ms = world.virtual.wall_ms() - SILENCE_S * 1000 + _MINUTE_MS
        early = [row for row in rows if row[1] and parse_iso(row[1]) > latest_ms]
        if early:
            raise Broken(f"the silences {early} are shorter than {SILENCE_S} seconds")


def _is_missing(world: World, meter: Meter, rows: list[Row]) -> bool:
    """Whether a device is silent for long, and no run was told of it."""
    silences: Silences = world.of(Silences)
    if not surely(world.of(Fleet).records, meter.id) or silences.excused.get(meter.id) == meter.active_s:
        return False
    if meter.sets != world.of(Clock).sets:
        return False  # by which clock is it silent?
    since_s = max(meter.active_s, silences.begun_s)
    if world.virtual.now_s < max(since_s + SILENCE_S, silences.life_s, world.life.home_since_s) + _SLACK_S:
        return False
    of_meter = [last for device, last in rows if device == meter.id]
    if meter.stored_ms is None:
        return not of_meter
    return not any(last and parse_iso(last) >= meter.stored_ms - _MINUTE_MS for last in of_meter)


PART: Final = Part(prepare, {}, look, divided=True, divided_since=TIMED_FROM)
