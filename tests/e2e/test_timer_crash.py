"""kill -9 while timers fire: each due time starts its workflow once, and what was missed meanwhile is made up once."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.server_process import serving
from trunkline.actors import boot
from trunkline.actors.flows.run_records import decode_run, unpacked
from trunkline.actors.triggers.intake import decode_trigger
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store import keys

KILLS, FLOWS = 5, 3
SECONDS = {"one": 1, "half more": 1.5}


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
