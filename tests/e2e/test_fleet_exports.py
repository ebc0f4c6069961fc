"""Exports of many devices: their records, and what they reported."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Json, Server
from tests.e2e.device_calls import id_of
from tests.e2e.test_exports import ended, fetched, rows

FIRST_MS = 1_700_000_000_000


async def exported(
    server: Server, application: str, what: str, body: Json
) -> tuple[dict[str, Any], httpx.Response]:
    """The log of an export, and its file."""
    queued = await server.call("POST", f"{application}/{what}/export", body, status=202)
    log = await ended(server, application, queued["jobId"])
    assert log["status"] == "completed", log
    return log, await fetched(server, log["output"]["file"]["url"])


async def fleet(server: Server) -> tuple[str, list[str]]:
    """An application with three devices that reported, and their ids."""
    application = await server.application()
    tags = [{"key": "floor", "value": "1"}]
    devices = [
        await server.device(application, "pump", tags=tags),
        await server.device(application, "valve", attributes=[{"name": "open", "dataType": "boolean"}]),
        await server.device(application, "=fan", tags=tags),
    ]
    reports = [{"temp": 1, "label": "a"}, {"open": True}, {"temp": 2.5}]
    for device, data in zip(devices, reports, strict=True):
        for number in range(2):
            await server.call("POST", f"{device}/state", {"data": data, "time": FIRST_MS + number})
    return application, [id_of(device) for device in devices]


# Records.


async def test_the_records_of_devices_are_exported(server: Server) -> None:
    application, ids = await fleet(server)
    log, response = await exported(server, application, "devices", None)
    header, *lines = rows(response)
    found = [dict(zip(header, line, strict=True)) for line in lines]
    assert [each["id"] for each in found] == ids
    assert [each["name"] for each in found] == ["pump", "valve", "'=fan"]
    assert json.loads(found[0]["tags"]) == [{"key": "floor", "value": "1"}]
    assert [each["name"] for each in json.loads(found[1]["attributes"])] == ["open"]
    assert log["output"]["devices"] == 3
    assert log["progress"] == {"completed": 3, "total": 3, "status": "completed"}


async def test_the_records_are_exported_as_json_and_by_query(server: Server) -> None:
    application, ids = await fleet(server)
    body = {"format": "json", "query": {"tags": {"floor": "1"}}}
    _, response = await exported(server, application, "devices", body)
    found = response.json()
    assert [each["id"] for each in found] == [ids[0], ids[2]]
    shown = await server.call("GET", f"{application}/devices/{ids[0]}?_links=false")
    assert found[0] == {name: value for name, value in shown.items() if not name.startswith("_")}
    _, response = await exported(
        server, application, "devices", {"format": "json", "query": {"name": "none"}}
    )
    assert response.json() == []


# Reports.


async def test_the_states_of_many_devices_are_one_table(server: Server) -> None:
    application, ids = await fleet(server)
    log, response = await exported(server, application, "data", {"options": {"includeDate": False}})
    assert rows(response) == [
        ["deviceId", "time", "temp", "label", "on", "open"],
        *[[ids[0], str(FIRST_MS + number), "1", "a", "", ""] for number in range(2)],
        *[[ids[1], str(FIRST_MS + number), "", "", "", "true"] for number in range(2)],
        *[[ids[2], str(FIRST_MS + number), "2.5", "", "", ""] for number in range(2)],
    ]
    assert log["output"]["rows"] == 6


@pytest.mark.parametrize(
    ("choice", "places"),
    [
        ({"deviceTags": [{"key": "floor"}]}, [0, 2]),
        ({"deviceQuery": {"name": {"$startsWith": "v"}}}, [1]),
        ({"deviceQuery": {"name": "pump"}, "deviceTags": [{"value": "2"}]}, [0]),
        ({"deviceQuery": {}}, [0, 1, 2]),
        ({"start": FIRST_MS + 2}, []),
    ],
)
async def test_which_devices_is_chosen_by_tag_and_query(
    server: Server, choice: Json, places: list[int]
) -> None:
    application, ids = await fleet(server)
    _, response = await exported(server, application, "data", choice)
    found = dict.fromkeys(line[0] for line in rows(response)[1:])
    assert list(found) == [ids[place] for place in places]


async def test_which_devices_is_chosen_by_id(server: Server) -> None:
    application, ids = await fleet(server)
    body = {"deviceIds": [ids[1].upper()], "start": FIRST_MS + 1, "options": {"includeID": False}}
    _, response = await exported(server, application, "data", body)
    assert rows(response) == [
        ["time", "date", "open"],
        [str(FIRST_MS + 1), "2023-11-14T22:13:20.001Z", "true"],
    ]


async def test_each_device_may_have_a_file_of_its_own(server: Server) -> None:
    application, ids = await fleet(server)
    options = {"filePerDevice": True, "includeDate": False}
    log, response = await exported(server, application, "data", {"options": options})
    assert response.headers["content-type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(response.content))
    assert archive.testzip() is None
    assert archive.namelist() == [f"device-{id}.csv" for id in ids]
    text = archive.read(f"device-{ids[1]}.csv").decode()
    assert list(csv.reader(io.StringIO(text, newline=""), strict=True)) == [
        ["deviceId", "time", "open"],
        *[[ids[1], str(FIRST_MS + number), "true"] for number in range(2)],
    ]
    assert log["output"]["rows"] == 6


async def test_only_the_attributes_that_are_named_have_a_column(server: Server) -> None:
    """In the order of the call; a state without a value for any of them is left out."""
    application, ids = await fleet(server)
    body: Json = {"attributes": ["open", "temp"], "options": {"includeDate": False}, "end": FIRST_MS}
    log, response = await exported(server, application, "data", body)
    table = [
        [ids[0], str(FIRST_MS), "", "1"],
        [ids[1], str(FIRST_MS), "true", ""],
        [ids[2], str(FIRST_MS), "", "2.5"],
    ]
    assert rows(response) == [["deviceId", "time", "open", "temp"], *table]
    assert log["input"]["attributes"] == ["open", "temp"]
    body["options"]["filePerDevice"] = True
    _, response = await exported(server, application, "data", {**body, "attributes": ["temp"]})
    archive = zipfile.ZipFile(io.BytesIO(response.content))
    texts = [archive.read(f"device-{id}.csv").decode() for id in ids[:2]]
    assert texts == [f"deviceId,time,temp\r\n{ids[0]},{FIRST_MS},1\r\n", "deviceId,time\r\n"]
    _, response = await exported(server, application, "data", {"attributes": []})
    assert rows(response)[0] == ["deviceId", "time", "date", "temp", "label", "on", "open"]


@pytest.mark.parametrize("per_device", [False, True])
async def test_an_attribute_that_no_device_declares_ends_the_export(server: Server, per_device: bool) -> None:
    application, _ = await fleet(server)
    body = {"attributes": ["temp", "tmep"], "options": {"filePerDevice": per_device}}
    queued = await server.call("POST", f"{application}/data/export", body, status=202)
    log = await ended(server, application, queued["jobId"])
    assert log["status"] == "errored"
    assert log["error"]["message"] == "attributes[1]: none of the devices declares an attribute tmep."


@pytest.mark.parametrize(
    ("what", "body", "field"),
    [
        ("data", {"deviceIds": ["0" * 24]}, "deviceIds[0]"),
        ("data", {"deviceIds": ["x"]}, "deviceIds[0]"),
        ("data", {"attributes": ["no name"]}, "attributes[0]"),
        ("data", {"attributes": ["a"] * 257}, "attributes"),
        ("data", {"deviceQuery": {"colour": 1}}, "deviceQuery.colour"),
        ("devices", {"query": {"colour": 1}}, "query.colour"),
        ("devices", {"format": "xml"}, "format"),
    ],
)
async def test_a_wrong_export_queues_nothing(server: Server, what: str, body: Json, field: str) -> None:
    application, _ = await fleet(server)
    refused = await server.call("POST", f"{application}/{what}/export", body, status=400)
    assert field in refused["message"]
    assert (await server.call("GET", f"{application}/jobLogs"))["items"] == []


async def test_each_of_them_runs_once_at_a_time(start_server: Callable[..., Any]) -> None:
    """There is no room for results, so the first export waits for its next attempt."""
    async with start_server(limits={"job_results_bytes_max": 1, "job_pause_s": 3600}) as server:
        application = await server.application()
        for what in ("data", "devices"):
            await server.call("POST", f"{application}/{what}/export", {}, status=202)
            await server.call("POST", f"{application}/{what}/export", {}, status=429)


async def test_attributes_of_the_type_blob_are_left_out_unless_wanted(server: Server) -> None:
    attributes = [{"name": "temp", "dataType": "number"}, {"name": "raw", "dataType": "blob"}]
    application = await server.application()
    device = await server.device(application, "camera", attributes=attributes)
    await server.call("POST", f"{device}/state", {"data": {"temp": 1, "raw": "aGVsbG8="}, "time": FIRST_MS})
    plain = {"includeDate": False, "includeID": False}
    _, response = await exported(server, application, "data", {"options": plain})
    assert rows(response) == [["time", "temp"], [str(FIRST_MS), "1"]]
    _, response = await exported(server, application, "data", {"options": {**plain, "includeBlobData": True}})
    assert rows(response) == [["time", "temp", "raw"], [str(FIRST_MS), "1", "aGVsbG8="]]
