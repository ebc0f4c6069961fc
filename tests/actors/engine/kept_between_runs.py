"""Workflows of one node that are run several times, for nodes that keep something between runs."""

from __future__ import annotations

from typing import Any

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import Json, button, create_flow, kept_runs, press, runs_end
from tests.actors.house import House
from trunkline.actors.runtime.ref import Ref


async def create_node(house: House, type: str, config: Json) -> Ref:
    """A workflow of one node with two outputs; `outcome` presses its button."""
    ends = [node(f"end{output}", "DebugNode", {"property": "data"}) for output in (0, 1)]
    return await create_flow(house, [button(["n"])], [node("n", type, config, ["end0"], ["end1"]), *ends])


async def outcome(house: House, flow: Ref, data: Any = None) -> tuple[Any, Any]:
    """Run a workflow of `create_node`: the output and the data after it, or the name and the message of the error."""
    await press(house, flow, data)
    await runs_end(house)
    house.clock.pass_s(1)  # of the runs of one second, only some are kept
    run = kept_runs(house, flow)[-1]
    if run.error:
        return run.error[1], run.error[2]
    ((_, _, _, value),) = run.debug
    return run.path[1], value
