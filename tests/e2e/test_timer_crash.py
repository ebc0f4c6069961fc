"""kill -9 while timers fire, and while scheduled presses are due: each due time starts its workflow once, and what was
missed meanwhile is made up once.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from tests.e2e.server_process import serving
from tests.patience import PATIENCE_S
from trunkline.actors import boot
from trunkline.actors.workflows.flows.run_records import decode_run, unpacked
from trunkline.actors.workflows.triggers.intake import decode_trigger
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store import keys

pytestmark = pytest.mark.disk

KILLS, FLOWS = 5, 3
SECONDS = {"one": 1, "half more": 1.5}
LOOP = {"loopSourcePath": "data.list", "currentItemPath": "working.item"}

Json = dict[str, Any]


@pytest.mark.slow
async def test_each_due_time_is_queued_once_across_kills(tmp_path: Path) -> None:
    data_dir, random = tmp_path / "data", Random(5)
    limits = tmp_path / "limits.toml"
    limits.write_text("kept_runs_max = 1000\n")  # all runs are to be counted
    start = partial(serving, data_dir, "--limits", str(limits))
    async with start() as server:
        application = await server.application()
        triggers = [
            {"type": "timer", "key": key, "config": {"seconds": seconds}, "outputIds": [["d"]]}
            for key, seconds in SECONDS.items()
        ]
        triggers.append(
            {"type": "timer", "key": "cron", "config": {"cron": "* * * * * *"}, "outputIds": [["d"]]}
        )
        body = {
            "name": "clock",
            "triggers": triggers,
            "nodes": [{"id": "d", "type": "DebugNode", "config": {}}],
        }
        flows = [await server.call("POST", f"{application}/flows", body, status=201) for _ in range(FLOWS)]
        places = [(flow["applicationId"], flow["id"]) for flow in flows]
        await server.kill()
    for _ in range(KILLS):
        async with start() as server:
            await trio.sleep(random.uniform(0.2, 1.5))  # killed at any moment round a due time
            await server.kill()
    for firings in stored_firings(data_dir, places):
        for key, of_timer in firings.items():
            step_ms = int(SECONDS.get(key, 1) * 1000)
            assert len(of_timer) >= 2
            for (due_ms, missed), (next_ms, _) in pairwise(of_timer):
                assert next_ms == due_ms + (missed + 1) * step_ms, (key, of_timer)


@pytest.mark.slow
async def test_each_scheduled_press_happens_once_across_kills(tmp_path: Path) -> None:
    data_dir, random = tmp_path / "data", Random(7)
    numbers = range(12)
    start = partial(serving, data_dir, "--limits", "off")

    def node(id: str, type: str, config: Json, *outputs: str) -> Json:
        return {"id": id, "type": type, "config": config, "outputIds": [[each] for each in outputs]}

    def button(to: str) -> Json:
        return {"type": "virtualButton", "key": "b", "meta": {"id": "b"}, "outputIds": [[to]]}

    async with start() as server:
        flows = f"{await server.application()}/flows"
        count = {"keyName": "{{data.n}}", "valueType": "incr", "value": "1"}
        counting = {
            "name": "counts",
            "triggers": [button("n")],
            "nodes": [node("n", "StoreValueNode", count)],
        }
        target = (await server.call("POST", flows, counting, status=201))["id"]
        press = {"triggerWorkflowId": target, "triggerVirtualButtonId": "b", "behavior": "schedule"}
        soon = {
            "secondsTemplate": "{{divide working.item.value 5}}",
            "payloadTemplate": '{"n": {{working.item.value}}}',
            "runIdTemplate": "{{working.item.value}}",
        }
        again = {"secondsTemplate": "0.7", "payloadTemplate": '{"n": "again"}', "runIdTemplate": "10"}
        planning = {
            "name": "plans",
            "triggers": [button("loop")],
            "nodes": [
                node("loop", "LoopNode", LOOP, "again", "press"),
                node("press", "WorkflowTriggerNode", press | soon),
                node("again", "WorkflowTriggerNode", press | again, "cancel"),
                node("cancel", "WorkflowTriggerNode", {"behavior": "cancel", "runIdTemplate": "11"}),
            ],
        }
        planner = (await server.call("POST", flows, planning, status=201))["id"]
        pressed = {"key": "b", "payload": {"list": list(numbers)}}
        await server.call("POST", f"{flows}/{planner}/virtualButton", pressed)
        await server.kill()
    for _ in range(KILLS):
        async with start() as server:
            await trio.sleep(random.uniform(0, 0.5))  # killed at any moment round a press
            await server.kill()
    async with start() as server:
        expected = {**{str(n): 1 for n in numbers if n < 10}, "again": 1}
        with trio.fail_after(PATIENCE_S):
            stored: Json = {}
            while stored.keys() < expected.keys():
                await trio.sleep(0.1)
                stored = await server.call("GET", f"{flows}/{target}/storage")
        assert stored == expected
        await server.kill()
    with boot.opened(Settings(data_dir=str(data_dir), limits=Limits.off())) as system:
        prefix = keys.SCHEDULED_PREFIX
        with system.store.snapshot() as snapshot:
            assert not list(snapshot.keys(keys.META, prefix, keys.prefix_end(prefix)))


def stored_firings(data_dir: Path, places: list[tuple[str, str]]) -> list[dict[str, list[tuple[int, int]]]]:
    """For each workflow, by the key of a timer, the due times in ms and the missed ones of all triggers and runs."""
    flows: dict[bytes, dict[str, list[tuple[int, int]]]] = {}

    def note(raw: bytes) -> None:
        record = decode_trigger(raw)
        told = record.cause.more["timer"]
        due_ms = round(datetime.fromisoformat(told["dueTime"]).timestamp() * 1000)
        of_timer = flows.setdefault(record.flow, {}).setdefault(record.key, [])
        of_timer.append((due_ms, told["missedCount"]))

    with (
        boot.opened(Settings(data_dir=str(data_dir), limits=Limits.off())) as system,
        system.store.snapshot() as snapshot,
    ):
        for application, flow in places:
            prefix = keys.flow_runs_prefix(bytes.fromhex(application), bytes.fromhex(flow))
            for _, raw in snapshot.range(keys.FLOWS, prefix, keys.prefix_end(prefix)):
                run = decode_run(bytes(raw))
                assert run.outcome == "completed"
                assert run.trigger is not None
                note(unpacked(run.trigger))
        for key, raw in snapshot.range(keys.TRIGGERS, b"", None):
            if len(key) == keys.TRIGGER_KEY_BYTES:
                note(bytes(raw))
    return [{key: sorted(each) for key, each in of_flow.items()} for of_flow in flows.values()]
