"""Notebooks and resource jobs: records that are checked, the export of the inputs of a notebook, and executions."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.receivers import Line
from tests.patience import PATIENCE_S
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.named import content_problems

StartServer = Callable[..., Any]

WEEK: dict[str, Any] = {"start": -604_800_000, "end": 0}


async def ended(server: Server, application: str, queued: dict[str, Any]) -> dict[str, Any]:
    """The log of a job when it has ended."""
    with trio.fail_after(PATIENCE_S):
        while True:
            log: dict[str, Any] = await server.call("GET", f"{application}/jobLogs/{queued['jobId']}")
            if "runCompletedAt" in log:
                return log
            await trio.lowlevel.checkpoint()


async def files_of(server: Server, log: dict[str, Any]) -> dict[str, str]:
    """The files in the archive that a job made, by name."""
    assert log["status"] == "completed", log
    async with server.client("") as client:
        answer = await client.get(log["output"]["file"]["url"])
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


@asynccontextmanager
async def page(content: bytes) -> AsyncIterator[str]:
    """The URL of a page that another server serves."""

    async def serve(stream: trio.abc.Stream) -> None:
        line = Line(stream)
        while await line.read():
            pass
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(content)}\r\nconnection: close\r\n"
        await line.say(head)
        await stream.send_all(content)

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, serve, listeners))
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/page"
        nursery.cancel_scope.cancel()


async def test_the_inputs_of_a_notebook_are_exported_as_one_archive(start_server: StartServer) -> None:
    async with page(b"from elsewhere") as url, start_server(callback_private_networks=True) as server:
        application = await server.application()
        device = await server.device(application, "sensor", tags=[{"key": "room", "value": "barn"}])
        other = await server.device(application, "other")
        now_ms = server.system.clock.wall_ms()
        for path, value in ((device, 1), (other, 2)):
            await server.call("POST", f"{path}/state", {"data": {"temp": value}, "time": now_ms - 5000})
            await server.call(
                "POST", f"{path}/state", {"data": {"temp": value}, "time": now_ms - 700_000_000}
            )
        await server.call("POST", f"{device}/setConnectionStatus", {"status": "connected"})
        columns = [{"name": "part", "dataType": "string", "constraint": "required"}]
        table = await server.call("POST", f"{application}/data-tables", {"name": "parts", "columns": columns})
        for part in ("bolt", "nut"):
            await server.call("POST", f"{application}/data-tables/{table['id']}/rows", {"part": part})
        await server.call("POST", f"{application}/events", {"subject": "hot", "level": "error"})
        inputs = [
            {"inputType": "deviceData", "fileName": "all.csv", **WEEK},
            {
                "inputType": "deviceData",
                "fileName": "{{room}}.csv",
                "deviceTags": [{"key": "room", "value": "{{room}}"}],
                "attributes": ["temp"],
                **WEEK,
            },
            {
                "inputType": "deviceConnectionHistory",
                "fileName": "log.csv",
                "deviceIds": ["{{ids.device}}"],
                **WEEK,
            },
            {
                "inputType": "deviceMetadata",
                "fileName": "devices.json",
                "format": "json",
                "queryJson": '{"name": "{{name}}"}',
            },
            {
                "inputType": "dataTable",
                "fileName": "parts.csv",
                "dataTableId": table["id"],
                "queryJson": '{"part": "nut"}',
            },
            {"inputType": "eventData", "fileName": "events.csv", "queryJson": '{"level": "error"}'},
            {"inputType": "externalUrl", "fileName": "page.txt", "sourceUrl": url},
            {"inputType": "applicationFile", "fileName": "own", "filePath": "/in/a.txt", "private": True},
        ]
        body = {"name": "/in/a.txt", "type": "file", "fileSize": 3}
        file = await server.call("POST", f"{application}/privateFiles", body, status=201)
        async with server.client() as client:
            path = f"{application}/privateFiles/{file['id']}/upload"
            assert (await client.post(path, files={"privateFile": b"abc"})).is_success
        notebooks = f"{application}/notebooks"
        made = await server.call("POST", notebooks, {"name": "week", "inputs": inputs}, status=201)
        path = f"{notebooks}/{made['id']}/requestInputDataExport"
        refusal = await server.call("POST", path, {}, status=400)
        assert refusal["message"].startswith("inputs[2].deviceIds: the template gives")
        context: dict[str, Any] = {
            "room": "barn",
            "name": "other",
            "ids": {"device": device.rpartition("/")[2]},
        }
        async with server.client() as client:
            answer = await client.post(path, json={"templateContext": json.dumps(context)})
            assert answer.status_code == 202
            assert answer.headers["ratelimit"].startswith('"notebook_export";r=0;t=')
            again = await client.post(path, json={"templateContext": json.dumps(context)})
            assert again.status_code == 429
            assert 0 < int(again.headers["retry-after"]) <= 900
        files = await files_of(server, await ended(server, application, answer.json()))
        lines = {name: text.splitlines() for name, text in files.items()}
        assert list(files) == [each["fileName"].replace("{{room}}", "barn") for each in inputs]
        assert [line.split(",")[0] for line in lines["all.csv"]] == [
            "deviceId",
            context["ids"]["device"],
            other.rpartition("/")[2],
        ]
        assert (lines["barn.csv"][0], len(lines["barn.csv"])) == ("deviceId,time,date,temp", 2)
        assert [line.split(",")[3] for line in lines["log.csv"]] == ["connected", "1"]
        assert [each["name"] for each in json.loads(files["devices.json"])] == ["other"]
        assert [line.split(",")[3] for line in lines["parts.csv"]] == ["part", "nut"]
        assert len(lines["events.csv"]) == 2
        assert (files["page.txt"], files["own"]) == ("from elsewhere", "abc")
        later = {"name": "other", "inputs": [inputs[0]]}
        second = await server.call("POST", notebooks, later, status=201)
        body = {"relativeTo": now_ms - 604_800_000}
        queued = await server.call("POST", f"{notebooks}/{second['id']}/requestInputDataExport", body)
        log = await ended(server, application, queued)
        old = (await files_of(server, log))["all.csv"].splitlines()
        assert [line.split(",")[1] for line in old[1:]] == [str(now_ms - 700_000_000)] * 2


async def test_the_file_of_a_notebook_is_uploaded_replaced_and_removed(server: Server) -> None:
    application = await server.application()
    made = await server.call("POST", f"{application}/notebooks", {"name": "n"}, status=201)
    path = f"{application}/notebooks/{made['id']}"
    assert "jupyterFileName" not in made
    async with server.client() as client:
        first = await client.post(f"{path}/upload", files={"jupyterFile": ("a b.ipynb", b'{"cells": []}')})
        assert first.status_code == 200, first.text
        old = first.json()["jupyterFileUrl"]
        assert (await client.get(old)).content == b'{"cells": []}'
        second = await client.post(f"{path}/upload", files={"jupyterFile": ("c.ipynb", b"new")})
        assert second.json()["jupyterFileName"] == "c.ipynb"
        link = (await server.call("GET", path))["jupyterFileUrl"]
        assert (await client.get(link)).content == b"new"
        (listed,) = (await server.call("GET", f"{application}/notebooks"))["items"]
        assert listed["jupyterFileUrl"] == link
        assert (await server.call("PATCH", path, {"description": "d"}))["jupyterFileUrl"] == link
        contents = server.system.component(Contents)
        assert await contents.sweep() is False
        assert (await client.get(old)).status_code == 410
        assert (await client.get(link)).status_code == 200
        large = {"jupyterFile": ("l.ipynb", b"x" * (server.system.limits.multipart_bytes_max + 1))}
        for files, status in ((large, 413), ({"file": ("x", b"x")}, 400)):
            refusal = await client.post(f"{path}/upload", files=files)
            assert refusal.status_code == status, refusal.text
        missing = await client.post(f"{application}/notebooks/{'f' * 24}/upload", files={"jupyterFile": b"x"})
        assert missing.status_code == 404
        assert (await server.call("GET", path))["jupyterFileName"] == "c.ipynb"
        await server.call("DELETE", path)
        await contents.sweep()
        assert (await client.get(link)).status_code == 410
    with server.system.store.snapshot() as snapshot:
        assert not list(content_problems(KINDS, snapshot, server.system.store.contents))


REFUSED_INPUTS: dict[str, Any] = {
    "fileName": {"inputType": "eventData", "fileName": "../x"},
    "queryJson": {"inputType": "eventData", "fileName": "x", "queryJson": '{"colour": "red"}'},
    "dataTableId": {"inputType": "dataTable", "fileName": "x", "dataTableId": "f" * 24},
    "sourceUrl": {"inputType": "externalUrl", "fileName": "x", "sourceUrl": "http://127.0.0.1/x"},
    "start": {"inputType": "deviceData", "fileName": "x", "end": 0},
    "inputType": {"inputType": "radio", "fileName": "x"},
}


async def test_what_a_notebook_or_a_resource_job_cannot_use_is_refused_by_its_field(server: Server) -> None:
    application = await server.application()
    for field, wrong in REFUSED_INPUTS.items():
        body = {"name": "n", "inputs": [{"inputType": "eventData", "fileName": "good"}, wrong]}
        refusal = await server.call("POST", f"{application}/notebooks", body, status=400)
        assert refusal["message"].startswith("inputs[1]"), (field, refusal)
        assert field in refusal["message"]
    twice = [{"inputType": "eventData", "fileName": "x"}] * 2
    refusal = await server.call(
        "POST", f"{application}/notebooks", {"name": "n", "inputs": twice}, status=400
    )
    assert refusal["message"].startswith("inputs[1].fileName: x is the file of inputs[0]")
    output = {"outputType": "dataTable", "fileName": "x", "dataTableId": "f" * 24}
    refusal = await server.call(
        "POST", f"{application}/notebooks", {"name": "n", "outputs": [output]}, status=400
    )
    assert refusal["message"].startswith("outputs[0].dataTableId: there is no data table")
    assert (await server.call("GET", application))["summary"]["notebookCount"] == 0
    for wrong in ({"dataTableId": "f" * 24}, {"queryJson": "["}, {"queryJson": '{"colour": 1}'}):
        body = {"name": "j", "resourceType": "device", **wrong}
        refusal = await server.call("POST", f"{application}/resource-jobs", body, status=400)
        assert refusal["message"].startswith(next(iter(wrong))), refusal
    # What may be gone when the inputs are exported is refused there.
    lost = {"inputType": "deviceMetadata", "fileName": "x", "deviceIds": ["f" * 24]}
    made = await server.call("POST", f"{application}/notebooks", {"name": "n", "inputs": [lost]}, status=201)
    path = f"{application}/notebooks/{made['id']}/requestInputDataExport"
    refusal = await server.call("POST", path, {}, status=400)
    assert refusal["message"].startswith("inputs[0].deviceIds[0]: there is no device")


@pytest.mark.parametrize("context", [None, '{"q": " "}'])
async def test_a_query_of_which_the_template_gives_nothing_exports_nothing(
    server: Server, context: str | None
) -> None:
    application = await server.application()
    inputs = [{"inputType": "eventData", "fileName": "x", "queryJson": "{{q}}"}]
    made = await server.call("POST", f"{application}/notebooks", {"name": "n", "inputs": inputs}, status=201)
    path = f"{application}/notebooks/{made['id']}/requestInputDataExport"
    body = {} if context is None else {"templateContext": context}
    refusal = await server.call("POST", path, body, status=400)
    assert refusal["message"] == "inputs[0].queryJson: the template gives nothing; {} is the query for all."


async def test_a_notebook_stays_changeable_when_its_table_is_gone(server: Server) -> None:
    application = await server.application()
    table = await server.call("POST", f"{application}/data-tables", {"name": "parts"})
    rows = {"inputType": "dataTable", "fileName": "x", "dataTableId": table["id"]}
    made = await server.call("POST", f"{application}/notebooks", {"name": "n", "inputs": [rows]}, status=201)
    await server.call("DELETE", f"{application}/data-tables/{table['id']}")
    path = f"{application}/notebooks/{made['id']}"
    assert (await server.call("PATCH", path, {"inputs": [rows], "description": "d"}))["description"] == "d"
    refusal = await server.call("POST", f"{path}/requestInputDataExport", {}, status=400)
    assert refusal["message"].startswith("inputs[0].dataTableId: there is no data table")


@pytest.mark.parametrize(
    ("place", "body"),
    [("notebooks", {"name": "n"}), ("resource-jobs", {"name": "j", "resourceType": "device"})],
)
async def test_nothing_is_executed_and_every_answer_says_so(server: Server, place: str, body: Any) -> None:
    application = await server.application()
    made = await server.call("POST", f"{application}/{place}", body, status=201)
    path = f"{application}/{place}/{made['id']}"
    refusal = await server.call("POST", f"{path}/execute", {}, status=501)
    assert "does not execute" in refusal["message"]
    assert await server.call("GET", f"{path}/logs?limit=10&since=0") == []
    refusal = await server.call("POST", f"{path}/cancelExecution?executionId={'a' * 24}", status=404)
    assert refusal["message"].startswith(f"There is no execution {'a' * 24}")
    missing = f"{application}/{place}/{'f' * 24}"
    for method, call in (
        ("POST", "execute"),
        ("GET", "logs"),
        ("POST", f"cancelExecution?executionId={'a' * 24}"),
    ):
        refusal = await server.call(
            method, f"{missing}/{call}", {} if call == "execute" else None, status=404
        )
        assert refusal["message"].startswith("There is no ")
        assert "f" * 24 in refusal["message"]
    if place == "notebooks":
        assert made["stats"] == {"minutesThisPeriod": 0, "runsThisPeriod": 0, "errorsThisPeriod": 0}
        days = (await server.call("GET", f"{path}/notebookMinuteCounts?start=-86400000"))["counts"]
        assert days
        assert all(day["minutes"] == 0 for day in days)
        stats = (await server.call("GET", application))["summary"]["notebookStats"]
        assert stats == {"awaitingCompletion": 0, "minutesThisPeriod": 0, "runsThisPeriod": 0}


async def test_a_resource_job_is_deleted_with_the_workflows_that_it_triggers(server: Server) -> None:
    application = await server.application()
    body = {"name": "j", "resourceType": "device"}
    jobs = [await server.call("POST", f"{application}/resource-jobs", body, status=201) for _ in range(2)]
    triggers = ("resourceJobIteration", "resourceJobComplete", "resourceJobIteration")
    for number, (type, job) in enumerate(zip(triggers, (jobs[0], jobs[0], jobs[1]), strict=True)):
        flow = {"name": f"flow {number}", "triggers": [{"type": type, "key": job["id"]}]}
        await server.call("POST", f"{application}/flows", flow, status=201)
    await server.call("DELETE", f"{application}/resource-jobs/{jobs[0]['id']}?includeWorkflows=true")
    left = await server.call("GET", f"{application}/flows")
    assert [flow["name"] for flow in left["items"]] == ["flow 2"]
    summary = (await server.call("GET", application))["summary"]
    assert (summary["resourceJobCount"], summary["flowCount"]) == (1, 1)
