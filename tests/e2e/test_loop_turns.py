"""The watchdog of the loop in a server: each turn is told with the operation and the tenant that it was for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from tests.e2e.conftest import Server, running_server
from tests.e2e.experience_browser import browser
from tests.e2e.experiences import new_experience
from tests.patience import PATIENCE_S

NOTHING_MS = 0.001
"""Every turn is longer."""
FLOW = {
    "name": "flow",
    "triggers": [{"type": "virtualButton", "key": "go", "outputIds": [["a"]]}],
    "nodes": [
        {
            "id": "a",
            "type": "MutateNode",
            "config": {"rules": [{"type": "set", "source": "1", "destination": "x"}]},
        }
    ],
}


async def values(server: Server, name: str) -> dict[tuple[str, ...], float]:
    async with server.client("") as client:
        text = (await client.get("/metrics")).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        tuple(sample.labels.values()): sample.value
        for sample in samples
        if sample.name == f"trunkline_{name}"
    }


async def test_turns_are_told_with_their_operation_and_tenant(tmp_path: Path) -> None:
    limits = {"loop_turn_ms_max": NOTHING_MS, "logged_turns_per_minute_max": 100_000}
    lines: list[Any]
    with capture_logs() as lines:
        async with running_server(tmp_path / "data", limits=limits, log_level="warning") as server:
            application = await server.application()
            device = await server.device(application)
            async with server.client() as client:
                for temp in range(3):  # the later ones are answered by callbacks
                    sent = await client.post(
                        f"{device}/state", json={"data": {"temp": temp, "label": "hush"}}
                    )
                    assert sent.is_success
            flow = await server.call("POST", f"{application}/flows", FLOW)
            path = f"{application}/flows/{flow['id']}"
            await server.call("POST", f"{path}/virtualButton", {"key": "go", "payload": {}})
            with trio.fail_after(PATIENCE_S):
                while not (await server.call("GET", f"{path}/runs"))["items"]:
                    await trio.lowlevel.checkpoint()
            owner = (await server.call("GET", "/me"))["userId"]
            long = await values(server, "loop_long_turns_total")
            counts = await values(server, "loop_turn_duration_seconds_bucket")
    turns = [line for line in lines if line["event"] == "a turn of the event loop was long"]
    by_name = {(line["kind"], line["name"]): line for line in turns}
    state = by_name["call", "device.sendState"]
    assert state["application_id"] == application.rpartition("/")[2]
    assert state["owner_id"] == owner
    assert state["bearer"] == f"user {owner}"
    run = by_name["run", "flow"]
    assert run["application_id"] == application.rpartition("/")[2]
    assert "MutateNode" in run["detail"]
    assert ("commit", "group commit") in by_name
    assert long["call",] > 0
    assert long["run",] > 0
    assert counts["+Inf",] >= sum(long.values()) > 0
    assert not any("hush" in str(line) for line in turns), "no line has a payload"


async def test_the_watchdog_outlives_requests_to_hosts_that_nobody_has(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data", limits={"loop_turn_ms_max": NOTHING_MS}) as server:
        exp = await new_experience(server)
        assert (await browser(exp, "unknown.localhost").get("/")).status_code == 404
        before = (await values(server, "loop_turn_duration_seconds_count"))[()]
        await server.call("GET", "/me")
        assert (await values(server, "loop_turn_duration_seconds_count"))[()] > before
