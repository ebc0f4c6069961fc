"""What runs have done can be read: errors, figures by span and by version, the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import BY, Json, button, create_flow, kept_runs, press, runs_end
from tests.actors.house import START_MS, House, at, running_again, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.subscription import Ending
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Message
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.fleet.devices.record.messages import Listen
from trunkline.actors.workflows.flows import messages as flows
from trunkline.actors.workflows.flows.bodies import FlowVersionPost
from trunkline.actors.workflows.flows.run_records import RUN_TOPIC
from trunkline.limits.table import Limits

THROWS = [
    node("c", "ConditionalNode", {"expression": "{{data.ok}}"}, ["t"], ["d"]),
    node("t", "ThrowErrorNode", {"messageTemplate": "no {{data.a}}"}),
    node("d", "DebugNode", {"message": "ok"}),
]
"""A workflow that fails unless `data.ok` is true."""


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with running_house(tmp_path / "data") as house:
        yield house


def of(message: type[Message], house: House, flow: Ref, query: type[Any], **given: Any) -> Any:
    return message(
        application=house.application,
        flow=flow.id,
        query=msgspec.convert(given, query, strict=False),
        now_ms=house.clock.wall_ms(),
    )


async def errors(house: House, flow: Ref, **query: Any) -> list[Json]:
    found = await house.read(of(flows.GetFlowErrors, house, flow, flows.FlowErrorsQuery, **query))
    shown: list[Json] = found["errors"]
    return shown


async def metrics(house: House, flow: Ref, **query: Any) -> list[tuple[str, int, int, int]]:
    found = await house.read(of(flows.GetFlowStats, house, flow, flows.FlowStatsQuery, **query))
    return [
        (each["time"], each["runCount"], each["pathsCompleted"], each["pathsFailed"])
        for each in found["metrics"]
    ]


async def log(house: House, flow: Ref, **query: Any) -> list[tuple[str, str, int, list[str]]]:
    found = await house.read(of(flows.GetFlowLog, house, flow, flows.FlowLogQuery, **query))
    return [
        (
            each["flowVersionId"],
            each["time"],
            each["runCount"],
            [error["error"]["message"] for error in each["errors"]],
        )
        for each in found
    ]


async def version(house: House, flow: Ref, name: str) -> str:
    body = {"version": name, "triggers": [button(["c"])], "nodes": THROWS}
    post = flows.CreateFlowVersion(
        body=msgspec.convert(body, FlowVersionPost), query=flows.VersionCreation(), by=BY
    )
    id: bytes = (await house.system.ask(flow, post)).value.id
    return id.hex()


async def pressed(house: House, flow: Ref, payload: Json, **more: Any) -> None:
    await press(house, flow, payload, **more)
    await runs_end(house)


async def test_errors_are_listed_by_time_and_version(house: House) -> None:
    flow = await create_flow(house, [button(["c"])], THROWS)
    id = await version(house, flow, "v1")
    await pressed(house, flow, {"a": 1})
    house.clock.pass_s(60)
    await pressed(house, flow, {"ok": True})
    await pressed(house, flow, {"a": 2}, flow_version="v1")
    newest, oldest = await errors(house, flow)
    assert oldest == {
        "time": at(0),
        "flowVersion": "develop",
        "error": {"name": "Error", "message": "no 1"},
        "nodeId": "t",
        "nodeLabel": "t",
    }
    assert (newest["flowVersion"], newest["flowVersionId"], newest["error"]["message"]) == ("v1", id, "no 2")
    assert await errors(house, flow, sortDirection="asc", limit=1) == [oldest]
    assert await errors(house, flow, flowVersion="v1") == [newest]
    assert await errors(house, flow, end=START_MS + 59_999) == [oldest]
    assert await errors(house, flow, duration=0) == [newest]
    assert await errors(house, flow, deviceId="0" * 24) == []


async def test_the_error_of_a_device_names_it(house: House) -> None:
    flow = await create_flow(house, [button(["c"])], THROWS)
    device = await house.device(name="pump 7")
    await pressed(house, flow, {}, device_id=device.hex())
    (error,) = await errors(house, flow, deviceId=device.hex())
    assert (error["deviceId"], error["deviceName"]) == (device.hex(), "pump 7")


async def test_figures_are_sums_of_spans(house: House) -> None:
    flow = await create_flow(house, [button(["c"])], THROWS)
    await version(house, flow, "v1")
    for payload in ({"ok": True}, {"ok": True}, {}):
        await pressed(house, flow, payload)
    house.clock.pass_s(90)
    await pressed(house, flow, {}, flow_version="v1")
    begin, later = at(0), at(60_000)
    assert await metrics(house, flow) == [(begin, 4, 2, 2)]
    assert await metrics(house, flow, resolution=60_000) == [(begin, 3, 2, 1), (later, 1, 0, 1)]
    assert await metrics(house, flow, resolution=1) == [(begin, 3, 2, 1), (later, 1, 0, 1)]
    assert await metrics(house, flow, flowVersion="v1") == [(begin, 1, 0, 1)]
    assert await metrics(house, flow, end=START_MS + 59_999) == [(begin, 3, 2, 1)]
    with pytest.raises(Invalid, match="deviceId: is for workflows of the class edge"):
        await metrics(house, flow, deviceId="0" * 24)


async def test_the_log_has_an_entry_for_each_minute_and_version(house: House) -> None:
    flow = await create_flow(house, [button(["c"])], THROWS)
    id = await version(house, flow, "v1")
    await pressed(house, flow, {"a": 1})
    await pressed(house, flow, {"a": 2})
    house.clock.pass_s(60)
    await pressed(house, flow, {"ok": True}, flow_version="v1")
    begin, later = at(0), at(60_000)
    assert await log(house, flow) == [(id, later, 1, [])]
    assert await log(house, flow, limit=10) == [(id, later, 1, []), ("develop", begin, 2, ["no 2", "no 1"])]
    assert await log(house, flow, limit=10, since=START_MS + 60_000 - 1) == [(id, later, 1, [])]


async def test_a_workflow_shows_how_often_its_versions_ran(house: House) -> None:
    flow = await create_flow(house, [button(["c"])], THROWS)
    id = await version(house, flow, "v1")
    await pressed(house, flow, {"ok": True})
    await pressed(house, flow, {})
    await pressed(house, flow, {}, flow_version="v1")
    get = flows.GetFlow(application=house.application, flow=flow.id, query=flows.FlowShape())
    develop, v1 = {"runCount": 2, "errorCount": 1}, {"runCount": 1, "errorCount": 1}
    assert (await house.read(get))["stats"] == {
        "runCount": 3,
        "errorCount": 2,
        "byVersion": {"develop": develop, "v1": v1},
        "lastRun": at(0),
    }
    one = flows.GetFlowVersion(
        application=house.application, flow=flow.id, flow_version="v1", query=flows.FlowShape()
    )
    assert (await house.read(one))["stats"] == v1
    await house.system.ask(flow, flows.DeleteFlowVersion(flow_version=id))
    shown = (await house.read(get))["stats"]
    assert shown.pop("lastRun")
    assert shown == {**develop, "byVersion": {"develop": develop}}


async def test_all_runs_are_kept_while_somebody_listens(tmp_path: Path) -> None:
    limits = Limits.off().override({"kept_runs_max": 1})
    async with running_house(tmp_path / "data", limits=limits) as house:
        flow = await create_flow(house, [button(["c"])], THROWS)
        for _ in range(2):
            await pressed(house, flow, {"ok": True})
        assert len(kept_runs(house, flow)) == 1
        subscription = house.system.subscribe(flow, RUN_TOPIC, Listen())
        for _ in range(3):
            await pressed(house, flow, {"ok": True})
        events = await subscription.receive()
        house.system.streams.close(subscription)
        assert len(kept_runs(house, flow)) == 1 + len(events) == 4
        assert sorted(events) == events


async def test_a_run_that_cannot_be_told_takes_no_runs_of_other_workflows_from_their_streams(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "data") as house:
        broken, other = [await create_flow(house, [button(["c"])], THROWS) for _ in range(2)]
        for flow in (broken, other):
            await pressed(house, flow, {"ok": True})
        streams = [house.system.subscribe(flow, RUN_TOPIC, Listen()) for flow in (broken, other)]
        ends = house.system.component(FlowRunner)._ends
        (record,) = kept_runs(house, broken)
        damaged = msgspec.structs.replace(record, trigger=b"no trigger")
        for flow, ended in ((broken, record), (broken, damaged), (other, record), (broken, record)):
            ends.keep(house.application, flow.id, 2**40, ended)
        ends.flush()
        with trio.fail_after(PATIENCE_S):
            assert [len(await stream.receive()) for stream in streams] == [1, 1]
        assert [stream.ending for stream in streams] == [Ending.GONE, None]


async def test_the_newest_runs_are_kept_also_after_a_restart(tmp_path: Path) -> None:
    """The oldest go first, of the good and of the failed ones, whether they are known in memory or found on disk."""
    limits = Limits.off().override({"good_run_records_max": 3, "failed_run_records_max": 2})

    async def run(house: House, numbers: range) -> list[int]:
        for number in numbers:
            house.clock.pass_s(1)
            await pressed(house, flow, {"ok": number % 2 == 0, "a": number})
        runs = kept_runs(house, flow)
        return [int(each.error[2][3:]) if each.error else each.debug[-1][3]["data"]["a"] for each in runs]

    async with running_house(tmp_path / "data", limits=limits) as house:
        flow = await create_flow(house, [button(["c"])], THROWS)
        assert await run(house, range(12)) == [6, 8, 9, 10, 11]
    async with running_again(tmp_path / "data", house, 13_000, limits=limits) as again:
        assert await run(again, range(12, 15)) == [10, 11, 12, 13, 14]
