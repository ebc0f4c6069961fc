"""What belongs to an application as a whole: its globals, its readme, its search, and the log of its imports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Server
from trunkline.actors.catalogue import KINDS
from trunkline.actors.platform.applications.search import list_operation
from trunkline.http.routes import TABLE

StartServer = Callable[..., Any]


# Globals.


async def test_globals_change_one_by_one(server: Server) -> None:
    path = await server.application()
    first = [{"key": "floor", "json": "1", "description": "d"}, {"key": "roof", "json": "2"}]
    made = await server.call("PATCH", f"{path}/globals", first)
    assert [each["key"] for each in made["globals"]] == ["floor", "roof"]
    changes = [
        {"key": "floor", "json": "7"},
        {"key": "roof", "json": None},
        {"key": "cellar", "json": "3", "cloudOnly": True},
        {"key": "never", "json": None},
    ]
    changed = await server.call("PATCH", f"{path}/globals", changes)
    wanted = [
        {"key": "floor", "json": "7", "description": "d"},
        {"key": "cellar", "json": "3", "cloudOnly": True},
    ]
    assert changed["globals"] == wanted
    assert (await server.call("GET", path))["globals"] == wanted
    for body, reason in (
        ([{"key": "floor", "json": "8"}, {"key": "attic"}], "globals: there is no global attic yet"),
        ([{"key": "a b", "json": "1"}], "[0].key"),
        ([{"json": "1"}], "[0].key: is missing"),
        ([{"key": "a", "json": "on"}], "[0].json: is not JSON text"),
        (
            [{"key": "floor", "json": "8"}, {"key": "floor", "json": None}],
            "globals: the key floor appears twice in the list.",
        ),
        ([{"key": f"k{number}", "json": "1"} for number in range(100)], "globals: there would be 102"),
        ({"key": "a", "json": "1"}, "The body: is an object; give an array of at most 100 items"),
    ):
        refusal = await server.call("PATCH", f"{path}/globals", body, status=400)
        assert refusal["message"].startswith(reason), refusal
    assert (await server.call("GET", path))["globals"] == wanted


# The readme.


async def test_a_readme_is_written_and_guarded_by_its_revision(server: Server) -> None:
    path = f"{await server.application()}/readme"
    before = await server.call("GET", path)
    assert (before["content"], "lastUpdated" in before) == ("", False)
    text = "# Räume\n" + "x" * 131_064
    written = await server.call("PATCH", path, {"content": text})
    assert (written["content"], written["lastUpdatedByType"]) == (text, "user")
    assert written == await server.call("GET", path)
    assert await server.call("PATCH", path, {}) == written
    guard = {"If-Match": written["_etag"]}
    again = await server.call("PATCH", path, {"content": ""}, headers=guard)
    assert again["content"] == ""
    assert again["lastUpdated"] > written["lastUpdated"]
    await server.call("PATCH", path, {"content": "late"}, headers=guard, status=412)
    long = await server.call("PATCH", path, {"content": text + "x"}, status=400)
    assert long["message"].startswith("content: has 131073 characters")
    assert (await server.call("GET", path))["content"] == ""


# The search.


async def names(server: Server, application: str, filter: str) -> list[tuple[str, str]]:
    found = await server.call("GET", f"{application}/search", params={"filter": filter})
    return [(each["_type"], each["name"]) for each in found]


async def test_a_search_finds_records_of_all_kinds_by_name(server: Server) -> None:
    application = await server.application()
    other = await server.application("another")
    for path, body in (
        ("devices", {"name": "Pump north", "deviceClass": "gateway"}),
        ("devices", {"name": "pump south"}),
        ("devices", {"name": "valve"}),
        ("data-tables", {"name": "pumps"}),
        ("flows", {"name": "start pump", "flowClass": "edge"}),
        ("experience/endpoints", {"route": "/pumps/{id}", "method": "get"}),
        ("experience/users", {"email": "pump@example.com", "password": "long-Enough-1"}),
        ("experience/versions", {"version": "pump-2"}),
        ("experience/views", {"name": "pump", "viewType": "page"}),
        ("events", {"subject": "The PUMP is loud", "level": "info"}),
        ("dashboards", {"name": "all pumps"}),
        ("webhooks", {"name": "x" * 240 + "pump"}),
        ("tokens", {"name": "for the pump"}),
        ("keys", {"name": "pump"}),
    ):
        made = await server.call("POST", f"{application}/{path}", body)
        await server.call("POST", f"{other}/{path}", body)
    found = await names(server, application, "pump")
    assert sorted(found) == [
        ("applicationApiToken", "for the pump"),
        ("dashboard", "all pumps"),
        ("dataTable", "pumps"),
        ("device", "Pump north"),
        ("device", "pump south"),
        ("event", "The PUMP is loud"),
        ("experienceEndpoint", "/pumps/{id}"),
        ("experienceUser", "pump@example.com"),
        ("experienceVersion", "pump-2"),
        ("experienceView", "pump"),
        ("flow", "start pump"),
        ("webhook", "x" * 240 + "pump"),
    ]
    assert await names(server, application, "Pump*") == [
        each for each in found if each[1].lower().startswith("pump")
    ]
    assert await names(server, application, "*loud") == [("event", "The PUMP is loud")]
    assert await names(server, application, "nothing") == []
    assert made, "the key, which no search finds"
    (gateway,) = await server.call("GET", f"{application}/search", params={"filter": "north"})
    assert gateway["deviceClass"] == "gateway"
    assert await names(server, application, gateway["id"].upper()) == [("device", "Pump north")]
    await server.call("DELETE", f"{application}/devices/{gateway['id']}")
    assert await names(server, application, "north") == []
    for query in ("", "?filter="):
        refusal = await server.call("GET", f"{application}/search{query}", status=400)
        assert refusal["message"].startswith("filter: is missing")


def test_the_kinds_that_no_search_finds_are_known() -> None:
    """A kind that people look for by a name says in `title` which field has it."""
    nameless = {
        kind.name
        for kind in KINDS.values()
        if kind.title is None and kind.indexes and kind.home == "application"
    }
    assert nameless == {
        "applicationCertificate",
        "applicationCertificateAuthority",
        "applicationKey",
        "deletedDevice",
        "edgeDeployment",
        "experienceEndpointCopy",
        "experienceViewCopy",
        "flowVersion",
    }


def test_each_kind_that_a_search_finds_is_listed_by_an_operation() -> None:
    """A token finds records of the kinds that it may list, so the scope must be one that there is."""
    found = {
        list_operation(kind) for kind in KINDS.values() if kind.title is not None and kind.home != "root"
    }
    listing = {route.operation for route in TABLE.routes if route.area == "application"}
    assert found <= listing


@pytest.mark.parametrize(("limit", "bound"), [("search_results_max", 3), ("search_names_max", 3)])
async def test_a_search_ends_at_its_bounds(start_server: StartServer, limit: str, bound: int) -> None:
    async with start_server(limits={limit: bound}) as server:
        application = await server.application()
        for number in range(5):
            await server.call("POST", f"{application}/devices", {"name": f"pump {number}"})
        await server.call("POST", f"{application}/dashboards", {"name": "pump"})
        found = await names(server, application, "pump")
        assert found[:3] == [("device", f"pump {number}") for number in range(3)]
        assert len(found) == (4 if limit == "search_results_max" else 3)


# The log of imports.


async def test_no_import_has_been_made(server: Server) -> None:
    path = f"{await server.application()}/importLogs"
    assert await server.call("GET", path) == []
    assert await server.call("GET", f"{path}?limit=10&since=-3600000") == []
    for query in ("limit=0", "limit=1001", "since=yesterday"):
        refusal = await server.call("GET", f"{path}?{query}", status=400)
        assert refusal["message"].startswith(query.partition("=")[0])
