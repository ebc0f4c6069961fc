"""A node presses a button of another workflow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import (
    BY,
    button,
    create_flow,
    kept_runs,
    node_runs,
    press,
    runs_end,
    trigger,
)
from tests.actors.house import House, at, running_again, running_house
from tests.actors.workflows.triggers.test_timers import moved_to
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.workflows.flows.bodies import FlowPatch
from trunkline.actors.workflows.flows.messages import DeleteFlow, PatchFlow
from trunkline.actors.workflows.flows.run_records import run_id
from trunkline.limits.table import Limits
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
        assert ran["data"]["result"] == {
            "success": True,
            "runId": run_id(int.from_bytes(key[-8:], "big")),
            "flowId": flow.id.hex(),
            "flowVersion": "default",
            "virtualButtonId": named.replace("{{data.flow}}", flow.id.hex()),
            "payload": {"v": 7},
        }


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
        assert (ran["data"]["result"]["success"], ran["data"]["result"]["runId"]) == (False, None)
        ran = await node_runs(house, TYPE, {**config, "triggerVirtualButtonId": "ui2"})
        assert "has no virtual button 'ui2'" in ran["data"]["result"]["error"]["message"]
        ran = await node_runs(house, TYPE, {**config, "triggerWorkflowId": "0" * 24})
        assert ran["data"]["result"]["error"]["type"] == "NotFound"
        assert kept_runs(house, flow) == []


async def test_a_workflow_that_triggers_itself_ends(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        config = {"triggerWorkflowId": "{{flowId}}", "triggerVirtualButtonId": "button"}
        flow = await create_flow(house, [button(["n"])], [node("n", TYPE, config)])
        await press(house, flow)
        await runs_end(house)
        outcomes = [run.outcome for run in kept_runs(house, flow)]
        assert "failed" not in outcomes


async def later(house: House, flow: Ref, **config: Any) -> Json:
    """Schedule or cancel a press of a workflow in a run; its result."""
    named = {"triggerWorkflowId": flow.id.hex(), "triggerVirtualButtonId": "ui1", "resultPath": "data.result"}
    ran = await node_runs(house, TYPE, {"behavior": "schedule", **named, **config}, {"v": 7})
    result: Json = ran["data"]["result"]
    return result


def times(house: House, flow: Ref) -> list[tuple[str, Any]]:
    """The time and the data of each run."""
    return [(run.debug[0][3]["time"], run.debug[0][3]["data"]) for run in kept_runs(house, flow)]


def stored(house: House) -> int:
    """How many presses are still to come."""
    prefix = keys.scheduled_prefix(house.application)
    end = keys.prefix_end(prefix)
    assert end is not None
    return len(house.system.journal.range(keys.META, prefix, end))


async def test_a_press_is_scheduled_and_happens_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await target(house)
        result = await later(
            house, flow, secondsTemplate="{{add 3 data.v}}", payloadTemplate='{"v": {{data.v}}}'
        )
        assert len(result.pop("runId")) == 24
        assert result == {
            "success": True,
            "flowId": flow.id.hex(),
            "flowVersion": "default",
            "virtualButtonId": "ui1",
            "payload": {"v": 7},
            "runAt": at(10_000),
            "newOrUpdate": "new",
        }
        absolute = await later(house, flow, scheduling="absolute", dateTemplate=at(5_000), runIdTemplate="b")
        assert (absolute["runId"], absolute["runAt"]) == ("b", at(5_000))
        past = await later(house, flow, scheduling="absolute", dateTemplate=at(-5_000))
        assert past["runAt"] == at(0)
        for offset_ms, count in ((0, 1), (4_999, 1), (5_000, 2), (9_999, 2), (10_000, 3), (60_000, 3)):
            await moved_to(house, offset_ms)
            assert len(kept_runs(house, flow)) == count
        assert times(house, flow) == [
            (at(0), {"own": True}),
            (at(5_000), {"own": True}),
            (at(10_000), {"v": 7}),
        ]
        assert kept_runs(house, flow)[0].debug[0][3]["relayType"] == "flow"
        assert stored(house) == 0


async def test_a_press_is_replaced_and_cancelled_by_its_id(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await target(house)
        for seconds, which in (("10", "new"), ("20", "update")):
            result = await later(house, flow, secondsTemplate=seconds, runIdTemplate="off-{{data.v}}")
            assert (result["runId"], result["newOrUpdate"]) == ("off-7", which)
        await later(house, flow, secondsTemplate="15", runIdTemplate="other")
        await moved_to(house, 10_000)
        assert times(house, flow) == []
        for done in (True, False):
            cancelled = await later(house, flow, behavior="cancel", runIdTemplate="off-7")
            assert cancelled == {"success": done, "runId": "off-7"}
        await moved_to(house, 60_000)
        assert [each for each, _ in times(house, flow)] == [at(60_000)]


async def test_a_restart_keeps_presses_and_makes_up_each_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await target(house)
        for seconds in ("10", "20", "90"):
            await later(house, flow, secondsTemplate=seconds, runIdTemplate=seconds)
        await moved_to(house, 10_000)
    async with running_again(tmp_path / "d", house, 45_000) as again:
        await moved_to(again, 45_000)
        assert len(kept_runs(again, flow)) == 2
        assert (await later(again, flow, behavior="cancel", runIdTemplate="20"))["success"] is False
        assert (await later(again, flow, secondsTemplate="1", runIdTemplate="90"))["newOrUpdate"] == "update"
    async with running_again(tmp_path / "d", again, 46_000) as last:
        await moved_to(last, 46_000)
        await moved_to(last, 600_000)
        assert len(kept_runs(last, flow)) == 3
        assert stored(last) == 0


async def test_what_cannot_be_scheduled_is_told(tmp_path: Path) -> None:
    limits = replace(Limits.off(), scheduled_presses_max=1, scheduled_press_bytes_max=100)
    async with running_house(tmp_path / "d", limits=limits) as house:
        flow = await target(house)
        for config, message in (
            ({"secondsTemplate": "-1"}, "config.secondsTemplate: gives -1"),
            ({"secondsTemplate": "31622401"}, "config.secondsTemplate: gives 31622401"),
            ({"secondsTemplate": "{{data.gone}}"}, "config.secondsTemplate: gives "),
            ({"scheduling": "absolute", "dateTemplate": "soon"}, "config.dateTemplate: "),
            ({"scheduling": "absolute", "dateTemplate": "2099-01-01"}, "The time is 2099-01-01"),
            ({"secondsTemplate": "1", "runIdTemplate": "x" * 256}, "runId: has 256 characters"),
            ({"secondsTemplate": "1", "triggerVirtualButtonId": "ui2"}, "key: version 'develop'"),
            ({"secondsTemplate": "1", "triggerWorkflowId": "0" * 24}, "There is no workflow"),
            ({"secondsTemplate": "1", "payloadTemplate": f'"{"x" * 100}"'}, "payload: the press has "),
        ):
            result = await later(house, flow, **config)
            assert result["error"]["message"].startswith(message), result
        assert stored(house) == 0
        await later(house, flow, secondsTemplate="1", runIdTemplate="a")
        full = await later(house, flow, secondsTemplate="1")
        assert full["error"]["message"].startswith("The application has 1 scheduled runs")
        assert (await later(house, flow, secondsTemplate="2", runIdTemplate="a"))["newOrUpdate"] == "update"
        assert stored(house) == 1


async def test_a_press_of_a_button_that_is_gone_is_an_error_of_the_workflow(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow, deleted = await target(house), await target(house)
        for each in (flow, deleted):
            await later(house, each, secondsTemplate="10")
        body = FlowPatch(triggers=[])
        await house.system.ask(flow, PatchFlow(body=body, by=BY))
        await house.system.ask(deleted, DeleteFlow())
        await moved_to(house, 10_000)
        house.system.component(FlowRunner).tell()
        (run,) = kept_runs(house, flow)
        assert run.outcome == "dropped"
        assert run.error is not None
        assert run.error[2].startswith(
            "A scheduled run is dropped: key: version 'develop' of this workflow has no"
        )
        assert stored(house) == 0


@pytest.mark.parametrize(("seconds", "goes_on"), [("0.5", False), ("1", True)])
async def test_a_workflow_that_schedules_itself_with_pauses_goes_on(
    tmp_path: Path, seconds: str, goes_on: bool
) -> None:
    async with running_house(tmp_path / "d") as house:
        config = {
            "behavior": "schedule",
            "triggerWorkflowId": "{{flowId}}",
            "triggerVirtualButtonId": "button",
            "secondsTemplate": seconds,
        }
        flow = await create_flow(house, [button(["n"])], [node("n", TYPE, config)])
        await press(house, flow)
        await runs_end(house)
        for second in range(1, 50):
            await moved_to(house, second * 1_000)
        assert (stored(house) == 1) == goes_on
