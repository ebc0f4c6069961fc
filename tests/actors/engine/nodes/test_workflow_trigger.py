"""A node presses a button of another workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import (
    button,
    create_flow,
    kept_runs,
    node_runs,
    press,
    runs_end,
    trigger,
)
from tests.actors.house import House, running_house
from trunkline.actors.flows.run_records import run_id
from trunkline.actors.runtime.ref import Ref
from trunkline.store import keys

Json = dict[str, Any]
TYPE = "WorkflowTriggerNode"


async def target(house: House, **fields: Any) -> Ref:
    """A workflow whose button has a key, two ids and a payload of its own, and which tells its payload."""
    meta = {"id": "b1", "uiId": "ui1", "payload": '{"own": true}'}
    start = trigger("virtualButton", ["d"], "key1", meta=meta)
    return await create_flow(house, [start], [node("d", "DebugNode")], **fields)


@pytest.mark.parametrize("named", ["ui1", "b1", "key1", "{{data.flow}}-ui1"])
async def test_a_button_is_pressed_by_its_ids_and_its_key(tmp_path: Path, named: str) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await target(house)
        config = {
            "triggerWorkflowId": flow.id.hex(),
            "triggerVirtualButtonId": named,
            "payloadTemplate": '{"v": {{data.v}}}',
            "resultPath": "data.result",
        }
        ran = await node_runs(house, TYPE, config, {"v": 7, "flow": flow.id.hex()})
        (run,) = kept_runs(house, flow)
        payload = run.debug[0][3]
        assert payload["data"] == {"v": 7}
        assert payload["relayType"] == "flow"
        prefix = keys.flow_runs_prefix(house.application, flow.id)
        end = keys.prefix_end(prefix)
        assert end is not None
        ((key, _),) = house.system.journal.range(keys.FLOWS, prefix, end)
        assert ran["data"]["result"] == {"runId": run_id(int.from_bytes(key[-8:], "big"))}


@pytest.mark.parametrize(
    ("config", "given"),
    [
        ({}, {"own": True}),
        ({"payloadTemplate": "{{data.v}}", "payloadTemplateType": "string"}, "7"),
        ({"payloadTemplate": "data.list", "payloadTemplateType": "path"}, [1]),
    ],
)
async def test_a_payload_has_the_forms_of_its_types(tmp_path: Path, config: Json, given: Any) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await target(house)
        named = {"triggerWorkflowId": flow.id.hex(), "triggerVirtualButtonId": "ui1"}
        await node_runs(house, TYPE, {**named, **config}, {"v": 7, "list": [1]})
        (run,) = kept_runs(house, flow)
        assert run.debug[0][3]["data"] == given


async def test_a_version_may_be_named(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await target(house)
        config = {
            "triggerWorkflowId": flow.id.hex(),
            "triggerVirtualButtonId": "ui1",
            "flowVersionTemplate": "{{data.version}}",
        }
        ran = await node_runs(house, TYPE, config, {"version": "develop"})
        assert "error" not in ran
        assert kept_runs(house, flow)[0].version == "develop"
        name, message = (await node_runs(house, TYPE, config, {"version": "v9"}))["error"]
        assert (name, message.partition(";")[0]) == (
            "Validation",
            "flowVersion: this workflow has no version 'v9'",
        )


async def test_what_cannot_be_pressed_is_told(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await target(house, enabled=False)
        config = {
            "triggerWorkflowId": flow.id.hex(),
            "triggerVirtualButtonId": "ui1",
            "resultPath": "data.result",
        }
        ran = await node_runs(house, TYPE, config)
        assert ran["data"]["result"] == {"runId": None}
        ran = await node_runs(house, TYPE, {**config, "triggerVirtualButtonId": "ui2"})
        assert "has no virtual button 'ui2'" in ran["data"]["result"]["error"]["message"]
        ran = await node_runs(house, TYPE, {**config, "triggerWorkflowId": "0" * 24})
        assert ran["data"]["result"]["error"]["type"] == "NotFound"
        for behavior in ("schedule", "cancel"):
            ran = await node_runs(house, TYPE, {**config, "behavior": behavior})
            assert ran["error"][1] == (
                f"config.behavior: is {behavior!r}; workflows are triggered at once only, so give immediate."
            )
        assert kept_runs(house, flow) == []


async def test_a_workflow_that_triggers_itself_ends(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        config = {"triggerWorkflowId": "{{flowId}}", "triggerVirtualButtonId": "button"}
        flow = await create_flow(house, [button(["n"])], [node("n", TYPE, config)])
        await press(house, flow)
        await runs_end(house)
        outcomes = [run.outcome for run in kept_runs(house, flow)]
        assert "failed" not in outcomes
