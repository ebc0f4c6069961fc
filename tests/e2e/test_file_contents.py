"""The contents of files, as a client sends and reads them: by forms, links, and the addresses of public files."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.conftest import Server
from tests.e2e.test_audit_log import entries, organization
from tests.e2e.test_files import TREES, Files
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.contents.named import content_problems
from trunkline.actors.maintenance.sweep import sweep
from trunkline.limits.table import Limits

Json = dict[str, Any]

OLD, NEW = b"old content\n", bytes(range(256)) * 40
MB = 1_000_000


@pytest.fixture(params=TREES, ids=["private", "public"])
async def files(request: pytest.FixtureRequest, server: Server) -> Files:
    return Files(server, await server.application(), *request.param)


@pytest.fixture
async def private(server: Server) -> Files:
    return Files(server, await server.application(), *TREES[0])


@pytest.fixture
async def public(server: Server) -> Files:
    return Files(server, await server.application(), *TREES[1])


async def send(files: Files, answer: Json, data: bytes) -> httpx.Response:
    """Send content by the form of an answer."""
    form = answer["upload"]
    async with files.server.client("") as client:
        return await client.post(form["url"], data=form["fields"], files={"file": ("name", data)})


async def upload(
    files: Files, file: Json, data: bytes, *, name: str = "", type: str = "text/plain", **query: str
) -> httpx.Response:
    """Send content by the operation for small files."""
    part = name or ("privateFile" if "private" in files.many else "file")
    async with files.server.client() as client:
        path = f"{files.one}/{file['id']}/upload"
        return await client.post(path, params=query, files={part: ("name", data, type)})


async def stored(files: Files, name: str, data: bytes, parent: str = "/", type: str | None = None) -> Json:
    """A complete file."""
    given: Json = {} if type is None else {"contentType": type}
    made = await files.post(name, parent, type="file", fileSize=len(data), **given)
    assert (await send(files, made, data)).status_code == 200
    return await files.get(made)


async def read(files: Files, url: str, **headers: str) -> httpx.Response:
    async with files.server.client("") as client:
        return await client.get(url, headers=headers)


async def swept(server: Server) -> None:
    while await sweep(server.system):
        pass


def kept(server: Server) -> int:
    """The number of contents on the disk."""
    folder = server.system.store.directory.path / "contents"
    return sum(each.is_file() for each in folder.glob("*/*"))


async def test_a_file_is_sent_by_its_form_and_read_by_its_url(files: Files) -> None:
    made = await files.post(
        "data.bin",
        "/in",
        type="file",
        fileSize=len(NEW),
        contentType="application/x-test",
        fileDimensions={"width": 3},
    )
    assert (made["status"], made["fileSize"], "url" in made) == ("pending", len(NEW), False)
    sent = await send(files, made, NEW)
    assert sent.json() == {"success": True}
    file = await files.get(made)
    assert sent.headers["etag"] == f'"{file["s3etag"]}"'
    assert (file["status"], file["fileSize"], file["contentType"]) == (
        "completed",
        len(NEW),
        "application/x-test",
    )
    assert (file["fileDimensions"], file["s3etag"]) == ({"width": 3}, hashlib.md5(NEW).hexdigest())
    assert "upload" not in file
    answer = await read(files, file["url"])
    assert (answer.status_code, answer.content) == (200, NEW)
    assert answer.headers["content-type"] == "application/x-test"
    assert answer.headers["content-disposition"].startswith('attachment; filename="data.bin"')
    assert (answer.headers["etag"], answer.headers["x-content-type-options"]) == (
        f'"{hashlib.sha256(NEW).hexdigest()}"',
        "nosniff",
    )
    part = await read(files, file["url"], range="bytes=250-259")
    assert (part.status_code, part.content) == (206, NEW[250:260])
    assert (await read(files, file["url"], **{"if-none-match": answer.headers["etag"]})).status_code == 304
    (item,) = (await files.server.call("GET", f"{files.many}?directory=in"))["items"]
    assert (await read(files, item["url"])).content == NEW
    # A repeated upload succeeds with the same bytes only.
    assert (await send(files, made, NEW)).status_code == 200
    assert (await send(files, made, NEW[::-1])).status_code == 400
    summary = (await files.server.call("GET", files.application))["summary"]
    assert summary["storageStats"] == {"count": 1, "size": len(NEW)}
    assert summary["privateFileCount" if "private" in files.many else "fileCount"] == 2


async def test_the_old_content_is_read_until_the_new_one_is_complete(files: Files) -> None:
    file = await stored(files, "a.txt", OLD, type="text/plain")
    path = f"{files.one}/{file['id']}"
    change = {"fileSize": len(NEW), "contentType": "image/png", "fileDimensions": {"width": 8, "height": 9}}
    first = await files.server.call("PATCH", path, change, status=201)
    assert (first["status"], first["fileSize"], first["contentType"]) == ("completed", len(OLD), "text/plain")
    assert (await send(files, first, NEW[:-1])).status_code == 400
    assert (await read(files, first["url"])).content == OLD
    second = await files.server.call("PATCH", path, change, status=201)
    assert (await send(files, first, NEW)).status_code == 410, "only the newest form is good"
    assert (await read(files, (await files.get(file))["url"])).content == OLD
    assert (await send(files, second, NEW)).status_code == 200
    after = await files.get(file)
    assert (after["fileSize"], after["contentType"]) == (len(NEW), "image/png")
    assert after["fileDimensions"] == {"width": 8, "height": 9}
    assert after["id"] == file["id"]
    assert (await read(files, after["url"])).content == NEW
    # The dimensions of the old picture are not those of another one.
    third = await files.server.call("PATCH", path, {"fileSize": 0}, status=201)
    assert (await send(files, third, b"")).status_code == 200
    assert "fileDimensions" not in await files.get(file)
    # Without a size, the other fields change at once, and there is nothing to send.
    last = await files.server.call("PATCH", path, {"contentType": "text/csv"}, status=201)
    assert (last["contentType"], "upload" in last) == ("text/csv", False)
    bare = await files.server.call("PATCH", path, {"contentType": None, "fileDimensions": None}, status=201)
    assert "contentType" not in bare
    assert (await read(files, bare["url"])).headers["content-type"] == "application/octet-stream"
    files.server.move_clock(Limits().upload_form_s + 1)
    await swept(files.server)
    assert kept(files.server) == 1
    assert (await files.server.call("GET", files.application))["summary"]["storageStats"] == {
        "count": 1,
        "size": 0,
    }


async def test_a_small_file_is_sent_in_one_call(files: Files) -> None:
    file = await files.post("a.txt", type="file")
    answer = await upload(files, file, OLD)
    shown = answer.json()
    assert (answer.status_code, shown["status"], shown["fileSize"]) == (200, "completed", len(OLD))
    assert shown["contentType"] == "text/plain"
    assert (await read(files, shown["url"])).content == OLD
    assert (await upload(files, file, NEW, type="image/png")).json()["contentType"] == "text/plain"
    assert (await read(files, (await files.get(file))["url"])).content == NEW
    promised = await files.post("b.txt", type="file", fileSize=5)
    refusal = await upload(files, promised, OLD)
    assert refusal.status_code == 400
    part = "privateFile" if "private" in files.many else "file"
    assert refusal.json()["message"] == (
        f"{part}: has 12 bytes, and 5 were announced as the fileSize of its new content; send so many, or change the "
        "file first (PATCH with the right fileSize)."
    )
    assert (await upload(files, promised, b"12345", type="text/x\r\ny: z")).json()["contentType"]
    assert (await send(files, promised, b"12345")).status_code == 410, "its content has come in another way"
    wrong = await upload(files, file, OLD, name="data")
    assert (wrong.status_code, wrong.json()["message"][:6]) == (400, "data: ")
    directory = await files.post("d")
    assert "is a directory" in (await upload(files, directory, OLD)).json()["message"]
    assert (await upload(files, {"id": "0" * 24}, OLD)).status_code == 404
    other = Files(files.server, await files.server.application("other"), *TREES[0])
    assert (await upload(other, file, OLD)).status_code == 404
    files.server.move_clock(Limits().upload_form_s + 1)
    await swept(files.server)
    assert kept(files.server) == 2


async def test_a_refused_upload_stores_nothing(start_server: Any) -> None:
    async with start_server(limits={"application_files_bytes_max": 1000}) as server:
        application = await server.application()
        files = Files(server, application, *TREES[0])
        file = await files.post("a.txt", type="file")
        assert (await upload(files, file, bytes(600))).status_code == 200
        # New content counts beside the old one until it is complete.
        path = f"{files.one}/{file['id']}"
        form = await server.call("PATCH", path, {"fileSize": 500}, status=201)
        assert (await send(files, form, bytes(500))).status_code == 507
        assert (await upload(files, file, bytes(500))).status_code == 507
        assert kept(server) == 1
        wrong = await upload(files, file, bytes(10))
        assert (wrong.status_code, "500 were announced" in wrong.text) == (400, True)
        assert kept(server) == 1
        shown = await files.get(file)
        assert (shown["fileSize"], shown["lastUpdated"]) == (600, form["lastUpdated"])
        await server.call("PATCH", path, {"fileSize": 10}, status=201)
        assert (await upload(files, file, bytes(10))).status_code == 200
        await swept(server)
        assert kept(server) == 1


async def test_a_file_of_more_than_10_mb_goes_by_a_form(private: Files) -> None:
    file = await private.post("large", type="file")
    assert (await upload(private, file, bytes(10 * MB))).status_code == 200
    for size in (10 * MB + 1, 11 * MB):
        refusal = await upload(private, file, bytes(size))
        assert refusal.status_code == 413
        assert "Send a larger file by a form" in refusal.json()["message"]
    assert (await private.get(file))["fileSize"] == 10 * MB


async def test_a_link_to_a_private_file_works_for_as_long_as_asked(private: Files) -> None:
    file = await stored(private, "a.txt", OLD, type="text/plain")
    path = f"{private.one}/{file['id']}"
    assert "url" not in await private.server.call("GET", path, params={"urlTTL": 0})
    assert "url" not in (await private.server.call("GET", private.many, params={"urlTTL": 0}))["items"][0]
    for wrong in ("-1", "604801", "soon"):
        refusal = await private.server.call("GET", path, params={"urlTTL": wrong}, status=400)
        assert refusal["message"].startswith("urlTTL: ")
    short = (await private.server.call("GET", path, params={"urlTTL": 60}))["url"]
    usual = (await private.get(file))["url"]
    private.server.move_clock(61)
    assert (await read(private, short)).status_code == 410
    assert (await read(private, usual)).content == OLD
    private.server.move_clock(840)
    assert (await read(private, usual)).status_code == 410
    assert (await read(private, usual[:-1])).status_code == 403
    moved = await private.move(file, name="b.txt", urlTTL="30")
    assert (
        (await read(private, moved["url"]))
        .headers["content-disposition"]
        .startswith('inline; filename="b.txt"')
    )


async def test_a_public_file_is_read_at_its_path_by_anybody(public: Files) -> None:
    html = b"<script>alert(1)</script>"
    name = "50% übung & co?.html"
    file = await stored(public, f"my pages/{name}", html, type="text/html")
    host = f"{public.server.url}/files/{public.application.rpartition('/')[2]}"
    assert file["url"] == f"{host}/my%20pages/50%25%20%C3%BCbung%20%26%20co%3F.html"
    answer = await read(public, file["url"])
    assert (answer.status_code, answer.content) == (200, html)
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["cache-control"] == "public, max-age=0, must-revalidate"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert (await read(public, file["url"], range="bytes=0-7")).content == html[:8]
    async with public.server.client("") as client:
        head = await client.head(file["url"])
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(html)))
    assert (await read(public, f"{file['url']}?version=2")).content == html
    # What is no complete public file is not found, and all of it in the same way.
    pending = await public.post("pending.txt", type="file", fileSize=3)
    hidden = await stored(Files(public.server, public.application, *TREES[0]), "hidden.txt", OLD)
    answers = [
        await read(public, f"{host}/{path}")
        for path in ("my%20pages", "pending.txt", "hidden.txt", "nothing", "a//b", "..%2f..%2fsecret", "%00")
    ]
    answers.append(await read(public, file["url"].replace(host, f"{public.server.url}/files/{'0' * 24}")))
    assert {each.status_code for each in answers} == {404}
    assert len({each.text for each in answers}) == 1, [each.text for each in answers]
    assert (pending["status"], hidden["status"]) == ("pending", "completed")
    await public.move(file, parentDirectory="/")
    assert (await read(public, file["url"])).status_code == 404
    moved = await public.get(file)
    assert (await read(public, moved["url"])).content == html
    await public.delete(file)
    assert (await read(public, moved["url"])).status_code == 404


async def test_contents_go_with_their_records(server: Server) -> None:
    """Of a file, of a directory, of an application."""
    application = await server.application()
    private = Files(server, application, *TREES[0])
    one = await stored(private, "a.txt", OLD)
    top = await private.post("top")
    for number in range(3):
        await stored(private, f"{number}/f", NEW, "top")
    link = (await private.get(one))["url"]
    assert kept(server) == 4
    await private.delete(one)
    assert (await read(private, link)).status_code == 410, "at once, before the sweep removes the bytes"
    assert (
        await read(private, link, **{"if-none-match": f'"{hashlib.sha256(OLD).hexdigest()}"'})
    ).status_code == 410
    await private.delete(top)
    await private.gone(top)
    await swept(server)
    assert kept(server) == 0
    assert (await read(private, link)).status_code == 410
    assert (await server.call("GET", application))["summary"]["storageStats"] == {"count": 0, "size": 0}
    last = await stored(private, "last", OLD)
    half = await private.post("half", type="file", fileSize=3)
    await server.call("DELETE", application)
    assert (await read(private, last["url"])).status_code == 410
    await swept(server)
    assert kept(server) == 0
    assert (await read(private, last["url"])).status_code == 410
    assert (await send(private, half, b"123")).status_code == 404
    with server.system.store.snapshot() as snapshot:
        assert list(content_problems(KINDS, snapshot, server.system.store.contents)) == []


async def test_the_audit_log_keeps_no_signed_link(server: Server) -> None:
    org, application = await organization(server)
    private = Files(server, application, *TREES[0])
    made = await private.post("a.txt", type="file", fileSize=len(OLD), contentType="text/plain")
    assert (await send(private, made, OLD)).status_code == 200
    file = await private.get(made)
    change = await server.call("PATCH", f"{private.one}/{made['id']}", {"fileSize": 3}, status=201)
    moved = await private.move(file, name="b.txt")
    assert (await upload(private, file, b"123")).status_code == 200
    text = json.dumps(await entries(server, org))
    for operation in ("privateFiles", "patch", "move", "upload"):
        assert operation in text
    for each in (file, change, moved):
        assert urlsplit(each["url"]).query not in text
    for each in (made, change):
        assert each["upload"]["fields"]["signature"] not in text
