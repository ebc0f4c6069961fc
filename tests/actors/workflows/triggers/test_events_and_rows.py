"""Events and changes of rows trigger workflows, with the filters of the triggers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import BY, create_flow, kept_runs, runs_end, trigger
from tests.actors.house import House, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events.messages import (
    CreateEvent,
    EventChoice,
    EventPatch,
    EventPost,
    PatchEvent,
    PatchEvents,
)
from trunkline.actors.data.tables.messages import (
    CreateDataTable,
    DeleteRow,
    DeleteRows,
    InsertRows,
    PatchRow,
    TablePost,
    TruncateRows,
)

SHOW = [node("d", "DebugNode")]


async def watch(house: House, type: str, key: str, **config: Any) -> Ref:
    return await create_flow(house, [trigger(type, ["d"], key, config=config)], SHOW)


async def told(house: House, flow: Ref) -> list[Any]:
    await runs_end(house)
    return [run.debug[0][3] for run in kept_runs(house, flow)]


# Events.


def log(house: House) -> Ref:
    return Ref("eventLog", house.application, house.application)


async def raised(house: House, **fields: Any) -> bytes:
    body = msgspec.convert({"level": "info", "subject": "Pump 1 is hot", **fields}, EventPost)
    answer = await house.system.ask(log(house), CreateEvent(body=body, by=BY))
    return answer.value.id  # type: ignore[no-any-return]


async def updated(house: House, event: bytes, origin: Origin | None = None, **fields: Any) -> None:
    body = msgspec.convert(fields, EventPatch)
    await house.system.ask(log(house), PatchEvent(event=event, body=body, by=BY, origin=origin))


async def test_an_event_is_told_with_its_updates(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flow = await watch(house, "event", "warning")
        event = await raised(
            house,
            level="warning",
            message="too hot",
            data={"t": 90},
            deviceId=device.hex(),
            eventTags={"floor": "2"},
        )
        await updated(house, event, comment="I look at it", state="acknowledged")
        await updated(house, event, level="info", data=1)
        await updated(house, event, Origin("fe" * 12, "flow", 1), level="warning")
        first, second, third = await told(house, flow)
        data = first["data"]
        assert data["id"] == data["eventId"] == event.hex()
        assert (data["level"], data["state"], data["subject"]) == ("warning", "new", "Pump 1 is hot")
        assert (data["message"], data["data"], data["eventTags"]) == ("too hot", {"t": 90}, {"floor": "2"})
        assert (data["deviceId"], data["deviceName"]) == (device.hex(), "pump")
        assert (data["sourceType"], data["allUpdates"]) == ("user", [])
        assert "latestUpdate" not in data
        assert (first["triggerId"], first["triggerType"]) == ("warning", "event")
        assert (first["relayId"], first["relayType"]) == (BY.id, "user")
        assert second["data"]["latestUpdate"]["comment"] == "I look at it"
        assert second["data"]["latestUpdate"]["stateChange"] == {"old": "new", "new": "acknowledged"}
        assert second["data"]["message"] == "too hot"
        assert [each.get("comment") or each.get("data") for each in third["data"]["allUpdates"]] == [
            "I look at it",
            1,
            None,
        ]
        assert third["data"]["latestUpdate"] == third["data"]["allUpdates"][-1]
        assert third["data"]["latestUpdate"]["levelChange"] == {"old": "info", "new": "warning"}
        assert (third["relayId"], third["relayType"]) == ("fe" * 12, "flow")


async def test_level_state_and_subject_select_events(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        config: dict[str, dict[str, Any]] = {"any": {}, "info": {"subject": ""}, "error": {}}
        flows = {key: await watch(house, "event", key, **more) for key, more in config.items()}
        hot = await watch(house, "event", "any", subject="pump * HOT")
        done = await watch(house, "event", "any", resolved=True, acknowledged=False)
        fresh = await watch(house, "event", "any", new=True)
        event = await raised(house)
        await raised(house, subject="Fan", level="error")
        await updated(house, event)  # changes nothing, so it is no update
        await updated(house, event, state="acknowledged")
        choice, body = EventChoice(filter_field="subject", filter="*"), EventPatch(state="resolved")
        await house.system.ask(log(house), PatchEvents(query=choice, body=body, by=BY))
        counts = {key: len(await told(house, flow)) for key, flow in flows.items()}
        assert counts == {"any": 5, "info": 3, "error": 2}
        assert len(await told(house, hot)) == 3
        assert [each["data"]["state"] for each in await told(house, done)] == ["resolved", "resolved"]
        assert [each["data"]["state"] for each in await told(house, fresh)] == ["new", "new"]


async def test_a_run_is_told_the_newest_updates_that_fit(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        event = await raised(house)
        for number in range(10):
            await updated(house, event, comment="x" * 32_000, data=number)
        config = {"message": "{{#each data.allUpdates}}{{data}} {{/each}}", "property": "data.latestUpdate"}
        shows = node("d", "DebugNode", config)
        flow = await create_flow(house, [trigger("event", ["d"], "info")], [shows])
        await updated(house, event, comment="last")
        await runs_end(house)
        ((_, _, numbers, latest),) = kept_runs(house, flow)[0].debug
        assert numbers.split() == ["2", "3", "4", "5", "6", "7", "8", "9"]
        assert latest["comment"] == "last"


# Rows.


async def table(house: House) -> Ref:
    ref = Ref("dataTable", house.application, house.system.ids.new(house.clock.wall_ms()))
    columns = [
        {"name": name, "dataType": type, "constraint": "optional"}
        for name, type in (("a", "number"), ("b", "string"))
    ]
    body = msgspec.convert({"name": "t", "columns": columns}, TablePost)
    await house.system.ask(ref, CreateDataTable(body=body))
    return ref


async def test_changes_of_rows_are_told(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        ref = await table(house)
        flow = await watch(house, "dataTable", ref.id.hex())
        inserts = await watch(house, "dataTable", ref.id.hex(), insert=True, update=False)
        other = await watch(house, "dataTable", (await table(house)).id.hex())

        async def change(message: Message) -> Any:
            answer = (await house.system.ask(ref, message)).value
            house.clock.pass_s(1)
            return answer

        origin = Origin("fe" * 12, "flow", 1)
        row = (await change(InsertRows(body={"a": 1}, origin=origin))).value
        id = bytes.fromhex(row["id"])
        many = await change(InsertRows(body=[{"a": 2}, {"a": 3}]))
        (single,) = (await change(InsertRows(body=[{"b": "x"}]))).row_ids
        await change(InsertRows(body=[]))
        await change(InsertRows(body=[{"a": 9}], import_ids=[house.system.ids.new(1)]))
        await change(PatchRow(row=id, body={"a": 1}))
        changed = (await change(PatchRow(row=id, body={"a": 5}))).value
        await runs_end(house)
        await change(DeleteRow(row=id))
        rows = [bytes.fromhex(each) for each in many.row_ids]
        await change(DeleteRows(rows=[*rows, id], body=None))
        await change(TruncateRows())
        payloads = await told(house, flow)
        actions = ["insert", "bulkInsert", "insert", "update", "delete", "delete"]
        assert [each["data"]["action"] for each in payloads] == actions
        first, bulk, alone, update, gone, many_gone = (each["data"] for each in payloads)
        assert first["newRow"] == row
        assert bulk == {"action": "bulkInsert", "count": 2, "errorCount": 0, "rowIds": many.row_ids}
        assert (alone["newRow"]["id"], alone["newRow"]["b"]) == (single, "x")
        assert (update["oldRow"]["a"], update["newRow"]) == (1, changed)
        assert (gone["oldRow"]["a"], gone["rowIds"]) == (5, [id.hex()])
        assert many_gone == {"action": "delete", "count": 2, "errorCount": 0, "rowIds": many.row_ids}
        assert (payloads[0]["triggerId"], payloads[0]["relayId"]) == (ref.id.hex(), "fe" * 12)
        assert [each["data"]["action"] for each in await told(house, inserts)] == ["insert", "insert"]
        assert await told(house, other) == []
