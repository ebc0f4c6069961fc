"""A long definition is made ready in a thread when it first runs, and what runs is what was saved last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.run_house import BY, button, create_flow, kept_runs, run_again, told, trigger
from tests.actors.house import House, running_house
from trunkline.actors.core.formulas import price
from trunkline.actors.engine.programs import INLINE_BYTES_MAX
from trunkline.actors.workflows.flows.bodies import FlowPatch
from trunkline.actors.workflows.flows.messages import PatchFlow

Json = dict[str, Any]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is computed in threads. The first entry is called there before, if it is put in."""
    done: list[Any] = []
    inner = price.Budget.compute_in_thread

    def compute(budget: price.Budget, work: Any, look: Any) -> None:
        if done and callable(done[0]):
            done.pop(0)()
        done.append("computed")
        inner(budget, work, look)

    monkeypatch.setattr(price.Budget, "compute_in_thread", compute)
    return done


def _remark() -> Json:
    """A node that never runs, and makes its definition long."""
    return {"id": "r", "type": "AnnotationNode", "meta": {"text": "x" * INLINE_BYTES_MAX}, "config": {}}


def _debug(message: str) -> Json:
    return {"id": "d", "type": "DebugNode", "config": {"message": message}, "outputIds": []}


async def test_a_long_definition_is_made_ready_in_a_thread_once(tmp_path: Path, threads: list[Any]) -> None:
    async with running_house(tmp_path) as house:
        long = await create_flow(house, [button(["d"])], [_debug("a"), _remark()])
        short = await create_flow(house, [button(["d"])], [_debug("a")])
        for flow, expected in ((short, 0), (long, 1), (long, 1), (short, 1)):
            assert (await run_again(house, flow)).outcome == "completed"
            assert len(threads) == expected


async def test_so_is_a_long_custom_node(tmp_path: Path, threads: list[Any]) -> None:
    async with running_house(tmp_path) as house:
        cap = {"id": "c", "type": "CustomNodeCapNode", "config": {"resultSourcePath": "data.given"}}
        config = {
            "fields": [{"id": "given", "type": "stringTemplate", "label": "Given"}],
            "outputCount": 1,
            "resultMode": "optional",
        }
        inner = await create_flow(
            house,
            [trigger("customNodeStart", ["c"], "start")],
            [cap, _remark()],
            flowClass="customNode",
            customNodeConfig=config,
        )
        given = [{"id": "given", "type": "stringTemplate", "value": "{{data.key}}" * 3}]
        call = {"customNodeId": inner.id.hex(), "resultPath": "data.r", "fields": given}
        node = {"id": "n", "type": "CustomNodeExecuteNode", "config": call, "outputIds": [["d"]]}
        flow = await create_flow(house, [button(["n"])], [node, _debug("a")])
        for _ in range(2):
            run = await run_again(house, flow, {"key": "ab"})
            assert told(run)["data"]["r"] == "ababab"
            assert threads == ["computed"]


async def test_what_was_saved_meanwhile_runs(tmp_path: Path, threads: list[Any]) -> None:
    async with running_house(tmp_path) as house:
        flow = await create_flow(house, [button(["d"])], [_debug("before"), _remark()])
        threads.append(lambda: trio.from_thread.run(_patch, house, flow, [_debug("after"), _remark()]))
        run = await run_again(house, flow)
        assert (run.outcome, run.debug[-1][2]) == ("completed", "after")
        assert threads == ["computed"] * 2
        assert len(kept_runs(house, flow)) == 1


async def _patch(house: House, flow: Any, nodes: list[Json]) -> None:
    body = msgspec.convert({"nodes": nodes}, FlowPatch)
    await house.system.ask(flow, PatchFlow(body=body, by=BY))
