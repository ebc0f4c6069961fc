"""The command line client of this family of platforms: the calls that it makes, in its order, with its scopes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import EMAIL, Server

Json = dict[str, Any]

PAGE = "<h1>Barn</h1>"


@pytest.fixture
async def token(server: Server) -> str:
    """A login with the scopes that the client asks for."""
    return await server.log_in(requestedScopes=["all.User.cli"], tokenTTL=0)


async def test_it_logs_in_and_learns_the_addresses_of_the_platform(server: Server) -> None:
    await server.call("GET", f"/auth/ssoDomain?email={EMAIL}", token="", status=204)
    for scope in ("all.User.cli", "all.Application"):
        token = await server.log_in(requestedScopes=[scope], tokenTTL=0)
        platform = await server.call("GET", "/whitelabels/domain", token=token)
        port = server.url.rpartition(":")[2]
        assert platform == {
            "apiUrl": server.url,
            "appUrl": f"{server.url}/console#",
            "endpointDomain": f"localhost:{port}",
        }
    assert await server.call("GET", "/whitelabels/domain", token="") == platform


async def test_it_configures_an_application(server: Server, token: str) -> None:
    path = await server.application("shop")
    found = await server.call("GET", "/applications?filterField=name&filter=shop", token=token)
    assert [item["name"] for item in found["items"]] == ["shop"]
    body = {"ftueTracking": [{"name": "experience", "version": 3, "status": "skipped"}]}
    await server.call("PATCH", path, body, token=token)
    assert (await server.call("GET", path, token=token))["ftueTracking"] == body["ftueTracking"]
    assert (await server.call("GET", f"{path}/data-tables?page=0&perPage=1000", token=token))["items"] == []


async def test_it_brings_an_experience_up_to_date(server: Server, token: str) -> None:
    path = await server.application()
    experience = f"{path}/experience"
    made = await server.call("PATCH", f"{experience}/bootstrap", {}, token=token)
    assert {"email", "password", "resourceSuffix"} <= made.keys()
    views = f"{experience}/views"
    body = {"viewType": "page", "name": "Barn", "body": PAGE}
    view = await server.call("POST", views, body, token=token, status=201)
    one = f"{views}/{view['id']}"
    changed = await server.call("PATCH", one, {"body": PAGE * 2}, token=token)
    assert changed["body"] == PAGE * 2
    await server.call("GET", f"{one}/linkedResources", token=token)
    listed = await server.call("GET", f"{views}?page=0&perPage=1000", token=token)
    assert PAGE * 2 in [each["body"] for each in listed["items"]]
    for many in ("domains", "slugs"):
        await server.call("GET", f"{experience}/{many}", token=token)
    await server.call("POST", f"{experience}/versions", {"version": "v1.0.0"}, token=token, status=201)
    versions = await server.call("GET", f"{experience}/versions?filterField=version&filter=v1.*", token=token)
    assert [each["version"] for each in versions["items"]] == ["v1.0.0"]
    await server.call("DELETE", one, token=token)


async def send(server: Server, upload: Json, data: bytes) -> str:
    """Send the form as the client does: without `bucket`, and with a file that has no name; the entity tag."""
    parts = {name: (None, value) for name, value in upload["fields"].items() if name != "bucket"}
    async with server.client("") as client:
        answer = await client.post(upload["url"], files={**parts, "file": (None, data)})
        assert answer.status_code == 200, answer.text
        return answer.headers["etag"].replace('"', "")


async def test_it_uploads_files_and_knows_which_were_changed(server: Server, token: str) -> None:
    path = await server.application()
    files = f"{path}/files"
    body = {
        "name": "a.css",
        "parentDirectory": "/styles",
        "type": "file",
        "fileSize": 3,
        "contentType": "text/css",
    }
    made = await server.call("POST", files, body, token=token, status=201)
    etag = await send(server, made["upload"], b"old")
    assert etag == hashlib.md5(b"old").hexdigest()
    # The client compares the hash of its file with this one, of which it shows whether the file was changed.
    (item,) = (await server.call("GET", f"{files}?type=file&page=0&perPage=1000", token=token))["items"]
    assert (item["s3etag"], item["parentDirectory"], item["name"]) == (etag, "/styles/", "a.css")
    async with server.client("") as client:
        assert (await client.get(item["url"])).content == b"old"
    one = f"{path}/file/{item['id']}"
    changed = await server.call("PATCH", one, {"fileSize": 4}, token=token)
    etag = await send(server, changed["upload"], b"new!")
    assert (await server.call("GET", one, token=token))["s3etag"] == etag == hashlib.md5(b"new!").hexdigest()
    assert await send(server, changed["upload"], b"new!") == etag
    # Of a file that was changed the client does not tell the size: its library takes another name for the body.
    unsized = await server.call("PATCH", one, {}, token=token)
    async with server.client("") as client:
        assert (await client.get(unsized["url"])).content == b"new!"
    etag = await send(server, unsized["upload"], b"newer and longer")
    assert etag == await send(server, unsized["upload"], b"newer and longer")
    shown = await server.call("GET", one, token=token)
    assert (shown["s3etag"], shown["fileSize"]) == (etag, 16)
    await server.call("DELETE", one, token=token)


async def test_a_form_without_a_size_takes_what_the_application_has_room_for(
    start_server: Callable[..., Any],
) -> None:
    async with start_server(limits={"application_files_bytes_max": 20}) as server:
        path = await server.application()
        body = {"name": "a", "type": "file", "fileSize": 8}
        made = await server.call("POST", f"{path}/files", body, status=201)
        await send(server, made["upload"], b"12345678")
        form = (await server.call("PATCH", f"{path}/file/{made['id']}", {}))["upload"]
        async with server.client("") as client:
            for size, status in ((13, 413), (12, 200)):
                parts = {name: (None, value) for name, value in form["fields"].items()}
                answer = await client.post(form["url"], files={**parts, "file": (None, b"x" * size)})
                assert answer.status_code == status, answer.text


async def test_it_reads_globals_and_the_readme(server: Server, token: str) -> None:
    path = await server.application()
    await server.call("PATCH", f"{path}/globals", [{"key": "a", "json": "1"}], token=token)
    await server.call("PATCH", f"{path}/readme", {"content": "# Barn"}, token=token)
    assert (await server.call("GET", f"{path}/readme", token=token))["content"] == "# Barn"


@pytest.mark.parametrize("path", ["keys", "tokens", "devices"])
async def test_its_scope_reaches_nothing_else(server: Server, token: str, path: str) -> None:
    application = await server.application()
    await server.call("GET", f"{application}/{path}", token=token, status=403)
