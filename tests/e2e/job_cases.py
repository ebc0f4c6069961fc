"""A job of each kind: what it works on, the call that queues it, and what must be true when it has ended.

`prepare` fills an application of its own over the API, so that the job takes several steps with `LIMITS`. `outcome`
checks the result, which must be right exactly once however often the job was interrupted. The crash tests and the
tests of progress and cancellation go through this table; a kind without a case fails `test_every_kind_has_a_case`.

The file is long because it has a case for each kind.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from tests.e2e.conftest import Json, Server
from tests.e2e.server_process import ServerProcess
from tests.e2e.test_archives import manifest
from tests.e2e.test_imports import bundle_of
from tests.patience import PATIENCE_S

ITEMS: Final = 20
"""Devices, states, events, rows or versions that a job works on."""

LIMITS: Final = """
changed_devices_max = 3
removed_entries_max = 4
changed_events_max = 3
deleted_versions_max = 3
erased_files_max = 3
archive_put_files_max = 1
job_progress_s = 0.005
jobs_running_max = 100
read_threads_max = 100
purge_interval_s = 0.05
job_wait_s = 0.01
send_state = "off"
event_create = "off"
"""
"""Small parts, so that few items take several steps; all kinds at the same time."""

DAY_MS: Final = 86_400_000
FIRST_MS: Final = 1_700_000_000_000
MAIL: Final = "reader@example.com"

Outcome = Callable[[Server, Json], Awaitable[None]]
"""Checks what a job did; called with its log when it has completed."""


class Order(NamedTuple):
    """The call that queues a job, after `configure`; `files` are the parts of a form.

    `application` is the path of its owner, empty for a user, who has no log; `has_file` then says whether the job
    leaves a file.
    """

    application: str
    method: str
    path: str
    body: Json
    outcome: Outcome
    configure: Callable[[Server], Awaitable[None]] | None = None
    has_file: bool = True
    files: Json = None


class Case(NamedTuple):
    """A kind of job. In its middle, `middle` of its steps are done: parts of its work, or pieces of its file."""

    prepare: Callable[[Server], Awaitable[Order]]
    middle: int = 3


async def all_at_once(calls: Sequence[Callable[[], Awaitable[Any]]]) -> None:
    """Make calls that need not be in order, so that they share commits."""
    async with trio.open_nursery() as nursery:
        for call in calls:
            nursery.start_soon(call)


async def devices(server: Server, application: str, count: int = ITEMS) -> list[str]:
    """Create devices with the names d0, d1, ...; return their names."""
    names = [f"d{number}" for number in range(count)]
    body = {"attributes": [{"name": "temp", "dataType": "number"}]}
    path = f"{application}/devices"
    await all_at_once([partial(server.call, "POST", path, {**body, "name": name}) for name in names])
    return names


async def listed(server: Server, path: str, field: str = "name", **query: Any) -> list[str]:
    """A field of all items of a list, sorted."""
    found = await server.call("GET", path, params={"perPage": 1000, **query})
    return sorted(item[field] for item in found["items"])


async def file_of(server: Server, log: Json) -> bytes:
    """The result of a job, whole."""
    file = log["output"]["file"]
    async with server.client("") as client:
        response = await client.get(f"{server.url}/downloads?{file['url'].partition('?')[2]}")
    assert response.status_code == 200, response.text
    assert hashlib.sha256(response.content).hexdigest() == file["sha256"]
    assert len(response.content) == file["size"]
    return response.content


async def lines_of(server: Server, log: Json) -> list[dict[str, str]]:
    """The lines of a CSV."""
    text = (await file_of(server, log)).decode()
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


async def reported(server: Server) -> tuple[str, str]:
    """An application with a device with states, and one without; the paths of application and device."""
    application = await server.application()
    await server.device(application, "other")
    device = await server.device(application)
    states = [{"data": {"temp": n, "label": f"l{n}"}, "time": FIRST_MS + n} for n in range(ITEMS)]
    await server.call("POST", f"{device}/state", states)
    return application, device


# Exports.


async def export_of_a_device(server: Server) -> Order:
    application, device = await reported(server)

    async def outcome(server: Server, log: Json) -> None:
        assert [line["temp"] for line in await lines_of(server, log)] == [str(n) for n in range(ITEMS)]
        assert log["output"]["rows"] == log["progress"]["completed"] == ITEMS

    return Order(application, "POST", f"{device}/export", {}, outcome)


async def export_of_data(server: Server) -> Order:
    application, _ = await reported(server)

    async def outcome(server: Server, log: Json) -> None:
        assert [line["label"] for line in await lines_of(server, log)] == [f"l{n}" for n in range(ITEMS)]
        assert log["progress"]["completed"] == ITEMS

    body = {"start": FIRST_MS, "end": FIRST_MS + ITEMS}
    return Order(application, "POST", f"{application}/data/export", body, outcome)


async def export_of_devices(server: Server) -> Order:
    application = await server.application()
    names = await devices(server, application)

    async def outcome(server: Server, log: Json) -> None:
        assert sorted(line["name"] for line in await lines_of(server, log)) == sorted(names)
        assert log["output"]["devices"] == ITEMS

    return Order(application, "POST", f"{application}/devices/export", {}, outcome)


async def export_of_payload_counts(server: Server) -> Order:
    application = await server.application()
    names = await devices(server, application)

    async def outcome(server: Server, log: Json) -> None:
        assert sorted(line["name"] for line in await lines_of(server, log)) == sorted(names)

    return Order(application, "POST", f"{application}/devices/payloadCounts", {}, outcome)


async def export_of_rows(server: Server) -> Order:
    application = await server.application()
    columns = [{"name": "n", "dataType": "number", "constraint": "unique"}]
    made = await server.call("POST", f"{application}/data-tables", {"name": "t", "columns": columns})
    table = f"{application}/data-tables/{made['id']}"
    await server.call("POST", f"{table}/rows", [{"n": n} for n in range(ITEMS)])

    async def outcome(server: Server, log: Json) -> None:
        assert [line["n"] for line in await lines_of(server, log)] == [str(n) for n in range(ITEMS)]

    return Order(application, "POST", f"{table}/rows/export", {}, outcome)


async def export_of_events(server: Server) -> Order:
    application = await server.application()
    await events(server, application)

    async def outcome(server: Server, log: Json) -> None:
        assert len({line["id"] for line in await lines_of(server, log)}) == ITEMS

    return Order(application, "POST", f"{application}/events/export", {}, outcome)


async def export_of_a_deployment(server: Server) -> Order:
    application = await server.application()
    device = await server.device(application, deviceClass="embedded")
    flow = await server.call("POST", f"{application}/flows", {"name": "f", "flowClass": "embedded"})
    ids = {"flowId": flow["id"], "deviceIds": [device.rpartition("/")[2]]}
    deployments = f"{application}/embedded/deployments"
    await server.call("POST", f"{deployments}/release", {**ids, "version": "develop"})

    async def outcome(server: Server, log: Json) -> None:
        content = json.loads(gzip.decompress(await file_of(server, log)))
        assert [each["flowId"] for each in content["flows"]] == [flow["id"]]

    body = {"deviceId": ids["deviceIds"][0], "gzip": True}
    return Order(application, "POST", f"{deployments}/export", body, outcome)


async def export_of_inputs(server: Server) -> Order:
    application = await server.application()
    await events(server, application)
    inputs = [{"inputType": "eventData", "fileName": f"{n}.csv"} for n in range(5)]
    made = await server.call("POST", f"{application}/notebooks", {"name": "n", "inputs": inputs})

    async def outcome(server: Server, log: Json) -> None:
        with zipfile.ZipFile(io.BytesIO(await file_of(server, log))) as archive:
            assert archive.testzip() is None
            lines = [archive.read(each["fileName"]).count(b"\r\n") for each in inputs]
        assert lines == [1 + ITEMS] * len(inputs)

    path = f"{application}/notebooks/{made['id']}/requestInputDataExport"
    return Order(application, "POST", path, {}, outcome)


async def export_of_an_application(server: Server) -> Order:
    application = await server.application()
    names = await devices(server, application)

    async def outcome(server: Server, log: Json) -> None:
        with zipfile.ZipFile(io.BytesIO(await file_of(server, log))) as bundle:
            assert bundle.testzip() is None
            lines = bundle.read("resources/Device.jsonl").splitlines()
        assert sorted(json.loads(line)["body"]["name"] for line in lines) == sorted(names)
        assert log["output"]["resources"]["Device"] == ITEMS

    body = {"includeDevices": True, "forceJob": True}
    return Order(application, "POST", f"{application}/export", body, outcome)


# Archives. What is due would be archived at each start, so the archive is configured when the job is queued.


async def archive(server: Server, operation: str, days: int, files: int, **config: bool) -> Order:
    """An archive of what devices reported on these days, of events and of a data table."""
    application = await server.application()
    start_ms = (round(time.time() * 1000) // DAY_MS - 40 - days) * DAY_MS
    names = await devices(server, application, count=4)
    ids = await listed(server, f"{application}/devices", "id")
    states = [{"data": {"temp": 1}, "time": start_ms + day * DAY_MS} for day in range(days)]
    paths = [f"{application}/devices/{id}/state" for id in ids]
    await all_at_once([partial(server.call, "POST", path, states) for path in paths])
    await events(server, application)
    columns = [{"name": "n", "dataType": "number", "constraint": "unique"}]
    for name in names:
        made = await server.call("POST", f"{application}/data-tables", {"name": name, "columns": columns})
        await server.call("POST", f"{application}/data-tables/{made['id']}/rows", [{"n": 1}])

    async def configure(server: Server) -> None:
        parts = {"includeDevices": False, "includeEvents": False, "includeDataTables": False, **config}
        await server.call("PATCH", application, {"archiveConfig": parts})

    async def outcome(server: Server, log: Json) -> None:
        assert isinstance(server, ServerProcess)
        folder = server.data_dir / "archives" / application.rpartition("/")[2]
        found = [line for path in manifests(folder) for line in manifest(path).values()]
        assert len(found) == files

    query = f"?date={start_ms}" if operation == "archiveData" else ""
    return Order(application, "GET", f"{application}/{operation}{query}", None, outcome, configure)


def manifests(folder: Path) -> list[Path]:
    """The manifests of an archive."""
    return list(folder.rglob("manifests/**/*.jsonl"))


# Changes of many.


async def deletion_of_files(server: Server, many: str, one: str) -> Order:
    """A directory with directories, and with files that have contents."""
    application = await server.application()
    files = f"{application}/{many}"
    top = await server.call("POST", files, {"name": "a", "type": "directory"})
    for number in range(ITEMS - 1):
        await upload(server, files, f"f{number}")

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"]["removed"] == ITEMS
        assert await listed(server, files) == []
        with trio.fail_after(PATIENCE_S):
            while contents(server, application):  # noqa: ASYNC110 - a folder has no event
                await trio.sleep(0.01)

    return Order(application, "DELETE", f"{application}/{one}/{top['id']}", None, outcome)


async def upload(server: Server, files: str, name: str) -> None:
    """Create a file in the directory `a`, and send its content."""
    content = name.encode()
    body = {"name": name, "type": "file", "parentDirectory": "a", "fileSize": len(content)}
    form = (await server.call("POST", files, body, status=201))["upload"]
    async with server.client("") as client:
        sent = await client.post(form["url"], data=form["fields"], files={"file": ("f", content)})
    assert sent.is_success, sent.text


def contents(server: Server, application: str) -> list[Path]:
    """The contents of the files of an application."""
    assert isinstance(server, ServerProcess)
    folder = server.data_dir / "contents" / application.rpartition("/")[2]
    return [path for path in folder.rglob("*") if path.is_file()]


async def events(server: Server, application: str) -> None:
    post = partial(server.call, "POST", f"{application}/events", {"level": "info", "subject": "hot"})
    await all_at_once([post] * ITEMS)


async def change_of_events(server: Server) -> Order:
    application = await server.application()
    await events(server, application)

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"]["changed"] == ITEMS
        found = (await server.call("GET", f"{application}/events?perPage=1000"))["items"]
        tally = Counter((event["state"], len(event["updates"])) for event in found)
        assert tally == {("resolved", 1): ITEMS}

    body = {"state": "resolved", "comment": "by a job"}
    return Order(application, "PATCH", f"{application}/events", body, outcome)


async def deletion_of_events(server: Server) -> Order:
    application = await server.application()
    await events(server, application)

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"]["removed"] == ITEMS
        assert await listed(server, f"{application}/events", "id") == []

    return Order(application, "POST", f"{application}/events/delete", {}, outcome)


async def change_of_devices(server: Server) -> Order:
    application = await server.application()
    names = await devices(server, application)

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"].items() >= {"updated": ITEMS, "failed": 0, "skipped": 0}.items()
        assert await listed(server, f"{application}/devices", "description") == ["changed"] * ITEMS
        assert await listed(server, f"{application}/devices") == sorted(names)

    body = {"query": {}, "updateFields": {"description": "changed"}}
    return Order(application, "PATCH", f"{application}/devices", body, outcome)


async def deletion_of_devices(server: Server) -> Order:
    application = await server.application()
    names = await devices(server, application)

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"].items() >= {"removed": ITEMS, "failed": 0}.items()
        counts = (await server.call("GET", f"{application}/deviceCounts"))["counts"]
        assert (sum(day["deleted"] for day in counts), counts[-1]["total"]) == (ITEMS, 0)
        assert await listed(server, f"{application}/devices", queryDeleted=True) == sorted(names)

    return Order(application, "POST", f"{application}/devices/delete", {"query": {}}, outcome)


async def restoration_of_devices(server: Server) -> Order:
    application = await server.application()
    names = await devices(server, application)
    paths = [f"{application}/devices/{id}" for id in await listed(server, f"{application}/devices", "id")]
    await all_at_once([partial(server.call, "DELETE", path) for path in paths])

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"].items() >= {"restored": ITEMS, "failed": 0}.items()
        assert await listed(server, f"{application}/devices") == sorted(names)
        counts = (await server.call("GET", f"{application}/deviceCounts"))["counts"]
        assert counts[-1]["total"] == ITEMS

    return Order(application, "POST", f"{application}/devices/restore", {"query": {}}, outcome)


async def deletion_of_versions(server: Server) -> Order:
    application = await server.application()
    flow = await server.call("POST", f"{application}/flows", {"name": "f"})
    versions = f"{application}/flows/{flow['id']}/versions"
    posts = [partial(server.call, "POST", versions, {"version": f"v{n}"}) for n in range(ITEMS)]
    await all_at_once(posts)

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"].items() >= {"removed": ITEMS, "failed": 0}.items()
        assert await listed(server, versions, "version") == []

    return Order(application, "POST", f"{versions}/delete", {"query": {}}, outcome)


async def removal_from_a_device(server: Server) -> Order:
    application, device = await reported(server)
    return Order(application, *_removal(device, "DELETE", f"{device}/data", None))


async def removal_from_devices(server: Server) -> Order:
    application, device = await reported(server)
    body = {"query": {}, "start": FIRST_MS, "end": FIRST_MS + ITEMS - 2}
    return Order(application, *_removal(device, "POST", f"{application}/devices/removeData", body))


def _removal(device: str, method: str, path: str, body: Json) -> tuple[str, str, Json, Outcome]:
    """The removal of all states but the newest one."""

    async def outcome(server: Server, log: Json) -> None:
        assert log["output"]["states"] == ITEMS - 1
        left = await server.call("GET", f"{device}/state?limit=1000")
        assert [entry["data"]["temp"] for entry in left] == [ITEMS - 1]
        composite = await server.call("GET", f"{device}/compositeState")
        assert composite["temp"]["value"] == ITEMS - 1

    if body is None:
        path += f"?start={FIRST_MS}&end={FIRST_MS + ITEMS - 2}"
    return method, path, body, outcome


async def creation_of_devices(server: Server) -> Order:
    application = await server.application()
    recipe = {
        "name": "thermometer",
        "deviceName": "meter",
        "attributes": [{"name": "a", "dataType": "number"}],
    }
    made = await server.call("POST", f"{application}/device-recipes", recipe)
    names = [f"d{number}" for number in range(ITEMS)]

    async def outcome(server: Server, log: Json) -> None:
        assert (log["output"]["created"], log["output"]["failed"]) == (ITEMS, 0)
        assert await listed(server, f"{application}/devices") == sorted(names)
        ids = await listed(server, f"{application}/devices", "id")
        assert sorted(line["deviceId"] for line in await lines_of(server, log)) == ids

    body = {"csv": "\n".join(["n", *names]), "nameColumn": "n"}
    return Order(application, "POST", f"{application}/device-recipes/{made['id']}/bulkCreate", body, outcome)


# New applications.


async def clone(server: Server) -> Order:
    application = await server.application("original")
    names = await devices(server, application)

    async def outcome(server: Server, log: Json) -> None:
        path = await made(server, "original", but=application)
        assert await listed(server, f"{path}/devices") == sorted(names)

    body = {"includeDevices": True, "forceJob": True}
    return Order("", "POST", f"{application}/clone", body, outcome, has_file=False)


async def import_of_an_application(server: Server) -> Order:
    """For an organization, so that the job does not wait for the clone of the user."""
    org = await server.organization()
    name = "imported"
    files = {**bundle(name), "ownerId": (None, org.rpartition("/")[2]), "ownerType": (None, "organization")}

    async def outcome(server: Server, log: Json) -> None:
        path = await made(server, name)
        assert await listed(server, f"{path}/devices") == sorted(f"d{n}" for n in range(ITEMS))

    return Order("", "POST", "/applications/import", None, outcome, has_file=False, files=files)


async def import_into_an_application(server: Server) -> Order:
    application = await server.application()

    async def outcome(server: Server, log: Json) -> None:
        assert await listed(server, f"{application}/devices") == sorted(f"d{n}" for n in range(ITEMS))

    files = bundle("is not used")
    return Order(application, "POST", f"{application}/import", None, outcome, files=files)


def bundle(name: str) -> Json:
    """The form with a bundle of an application with devices."""
    lines = [{"id": f"{n:024x}", "body": {"name": f"d{n}"}} for n in range(ITEMS)]
    content = bundle_of({"Device": lines}, application={"name": name})
    options = json.dumps({"forceJob": True})
    return {"options": (None, options), "importBundle": ("bundle.zip", content, "application/zip")}


async def application_of_a_template(server: Server) -> Order:
    template = await a_template(server)

    async def outcome(server: Server, log: Json) -> None:
        await is_applied(server, await made(server, "of a template"), template)

    body = {"name": "of a template", "applicationTemplateId": template["id"]}
    return Order("", "POST", "/applications", body, outcome, has_file=False)


async def application_with_a_template(server: Server) -> Order:
    application, template = await server.application(), await a_template(server)

    async def outcome(server: Server, log: Json) -> None:
        await is_applied(server, application, template)

    return Order(
        application, "PATCH", f"{application}/applyTemplate", {"templateId": template["id"]}, outcome
    )


async def a_template(server: Server) -> Json:
    """One of the application templates."""
    first = (await server.call("GET", "/applicationTemplates?perPage=1"))["items"][0]
    return await server.call("GET", f"/applicationTemplates/{first['id']}")


async def is_applied(server: Server, application: str, template: Json) -> None:
    """An application has what a template describes, once."""
    shown = await server.call("GET", application)
    assert shown["appliedTemplateIds"] == [template["id"]]
    for name in ("deviceCount", "flowCount", "dataTableCount", "experienceEndpointCount"):
        assert shown["summary"][name] == template["summary"].get(name, 0), name


async def made(server: Server, name: str, but: str = "") -> str:
    """Wait until there is one more application with this name; its path."""
    query = {"filterField": "name", "filter": name}
    with trio.fail_after(PATIENCE_S):
        while True:
            found = await listed(server, "/applications", "id", **query)
            paths = [f"/applications/{id}" for id in found if not but.endswith(id)]
            if paths:
                (path,) = paths
                return path
            await trio.sleep(0.01)


# Reports.


async def report_of_an_application(server: Server) -> Order:
    application = await server.application()
    return await report(server, application, f"{application}/dashboards")


async def report_of_a_user(server: Server) -> Order:
    return await report(server, "", "/dashboards")


def mails(server: Server) -> list[str]:
    """The mails of a server process."""
    assert isinstance(server, ServerProcess)
    return [file.read_text() for file in (server.data_dir / "outbox").glob("*.eml")]


async def report(server: Server, owner: str, dashboards: str) -> Order:
    place = {"startX": 0, "width": 2, "height": 2}
    blocks = [
        {
            "blockType": "section-header",
            "title": f"Part {n}",
            "startY": 2 * n,
            "config": {"content": "x"},
            **place,
        }
        for n in range(5)
    ]
    made = await server.call("POST", dashboards, {"name": "d", "blocks": blocks})
    subject = f"Report of {made['id']}"

    async def outcome(server: Server, log: Json) -> None:
        """A mail is sent at least once."""
        with trio.fail_after(PATIENCE_S):
            while not any(subject in mail for mail in mails(server)):  # noqa: ASYNC110 - a folder has no event
                await trio.sleep(0.01)

    body = {"toEmail": [MAIL], "subject": subject}
    return Order(owner, "POST", f"{dashboards}/{made['id']}", body, outcome)


CASES: Final[dict[str, Case]] = {
    "application.applyTemplate": Case(application_with_a_template, middle=0),
    "application.archiveData": Case(
        partial(archive, operation="archiveData", days=2, files=4, includeDevices=True)
    ),
    "application.backfillArchiveData": Case(
        partial(archive, operation="backfillArchiveData", days=2, files=8, includeDevices=True)
    ),
    "application.clone": Case(clone),
    "application.export": Case(export_of_an_application),
    "application.import": Case(import_into_an_application, middle=1),
    "application.fullDataTablesArchive": Case(
        partial(archive, operation="fullDataTablesArchive", days=0, files=4, includeDataTables=True)
    ),
    "application.fullEventsArchive": Case(
        partial(archive, operation="fullEventsArchive", days=0, files=1, includeEvents=True), middle=0
    ),
    "applications.import": Case(import_of_an_application),
    "applications.post": Case(application_of_a_template, middle=1),
    "applicationDashboard.sendReport": Case(report_of_an_application, middle=0),
    "dashboard.sendReport": Case(report_of_a_user, middle=0),
    "data.export": Case(export_of_data),
    "dataTableRows.export": Case(export_of_rows),
    "device.export": Case(export_of_a_device),
    "device.removeData": Case(removal_from_a_device),
    "deviceRecipe.bulkCreate": Case(creation_of_devices),
    "devices.delete": Case(deletion_of_devices),
    "devices.export": Case(export_of_devices),
    "devices.patch": Case(change_of_devices),
    "devices.payloadCounts": Case(export_of_payload_counts),
    "devices.removeData": Case(removal_from_devices),
    "devices.restore": Case(restoration_of_devices),
    "embeddedDeployments.export": Case(export_of_a_deployment, middle=0),
    "events.delete": Case(deletion_of_events),
    "events.export": Case(export_of_events),
    "events.patch": Case(change_of_events),
    "file.delete": Case(partial(deletion_of_files, many="files", one="file")),
    "flowVersions.delete": Case(deletion_of_versions),
    "notebook.requestInputDataExport": Case(export_of_inputs, middle=9),
    "privateFile.delete": Case(partial(deletion_of_files, many="privateFiles", one="privateFiles")),
}

MIDDLE: Final = " ".join(["3", *(f"{name}={case.middle}" for name, case in CASES.items())])
"""Holds each job in its middle (`crash_program.py`)."""
