"""The nodes of events: what is created, found, changed and deleted, and which errors are results."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.actors.engine.run_house import Json, node_runs, run_one
from tests.actors.event_house import Events
from tests.actors.house import House, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.data.events.messages import EventPage, GetEvent, ListEvents
from trunkline.actors.platform.jobs.messages import JobLogPage, ListJobLogs
from trunkline.limits.table import Limits


async def found_events(house: House, **page: Any) -> list[Json]:
    listed = await house.read(ListEvents(application=house.application, query=EventPage(**page)))
    items: list[Json] = listed["items"]
    return items


async def event(house: House, id: bytes) -> Json:
    shown: Json = await house.read(GetEvent(application=house.application, event=id))
    return shown


async def result(house: House, type: str, config: Json, data: Any = None) -> Any:
    """What the node puts at its result path."""
    shown = await node_runs(house, type, {"resultPath": "data.result", **config}, data)
    assert shown.get("output") == 0, shown
    return shown["data"]["result"]


async def test_an_event_has_the_fields_of_the_templates(house: House) -> None:
    device = await house.device()
    config = {
        "levelTemplate": "{{data.level}}",
        "subjectTemplate": "Too hot: {{data.t}}",
        "messageTemplate": "{{data.none}}",
        "deviceIdTemplate": device.hex(),
        "stateTemplate": "acknowledged",
        "eventTags": [
            {"keyTemplate": "site", "valueTemplate": "{{data.site}}"},
            {"keyTemplate": "no", "valueTemplate": ""},
        ],
        "dataMethod": "individualFields",
        "dataSourceType": "payloadPath",
        "dataSourcePath": "data",
        "timeSourceType": "payloadPath",
        "timeSourcePath": "data.time",
        "disableTagChangeTracking": True,
    }
    data = {"level": "error", "t": 91, "site": "north", "time": 1_700_000_000_000}
    shown = await result(house, "CreateEventNode", config, data)
    expected = {
        "level": "error",
        "subject": "Too hot: 91",
        "state": "acknowledged",
        "deviceId": device.hex(),
        "eventTags": {"site": "north"},
        "data": data,
        "creationDate": "2023-11-14T22:13:20.000Z",
        "disableTagChangeTracking": True,
        "sourceType": "flow",
        "sourceName": "flow",
    }
    assert {name: shown[name] for name in expected} == expected
    assert "message" not in shown
    assert "_etag" not in shown
    (stored,) = await found_events(house)
    assert stored["id"] == shown["id"]


@pytest.mark.parametrize(
    ("config", "data"),
    [
        (
            {"dataMethod": "jsonTemplate", "eventJsonTemplate": '{"level": "info", "subject": "{{data.s}}"}'},
            {"s": "x"},
        ),
        ({"dataMethod": "payloadPath", "eventPayloadPath": "data"}, {"level": "info", "subject": "x"}),
        (
            {"levelTemplate": "info", "subjectTemplate": "{{data.s}}", "dataSourceType": "jsonTemplate"},
            {"s": "x"},
        ),
    ],
)
async def test_an_event_is_made_of_an_object(house: House, config: Json, data: Json) -> None:
    shown = await node_runs(house, "CreateEventNode", config, data)
    assert shown == {"output": 0, "data": data}
    (stored,) = await found_events(house)
    assert (stored["level"], stored["subject"]) == ("info", "x")


async def test_a_refused_event_is_the_result_or_fails_the_run(house: House) -> None:
    config = {"levelTemplate": "loud", "subjectTemplate": "x"}
    shown = await result(house, "CreateEventNode", config)
    assert shown["error"]["type"] == "Validation"
    assert "loud" in shown["error"]["message"]
    assert (await node_runs(house, "CreateEventNode", config))["error"][0] == "ValidationError"
    missing = {**config, "levelTemplate": "info", "deviceIdTemplate": "0" * 24}
    assert (await node_runs(house, "CreateEventNode", missing))["error"][0] == "Validation"
    error = (await node_runs(house, "CreateEventNode", {"levelTemplate": "info"}))["error"]
    assert error[1].startswith("config.subjectTemplate: is not set")
    assert await found_events(house) == []


async def test_events_are_got_by_id_and_by_query(house: House) -> None:
    events = Events(house)
    ids = []
    for number in range(3):
        house.clock.pass_s(1)
        ids.append((await events.create(subject=f"s{number}", level="warning")).hex())
    by_id = await result(
        house, "GetEventNode", {"eventIdTemplate": "{{data.id}}", "queryTemplate": ""}, {"id": ids[1]}
    )
    assert (by_id["id"], by_id["subject"]) == (ids[1], "s1")
    for id in ("0" * 24, "", "no id"):
        assert await result(house, "GetEventNode", {"eventIdTemplate": "{{data.id}}"}, {"id": id}) is None
    every: Json = {"queryTemplate": '{"$or": []}'}
    assert (await result(house, "GetEventNode", every))["id"] == ids[2]
    oldest = {**every, "sortField": "creationDate", "sortDirection": "asc"}
    assert (await result(house, "GetEventNode", oldest))["id"] == ids[0]
    none = {"queryTemplate": '{"subject": "{{data.s}}"}'}
    assert await result(house, "GetEventNode", none, {"s": "s9"}) is None
    many = {**oldest, "findMultiple": True, "resultsPage": "1", "resultsPerPage": "{{data.n}}"}
    assert [each["id"] for each in await result(house, "GetEventNode", many, {"n": 2})] == ids[2:]
    counted = await result(house, "GetEventNode", {**many, "findMetadata": True}, {"n": 2})
    items = counted.pop("items")
    assert ([each["id"] for each in items], counted) == (
        ids[2:],
        {"count": 1, "totalCount": 3, "page": 1, "perPage": 2},
    )
    refused = await result(house, "GetEventNode", {**many, "sortField": "colour"}, {"n": 2})
    assert refused["error"]["type"] == "Validation"


async def test_an_update_changes_what_it_names_and_tags_one_by_one(house: House) -> None:
    events = Events(house)
    device = await house.device()
    id = await events.create(deviceId=device.hex(), eventTags={"a": "1", "b": "2"})
    config: Json = {
        "targetEventIdTemplate": "{{data.id}}",
        "stateTemplate": "acknowledged",
        "levelTemplate": "",
        "subjectTemplate": "",
        "commentTemplate": "by {{data.who}}",
        "deviceIdTemplate": None,
        "eventTags": [
            {"keyTemplate": "a"},
            {"keyTemplate": "c", "valueTemplate": "{{data.who}}"},
        ],
        "dataSourceType": "payloadPath",
        "dataSourcePath": "",
    }
    shown = await result(house, "UpdateEventNode", config, {"id": id.hex(), "who": "Ada"})
    assert (shown["state"], shown["eventTags"]) == ("acknowledged", {"b": "2", "c": "Ada"})
    assert "deviceId" not in shown
    (update,) = shown["updates"]
    assert (update["comment"], update["sourceType"]) == ("by Ada", "flow")
    gone = await result(house, "UpdateEventNode", config, {"id": "0" * 24})
    assert gone["error"]["type"] == "NotFound"
    full = [{"keyTemplate": f"t{number}", "valueTemplate": "x"} for number in range(99)]
    refused = await result(house, "UpdateEventNode", {**config, "eventTags": full}, {"id": id.hex()})
    assert refused["error"]["type"] == "Validation"
    assert (await event(house, id))["eventTags"] == {"b": "2", "c": "Ada"}


async def test_an_update_by_query_changes_one_event_or_all(house: House) -> None:
    events = Events(house)
    ids = []
    for _ in range(3):
        house.clock.pass_s(1)
        ids.append(await events.create())
    one = {"queryTemplate": '{"state": "new"}', "sortField": "creationDate", "sortDirection": "asc"}
    patch = {"dataMethod": "jsonTemplate", "eventJsonTemplate": '{"state": "resolved"}'}
    assert (await result(house, "UpdateEventNode", {**one, **patch}))["id"] == ids[0].hex()
    every = {"queryTemplate": '{"$and": []}', "updateMultiple": True, "stateTemplate": "acknowledged"}
    tagged = {**every, "eventTags": [{"keyTemplate": "k", "valueTemplate": "v"}]}
    assert await result(house, "UpdateEventNode", tagged) == {"success": True}
    assert [each["state"] for each in await found_events(house)] == ["acknowledged"] * 3
    assert [each["eventTags"] for each in await found_events(house)] == [{"k": "v"}] * 3
    assert await result(house, "UpdateEventNode", {**one, **patch}) is None


async def test_what_is_too_much_for_one_change_is_done_by_a_job(tmp_path: Any) -> None:
    async with running_house(tmp_path / "d", limits=Limits(changed_events_max=2)) as house:
        for _ in range(5):
            await Events(house).create()
        every = {"queryTemplate": "{}", "updateMultiple": True, "stateTemplate": "acknowledged"}
        tagged = {**every, "eventTags": [{"keyTemplate": "k", "valueTemplate": "v"}]}
        assert await result(house, "UpdateEventNode", tagged) == {"success": True}
        await jobs_complete(house, 1)
        changed = await found_events(house)
        assert [(each["state"], each["eventTags"]) for each in changed] == [("acknowledged", {"k": "v"})] * 5
        deleted = await result(house, "DeleteEventNode", {"queryTemplate": "{}"})
        assert deleted == {"success": True}
        await jobs_complete(house, 2)
        assert await found_events(house) == []


async def jobs_complete(house: House, count: int) -> None:
    listed = ListJobLogs(application=house.application, query=JobLogPage())
    with trio.fail_after(PATIENCE_S):
        while [each["status"] for each in (await house.read(listed))["items"]] != ["completed"] * count:
            await trio.lowlevel.checkpoint()


async def test_events_are_deleted_by_id_and_by_query(house: House) -> None:
    events = Events(house)
    ids = []
    for number in range(4):
        house.clock.pass_s(1)
        ids.append((await events.create(subject=f"s{number}")).hex())
    deleted = await result(
        house, "DeleteEventNode", {"eventIdTemplate": ids[0], "queryTemplate": '{"$or": []}'}
    )
    assert deleted == {"success": True}
    again = await result(house, "DeleteEventNode", {"eventIdTemplate": ids[0]})
    assert again["error"]["type"] == "NotFound"
    newest = {"queryTemplate": '{"$or": []}', "deleteMultiple": False}
    assert await result(house, "DeleteEventNode", newest) == {"success": True}
    assert [each["id"] for each in await found_events(house)] == [ids[2], ids[1]]
    every = {"queryTemplate": '{"subject": {"$ne": "s1"}}'}
    assert await result(house, "DeleteEventNode", every) == {"success": True}
    assert [each["id"] for each in await found_events(house)] == [ids[1]]
    error = (await node_runs(house, "DeleteEventNode", {}))["error"]
    assert error[1].startswith("config.queryTemplate: is not set")
    error = (await node_runs(house, "GetEventNode", {"resultPath": "data.result"}))["error"]
    assert error[1].startswith("config.eventIdTemplate: is not set")


async def test_an_event_has_at_most_as_many_values_as_one_of_the_api(house: House) -> None:
    config = {
        "levelTemplate": "info",
        "subjectTemplate": "{{data.subject}}",
        "dataSourceType": "payloadPath",
        "dataSourcePath": "data.many",
    }
    for subject, count in (("too many", 9_000), ("many", 5_000)):
        await run_one(house, "CreateEventNode", config, {"subject": subject, "many": [[1, 2]] * count})
    created = [await event(house, bytes.fromhex(each["id"])) for each in await found_events(house)]
    assert [(each["subject"], len(each["data"])) for each in created] == [("many", 5_000)]
