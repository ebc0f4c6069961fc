"""A change that was left to a job is not made by the repetition of the run as well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.actors.engine.flow_cases import BOUNDS, IDENTITY, NOW_MS
from tests.actors.engine.nodes.test_events import found_events, jobs_complete
from tests.actors.engine.test_world import never, world_of
from tests.actors.event_house import Events
from tests.actors.house import House, running_house
from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.visit import Run, Visit
from trunkline.limits.table import Limits


async def visited(house: House, number: int, type: str, config: dict[str, Any]) -> Any:
    """Visit a node in the run of a trigger; the payload after it."""
    run = Run(BOUNDS, NOW_MS, 0, never, IDENTITY, [])
    run.opened_world = world_of(house, number)
    visit = Visit(run, 0, 0, never, never)
    visit.node, visit.payload = 0, {"data": {}}
    await NODE_TYPES[type].step(config)(visit)
    return visit.payload["data"]


async def test_a_repetition_leaves_a_change_of_many_events_to_the_job(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d", limits=Limits(changed_events_max=2)) as house:
        for _ in range(5):
            await Events(house).create()
        update = {"queryTemplate": '{"state": "new"}', "updateMultiple": True, "stateTemplate": "resolved"}
        await visited(house, 1, "UpdateEventNode", update)
        await jobs_complete(house, 1)
        await Events(house).create()
        await visited(house, 1, "UpdateEventNode", update)
        assert sorted(each["state"] for each in await found_events(house)) == ["new", *["resolved"] * 5]
        await visited(house, 2, "UpdateEventNode", update)
        assert {each["state"] for each in await found_events(house)} == {"resolved"}


async def test_a_repetition_leaves_a_deletion_of_many_devices_to_the_job(tmp_path: Path) -> None:
    limits = replace(Limits.off(), changed_devices_max=2)
    async with running_house(tmp_path / "d", limits=limits) as house:
        for name in "abc":
            await house.device(name=name)
        config = {
            "dataMethod": "query",
            "deviceQueryJsonTemplate": '{"name": {"$ne": "x"}}',
            "resultPath": "data.result",
        }
        first = await visited(house, 1, "DeviceDeleteWorkflowNode", config)
        await jobs_complete(house, 1)
        await house.device(name="late")
        assert await visited(house, 1, "DeviceDeleteWorkflowNode", config) == first
        again = await visited(house, 2, "DeviceDeleteWorkflowNode", config)
        assert again["result"] == {"removed": 1, "failed": 0}
