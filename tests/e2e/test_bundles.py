"""Exports of applications: what a bundle holds, that it holds no secret, and that two of them are equal."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import msgspec

from tests.e2e.conftest import Server
from tests.e2e.test_exports import ended, fetched, letters
from tests.e2e.whole_application import SECRET, Whole, whole_application
from trunkline.actors.core.records.export_lines import REMOVED
from trunkline.actors.core.records.portable import Portable
from trunkline.actors.portability.bundles.portable import (
    BY_NAME,
    MANIFEST,
    Line,
    Manifest,
    rows_path,
    version_path,
)

ALL = {
    "includeFiles": True,
    "includePrivateFiles": True,
    "includeDataTableRows": True,
    "includeDevices": True,
}


class Bundle:
    """A bundle that was downloaded."""

    def __init__(self, response: httpx.Response) -> None:
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/zip"
        self.content = response.content
        self.archive = zipfile.ZipFile(io.BytesIO(response.content))
        assert self.archive.testzip() is None
        self.names = self.archive.namelist()
        self.manifest = msgspec.json.decode(self.archive.read(MANIFEST), type=Manifest)

    def lines(self, path: str) -> list[Line]:
        """The lines of an entry."""
        return [msgspec.json.decode(line, type=Line) for line in self.archive.read(path).splitlines()]

    def resource(self, name: str) -> list[Line]:
        return self.lines(BY_NAME[name].path)  # type: ignore[index]

    def entries(self) -> dict[str, bytes]:
        """All entries, but the time of the export."""
        found = {name: self.archive.read(name) for name in self.names}
        manifest = json.loads(found[MANIFEST])
        del manifest["exportedAt"]
        return {**found, MANIFEST: json.dumps(manifest).encode()}


async def export(server: Server, application: str, **options: Any) -> Bundle:
    """The bundle of a small application."""
    answer = await server.call("POST", f"{application}/export", options, status=200)
    return Bundle(await fetched(server, answer["url"]))


async def test_every_line_is_a_body_that_the_api_accepts(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path, **ALL)
    for portable in BY_NAME.values():
        lines = all_lines(bundle, portable)
        assert lines, f"{portable.name}: the builder makes none"
        assert bundle.manifest.resources[portable.name] == len(lines)
        for line in lines:
            msgspec.convert(line.body, portable.body)
            msgspec.convert(line.more, portable.more)
    copies = [path for path in bundle.names if path.startswith("versions/") and (name_of(path) in BY_NAME)]
    for path in copies:
        for line in bundle.lines(path):
            msgspec.convert(line.body, BY_NAME[name_of(path)].body)  # type: ignore[index]
    assert len(copies) == 4


def all_lines(bundle: Bundle, portable: Portable) -> list[Line]:
    if portable.name != "DataTableRow":
        return bundle.lines(portable.path)
    return [line for path in bundle.names if path.startswith("rows/") for line in bundle.lines(path)]


def name_of(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".jsonl")


async def test_a_resource_stands_behind_those_that_it_refers_to(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path, includeDevices=True)
    fields = {
        "Device": ("parentId", "gatewayId"),
        "ExperienceGroup": ("parentId",),
        "ExperienceView": ("layoutId",),
    }
    for name, references in fields.items():
        seen: set[Any] = {None}
        for line in bundle.resource(name):
            assert {line.body.get(field) for field in references} <= seen, (name, line)
            seen.add(line.id)
    paths = [each.path for each in BY_NAME.values()]
    assert [name for name in bundle.names if name in paths] == [
        name for name in paths if name in bundle.names
    ]


async def test_two_bundles_of_the_same_application_are_equal_but_for_the_time(server: Server) -> None:
    whole = await whole_application(server)
    first = await export(server, whole.path, **ALL)
    server.move_clock(3600)
    again = await export(server, whole.path, **ALL)
    assert first.entries() == again.entries()
    assert first.names == again.names
    assert {info.date_time[0] for each in (first, again) for info in each.archive.infolist()} == {1980}
    assert first.manifest.exported_at != again.manifest.exported_at


async def test_no_secret_is_in_a_bundle(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path, **ALL)
    hook = await server.call("GET", f"{whole.path}/webhooks/{whole.ids['hook']}")
    text = b"".join(bundle.entries().values())
    for secret in (SECRET, "$argon2", hook["token"]):
        assert secret.encode() not in text
    removed = {
        name: [line.more["removed"] for line in bundle.resource(name) if line.more]
        for name in ("Webhook", "Integration", "ExperienceUser", "Dashboard")
    }
    assert removed == {
        "Webhook": [["basicAuthPassword", "verificationCode"]],
        "Integration": [
            ["mqttConfig.password", "mqttConfig.privateKey"],
            ["websocketConfig.headers.0.headerValue", "websocketConfig.headers.1.headerValue"],
            ["particleConfig.accessToken"],
        ],
        "ExperienceUser": [["password"]],
        "Dashboard": [["password"]],
    }
    assert text.count(REMOVED.encode()) == 9


async def test_what_a_body_cannot_say_is_in_more_and_in_entries_of_its_own(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path, **ALL)
    ids = whole.ids
    assert bundle.manifest.application_id == ids["application"]
    assert bundle.manifest.application.readme == f"# Büro\n\nThe pump is {ids['pump']}."
    assert bundle.resource("Flow")[0].more == {"defaultVersionId": ids["flowVersion"]}
    assert [line.more for line in bundle.resource("FlowVersion")] == [{"flowId": ids["flow"]}] * 2
    assert [line.more for line in bundle.resource("ExperienceFlowVersion")] == [{"flowId": ids["pageFlow"]}]
    rows = bundle.lines(rows_path(ids["parts"]))
    assert [line.body["weight"] for line in rows] == [2.0, None, -(2**63), 2**63 + 1]
    assert bundle.lines(rows_path(ids["empty"])) == []
    assert bundle.lines(rows_path(ids["old"]))[0].body == {"part": "a", "late": None}
    text = f"privateFiles {ids['pump']}".encode()
    assert bundle.archive.read(f"privateFiles/{ids['privateFiles büro.txt']}") == text
    files = {line.body["name"]: line for line in bundle.resource("PrivateFile")}
    assert list(files) == ["outer", "inner", "büro.png", "büro.txt", "empty"]
    assert files["büro.txt"].more == {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    assert (files["inner"].more, files["inner"].body["parentDirectory"]) == ({}, "/outer")
    old = bundle.lines(version_path(ids["version"], "ExperienceEndpoint"))
    assert [line.id for line in old] == [ids["removed"], ids["endpoint"]]
    assert [line.id for line in bundle.resource("ExperienceEndpoint")] == [ids["endpoint"]]
    views = {line.id: line.body for line in bundle.lines(version_path(ids["version"], "ExperienceView"))}
    assert views[ids["page"]]["body"] == f"<p>{ids['pump']}</p>"
    assert bundle.resource("ExperienceVersion")[1].body["notFoundReply"] is None


async def test_what_is_not_asked_for_is_left_out(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path)
    optional = {name for name, portable in BY_NAME.items() if portable.option is not None}
    assert not optional & bundle.manifest.resources.keys()
    assert not [name for name in bundle.names if name.startswith(("rows/", "files/", "privateFiles/"))]
    # References stay, because the target may have these devices.
    assert bundle.resource("ExperienceGroup")[1].body["deviceIds"] == [whole.ids["pump"], whole.ids["sensor"]]


async def test_a_small_application_is_answered_at_once_and_nobody_is_told(server: Server) -> None:
    application = await server.application()
    await export(server, application)
    (log,) = (await server.call("GET", f"{application}/jobLogs"))["items"]
    assert (log["name"], log["status"]) == ("application.export", "completed")
    assert "told" not in log["output"]
    assert letters(server) == []
    await server.call("POST", f"{application}/export", {"email": "a@example.com"}, status=200)
    await ended(server, application, (await jobs(server, application))[0])
    assert [letter["To"] for letter in letters(server)] == ["a@example.com"]


async def jobs(server: Server, application: str) -> list[str]:
    found = await server.call("GET", f"{application}/jobLogs", params={"sortDirection": "desc"})
    return [each["id"] for each in found["items"]]


async def test_a_large_application_or_one_that_is_to_be_a_job_is_answered_with_202(
    start_server: Callable[..., Any],
) -> None:
    async with start_server(limits={"bundle_small_records_max": 2}) as server:
        application = await server.application()
        small = await server.call("POST", f"{application}/export", {"forceJob": True}, status=202)
        log = await ended(server, application, small["jobId"])
        assert "Device" not in log["output"]["resources"]
        for _ in range(3):
            await server.device(application)
        await server.call("POST", f"{application}/export", {}, status=200)
        queued = await server.call("POST", f"{application}/export", {"includeDevices": True}, status=202)
        log = await ended(server, application, queued["jobId"])
        assert log["progress"] == {"completed": 3, "total": 3, "status": "completed"}
        assert log["output"]["resources"]["Device"] == 3
        bundle = Bundle(await fetched(server, log["output"]["file"]["url"]))
        assert len(bundle.resource("Device")) == 3
        assert len(letters(server)) == 2


async def test_what_this_server_does_not_do_is_refused_by_a_sentence(server: Server) -> None:
    application = await server.application()
    for body, sentence in (
        ({"exportType": "repo"}, "exportType: this server does not write to repositories"),
        ({"credentialName": "c"}, "credentialName: is for exports to a repository"),
        ({"repo": {"branch": "main"}}, "repo: is for exports to a repository"),
    ):
        refused = await server.call("POST", f"{application}/export", body, status=400)
        assert refused["message"].startswith(sentence)
    assert await jobs(server, application) == []


async def test_a_second_export_of_an_application_is_refused_while_the_first_is_open(
    start_server: Callable[..., Any],
) -> None:
    """There is no room for results, so the first one waits for its next attempt, and its call not much longer."""
    limits = {"job_results_bytes_max": 1, "job_pause_s": 3600, "job_wait_s": 0.05}
    async with start_server(limits=limits) as server:
        application = await server.application()
        await server.call("POST", f"{application}/export", {}, status=202)
        refused = await server.call("POST", f"{application}/export", {}, status=429)
        assert "application.export" in refused["message"]
        await server.call("POST", f"{await server.application()}/export", {}, status=202)


async def test_a_bundle_above_its_bounds_is_refused_to_the_call(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"bundle_entries_max": 5}) as server:
        whole = Whole(server, await server.application())
        refused = await server.call("POST", f"{whole.path}/export", {}, status=413)
        assert refused["message"].startswith("A bundle has at most 5 entries")
    async with start_server(limits={"job_result_bytes_max": 100}) as server:
        await server.call("POST", f"{await server.application()}/export", {}, status=413)
