"""Imports: bundles become applications, or are imported into them; what is wrong changes nothing."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.test_bundles import ALL, Bundle, export
from tests.e2e.whole_application import whole_application
from tests.patience import PATIENCE_S

ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{24}(?![0-9a-f])", re.IGNORECASE)


async def send(server: Server, path: str, content: bytes | None = None, **fields: Any) -> httpx.Response:
    """The response to an import; `options` are sent as JSON."""
    if "options" in fields:
        fields["options"] = json.dumps(fields["options"])
    files: Any = {name: (None, str(value)) for name, value in fields.items()}
    if content is not None:
        files["importBundle"] = ("bundle.zip", content, "application/zip")
    async with server.client() as client:
        return await client.post(f"{path}/import", files=files or {"email": (None, "a@example.com")})


async def imported(server: Server, content: bytes, **fields: Any) -> str:
    """The path of a new application."""
    response = await send(server, "/applications", content, **fields)
    assert response.status_code == 201, response.text
    answer = response.json()
    assert answer["validationErrors"] == []
    return f"/applications/{answer['application']['id']}"


def bundle_of(entries: dict[str, list[dict[str, Any]]], **manifest: Any) -> bytes:
    """A bundle with these lines by name of the resource."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, lines in entries.items():
            archive.writestr(f"resources/{name}.jsonl", "\n".join(map(json.dumps, lines)))
        said = {
            "format": "trunkline-application",
            "version": 1,
            "exportedAt": "2026-01-01T00:00:00.000Z",
            "applicationId": "0" * 23 + "a",
            "application": {"name": "Copied"},
            "resources": {name: len(lines) for name, lines in entries.items()},
        }
        archive.writestr("manifest.json", json.dumps({**said, **manifest}))
    return file.getvalue()


def old(number: int) -> str:
    return f"{number:024x}"


def without_ids(bundle: Bundle) -> dict[bytes, bytes]:
    """The entries with a number in the place of each id, in the order in which ids come first; contents as they are."""
    ids: dict[bytes, bytes] = {}

    def numbered(text: bytes) -> bytes:
        return ID.sub(lambda found: ids.setdefault(found[0].lower(), b"#%d" % len(ids)), text)

    return {
        numbered(name.encode()): numbered(content) if name.endswith((".jsonl", ".json")) else content
        for name, content in bundle.entries().items()
    }


async def test_what_is_wrong_is_told_at_once_and_nothing_is_changed(server: Server) -> None:
    path = await server.application()
    wrong = bundle_of(
        {
            "Device": [
                {"id": old(1), "body": {"name": "a", "deviceClass": "peripheral", "gatewayId": old(2)}},
                {"id": old(2), "body": {"name": "b", "deviceClass": "peripheral", "gatewayId": old(1)}},
                {"id": old(3), "body": {"name": "good"}},
            ],
            "Dashboard": [{"id": old(4), "body": {"nome": "c"}}],
        }
    )
    before = (await server.call("GET", "/applications"))["totalCount"]
    for target in ("/applications", path):
        response = await send(server, target, wrong)
        assert response.status_code == 422, response.text
        problems = response.json()["validationErrors"]
        assert [(each["type"], each["id"]) for each in problems] == [
            ("Device", old(1)),
            ("Device", old(2)),
            ("Dashboard", old(4)),
        ]
    assert (await server.call("GET", f"{path}/devices"))["totalCount"] == 0
    assert (await server.call("GET", "/applications"))["totalCount"] == before
    (log,) = await server.call("GET", f"{path}/importLogs")
    assert (log["status"], log["importSourceType"]) == ("errored", "importBundle")
    assert len(log["validationErrors"]) == 3


@pytest.mark.parametrize("conflict", ["create", "error", "retain", "replace"])
async def test_what_an_application_has_already_is_treated_as_asked(server: Server, conflict: str) -> None:
    path = await server.application()
    await server.call("POST", f"{path}/webhooks", {"name": "in", "description": "old"})
    bundle = bundle_of({"Webhook": [{"id": old(1), "body": {"name": "in", "description": "new"}}]})
    tried = await send(server, path, bundle, options={"conflictBehavior": conflict, "dryRun": True})
    response = await send(server, path, bundle, options={"conflictBehavior": conflict})
    assert tried.status_code == response.status_code == (422 if conflict == "error" else 200)
    found = (await server.call("GET", f"{path}/webhooks"))["items"]
    texts = {"create": ["new", "old"], "error": ["old"], "retain": ["old"], "replace": ["new"]}
    assert sorted(each["description"] for each in found) == texts[conflict]
    logs = await server.call("GET", f"{path}/importLogs", params={"limit": 10})
    assert [(log["dryRun"], log["conflictBehavior"]) for log in logs] == [(False, conflict), (True, conflict)]


async def test_another_application_is_imported_without_a_zip(server: Server) -> None:
    whole = await whole_application(server)
    path = await server.application()
    options = {"fromApplicationId": whole.ids["application"], "include": ["Device", "Webhook"]}
    response = await send(server, path, options=options)
    assert response.status_code == 200, response.text
    counts = [(await server.call("GET", f"{each}/devices"))["totalCount"] for each in (whole.path, path)]
    assert counts[0] == counts[1] > 0
    assert (await server.call("GET", f"{path}/dashboards"))["totalCount"] == 0
    refused = await send(server, path, options={"fromApplicationId": old(7)})
    assert refused.status_code == 400
    assert "fromApplicationId" in refused.json()["message"]


async def test_files_are_replaced_by_their_paths(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path, **ALL)
    options: dict[str, Any] = {"include": ["File", "Notebook"], "conflictBehavior": "replace"}
    for _ in range(2):  # into the application that it came from, where everything is there already
        response = await send(server, whole.path, bundle.content, options=options)
        assert response.status_code == 200, response.text
    again = await export(server, whole.path, **ALL)
    for name in ("File", "PrivateFile", "Notebook"):
        assert again.resource(name) == bundle.resource(name)
    refused = await send(server, whole.path, bundle.content, options={"include": ["File"]})
    assert refused.status_code == 422, refused.text
    assert {each["name"] for each in refused.json()["validationErrors"]} == {
        each.body["name"] for each in bundle.resource("File") if each.body["type"] == "file"
    }


async def test_files_without_room_are_refused_before_anything_is_imported(start_server: Any) -> None:
    async with start_server(limits={"application_files_bytes_max": 1000}) as server:
        paths = [await server.application(), await server.application()]
        for number, path in enumerate(paths):
            body = {"name": f"{number}.bin", "type": "file"}
            file = await server.call("POST", f"{path}/privateFiles", body, status=201)
            async with server.client() as client:
                parts = {"privateFile": ("a.bin", bytes(600))}
                response = await client.post(f"{path}/privateFiles/{file['id']}/upload", files=parts)
                assert response.status_code == 200, response.text
        bundle = await export(server, paths[0], includePrivateFiles=True)
        refused = await send(server, paths[1], bundle.content)
        assert refused.status_code == 422, refused.text
        (problem,) = refused.json()["validationErrors"]
        assert (problem["name"], problem["message"].partition(":")[0]) == ("0.bin", "fileSize")
        assert (await server.call("GET", f"{paths[1]}/privateFiles"))["count"] == 1


async def test_a_bundle_is_fetched_from_a_url(start_server: Any) -> None:
    async with start_server(callback_private_networks=True) as server:
        whole = await whole_application(server)
        link = (await server.call("POST", f"{whole.path}/export", {"includeDevices": True}, status=200))[
            "url"
        ]
        path = await server.application()
        response = await send(server, path, options={"importUrl": link, "include": ["Device"]})
        assert response.status_code == 200, response.text
        counts = [(await server.call("GET", f"{each}/devices"))["totalCount"] for each in (whole.path, path)]
        assert counts[0] == counts[1] > 0
        (log,) = await server.call("GET", f"{path}/importLogs")
        assert log["importUrl"] == link.partition("?")[0]
        missing = await send(server, path, options={"importUrl": f"{server.url}/downloads?token=x"})
        assert missing.status_code == 400, missing.text
        assert "importUrl" in missing.json()["message"]


async def test_a_large_import_is_a_job_and_the_only_one_of_its_owner(server: Server) -> None:
    bundle = bundle_of({"Device": [{"id": old(n), "body": {"name": f"d{n}"}} for n in range(500)]})
    response = await send(server, "/applications", bundle, options={"forceJob": True})
    assert response.status_code == 202, response.text
    second = await send(server, "/applications", bundle)
    assert second.status_code in (201, 429)
    async with server.client() as client:
        first = None
        with trio.fail_after(PATIENCE_S):
            while first is None:
                listed = (await client.get("/applications?filterField=name&filter=Copied")).json()
                first = next(iter(listed["items"]), None)
    devices = await server.call("GET", f"/applications/{first['id']}/devices", params={"perPage": 1})
    assert devices["totalCount"] == 500  # it is seen when it is complete


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"no zip", 400, "not a zip"),
        (b"", 400, "not a zip"),
        (bundle_of({}, version=2), 400, "newer server"),
        (bundle_of({}, format="other"), 400, "format"),
        (bundle_of({"Device": []}, resources={"Device": 3}), 422, "1 "),
    ],
)
async def test_no_bundle_is_refused_and_leaves_nothing(
    server: Server, content: bytes, status: int, sentence: str
) -> None:
    response = await send(server, "/applications", content)
    assert response.status_code == status, response.text
    assert response.json()["message"].endswith(".")
    assert (await server.call("GET", "/applications"))["totalCount"] == 0
    assert server.system.store.results.names() == [] or status == 422


async def test_a_wrong_form_is_refused(server: Server) -> None:
    path, bundle = await server.application(), bundle_of({})
    cases: list[tuple[bytes | None, dict[str, Any], str]] = [
        (None, {}, "importBundle"),
        (bundle, {"options": {"importUrl": "https://example.com/x.zip"}}, "importBundle"),
        (bundle, {"options": {"repo": {}}}, "repo"),
        (bundle, {"options": {"credentialName": "git"}}, "credentialName"),
        (bundle, {"options": {"conflictBehaviour": "error"}}, "conflictBehavior"),
        (bundle, {"options": {"include": ["Secret"]}}, "include"),
        (None, {"options": {"importUrl": "http://example.com/x.zip"}}, "https"),
        (None, {"options": {"importUrl": "https://127.0.0.1/x.zip"}}, "public"),
        (bundle, {"ownerId": old(1)}, "ownerId"),
    ]
    for content, fields, named in cases:
        response = await send(server, path, content, **fields)
        assert response.status_code == 400, (fields, response.text)
        assert named in response.json()["message"], (fields, response.text)
    for fields in ({"ownerId": old(1)}, {"ownerType": "organization"}):
        response = await send(server, "/applications", bundle, **fields)
        assert response.status_code in (400, 403), response.text
        assert "ownerId" in response.json()["message"]


async def test_users_come_with_cutoffs_that_were_stored_before_they_were_checked(server: Server) -> None:
    body = {"email": "a@example.com", "password": "is-8-long", "tokenCutoff": "2099-01-01T00:00:00Z"}
    path = await imported(server, bundle_of({"ExperienceUser": [{"id": old(1), "body": body}]}))
    (user,) = (await server.call("GET", f"{path}/experience/users"))["items"]
    assert user["tokenCutoff"] == "2099-01-01T00:00:00.000Z"


async def test_what_experiences_stored_before_it_was_checked_is_imported(server: Server) -> None:
    away = {"type": "redirect", "value": ""}
    endpoint = {"route": "/a", "method": "get", "access": "device", "staticReply": away}
    view = {"name": "p", "viewType": "page", "headers": {"content-type": "nonsense"}}
    lines = {
        "ExperienceView": [{"id": old(1), "body": view}],
        "ExperienceEndpoint": [{"id": old(2), "body": endpoint}],
    }
    path = await imported(server, bundle_of(lines))
    (shown,) = (await server.call("GET", f"{path}/experience/endpoints"))["items"]
    assert (shown["access"], shown["staticReply"]) == ("device", away)
    (page,) = (await server.call("GET", f"{path}/experience/views"))["items"]
    assert page["headers"] == {"content-type": "nonsense"}
