"""kill -9 during runs: what a run does inside the server is done once for each trigger, also if it is run again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import OWNER, serving
from tests.e2e.sse_client import until
from tests.e2e.test_flow_runs import metrics
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk

KILLS, PRESSES = 4, 20
"""Fewer presses in all than the throttle of a button takes."""

Json = dict[str, Any]


@pytest.mark.slow
async def test_values_rows_and_events_are_written_once_across_kills(tmp_path: Path) -> None:
    start = partial(serving, tmp_path / "data", env=OWNER)
    acknowledged: list[int] = []
    async with start() as server:
        application = await server.application()
        flow, table = await counting(server, application)
    for round in range(KILLS):
        async with start() as server, trio.open_nursery() as nursery:
            for number in range(round * PRESSES, (round + 1) * PRESSES):
                nursery.start_soon(press, server, flow, number, acknowledged)
            wanted = len(acknowledged) + PRESSES // 4
            await until(partial(longer, acknowledged, wanted))
            await server.kill()
    async with start() as server:
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{flow}/storage")).get("ended", 0) < len(acknowledged):
                pass
            while await running(server):  # of presses whose answer was lost
                pass
        rows = (await server.call("GET", f"{table}/rows"))["items"]
        numbers = [row["n"] for row in rows]
        stored = await server.call("GET", f"{flow}/storage")
        events = await server.call("GET", f"{application}/events")
    assert set(acknowledged) <= set(numbers)
    assert len(numbers) == len(set(numbers)), "a row was inserted twice"
    assert stored == {"begun": len(numbers), "ended": len(numbers)}
    assert events["totalCount"] == 1
    assert len(events["items"][0]["updates"]) == len(numbers)


async def running(server: Server) -> float:
    """The triggers that wait, and the runs that have not ended."""
    now = await metrics(server)
    return now["triggers_waiting"] + now["runs_running"]


async def counting(server: Server, application: str) -> tuple[str, str]:
    """The paths of a workflow that counts, inserts a row, comments an event and counts again; and of its table."""
    event = await server.call("POST", f"{application}/events", {"level": "info", "subject": "count"})
    column = {"name": "n", "dataType": "number", "constraint": "optional"}
    table = await server.call("POST", f"{application}/data-tables", {"name": "t", "columns": [column]})

    def node(id: str, type: str, config: Json, after: str | None) -> Json:
        return {"id": id, "type": type, "config": config, "outputIds": [[after] if after else []]}

    row = {
        "dataTableIdTemplate": table["id"],
        "dataMethod": "jsonTemplate",
        "rowJsonTemplate": '{"n": {{data.n}}}',
    }
    comment = {"targetEventIdTemplate": event["id"], "commentTemplate": "{{data.n}}"}
    body = {
        "name": "counting",
        "triggers": [
            {
                "type": "virtualButton",
                "key": "press",
                "config": {},
                "meta": {"category": "trigger", "name": "virtualButton", "label": "Press", "x": 0, "y": 0},
                "outputIds": [["begin"]],
            }
        ],
        "nodes": [
            node("begin", "StoreValueNode", {"keyName": "begun", "valueType": "incr", "value": "1"}, "row"),
            node("row", "DataTableInsertRowNode", row, "event"),
            node("event", "UpdateEventNode", comment, "end"),
            node("end", "StoreValueNode", {"keyName": "ended", "valueType": "incr", "value": "1"}, None),
        ],
    }
    flow = await server.call("POST", f"{application}/flows", body)
    return f"{application}/flows/{flow['id']}", f"{application}/data-tables/{table['id']}"


async def press(server: Server, flow: str, number: int, acknowledged: list[int]) -> None:
    """Press the button; the server may be killed before it answers."""
    try:
        await server.call("POST", f"{flow}/virtualButton", {"key": "press", "payload": {"n": number}})
    except httpx.TransportError:
        return
    acknowledged.append(number)


def longer(list: list[int], length: int) -> bool:
    return len(list) >= length
