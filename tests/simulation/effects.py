"""A workflow that writes a row for each state: each state that is stored has one row, whatever happens in between."""

from __future__ import annotations

from collections import Counter
from typing import Final

import trio

from tests.simulation.determinism import START_MS
from tests.simulation.devices import TAG, Fleet
from tests.simulation.model import Broken
from tests.simulation.part import Part
from tests.simulation.site import Site, surely
from tests.simulation.world import World

RUNS_S: Final = 600.0
"""After so long all runs must have ended; a failed commit puts one off by some seconds."""
ROWS_MAX: Final = 5000


class Effects:
    """The table of the rows that runs have written.

    `excused` are states whose rows may be missing: a commit has failed after they were sent, and a run whose row is
    refused ends with this error.
    """

    def __init__(self) -> None:
        self.path = ""
        self.seen: set[int] = set()
        self.excused: set[int] = set()


async def prepare(world: World) -> None:
    site, effects = world.of(Site), world.of(Effects)
    columns = [{"name": "n", "dataType": "number", "constraint": "required"}]
    answer = await world.call("POST", f"{site.path}/data-tables", {"name": "effects", "columns": columns})
    assert answer is not None
    table = answer.body["dataTableId"]
    effects.path = f"{site.path}/data-tables/{table}/rows"
    config = {
        "dataTableIdTemplate": table,
        "rowFields": [{"columnTemplate": "n", "valueTemplate": "{{data.n}}"}],
    }
    flow = {
        "name": "effects",
        "triggers": [
            {"type": "deviceTag", "key": f"{TAG['key']}/{TAG['value']}", "config": {}, "outputIds": [["row"]]}
        ],
        "nodes": [{"id": "row", "type": "DataTableInsertRowNode", "config": config, "outputIds": [[]]}],
    }
    answer = await world.call("POST", f"{site.path}/flows", flow)
    assert answer is not None
    assert answer.status == 201


async def look(world: World) -> None:
    """Wait until each state has its row. Those of deleted devices may have none: their runs end without."""
    fleet, effects = world.of(Fleet), world.of(Effects)
    excused_to = world.number if world.quota is not None else world.number_at_failure
    sent = {time - START_MS for meter in fleet.meters.values() for time in meter.states.things}
    effects.excused |= {number for number in sent if number <= excused_to} - effects.seen
    for attempt in range(100):
        rows = await _rows(world, effects)
        twice = [n for n, count in rows.items() if count > 1]
        if twice:
            raise Broken(f"the workflow has written the rows of {twice} more than once")
        there = {
            state
            for meter in fleet.meters.values()
            if surely(fleet.records, meter.id)
            for state in meter.states.sure().values()
        }
        missing = there - set(rows) - effects.excused
        if not missing:
            break
        world.reached["runs were waited for"] += attempt == 0
        await trio.sleep(RUNS_S / 100)
    else:
        raise Broken(f"the workflow has not written the rows of {sorted(missing)} after {RUNS_S:.0f} seconds")
    effects.seen = set(rows)
    _check_causes(fleet, set(rows) - there)


def _check_causes(fleet: Fleet, others: set[int]) -> None:
    """A row without a state that is there: its device is deleted, or a link has just sent it again."""
    excused = {
        time - START_MS
        for meter in fleet.meters.values()
        for time, state in meter.states.things.items()
        if state.coming or not surely(fleet.records, meter.id)
    }
    if others - excused:
        raise Broken(
            f"the workflow has written the rows of {sorted(others - excused)}; no such state is stored"
        )


async def _rows(world: World, effects: Effects) -> Counter[int]:
    answer = await world.call("GET", f"{effects.path}?limit={ROWS_MAX}")
    assert answer is not None
    if answer.body["totalCount"] > ROWS_MAX:
        raise AssertionError("the run is longer than this part reads")
    return Counter(row["n"] for row in answer.body["items"])


PART: Final = Part(prepare, {}, look, divided=True)
