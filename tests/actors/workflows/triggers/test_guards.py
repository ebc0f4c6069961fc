"""What a workflow rejects at its beginning is judged without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import button, create_flow, kept_runs, press, runs_end, waiting_triggers
from tests.actors.house import running_house
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.workflows.triggers.guards import guard_of, nodes_by_id

Json = dict[str, Any]


def definition(expression: str, *outputs: list[str]) -> Json:
    return {
        "triggers": [button(["c"])],
        "nodes": [node("c", "ConditionalNode", {"expression": expression}, *outputs), node("d", "DebugNode")],
    }


@pytest.mark.parametrize(
    ("expression", "data", "needed"),
    [
        ("{{data.t}} > 30", {"t": 31}, True),
        ("{{data.t}} > 30", {"t": 30}, False),
        ("{{data.t}} > 30", {}, False),
        ("{{data.[a b]}} === 'x' && true", {"a b": "x"}, True),
    ],
)
def test_a_condition_on_the_data_is_a_guard(expression: str, data: Json, needed: bool) -> None:
    whole = definition(expression, [], ["d"])
    guard = guard_of(whole["triggers"][0], nodes_by_id(whole))
    assert guard is not None
    assert guard(data) is needed


@pytest.mark.parametrize(
    "whole",
    [
        definition("{{globals.limit}} > 30", [], ["d"]),
        definition("{{.}}", [], ["d"]),
        definition("{{format data.t '.1f'}} > 3", [], ["d"]),
        definition("{{data.t}} > 30", ["d"], ["d"]),
        definition("{{data.t}} >", [], ["d"]),
        definition("{{data.t}} > 30" + " + 0" * 5_000, [], ["d"]),
        {**definition("{{data.t}} > 30", [], ["d"]), "triggers": [button(["c", "d"])]},
        {**definition("{{data.t}} > 30", [], ["d"]), "triggers": [button(["d"])]},
    ],
)
def test_what_needs_more_than_the_data_is_run(whole: Json) -> None:
    guard = guard_of(whole["triggers"][0], nodes_by_id(whole))
    assert guard is None or guard({"t": 0})


async def test_a_rejected_cause_counts_as_a_run(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        parts = definition("{{data.t}} > 30", [], ["d"])
        flow = await create_flow(house, parts["triggers"], parts["nodes"])
        for t in (10, 40, 20):
            await press(house, flow, {"t": t})
        await runs_end(house)
        runner = house.system.component(FlowRunner)
        runner.tell()
        assert runner.runs == 3
        (run,) = kept_runs(house, flow)
        assert run.debug[0][3]["data"] == {"t": 40}
        assert waiting_triggers(house) == []
