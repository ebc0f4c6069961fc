"""What the tests of workflows share: definitions, dry runs of them, and the run of a single node."""

from __future__ import annotations

from functools import partial
from typing import Any

import outcome
import trio

from tests.patience import PATIENT
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.engine.dry_run import FlowTest, dry_run
from trunkline.actors.engine.visit import Bounds, Run
from trunkline.limits.table import Limits

BOUNDS = Bounds(steps=1_000, loop_items=100, payload_bytes=100_000)
IDENTITY = {"applicationId": "a" * 24, "flowId": "f" * 24, "flowName": "Test"}
NOW_MS = 1_790_000_000_000
"""The time of all runs: 2026-09-21T14:13:20.000Z."""

Json = dict[str, Any]


def node(id: str, type: str, config: Json | None = None, *outputs: list[str]) -> Json:
    """A node, with the ids that each output leads to."""
    return {"id": id, "type": type, "config": config or {}, "meta": {"label": id}, "outputIds": [*outputs]}


def flow(*nodes: Json, start: list[str] | None = None, **more: Any) -> Json:
    """A definition with one trigger that leads to the first node, or to `start`."""
    trigger = {"type": "timer", "key": "t", "outputIds": [start or [nodes[0]["id"]]]}
    return {"triggers": [trigger], "nodes": [*nodes], **more}


async def run_dry(definition: Json, bounds: Bounds = BOUNDS, limits: Json | None = None, **body: Any) -> Json:
    """What is shown of a dry run. `limits` are those of scripts."""
    async with trio.open_nursery() as nursery:
        pool = ScriptPool(Limits().override({**PATIENT, **(limits or {})}))
        await nursery.start(pool.run)
        call_script = partial(pool.call, owner=b"a" * 12)
        run = Run(bounds, NOW_MS, 0, call_script, IDENTITY, [])
        result = await outcome.acapture(dry_run, definition, FlowTest(**body), run)
        nursery.cancel_scope.cancel()
    return result.unwrap()


async def run_node(type: str, config: Json, data: Any = None, **body: Any) -> Json:
    """Run one node: the `output` it chose and `data` after it, or the `error`; and its `problems`."""
    shown = await run_dry(flow(node("n", type, config)), data={} if data is None else data, **body)
    if "error" in shown:
        return shown
    (step,) = shown["steps"]
    return {"output": step["output"], "data": step["payload"]["data"], "problems": shown["problems"]}


async def failure(type: str, config: Json, data: Any = None, **body: Any) -> tuple[str, str]:
    """Name and message of the error that one node ends with."""
    error = (await run_node(type, config, data, **body))["error"]
    return error["name"], error["message"]
