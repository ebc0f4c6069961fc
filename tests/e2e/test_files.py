"""Files: names and paths, what a call refuses, and what is shown while a directory is deleted."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.jobs.messages import EndJob
from trunkline.actors.platform.jobs.runner import Jobs

Json = dict[str, Any]

TREES = (("privateFiles", "privateFiles"), ("files", "file"))
"""The paths of a list and of a record."""


class Files:
    """One tree of an application."""

    def __init__(self, server: Server, application: str, many: str, one: str) -> None:
        self.server = server
        self.application = application
        self.many = f"{application}/{many}"
        self.one = f"{application}/{one}"

    async def post(self, name: str, parent: str | None = None, *, status: int = 201, **body: Any) -> Json:
        """Create a directory, or a file if `type` says so."""
        place = {} if parent is None else {"parentDirectory": parent}
        made: Json = await self.server.call(
            "POST", self.many, {"name": name, "type": "directory", **place, **body}, status=status
        )
        return made

    async def move(self, file: Json, *, status: int = 201, **query: str) -> Json:
        moved: Json = await self.server.call(
            "POST", f"{self.one}/{file['id']}/move", params=query, status=status
        )
        return moved

    async def get(self, file: Json, *, status: int = 200) -> Json:
        found: Json = await self.server.call("GET", f"{self.one}/{file['id']}", status=status)
        return found

    async def paths(self, **query: Any) -> list[str]:
        """The paths of the list, sorted by name unless `query` says otherwise."""
        page = await self.server.call("GET", self.many, params={"sortField": "name", **query})
        return [f"{item['parentDirectory'].rstrip('/')}/{item['name']}" for item in page["items"]]

    async def delete(self, file: Json, *, status: int = 200) -> Json:
        answer: Json = await self.server.call("DELETE", f"{self.one}/{file['id']}", status=status)
        return answer

    async def gone(self, file: Json) -> None:
        """Wait until a record is deleted."""
        async with self.server.client() as client:
            with trio.fail_after(PATIENCE_S):
                while (await client.get(f"{self.one}/{file['id']}")).status_code != 404:
                    pass


@pytest.fixture(params=TREES, ids=["private", "public"])
async def files(request: pytest.FixtureRequest, server: Server) -> Files:
    return Files(server, await server.application(), *request.param)


async def test_paths_may_be_written_in_several_ways(files: Files) -> None:
    deep = await files.post("/a/b/", "x/y/")
    assert (deep["parentDirectory"], deep["name"]) == ("/x/y/a/", "b")
    assert (await files.post("top"))["parentDirectory"] == "/"
    assert (await files.post("under the root", "/"))["parentDirectory"] == "/"
    assert await files.paths() == ["/x/y/a", "/x/y/a/b", "/top", "/under the root", "/x", "/x/y"]
    for directory in ("/x/y", "x/y", "x/y/"):
        page = await files.server.call("GET", files.many, params={"directory": directory})
        assert [item["name"] for item in page["items"]] == ["a"]
        assert page["parentExists"] is True
    assert await files.paths(directory="/") == ["/top", "/under the root", "/x"]
    page = await files.server.call("GET", files.many, params={"directory": "/nowhere"})
    assert (page["items"], page["parentExists"]) == ([], False)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"name": ""}, "name: "),
        ({"name": "/"}, "name: is only a slash"),
        ({"name": "a//b"}, "name: has two slashes"),
        ({"name": "//a"}, "name: has two slashes"),
        ({"name": ".."}, "name: '..' is not a valid name"),
        ({"name": "a/../../b"}, "name: '..' is not a valid name"),
        ({"name": "a/."}, "name: '.' is not a valid name"),
        ({"name": "a\x00b"}, "name: 'a\\x00b' has a control character"),
        ({"name": "a\nb"}, "name: 'a\\nb' has a control character"),
        ({"name": "a\u2028b"}, "name: 'a\\u2028b' has a control character"),
        ({"name": "a" * 1025}, "name: "),
        ({"name": "a", "parentDirectory": "../.."}, "parentDirectory: '..' is not a valid name"),
        ({"name": "a", "parentDirectory": "x" * 1025}, "parentDirectory: "),
        (
            {"name": "a", "parentDirectory": "/".join("x" * 65)},
            "parentDirectory: there would be 66 directories",
        ),
        (
            {"name": "y" * 500 + "/a", "parentDirectory": "x" * 600},
            "parentDirectory: the path of the directory",
        ),
        ({"name": "a", "fileSize": 3}, "fileSize: is for files"),
        ({"name": "a", "contentType": "text/plain"}, "contentType: is for files"),
        ({"name": "a", "type": "link"}, "type: "),
        ({"name": "a/", "type": "file"}, "name: ends with a slash"),
        ({"name": "a", "type": "file", "fileSize": -1}, "fileSize: "),
        ({"name": "a", "type": "file", "fileSize": 5_000_000_001}, "fileSize: is 5000000001"),
        ({"name": "a", "type": "file", "contentType": "text/html\r\nX: y"}, "contentType: "),
        ({"name": "a", "type": "file", "contentType": "html"}, "contentType: "),
    ],
)
async def test_a_name_or_a_field_that_cannot_be_is_refused(server: Server, body: Json, sentence: str) -> None:
    files = Files(server, await server.application(), *TREES[0])
    refusal = await server.call("POST", files.many, {"type": "directory", **body}, status=400)
    assert refusal["type"] == "Validation"
    assert refusal["message"].startswith(sentence), refusal["message"]
    assert await files.paths() == []


async def test_names_are_compared_exactly_and_in_one_normal_form(files: Files) -> None:
    composed, decomposed = (unicodedata.normalize(form, "Übung") for form in ("NFC", "NFD"))
    assert composed != decomposed
    assert (await files.post(decomposed))["name"] == composed
    assert "exists" in (await files.post(composed, status=400))["message"]
    await files.post("a")
    await files.post("A")
    assert sorted(await files.paths()) == ["/A", "/a", f"/{composed}"]
    assert len(await files.paths(directory=decomposed)) == 0
    await files.post("\U0001f600 <b>\"'&%2F..;.html", composed)
    assert await files.paths(directory=decomposed) == [f"/{composed}/\U0001f600 <b>\"'&%2F..;.html"]


async def test_what_exists_is_not_replaced(files: Files) -> None:
    file = await files.post("plan.txt", "/drawings", type="file")
    for body in ({"type": "file"}, {"type": "directory"}):
        refusal = await files.post("plan.txt", "/drawings", status=400, **body)
        assert refusal["message"].startswith(f"name: /drawings/plan.txt exists, with the id {file['id']}")
    assert "plan.txt is a file" in (await files.post("x", "/drawings/plan.txt", status=400))["message"]
    other = await files.post("other.txt", type="file")
    refusal = await files.move(other, name="plan.txt", parentDirectory="/drawings", status=400)
    assert refusal["message"].startswith("name: /drawings/plan.txt exists")
    assert await files.paths() == ["/drawings", "/other.txt", "/drawings/plan.txt"]


async def test_a_directory_is_moved_at_once_with_all_that_is_in_it(files: Files) -> None:
    top = await files.post("a")
    inner = await files.post("b/c", "a")
    file = await files.post("f.txt", "a/b/c", type="file")
    moved = await files.move(top, parentDirectory="x/y", name="new")
    assert (moved["id"], moved["parentDirectory"], moved["name"]) == (top["id"], "/x/y/", "new")
    assert (await files.get(file))["parentDirectory"] == "/x/y/new/b/c/"
    assert (await files.get(inner))["parentDirectory"] == "/x/y/new/b/"
    assert await files.paths(directory="/a") == []
    assert "into itself" in (await files.move(moved, parentDirectory="/x/y/new/b", status=400))["message"]
    assert "into itself" in (await files.move(moved, name="new/deeper", status=400))["message"]
    assert (await files.move(file, parentDirectory="/"))["parentDirectory"] == "/"
    again = await files.move(file)
    assert again["_etag"] == (await files.get(file))["_etag"]
    # Nothing in a directory may come to lie deeper than it could have been created.
    deep = await files.post("/".join("d" * 63))
    assert (
        "65 directories"
        in (await files.move(moved, parentDirectory="/".join("d" * 62), status=400))["message"]
    )
    await files.move(moved, parentDirectory="/".join("d" * 61))
    assert (await files.get(inner))["parentDirectory"] == "/" + "/".join("d" * 61) + "/new/b/"
    assert len((await files.get(deep))["parentDirectory"]) == 2 * 62 + 1


async def test_a_directory_is_deleted_by_a_job_that_the_log_shows(files: Files) -> None:
    top = await files.post("a")
    inner = await files.post("b/c", "a")
    await files.post("f.txt", "a/b", type="file")
    kept = await files.post("kept")
    assert await files.delete(top) == {"success": True}
    await files.gone(top)
    assert await files.paths() == ["/kept"]
    await files.get(inner, status=404)
    (log,) = (await files.server.call("GET", f"{files.application}/jobLogs"))["items"]
    log = await ended(files.server, files.application, log["id"])
    assert log["name"] == f"{'privateFile' if 'private' in files.many else 'file'}.delete"
    assert (log["status"], log["output"], log["input"]["path"]) == ("completed", {"removed": 4}, "a")
    assert "told" not in log["output"]
    assert await files.delete(kept) == {"success": True}
    await files.delete(top, status=404)


async def test_nothing_changes_in_a_directory_that_is_being_deleted(server: Server) -> None:
    """The job cannot begin, because the server has no place for one."""
    files = Files(server, await server.application(), *TREES[0])
    top = await files.post("a")
    inner = await files.post("b", "a")
    file = await files.post("f.txt", "a/b", type="file")
    await server.system.component(Jobs).stop()
    await files.delete(top)
    await files.delete(top)  # it is queued already
    assert (await server.call("GET", f"{files.application}/jobLogs"))["totalCount"] == 1
    for each in (top, inner, file):
        assert (await files.get(each))["status"] == "deleting"
    assert sorted(await files.paths()) == ["/a", "/a/b", "/a/b/f.txt"]
    assert await files.paths(status="completed") == []
    assert await files.paths(status="pending") == []
    page = await server.call("GET", files.many, params={"directory": "a"})
    assert page["parentExists"] is False
    assert "is being deleted" in (await files.post("x", "a/b", status=400))["message"]
    assert "is being deleted" in (await files.post("a", status=400))["message"]
    assert "is being deleted" in (await files.move(inner, parentDirectory="/", status=400))["message"]
    kept = await files.post("kept")
    assert "is being deleted" in (await files.move(kept, parentDirectory="a", status=400))["message"]
    path = f"{files.one}/{file['id']}"
    assert "is being deleted" in (await server.call("PATCH", path, {"fileSize": 1}, status=400))["message"]
    assert "is being deleted" in (await server.call("DELETE", path, status=400))["message"]
    # When its job was given up, the directory can be deleted again.
    (log,) = (await server.call("GET", f"{files.application}/jobLogs"))["items"]
    owner = Ref("application", ROOT, bytes.fromhex(top["applicationId"]))
    end = EndJob(id=bytes.fromhex(log["id"]), status="failed", completed=0, total=None)
    await server.system.ask(owner, end)
    await files.delete(top)
    assert (await server.call("GET", f"{files.application}/jobLogs"))["totalCount"] == 2


async def test_lists_keep_what_they_are_asked_for(files: Files) -> None:
    await files.post("pictures")
    for name in ("a.txt", "B.txt", "c.png"):
        await files.post(name, "docs", type="file")
    assert await files.paths(type="directory") == ["/docs", "/pictures"]
    assert await files.paths(type="file", directory="docs") == ["/docs/a.txt", "/docs/B.txt", "/docs/c.png"]
    assert await files.paths(type="directory", directory="docs") == []
    assert await files.paths(status="pending") == ["/docs/a.txt", "/docs/B.txt", "/docs/c.png"]
    assert await files.paths(status="completed") == ["/docs", "/pictures"]
    assert await files.paths(filterField="name", filter="b*", directory="/docs") == ["/docs/B.txt"]
    assert await files.paths(filterField="name", filter="*.TXT") == ["/docs/a.txt", "/docs/B.txt"]


async def test_an_entity_tag_guards_each_change(files: Files) -> None:
    file = await files.post("a.txt", type="file")
    path, wrong = f"{files.one}/{file['id']}", {"If-Match": '"0123456789abcdef"'}
    right = {"If-Match": f'"{file["_etag"]}"'}
    directory = await files.post("d")
    async with files.server.client() as client:
        for headers, status in ((wrong, 412), (right, 201)):
            change = await client.patch(path, json={"contentType": "text/plain"}, headers=headers)
            assert change.status_code == status
        assert (await client.post(f"{path}/move?name=b.txt", headers=wrong)).status_code == 412
        assert (await client.delete(path, headers=wrong)).status_code == 412
        assert (await client.delete(f"{files.one}/{directory['id']}", headers=wrong)).status_code == 412
    assert await files.paths() == ["/a.txt", "/d"]


async def test_a_record_says_who_made_it(files: Files) -> None:
    me = await files.server.call("GET", "/me")
    made = await files.post("a/b")
    assert (made["authorType"], made["authorId"]) == ("user", me["id"])
    token = await files.server.call(
        "POST", f"{files.application}/tokens", {"name": "t", "scope": ["all.Application"]}
    )
    made = await files.server.call(
        "POST", files.many, {"name": "c", "type": "directory"}, token=token["token"], status=201
    )
    assert (made["authorType"], made["authorId"]) == ("apiToken", token["id"])
