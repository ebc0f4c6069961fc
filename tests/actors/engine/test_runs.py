"""Workflows run when they are triggered."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import (
    button,
    create_flow,
    kept_runs,
    press,
    runs_end,
    trigger,
    waiting_triggers,
)
from tests.actors.house import running_house

SUM = {"statements": [{"expression": "{{data.a}} + 1", "resultPath": "data.b"}]}


async def test_a_press_is_run_and_leaves_no_trigger(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(
            house,
            [button(["m"])],
            [
                node(
                    "m",
                    "MathNode",
                    {"statements": [{"expression": "{{data.a}} + 1", "resultPath": "data.b"}]},
                    ["d"],
                ),
                node("d", "DebugNode", {"message": "b is {{data.b}}", "property": "data"}),
            ],
        )
        await press(house, flow, {"a": 2})
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert run.outcome == "completed"
        assert run.debug == [[1, "info", "b is 3", {"a": 2, "b": 3}]]
        assert [each[1] for each in run.nodes] == ["MathNode", "DebugNode"]
        assert waiting_triggers(house) == []


async def test_a_failed_run_is_told_to_the_narrowest_scope(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        told = await create_flow(
            house,
            [trigger("flowError", ["d"], "global", config={"scope": "global"})],
            [node("d", "DebugNode")],
        )
        failing = await create_flow(
            house,
            [button(["t"]), trigger("flowError", ["d"], "local", config={"scope": "local"})],
            [node("t", "ThrowErrorNode", {"messageTemplate": "no {{data.a}}"}), node("d", "DebugNode")],
        )
        bare = await create_flow(house, [button(["t"])], [node("t", "UnknownNode")])
        await press(house, failing, {"a": "fuel"})
        await press(house, bare)
        await runs_end(house)
        first, handled = kept_runs(house, failing)
        assert (first.outcome, first.error) == ("failed", [0, "Error", "no fuel"])
        assert handled.trigger_type == "flowError"
        assert handled.debug[0][3]["data"]["erroredPayload"]["data"] == {"a": "fuel"}
        (elsewhere,) = kept_runs(house, told)
        assert elsewhere.debug[0][3]["data"]["errorInfo"]["error"]["name"] == "UnsupportedNode"


async def test_nothing_works_when_there_is_nothing_to_run(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        for _ in range(3):
            await press(house, flow)
        await runs_end(house)
        with trio.fail_after(60):
            await trio.testing.wait_all_tasks_blocked()
        assert len(kept_runs(house, flow)) == 3
