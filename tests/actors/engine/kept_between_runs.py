"""Workflows of one node that are run several times, for nodes that keep something between runs."""

from __future__ import annotations

from typing import Any

from tests.actors.engine.run_house import run_again, told
from tests.actors.house import House
from trunkline.actors.core.runtime.ref import Ref


async def outcome(house: House, flow: Ref, data: Any = None) -> tuple[Any, Any]:
    """Run a workflow of `create_node`: the output and the data after it, or the name and the message of the error."""
    run = await run_again(house, flow, data)
    house.clock.pass_s(1)  # of the runs of one second, only some are kept
    return (run.error[1], run.error[2]) if run.error else (run.path[1], told(run)["data"])
