"""Applications: making, finding, changing and deleting them, and the forms that every record has."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Server
from tests.e2e.rows import ROWS, path_of, send
from trunkline.actors.catalogue import COUNTED
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.platform.applications.notebook_minutes import NO_RUNS

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
HEX24 = "a" * 24
NOTHING = {**dict.fromkeys(COUNTED, 0), "notebookStats": NO_RUNS, "storageStats": {"count": 0, "size": 0}}
"""The summary of a new application."""


async def test_an_application_is_made_found_changed_and_deleted(server: Server) -> None:
    body = {
        "name": "house",
        "description": "all of it",
        "endpointSlug": "the-house-1",
        "endpointDefaultCors": True,
        "globals": [{"key": "floor", "json": "1"}, {"key": "roof", "json": '{"a":2}', "cloudOnly": True}],
        "blobUrlTTL": 3600,
        "expUserTokenCutoff": "2024-05-01T12:00:00Z",
    }
    made = await server.call("POST", "/applications", body, status=201)
    path = f"/applications/{made['id']}"
    assert made == await server.call("GET", path)
    assert {name: made[name] for name in body if name not in ("globals", "expUserTokenCutoff")} == {
        name: value for name, value in body.items() if name not in ("globals", "expUserTokenCutoff")
    }
    assert made["expUserTokenCutoff"] == "2024-05-01T12:00:00.000Z"
    assert [each["key"] for each in made["globals"]] == ["floor", "roof"]
    assert made["id"] == made["applicationId"]
    assert (made["_type"], made["ownerType"]) == ("application", "user")
    assert ISO.fullmatch(made["creationDate"])
    assert made["_links"]["self"] == {"href": path}
    assert made["summary"] == NOTHING

    changed = await server.call("PATCH", path, {"name": "home", "globals": []}, status=200)
    assert (changed["name"], changed["globals"], changed["description"]) == ("home", [], "all of it")
    assert changed["_etag"] != made["_etag"]
    assert changed["creationDate"] == made["creationDate"]
    assert changed["lastUpdated"] > made["lastUpdated"]

    assert await server.call("DELETE", path, status=200) == {"success": True}
    await server.call("GET", path, status=404)
    await server.call("PATCH", path, {"name": "x"}, status=404)
    await server.call("DELETE", path, status=404)


async def test_the_summary_counts_what_is_asked_for(server: Server) -> None:
    application = await server.application()
    await server.device(application)
    await server.call("POST", f"{application}/keys", {})
    await server.call("POST", f"{application}/tokens", {"name": "t"})
    whole: dict[str, Any] = NOTHING | {"apiTokenCount": 1, "deviceCount": 1, "keyCount": 1}
    for query, fields in (
        ("", whole.keys()),
        ("?summaryInclude=deviceCount,keyCount", {"deviceCount", "keyCount"}),
        ("?summaryExclude=deviceCount", NOTHING.keys() - {"deviceCount"}),
        ("?summaryInclude=deviceCount,keyCount&summaryExclude=keyCount", {"deviceCount"}),
        ("?summaryInclude=payloadCount", set()),
    ):
        found = await server.call("GET", f"{application}{query}")
        assert found["summary"] == {name: whole[name] for name in fields}
        (listed,) = (await server.call("GET", f"/applications{query}"))["items"]
        assert listed["summary"] == found["summary"]


async def test_a_body_that_does_not_fit_is_400_with_the_field(server: Server) -> None:
    application = await server.application()
    await server.call("POST", "/applications", {"name": "taken", "endpointSlug": "taken"})
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"name": ""}, "name: "),
        ({"name": "x" * 256}, "name: "),
        ({"name": None}, "name: "),
        ({"name": 5}, "name: "),
        ({"colour": "red"}, "colour: there is no such field"),
        ({"description": "x" * 1025}, "description: "),
        ({"endpointSlug": "Upper"}, "endpointSlug: "),
        ({"endpointSlug": "ab"}, "endpointSlug: "),
        ({"endpointSlug": "abc\n"}, "endpointSlug: "),
        ({"endpointSlug": "taken"}, "endpointSlug: taken is taken"),
        ({"blobUrlTTL": 60}, "blobUrlTTL: "),
        ({"expUserTokenCutoff": "yesterday"}, "expUserTokenCutoff: "),
        (
            {"expUserTokenCutoff": "2099-01-01T00:00:00Z"},
            "expUserTokenCutoff: 2099-01-01T00:00:00.000Z lies ahead of the server's ",
        ),
        ({"globals": [{"key": "a b", "json": "1"}]}, "globals[0].key: "),
        ({"globals": [{"key": "a", "json": "1"}, {"key": "a", "json": "2"}]}, "globals: the key a "),
        ({"globals": [{"key": "a", "json": "1", "x": 1}]}, "globals[0].x: there is no such field"),
        ({"globals": [{"key": "a", "json": "on"}]}, "globals[0].json: is not JSON text"),
    ]
    only_at_creation: list[tuple[dict[str, Any], str]] = [
        ({}, "name: is missing"),
        ({"orgId": HEX24}, "orgId: there is no organization"),
        ({"applicationTemplateId": HEX24}, "applicationTemplateId: there is no application template"),
    ]
    for body, sentence in bodies:
        for method, path in (("POST", "/applications"), ("PATCH", application)):
            answer = await server.call(method, path, {"name": "house", **body}, status=400)
            assert answer["message"].startswith(sentence), (body, answer)
    for body, sentence in only_at_creation:
        name = {} if sentence.startswith("name") else {"name": "house"}
        answer = await server.call("POST", "/applications", name | body, status=400)
        assert answer["message"].startswith(sentence), (body, answer)
    answer = await server.call("PATCH", application, {"orgId": HEX24}, status=400)
    assert answer["message"].startswith("orgId: ")
    # A refused change left nothing behind.
    found = await server.call("GET", application)
    assert "endpointSlug" not in found
    assert (await server.call("GET", "/applications"))["totalCount"] == 2


async def test_a_slug_is_free_again_when_it_is_given_up(server: Server) -> None:
    application = await server.application()
    for slug in ("first", "second", "second", "first"):
        await server.call("PATCH", application, {"endpointSlug": slug}, status=200)
    await server.call("POST", "/applications", {"name": "b", "endpointSlug": "second"}, status=201)
    await server.call("POST", "/applications", {"name": "c", "endpointSlug": "first"}, status=400)
    await server.call("DELETE", application)
    await server.call("POST", "/applications", {"name": "c", "endpointSlug": "first"}, status=201)


async def names(server: Server, query: str) -> list[str]:
    """The names on a page of applications."""
    return [each["name"] for each in (await server.call("GET", f"/applications{query}"))["items"]]


async def test_the_list_pages_sorts_and_filters(server: Server) -> None:
    made = [
        await server.call("POST", "/applications", {"name": name})
        for name in ("pump", "Lamp", "door*", "lamp")
    ]
    whole = await server.call("GET", "/applications")
    assert {name: whole[name] for name in ("count", "totalCount", "page", "perPage")} == {
        "count": 4,
        "totalCount": 4,
        "page": 0,
        "perPage": 100,
    }
    assert (whole["sortField"], whole["sortDirection"], whole["_type"]) == ("name", "asc", "applications")
    assert whole["items"] == [
        await server.call("GET", f"/applications/{each['id']}") for each in whole["items"]
    ]
    assert await names(server, "") == ["door*", "Lamp", "lamp", "pump"]
    assert await names(server, "?sortDirection=desc") == ["pump", "lamp", "Lamp", "door*"]
    for field in ("creationDate", "id", "ownerId"):
        assert await names(server, f"?sortField={field}") == ["pump", "Lamp", "door*", "lamp"]
    await server.call("PATCH", f"/applications/{made[0]['id']}", {"description": "x"})
    assert (await names(server, "?sortField=lastUpdated"))[-1] == "pump"
    assert await names(server, "?perPage=3&page=1") == ["pump"]
    assert await names(server, "?perPage=3&page=9") == []
    page = await server.call("GET", "/applications?perPage=1&page=2")
    assert (page["count"], page["totalCount"], page["page"], page["perPage"]) == (1, 4, 2, 1)
    for filter_text, found in (
        ("lamp", ["Lamp", "lamp"]),
        ("LA*", ["Lamp", "lamp"]),
        ("*p", ["Lamp", "lamp", "pump"]),
        ("*um*", ["pump"]),
        ("door*", ["door*"]),
        ("amp", []),
        ("%20", ["door*", "Lamp", "lamp", "pump"]),
        ("", ["door*", "Lamp", "lamp", "pump"]),
    ):
        assert await names(server, f"?filterField=name&filter={filter_text}") == found, filter_text
    filtered = await server.call("GET", "/applications?filterField=name&filter=la*&perPage=1")
    assert (filtered["totalCount"], filtered["filterField"], filtered["filter"]) == (2, "name", "la*")


async def test_a_list_refuses_what_it_does_not_know(server: Server) -> None:
    for query, sentence in (
        ("sortField=colour", "sortField: "),
        ("sortDirection=up", "sortDirection: "),
        ("filterField=description", "filterField: "),
        ("page=-1", "page: "),
        ("page=one", "page: "),
        ("perPage=0", "perPage: "),
        ("perPage=1001", "perPage: "),
        ("perPage=1.5", "perPage: "),
        (f"orgId={HEX24}", "orgId: you belong to no organization"),
        ("orgId=x", "orgId: "),
        ("offset=3", "offset: there is no such field"),
        ("filter=%FF", "The query string"),
    ):
        answer = await server.call("GET", f"/applications?{query}", status=400)
        assert answer["message"].startswith(sentence), (query, answer)
    # A blank parameter is an absent one.
    await server.call("GET", "/applications?filterField=&filter=&orgId=&sortField=", status=200)


# The forms that every record has.


async def records_of(server: Server) -> list[str]:
    """The path of one record of every kind that this file is about."""
    application = await server.application()
    key = await server.call("POST", f"{application}/keys", {})
    token = await server.call("POST", f"{application}/tokens", {"name": "t"})
    mine = await server.call("POST", "/me/tokens", {"name": "t"})
    return [
        application,
        f"{application}/keys/{key['id']}",
        f"{application}/tokens/{token['id']}",
        f"/me/tokens/{mine['id']}",
        "/me",
    ]


async def test_if_match_guards_a_change(server: Server) -> None:
    for path in await records_of(server):
        etag = (await server.call("GET", path))["_etag"]
        field = "firstName" if path == "/me" else "description"
        stale = f'"{"0" * 16}"'
        for method, body in (("PATCH", {field: "x"}), ("DELETE", None)):
            if (method, path) != ("DELETE", "/me"):
                answer = await server.call(method, path, body, status=412, headers={"If-Match": stale})
                assert answer["type"] == "PreconditionFailed"
                assert etag in answer["message"]
        for match in (f'"{etag}"', "*"):
            changed = await server.call("PATCH", path, {field: match}, headers={"If-Match": match})
            assert changed[field] == match
            assert changed["_etag"] != etag
        await server.call("PATCH", path, {field: "y"}, status=412, headers={"If-Match": f'"{etag}"'})
        now = (await server.call("GET", path))["_etag"]
        await server.call("PATCH", path, {}, headers={"If-Match": f'"{etag}", W/"{now}"'})


async def test_if_none_match_spares_the_body(server: Server) -> None:
    async with server.client() as client:
        for path in await records_of(server):
            first = await client.get(path)
            etag = first.headers["etag"]
            assert etag.startswith(f'"{first.json()["_etag"]}-')
            for match in (etag, f"W/{etag}", f'"x", {etag}', "*"):
                again = await client.get(path, headers={"If-None-Match": match})
                assert (again.status_code, again.content) == (304, b""), match
                assert again.headers["etag"] == etag
            assert (await client.get(path, headers={"If-None-Match": '"x"'})).status_code == 200
            field = "firstName" if path == "/me" else "description"
            await client.patch(path, json={field: "z"})
            assert (await client.get(path, headers={"If-None-Match": etag})).status_code == 200


async def test_an_entity_tag_covers_the_counts_of_a_summary(server: Server) -> None:
    application = await server.application()
    async with server.client() as client:
        for path in (application, "/me"):
            first = await client.get(path)
            await server.device(application)
            tag = {"If-None-Match": first.headers["etag"]}
            second = await client.get(path, headers=tag)
            assert second.status_code == 200
            assert second.json()["summary"]["deviceCount"] == first.json()["summary"]["deviceCount"] + 1
            assert second.json()["_etag"] == first.json()["_etag"]
            # The record itself is unchanged, so the tag still guards a change of it.
            field = "firstName" if path == "/me" else "description"
            guarded = await client.patch(path, json={field: "x"}, headers={"If-Match": tag["If-None-Match"]})
            assert guarded.status_code == 200


async def test_links_are_there_unless_they_are_not_wanted(server: Server) -> None:
    async with server.client() as client:
        for path in await records_of(server):
            record = (await client.get(path)).json()
            assert record["_links"]["self"] == {"href": path}
            for parent in record["_links"].values():
                assert (await client.get(parent["href"])).status_code == 200
            assert "_links" not in (await client.get(f"{path}?_links=false")).json()
            patched = await client.patch(f"{path}?_links=false", json={})
            assert "_links" not in patched.json()
        listed = (await client.get("/applications?_links=false")).json()
        assert "_links" not in listed
        assert all("_links" not in item for item in listed["items"])
        made = await client.post("/applications?_links=false", json={"name": "x"})
        assert "_links" not in made.json()


async def test_a_patch_without_a_change_is_no_error(server: Server) -> None:
    for path in await records_of(server):
        before = await server.call("GET", path)
        after = await server.call("PATCH", path, {}, status=200)
        kept = before.keys() - {"_etag", "lastUpdated", "lastUpdatedById", "lastUpdatedByType"}
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


# Deleting.


async def test_a_deleted_application_hides_all_that_was_in_it(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
    key = await server.call("POST", f"{application}/keys", {})
    token = await server.call("POST", f"{application}/tokens", {"name": "t"})
    device_token, _ = await server.device_token(device)
    kept = await server.application("kept")
    ids = (application.rpartition("/")[2], device.rpartition("/")[2])
    actor = Ref("device", *map(bytes.fromhex, ids))
    assert server.system.statistics(actor) is not None
    await server.call("DELETE", application, token=token["token"], status=200)
    assert server.system.statistics(actor) is None

    async with server.client() as client:
        for route in ROWS:
            if "{applicationId}" in route.path:
                assert (await send(client, route, path_of(route, *ids))).status_code == 404, route.operation
    assert [each["id"] for each in (await server.call("GET", "/applications"))["items"]] == [
        kept.rpartition("/")[2]
    ]
    summary = (await server.call("GET", "/me"))["summary"]
    assert (summary["appCount"], summary["deviceCount"], summary["keyCount"]) == (1, 0, 0)
    for bearer in (token["token"], device_token):
        await server.call("GET", device, token=bearer, status=401)
    credentials = {"deviceId": ids[1], "key": key["key"], "secret": key["secret"]}
    await server.call("POST", "/auth/device", credentials, token="", status=401)


# Counts.


async def test_counts_say_what_happened(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    await server.device(application, "second")
    await server.call("DELETE", device)
    for path in (application, "/me"):
        days = (await server.call("GET", f"{path}/deviceCounts"))["counts"]
        assert len(days) == 31
        assert (days[-1]["created"], days[-1]["deleted"], days[-1]["total"]) == (2, 1, 1)
        assert all(day["total"] == 0 for day in days[:-1])
        one = await server.call("GET", f"{path}/deviceCounts?start=-1000")
        assert len(one["counts"]) in (1, 2)
        for query in ("start=x", "start=0&end=-400000000000", "start=1&end=0"):
            async with server.client() as client:
                response: httpx.Response = await client.get(f"{path}/deviceCounts?{query}")
            assert response.status_code in (200, 400)
        answer = await server.call("GET", f"{path}/deviceCounts?start=1", status=400)
        assert answer["message"].startswith("start: ")
    answer = await server.call("GET", f"{application}/payloadCounts?asBytes=true", status=400)
    assert answer["message"].startswith("asBytes: ")
    assert (await server.call("GET", f"{application}/payloadCounts"))["deviceCreate"] == {"total": 2}


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "HEAD"])
async def test_other_methods_are_405_and_head_is_a_get(server: Server, method: str) -> None:
    application = await server.application()
    async with server.client() as client:
        response = await client.request(method, application)
    if method == "HEAD":
        assert (response.status_code, response.content) == (200, b"")
    else:
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) >= {"DELETE", "GET", "HEAD", "PATCH"}
