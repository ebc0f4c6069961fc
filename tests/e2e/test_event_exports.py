"""Exports of events: what is written is what the events are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Json, Server
from tests.e2e.device_calls import id_of
from tests.e2e.test_exports import ended, fetched, rows

EVENTS: list[dict[str, Any]] = [
    {"level": "error", "subject": "It is hot", "message": "93 degrees", "eventTags": {"site": "north"}},
    {"level": "info", "subject": '=It, "rains"', "data": {"mm": 3}},
    {"level": "critical", "subject": "It burns"},
]


async def told(server: Server) -> tuple[str, list[dict[str, Any]]]:
    """The path of an application with some events, and the events as they are shown, oldest first."""
    application = await server.application()
    device = await server.device(application, "boiler")
    for event in EVENTS:
        made = await server.call(
            "POST", f"{application}/events", {**event, "deviceId": id_of(device)}, status=201
        )
    await server.call(
        "PATCH", f"{application}/events/{made['id']}", {"state": "resolved", "comment": "put out"}
    )
    query = {"sortField": "creationDate", "sortDirection": "asc", "_links": "false"}
    items = (await server.call("GET", f"{application}/events", params=query))["items"]
    assert len(items) == 3
    return application, items


async def exported(server: Server, application: str, body: Json) -> tuple[dict[str, Any], str]:
    """The log of an export, and the link to its file."""
    queued = await server.call("POST", f"{application}/events/export", body, status=202)
    log = await ended(server, application, queued["jobId"])
    assert log["status"] == "completed", log
    return log, log["output"]["file"]["url"]


def without(items: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in item.items() if name not in names} for item in items]


async def test_events_are_exported_as_json(server: Server) -> None:
    application, items = await told(server)
    log, link = await exported(server, application, {"format": "json"})
    response = await fetched(server, link)
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-disposition"].endswith('.json"')
    assert json.loads(response.text) == without(items, "_etag", "_type")
    assert log["output"]["events"] == 3
    assert log["progress"] == {"completed": 3, "total": 3, "status": "completed"}
    assert (log["resourceType"], log["resourceId"]) == ("event", application.rpartition("/")[2])
    _, link = await exported(server, application, {"format": "json", "excludeUpdates": True})
    assert json.loads((await fetched(server, link)).text) == without(items, "_etag", "_type", "updates")
    _, link = await exported(server, application, {"format": "json", "query": {"subject": "none"}})
    assert json.loads((await fetched(server, link)).text) == []


async def test_events_are_exported_as_csv(server: Server) -> None:
    application, items = await told(server)
    log, link = await exported(server, application, None)
    header, *lines = rows(await fetched(server, link))
    assert log["output"]["escapedTexts"] == 1
    for line, item in zip(lines, items, strict=True):
        found = dict(zip(header, line, strict=True))
        for name, value in found.items():
            shown = item.get(name)
            if name in ("eventTags", "data", "updates") and value:
                assert json.loads(value) == shown
            else:
                assert value.removeprefix("'") == ("" if shown is None else shown)
    body = {"excludeUpdates": True, "query": {"level": {"$in": ["error", "critical"]}}}
    _, link = await exported(server, application, body)
    header, *lines = rows(await fetched(server, link))
    assert "updates" not in header
    assert [line[header.index("level")] for line in lines] == ["error", "critical"]


@pytest.mark.parametrize("body", [{"query": {"severity": "error"}}, {"format": "xml"}, {"callbackUrl": "x"}])
async def test_a_wrong_export_queues_nothing(server: Server, body: Json) -> None:
    application = await server.application()
    refused = await server.call("POST", f"{application}/events/export", body, status=400)
    assert next(iter(body)) in refused["message"]
    assert (await server.call("GET", f"{application}/jobLogs"))["items"] == []


async def test_events_are_exported_once_at_a_time(start_server: Callable[..., Any]) -> None:
    """There is no room for results, so the first export waits for its next attempt."""
    async with start_server(limits={"job_results_bytes_max": 1, "job_pause_s": 3600}) as server:
        application = await server.application()
        await server.call("POST", f"{application}/events/export", status=202)
        refused = await server.call("POST", f"{application}/events/export", status=429)
        assert "this application is queued or runs" in refused["message"]
        await server.call("POST", f"{await server.application()}/events/export", status=202)
