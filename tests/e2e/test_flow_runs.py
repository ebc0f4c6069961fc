"""Runs of workflows on real sockets: listed, shown, streamed, and repeated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.actors.house import ManualClock
from tests.e2e.conftest import Json, Server
from tests.e2e.sse_client import EventReader, opened_stream, until
from tests.patience import PATIENCE_S
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.workflows.triggers.queue import TriggerQueue

BUTTON = {"type": "virtualButton", "key": "go", "meta": {"id": "go"}, "outputIds": [["c"]]}
NODES: list[Json] = [
    {"id": "c", "type": "ConditionalNode", "config": {"expression": "{{data.ok}}"}, "outputIds": [["t"], ["d"]]},
    {"id": "t", "type": "ThrowErrorNode", "config": {"messageTemplate": "no {{data.a}}"}, "meta": {"label": "Throw"}},
    {"id": "d", "type": "DebugNode", "config": {"message": "fine", "property": "data"}},
]  # fmt: skip
CALM = {**NODES[1], "type": "DebugNode", "config": {"message": "calm", "property": "data.a"}}
"""In place of the node that throws."""


async def create(server: Server, **fields: Any) -> str:
    """The path of a new workflow, which fails unless `data.ok` is true."""
    flows = f"{await server.application()}/flows"
    body = {"name": "flow", "triggers": [BUTTON], "nodes": NODES, **fields}
    return f"{flows}/{(await server.call('POST', flows, body, status=201))['id']}"


async def test_a_run_and_a_dry_run_show_what_they_ignored(server: Server) -> None:
    nodes = [{**NODES[0], "config": {**NODES[0]["config"], "expresion": "1"}}, *NODES[1:]]
    flow = await create(server, nodes=nodes)
    (problem,) = (await server.call("GET", flow))["problems"]
    assert problem["nodeId"] == "c"
    assert problem["message"].endswith("so it is ignored (did you mean expression?).")
    await press(server, flow, {})
    (run,) = await listed(server, flow)
    assert run["noteCount"] == 1
    note = {
        "nodeId": "c",
        "nodeType": "ConditionalNode",
        "nodeLabel": "",
        "message": problem["message"],
        "count": 1,
    }
    assert (await server.call("GET", f"{flow}/runs/{run['id']}"))["notes"] == [note]
    dry = await server.call("POST", f"{flow}/test", {"data": {}})
    assert dry["notes"] == [note]
    assert [each["message"] for each in dry["problems"]] == [problem["message"]]


async def test_what_is_shown_of_a_run_has_no_tokens(server: Server) -> None:
    app = await server.application()
    secret = (await server.call("POST", f"{app}/tokens", {"name": "t", "scope": ["all.Application"]}))[
        "token"
    ]
    state = {"type": "deviceId", "config": {}, "meta": {}, "outputIds": [["d"]]}
    device = await server.call(
        "POST", f"{app}/devices", {"name": "d", "attributes": [{"name": "t", "dataType": "number"}]}
    )
    to_device = {"deviceId": device["id"], "attrInfos": [{"key": "{{data.a}}", "valueTemplate": "1"}]}
    noting = {"id": "c", "type": "DeviceChangeStateNode", "config": to_device, "outputIds": [["t"]]}
    nodes = [noting, *NODES[1:]]
    body = {"name": "flow", "triggers": [BUTTON, {**state, "key": device["id"]}], "nodes": nodes}
    flow = f"{app}/flows/{(await server.call('POST', f'{app}/flows', body, status=201))['id']}"
    await press(server, flow, {"a": secret})
    meta = {"password": "Wordy-1!", "made": f"Bearer {secret}"}
    await server.call("POST", f"{app}/devices/{device['id']}/state", {"data": {"t": 1}, "meta": meta})
    await runs_end(server)

    runs = await listed(server, flow)
    shown = [await server.call("GET", f"{flow}/runs/{run['id']}") for run in runs]
    assert shown[0]["payload"]["meta"] == {"password": "(hidden)", "made": "Bearer (hidden)"}
    assert [note["message"][:8] for note in shown[1]["notes"]] == ["(hidden)"]
    assert shown[1]["error"]["message"] == "no (hidden)"
    others = [await server.call("GET", f"{flow}/{each}") for each in ("errors", "logs")]
    assert others[0]["errors"][0]["error"]["message"] == "no (hidden)"
    assert others[1][0]["errors"][0]["error"]["message"] == "no (hidden)"
    assert secret not in str([runs, shown, others])


async def test_messages_that_a_run_does_not_keep_are_noted(server: Server) -> None:
    flow = await create(server)
    for length, messages, notes in ((10, 1, []), (70_000, 0, ["This message is left out"])):
        await press(server, flow, {"ok": True, "a": "x" * length})
        shown = await server.call("GET", f"{flow}/runs/{(await listed(server, flow))[0]['id']}")
        assert len(shown["debug"]) == messages
        assert [(note["nodeId"], note["message"].partition(":")[0]) for note in shown["notes"]] == [
            ("d", note) for note in notes
        ]


async def press(server: Server, flow: str, payload: Json, **more: Any) -> None:
    """Press the button, and wait until its run has ended."""
    await server.call("POST", f"{flow}/virtualButton", {"key": "go", "payload": payload, **more})
    await runs_end(server)


async def runs_end(server: Server) -> None:
    runner, queue = server.system.component(FlowRunner), server.system.component(TriggerQueue)
    await until(lambda: not (queue.waiting or runner.running or server.system.journal.pending_batches))


async def listed(server: Server, flow: str, query: str = "") -> list[Json]:
    found: list[Json] = (await server.call("GET", f"{flow}/runs?{query}"))["items"]
    return found


@asynccontextmanager
async def streamed(server: Server, flow: str, last_id: str | None = None) -> AsyncIterator[EventReader]:
    async with opened_stream(server, flow, resource="runStream", last_id=last_id) as stream:
        yield stream


async def heard(stream: EventReader) -> tuple[str, Json]:
    """The id of the next event, and its data."""
    event = await stream.event()
    assert event is not None
    assert event.name == "flowRun"
    return event.id, event.data


async def test_a_run_is_shown_with_its_path(server: Server) -> None:
    flow = await create(server)
    await press(server, flow, {"a": 7})
    (shown,) = await listed(server, flow)
    one = await server.call("GET", f"{flow}/runs/{shown['id']}")
    assert shown.items() <= one.items()
    assert (one["outcome"], one["flowVersion"], one["triggerType"], one["triggerKey"]) == (
        "failed", "develop", "virtualButton", "go",
    )  # fmt: skip
    assert one["error"] == {
        "nodeId": "t", "nodeType": "ThrowErrorNode", "nodeLabel": "Throw", "name": "Error", "message": "no 7",
    }  # fmt: skip
    assert [(each["nodeId"], each["output"]) for each in one["path"]] == [("c", 0), ("t", 0)]
    assert (one["steps"], one["canReplay"], one["debug"]) == (2, True, [])
    assert one["payload"].items() >= {"data": {"a": 7}}.items()
    await press(server, flow, {"ok": True})
    newest = (await listed(server, flow))[0]
    debug = (await server.call("GET", f"{flow}/runs/{newest['id']}"))["debug"]
    assert [(each["nodeId"], each["message"], each["value"]) for each in debug] == [
        ("d", "fine", {"ok": True})
    ]


async def test_runs_are_listed_newest_first_by_page_and_filter(server: Server) -> None:
    flow = await create(server)
    device = (await server.device(flow.rpartition("/flows")[0])).rpartition("/")[2]
    version = {"version": "v1", "triggers": [BUTTON], "nodes": NODES}
    await server.call("POST", f"{flow}/versions", version, status=201)
    await press(server, flow, {"a": 1})
    await press(server, flow, {"ok": True}, flowVersion="v1")
    await press(server, flow, {"a": 3}, deviceId=device)
    third, second, first = await listed(server, flow)
    page = await server.call("GET", f"{flow}/runs?perPage=2&page=1")
    assert page["items"] == [first]
    assert (page["count"], page["totalCount"], page["queue"]) == (1, 3, {"waiting": 0})
    assert await listed(server, flow, "outcome=completed") == [second]
    assert await listed(server, flow, "outcome=failed&perPage=1&page=1") == [first]
    assert await listed(server, flow, "flowVersion=v1") == [second]
    assert await listed(server, flow, f"deviceId={device}") == [third]
    assert await listed(server, flow, "triggerType=timer") == []
    assert await listed(server, flow, "since=2100-01-01T00:00:00Z") == []
    for since in (third, second, first):
        later = [each for each in (third, second, first) if each["time"] > since["time"]]
        assert await listed(server, flow, f"since={since['time']}") == later
    await server.call("GET", f"{flow}/runs?flowVersion=v2", status=400)
    await server.call("GET", f"{flow}/runs?outcome=bad", status=400)
    for unknown in ("0" * 24, "f" * 24):
        refusal = await server.call("GET", f"{flow}/runs/{unknown}", status=404)
        assert refusal["message"].startswith(f"There is no run {unknown} of this workflow")
    other = await create(server)
    await server.call("GET", f"{other}/runs/{first['id']}", status=404)


async def test_a_run_is_repeated_with_its_payload_on_any_version(server: Server) -> None:
    flow = await create(server)
    fixed = {"version": "fixed", "triggers": [BUTTON], "nodes": [NODES[0], CALM, NODES[2]]}
    await server.call("POST", f"{flow}/versions", fixed, status=201)
    await press(server, flow, {"a": 5})
    (failed,) = await listed(server, flow)
    replay = f"{flow}/runs/{failed['id']}/replay"
    again = await server.call("POST", replay, {})
    assert again["replayOf"] == failed["id"]
    mended = await server.call("POST", replay, {"flowVersion": "fixed"})
    await runs_end(server)
    first = await server.call("GET", f"{flow}/runs/{again['id']}")
    assert (first["outcome"], first["replayOf"], first["payload"]) == (
        "failed",
        failed["id"],
        (await server.call("GET", f"{flow}/runs/{failed['id']}"))["payload"],
    )
    second = await server.call("GET", f"{flow}/runs/{mended['id']}")
    assert (second["outcome"], second["flowVersion"], second["debug"][0]["value"]) == (
        "completed",
        "fixed",
        5,
    )


async def test_a_run_that_cannot_be_repeated_says_why(server: Server) -> None:
    flow = await create(server)
    await server.call("POST", f"{flow}/versions", {"version": "none"}, status=201)
    off = {"version": "off", "triggers": [BUTTON], "nodes": NODES, "enabled": False}
    await server.call("POST", f"{flow}/versions", off, status=201)
    await press(server, flow, {})
    (failed,) = await listed(server, flow)
    replay = f"{flow}/runs/{failed['id']}/replay"
    for version, said in (
        ("v9", "flowVersion: this workflow has no version 'v9'"),
        ("none", "flowVersion: version 'none' has no trigger of type virtualButton with the key 'go'"),
        ("off", "flowVersion: version 'off' is disabled"),
    ):
        refusal = await server.call("POST", replay, {"flowVersion": version}, status=400)
        assert refusal["message"].startswith(said)
    await server.call("PATCH", flow, {"enabled": False})
    assert (await server.call("POST", replay, {}, status=400))["message"].startswith(
        "The workflow is disabled"
    )
    await server.call("POST", f"{flow}/runs/{'0' * 24}/replay", {}, status=404)
    assert await listed(server, flow) == [failed]


async def test_failed_runs_are_repeated_in_parts(start_server: Callable[..., Any]) -> None:
    """Those of the first call, which may end in the same millisecond as others, are not repeated by the second."""
    limits = {"replayed_runs_max": 2, "run_record_payload_bytes_max": 400}
    async with start_server(clock=ManualClock(), limits=limits) as server:
        flow = await create(server)
        for number in range(3):
            await press(server, flow, {"a": number})
        await press(server, flow, {"a": "x" * 1000})
        await press(server, flow, {"ok": True})
        large, *failed = await listed(server, flow, "outcome=failed")
        assert not large["canReplay"]
        refusal = await server.call("POST", f"{flow}/runs/{large['id']}/replay", {}, status=400)
        assert "too large to be kept" in refusal["message"]
        replay = f"{flow}/runs/replay"
        first = await server.call("POST", replay, {})
        await runs_end(server)
        rest = await server.call("POST", replay, {"continueAt": first["continueAt"]})
        assert [each["replayOf"] for each in (*first["runs"], *rest["runs"])] == [
            each["id"] for each in reversed(failed)
        ]
        assert (first["skipped"], rest["skipped"], "continueAt" in rest) == (0, 1, False)
        both = {"continueAt": first["continueAt"], "since": 5}
        assert (await server.call("POST", replay, both, status=400))["message"].startswith("continueAt: ")
        nothing = await server.call("POST", replay, {"end": "2020-01-01T00:00:00Z"})
        assert nothing == {"runs": [], "skipped": 0}


async def test_a_stream_carries_the_runs_that_end_and_resumes(server: Server) -> None:
    flow = await create(server)
    async with streamed(server, flow) as stream:
        await press(server, flow, {"a": 1})
        first_id, first = await heard(stream)
        assert first == await server.call("GET", f"{flow}/runs/{first['id']}")
    await until(lambda: len(server.system.streams) == 0)
    await press(server, flow, {"a": 2})
    async with streamed(server, flow, first_id) as stream:
        second_id, second = await heard(stream)
        assert second["error"]["message"] == "no 2"
        await press(server, flow, {"ok": True})
        third_id, third = await heard(stream)
        assert third["outcome"] == "completed"
        assert int(first_id) < int(second_id) < int(third_id)
    async with streamed(server, flow, str(10**27)) as stream:
        await press(server, flow, {"a": 4})
        assert (await heard(stream))[1]["error"]["message"] == "no 4"
        await server.call("DELETE", flow)
        assert await stream.event() is None


async def test_a_stream_that_has_missed_much_gets_it_page_by_page(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"stream_replay_max": 2}) as server:
        flow = await create(server)
        for number in range(5):
            await press(server, flow, {"a": number})
        async with streamed(server, flow, "0") as stream:
            said = [(await heard(stream))[1]["error"]["message"] for _ in range(5)]
            assert said == [f"no {number}" for number in range(5)]
            await press(server, flow, {"ok": True})
            assert (await heard(stream))[1]["outcome"] == "completed"


@pytest.mark.parametrize("last", ["x", "1.5", "-1"])
async def test_a_position_that_is_none_is_400(server: Server, last: str) -> None:
    flow = await create(server)
    async with server.client() as client:
        with trio.fail_after(PATIENCE_S):
            response = await client.get(f"{flow}/runStream", headers={"Last-Event-ID": last})
    assert response.status_code == 400
    assert len(server.system.streams) == 0


async def test_the_metrics_count_runs(server: Server) -> None:
    flow = await create(server)
    before = await metrics(server)
    await press(server, flow, {"ok": True})
    await press(server, flow, {})
    after = await metrics(server)
    assert after["runs_total"] - before["runs_total"] == 2
    assert after["runs_failed_total"] - before["runs_failed_total"] == 1
    now = ("triggers_waiting", "oldest_trigger_age_seconds", "runs_running", "triggers_dropped_total")
    assert [after[name] for name in now] == [0, 0, 0, 0]


async def metrics(server: Server) -> dict[str, float]:
    """The metrics of workflows, by the rest of their names."""
    async with server.client("") as client:
        lines = (await client.get("/metrics")).text.splitlines()
    found = (
        line.removeprefix("trunkline_flow_").split() for line in lines if line.startswith("trunkline_flow_")
    )
    return {name: float(value) for name, value in found}
