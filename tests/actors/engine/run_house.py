"""Workflows that run in a real system: create them, trigger them, wait for the end of the runs, read what is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import trio

from tests.actors.house import House
from tests.patience import PATIENCE_S
from trunkline.actors.connections.credentials.resource import CREDENTIALS, CredentialPatch, CredentialPost
from trunkline.actors.core.records.messages import CreateRecord, Creator, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.workflows.flows.bodies import ButtonPress, FlowPost
from trunkline.actors.workflows.flows.messages import CreateFlow, PressButton
from trunkline.actors.workflows.flows.run_records import RunRecord, decode_run
from trunkline.actors.workflows.triggers.button import button_ref
from trunkline.actors.workflows.triggers.queue import TriggerQueue
from trunkline.store import keys

BY = Creator("0" * 24, "user", "Ada")

Json = dict[str, Any]


def trigger(type: str, to: list[str], key: str = "", **more: Any) -> Json:
    """A trigger that leads to some nodes."""
    return {"type": type, "key": key, "outputIds": [to], **more}


def button(to: list[str]) -> Json:
    """A virtual button; `press` presses it."""
    return trigger("virtualButton", to, "button", meta={"id": "b"})


async def create_flow(house: House, triggers: list[Json], nodes: list[Json], **fields: Any) -> Ref:
    """A new workflow."""
    ref = Ref("flow", house.application, house.system.ids.new(house.clock.wall_ms()))
    body = {"name": "flow", "triggers": triggers, "nodes": nodes, **fields}
    await house.system.ask(ref, CreateFlow(body=msgspec.convert(body, FlowPost), by=BY))
    return ref


async def add_credential(house: House, name: str, **config: Any) -> None:
    """A new credential of the application."""
    body = msgspec.convert({"name": name, **config}, CredentialPost)
    ref = Ref("application", ROOT, house.application)
    await house.system.ask(ref, CreateRecord(resource=CREDENTIALS.name, body=body, by=BY))


async def change_credential(house: House, name: str, **changes: Any) -> None:
    """Change the credential of a name."""
    with house.system.store.snapshot() as snapshot:
        unique = keys.unique_key(CREDENTIALS.kind.name, house.application, "name", name)
        id = snapshot.get(keys.UNIQUE, unique)
    assert id is not None
    body = msgspec.convert(changes, CredentialPatch)
    ref = Ref("application", ROOT, house.application)
    await house.system.ask(ref, PatchRecord(resource=CREDENTIALS.name, record=id, body=body, by=BY))


async def press(
    house: House, flow: Ref, payload: Any = None, origin: Origin | None = None, **more: Any
) -> None:
    """Press the button of a workflow."""
    body = ButtonPress(key="button", payload={} if payload is None else payload, **more)
    await house.system.ask(
        button_ref(house.application, flow.id, "button"), PressButton(flow=flow.id, body=body, origin=origin)
    )


async def runs_end(house: House) -> None:
    """Wait until nothing is to be run, and all ends are on disk."""
    runner, queue = house.system.component(FlowRunner), house.system.component(TriggerQueue)
    with trio.fail_after(PATIENCE_S):
        while queue.waiting or runner.running or house.system.journal.pending_batches:
            await trio.lowlevel.checkpoint()


def kept_runs(house: House, flow: Ref) -> list[RunRecord]:
    """The run records of a workflow, in the order of their ends."""
    prefix = keys.flow_runs_prefix(house.application, flow.id)
    end = keys.prefix_end(prefix)
    assert end is not None
    return [decode_run(raw) for _, raw in house.system.journal.range(keys.FLOWS, prefix, end)]


async def create_node(house: House, type: str, config: Json) -> Ref:
    """A workflow of one node with two outputs, after each of which a debug node tells the payload."""
    nodes: list[Json] = [{"id": "n", "type": type, "config": config, "outputIds": [["end0"], ["end1"]]}]
    nodes += [{"id": f"end{output}", "type": "DebugNode", "config": {}} for output in (0, 1)]
    return await create_flow(house, [button(["n"])], nodes)


async def run_again(house: House, flow: Ref, data: Any = None) -> RunRecord:
    """One more run of a workflow with a button."""
    await press(house, flow, data)
    await runs_end(house)
    return kept_runs(house, flow)[-1]


async def run_one(house: House, type: str, config: Json, data: Any = None) -> RunRecord:
    """The run of a new workflow of `create_node`."""
    return await run_again(house, await create_node(house, type, config), data)


def told(run: RunRecord) -> Json:
    """The payload that the last debug node told."""
    assert run.outcome == "completed", run.error
    payload: Json = run.debug[-1][3]
    return payload


def waiting_triggers(house: House) -> list[bytes]:
    """The keys of TRIGGERS."""
    with house.system.store.snapshot() as snapshot:
        return [bytes(key) for key in snapshot.keys(keys.TRIGGERS, b"", None)]


async def node_runs(house: House, type: str, config: Json, data: Any = None) -> Json:
    """Run one node in a real run: `data` and `output` after it, or the `error` as name and message."""
    run = await run_one(house, type, config, data)
    if run.error is not None:
        return {"error": tuple(run.error[1:])}
    return {"output": run.path[1], "data": told(run)["data"]}
