"""Events over HTTP: their life, lists, changes of many, throttle, restart."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.actors.house import ManualClock
from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of
from tests.e2e.rows import UNKNOWN, api_token
from tests.patience import PATIENCE_S

ALARM = {"level": "error", "subject": "It is hot"}


async def create(server: Server, application: str, **fields: Any) -> Any:
    return await server.call("POST", f"{application}/events", {**ALARM, **fields}, status=201)


async def subjects(server: Server, application: str, query: str = "") -> list[str]:
    found = await server.call("GET", f"{application}/events?{query}")
    assert found["count"] == len(found["items"])
    return [event["subject"] for event in found["items"]]


async def test_the_life_of_an_event(server: Server) -> None:
    application = await server.application()
    device = await server.device(application, "boiler")
    made = await create(
        server,
        application,
        message="The boiler is above 90 degrees.",
        data={"temp": 93.5},
        deviceId=id_of(device),
        eventTags={"site": "north"},
    )
    path = f"{application}/events/{made['id']}"
    assert (made["state"], made["sourceType"], made["deviceName"]) == ("new", "user", "boiler")
    assert made["id"] == made["eventId"]
    assert made["_links"]["self"]["href"] == path
    assert made["_links"]["application"]["href"] == application
    assert await server.call("GET", path) == made

    seen = await server.call("PATCH", path, {"state": "acknowledged", "comment": "I look into it."})
    (update,) = seen["updates"]
    assert update["stateChange"] == {"old": "new", "new": "acknowledged"}
    assert (update["state"], update["comment"]) == ("acknowledged", "I look into it.")
    assert (update["sourceType"], update["sourceName"]) == ("user", made["sourceName"])
    assert update["creationDate"] == seen["lastUpdated"]
    assert seen["_etag"] != made["_etag"]

    async with server.client() as client:
        unchanged = {"If-None-Match": (await client.get(path)).headers["etag"]}
        assert (await client.get(path, headers=unchanged)).status_code == 304
        await client.patch(device, json={"name": "kettle"})
        assert (await client.get(path, headers=unchanged)).json()["deviceName"] == "kettle"
        await client.patch(device, json={"name": "boiler"})

    robot = await api_token(server, application, "event.patch")
    more: dict[str, Any] = {
        "level": "warning",
        "subject": "It is warm",
        "deviceId": None,
        "eventTags": {},
        "data": [1],
    }
    done = await server.call("PATCH", path, {"state": "resolved", **more}, token=robot)
    assert (done["state"], done["level"], done["subject"], done["eventTags"]) == (
        "resolved",
        "warning",
        "It is warm",
        {},
    )
    assert "deviceId" not in done
    assert "deviceName" not in done
    assert done["data"] == {"temp": 93.5}
    update = done["updates"][1]
    assert (update["sourceType"], update["sourceName"], update["data"]) == ("apiToken", "t", [1])
    assert update["levelChange"] == {"old": "error", "new": "warning"}
    assert update["subjectChange"] == {"old": "It is hot", "new": "It is warm"}
    assert update["deviceIdChange"] == {"old": id_of(device), "oldDeviceName": "boiler"}
    assert update["tagsChange"] == {"site": {"old": "north"}}

    again = await server.call("PATCH", path, {"state": "new"})
    assert again["updates"][2]["stateChange"] == {"old": "resolved", "new": "new"}
    assert await server.call("DELETE", path) == {"success": True}
    await server.call("GET", path, status=404)


async def test_an_event_that_does_not_fit_is_400(server: Server) -> None:
    application = await server.application()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"subject": "x"}, "level: is missing"),
        ({"level": "info"}, "subject: is missing"),
        ({**ALARM, "level": "fatal"}, "level: is 'fatal'; give one of"),
        ({**ALARM, "state": "open"}, "state: is 'open'; give one of"),
        ({**ALARM, "subject": ""}, "subject: "),
        ({**ALARM, "subject": "x" * 256}, "subject: "),
        ({**ALARM, "message": "x" * 32768}, "message: "),
        ({**ALARM, "deviceId": "pump"}, "deviceId: "),
        ({**ALARM, "deviceId": UNKNOWN}, f"deviceId: there is no device {UNKNOWN}"),
        ({**ALARM, "deviceId": None}, "deviceId: "),
        ({**ALARM, "eventTags": {"a b": "1"}}, "eventTags"),
        ({**ALARM, "eventTags": {"a": ""}}, "eventTags"),
        ({**ALARM, "eventTags": {"a": "x" * 256}}, "eventTags"),
        ({**ALARM, "eventTags": [{"key": "a", "value": "1"}]}, "eventTags: "),
        ({**ALARM, "eventTags": {f"k{number}": "1" for number in range(101)}}, "eventTags: "),
        ({**ALARM, "creationDate": "yesterday"}, "creationDate: 'yesterday' is not"),
        ({**ALARM, "creationDate": {"$time": "2024"}}, "creationDate"),
        ({**ALARM, "severity": "info"}, "severity: there is no such field"),
    ]
    for body, message in wrong:
        refused = await server.call("POST", f"{application}/events", body, status=400)
        assert refused["type"] == "Validation"
        assert refused["message"].startswith(message), refused
    made = await create(server, application)
    for patch in ({"state": "open"}, {"comment": "x" * 32768}, {"message": "new"}, {"deviceId": UNKNOWN}):
        await server.call("PATCH", f"{application}/events/{made['id']}", patch, status=400)
    assert (await server.call("GET", f"{application}/events"))["items"] == [made]
    await server.call("GET", f"{application}/events/north", status=400)
    await server.call("GET", f"{application}/events/{UNKNOWN}", status=404)
    large = {**ALARM, "data": "x" * 70_000}
    refused = await server.call("POST", f"{application}/events", large, status=413)
    assert refused["message"].startswith("data: has 70002 bytes as JSON")


async def test_lists_page_sort_filter_and_query(server: Server) -> None:
    application = await server.application()
    for number, (subject, level, state) in enumerate(
        (("b fire", "critical", "new"), ("a door", "info", "resolved"), ("c fire", "warning", "new"))
    ):
        await create(
            server,
            application,
            subject=subject,
            level=level,
            state=state,
            creationDate=f"2024-05-01T00:00:0{number}Z",
        )
    assert await subjects(server, application) == ["c fire", "a door", "b fire"]
    assert await subjects(server, application, "sortField=subject&sortDirection=asc") == [
        "a door",
        "b fire",
        "c fire",
    ]
    assert await subjects(server, application, "sortField=level") == ["b fire", "c fire", "a door"]
    assert await subjects(server, application, "perPage=1&page=2") == ["b fire"]
    assert await subjects(server, application, "filterField=subject&filter=*FIRE") == ["c fire", "b fire"]
    assert await subjects(server, application, "state=resolved") == ["a door"]
    assert await subjects(server, application, 'query={"level":{"$in":["info","critical"]}}') == [
        "a door",
        "b fire",
    ]
    assert await subjects(server, application, "query[level]=info") == ["a door"]
    await create(server, application, subject="7", eventTags={"floor": "2"})
    assert await subjects(server, application, "query[eventTags][floor]=2&query[subject]=7") == ["7"]
    found = await server.call(
        "GET", f'{application}/events?state=new&query={{"subject":"b fire"}}&filterField=subject&filter=b*'
    )
    assert (found["state"], found["query"], found["totalCount"]) == ("new", {"subject": "b fire"}, 1)
    assert (found["filterField"], found["filter"], found["_type"]) == ("subject", "b*", "events")
    assert found["applicationId"] == id_of(application)
    assert found["_links"]["self"]["href"] == f"{application}/events"
    for wrong in (
        "state=open",
        "sortField=message",
        "filterField=level",
        "query[severity]=info",
        "perPage=0",
    ):
        await server.call("GET", f"{application}/events?{wrong}", status=400)


async def test_the_most_severe_new_event(server: Server) -> None:
    application = await server.application()
    path = f"{application}/events/mostRecentBySeverity"
    empty = await server.call("GET", path)
    assert (empty["newCount"], "event" in empty) == (0, False)
    for subject, level in (("one", "warning"), ("two", "error"), ("three", "error"), ("four", "info")):
        await create(server, application, subject=subject, level=level)
    found = await server.call("GET", path)
    assert (found["event"]["subject"], found["newCount"]) == ("three", 4)
    assert found["event"]["_links"]["self"]["href"] == f"{application}/events/{found['event']['id']}"
    narrowed = await server.call("GET", f"{path}?filter=*o*&query[level][$ne]=error")
    assert (narrowed["event"]["subject"], narrowed["newCount"]) == ("one", 2)
    await server.call("PATCH", f"{application}/events", {"state": "acknowledged"})
    assert (await server.call("GET", path))["newCount"] == 0


async def test_many_events_are_changed_and_deleted(server: Server) -> None:
    application = await server.application()
    for number in range(5):
        await create(server, application, subject=f"n{number}", level="info" if number % 2 else "error")
    events = f"{application}/events"
    answer = await server.call(
        "PATCH",
        f'{events}?state=new&filterField=subject&filter=n*&query={{"level":"error"}}',
        {"state": "resolved", "comment": "all well"},
    )
    assert answer == {"success": True}
    assert await subjects(server, application, "state=resolved&sortField=subject&sortDirection=asc") == [
        "n0",
        "n2",
        "n4",
    ]
    assert await server.call("POST", f"{events}/delete", {"state": "resolved"}) == {"removed": 3}
    assert await server.call("POST", f"{events}/delete", {"state": "resolved"}) == {"removed": 0}
    refused = await server.call("PATCH", f"{events}?filter=n1", {"state": "resolved"}, status=400)
    assert "filterField: is not given" in refused["message"]
    assert len(await subjects(server, application, "state=new")) == 2
    # A body that is missing or misspelt deletes nothing, and a list is no query.
    wrong: list[Any] = [[], {"severity": "info"}, {"$and": {}}]
    async with server.client() as client:
        assert (await client.post(f"{events}/delete")).status_code == 400
    for body in wrong:
        await server.call("POST", f"{events}/delete", body, status=400)
    await server.call("GET", f"{events}/delete", status=405)
    assert len(await subjects(server, application)) == 2
    assert await server.call("POST", f"{events}/delete", {}) == {"removed": 2}


async def test_a_revision_guards_one_event_and_not_many(server: Server) -> None:
    application = await server.application()
    made = await create(server, application)
    path = f"{application}/events/{made['id']}"
    old = {"If-Match": f'"{made["_etag"]}"'}
    await server.call("PATCH", path, {"state": "acknowledged"}, headers=old)
    await server.call("PATCH", path, {"state": "resolved"}, headers=old, status=412)
    await server.call("DELETE", path, headers=old, status=412)
    await server.call("PATCH", f"{application}/events", {"state": "resolved"}, headers=old, status=412)
    assert (await server.call("GET", path))["state"] == "acknowledged"


async def test_more_than_a_call_may_change_is_a_job(start_server: Any) -> None:
    async with start_server(limits={"changed_events_max": 2}) as server:
        application = await server.application()
        events = f"{application}/events"
        for number in range(4):
            await create(server, application, subject=f"n{number}", level="error" if number else "info")
        choice = "state=new&email=ops@example.com&query[level]=error"
        queued = await server.call("PATCH", f"{events}?{choice}", {"state": "resolved"}, status=202)
        assert (queued["success"], queued["jobQueued"]) == (True, True)
        log = await ended(server, application, queued["jobId"])
        assert (log["name"], log["status"], log["output"]["changed"]) == ("events.patch", "completed", 3)
        assert [told["to"] for told in log["output"]["told"]] == ["ops@example.com"]
        assert await subjects(server, application, "state=new") == ["n0"]
        assert (await server.call("GET", events))["items"][0]["updates"][0]["sourceType"] == "user"

        queued = await server.call("POST", f"{events}/delete", {"state": "resolved"}, status=202)
        log = await ended(server, application, queued["jobId"])
        assert log["output"]["removed"] == 3
        assert await subjects(server, application) == ["n0"]
        await server.call("POST", f"{events}/delete?callbackUrl=ftp://example.com", {}, status=400)
        large = {"data": "x" * 70_000}
        assert "70002 bytes" in (await server.call("PATCH", events, large, status=413))["message"]


async def ended(server: Server, application: str, job: str) -> Any:
    """The log of a job when it has ended."""
    with trio.fail_after(PATIENCE_S):
        while "runCompletedAt" not in (log := await server.call("GET", f"{application}/jobLogs/{job}")):
            await trio.lowlevel.checkpoint()
    return log


async def test_exactly_fifteen_creations_in_any_fifteen_seconds(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        one, other = await server.application("one"), await server.application("other")
        async with server.client() as client:
            for left in range(14, -1, -1):
                passed = await client.post(f"{one}/events", json=ALARM)
                assert passed.status_code == 201
                assert passed.headers["ratelimit-policy"] == '"event_create";q=15;w=15'
                assert passed.headers["ratelimit"] == f'"event_create";r={left};t=15'
            for wait_s, status in ((0, 429), (14.999, 429), (0.001, 201)):
                clock.pass_s(wait_s)
                response = await client.post(f"{one}/events", json=ALARM)
                assert response.status_code == status
                assert response.headers["ratelimit-policy"] == '"event_create";q=15;w=15'
            assert (await client.post(f"{other}/events", json=ALARM)).status_code == 201
        found = await server.call("GET", f"{one}/events")
        assert found["totalCount"] == 16


async def test_devices_have_no_part_in_events(server: Server) -> None:
    application = await server.application()
    made = await create(server, application)
    token, _ = await server.device_token(await server.device(application))
    await server.call("GET", f"{application}/events", token=token, status=403)
    await server.call("GET", f"{application}/events/{made['id']}", token=token, status=403)
    await server.call("POST", f"{application}/events", ALARM, token=token, status=403)


async def test_an_event_is_of_its_application(server: Server) -> None:
    one, other = await server.application("one"), await server.application("other")
    device = await server.device(other)
    made = await create(server, one)
    path = f"{other}/events/{made['id']}"
    await server.call("GET", path, status=404)
    await server.call("PATCH", path, {"state": "resolved"}, status=404)
    await server.call("DELETE", path, status=404)
    refused = await server.call("POST", f"{one}/events", {**ALARM, "deviceId": id_of(device)}, status=400)
    assert refused["message"].startswith("deviceId: ")
    assert (await server.call("GET", other))["summary"]["eventCount"] == 0
    assert (await server.call("GET", one))["summary"]["eventCount"] == 1


@pytest.mark.slow
async def test_events_outlive_the_server(start_server: Any) -> None:
    async with start_server() as server:
        application = await server.application()
        kept = await create(server, application, message="kept", data={"a": 1}, eventTags={"k": "v"})
        gone = await create(server, application)
        await server.call("DELETE", f"{application}/events/{gone['id']}")
        path = f"{application}/events/{kept['id']}"
        before = await server.call("PATCH", path, {"state": "resolved", "comment": "done"})
    async with start_server() as server:
        assert await server.call("GET", path) == before
        assert (await server.call("GET", f"{application}/events?state=resolved"))["items"] == [before]
        after = await server.call("PATCH", path, {"state": "new"})
        assert [update["state"] for update in after["updates"]] == ["resolved", "new"]
