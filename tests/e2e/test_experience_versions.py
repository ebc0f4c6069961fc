"""The views and versions of an experience: what a version keeps, and which records hold each other."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Server
from tests.e2e.experiences import NO_ID, Experience, Json, new_experience


@pytest.fixture
async def exp(server: Server) -> Experience:
    return await new_experience(server)


# Views.


async def test_a_page_has_a_layout_that_stays_while_it_is_used(exp: Experience) -> None:
    layout = await exp.make("views", name="main", viewType="layout", body="<main>{{ page }}</main>")
    page = await exp.make(
        "views",
        name="main",
        viewType="page",
        layoutId=layout["id"].upper(),
        headers={"content-type": "text/html"},
    )
    each = f"views/{page['id']}"
    assert (page["layoutId"], page["layoutName"], page["body"]) == (layout["id"], "main", "")
    assert page["headers"] == {"content-type": "text/html"}
    assert await exp.ids("views?viewType=page") == [page["id"]]
    assert "1 pages have this layout" in await exp.refused("DELETE", f"views/{layout['id']}")
    for method, place, body, field in (
        ("POST", "views", {"name": "main", "viewType": "page"}, "name: "),
        (
            "POST",
            "views",
            {"name": "c", "viewType": "component", "layoutId": layout["id"]},
            "layoutId: a component",
        ),
        ("POST", "views", {"name": "c", "viewType": "page", "layoutId": page["id"]}, "layoutId: "),
        ("PATCH", each, {"layoutId": NO_ID}, "layoutId: "),
        ("PATCH", each, {"viewType": "layout"}, "viewType: "),
    ):
        assert (await exp.refused(method, place, body)).startswith(field), body
    endpoint = await exp.make(
        "endpoints",
        route="/",
        method="get",
        staticReply={"type": "page", "value": page["id"], "statusCode": 200},
    )
    assert endpoint["staticReply"] == {"type": "page", "value": page["id"], "statusCode": 200}
    for value in (layout["id"], "main", NO_ID):
        body = {"unauthorizedReply": {"type": "page", "value": value}}
        said = await exp.refused("PATCH", f"endpoints/{endpoint['id']}", body)
        assert said.startswith("unauthorizedReply.value: "), value
    assert endpoint["id"] in await exp.refused("DELETE", each)
    free = await exp.patch(each, layoutId=None)
    assert free.keys().isdisjoint({"layoutId", "layoutName"})
    await exp.delete(f"views/{layout['id']}")
    await exp.patch(f"endpoints/{endpoint['id']}", staticReply={"type": "redirect", "value": "/{{path}}"})
    await exp.delete(each)


# Versions.


async def test_a_version_keeps_the_endpoints_and_views_of_its_day(exp: Experience) -> None:
    group = await exp.make("groups", name="g")
    page = await exp.make("views", name="home", viewType="page", body="old")
    reply = {"type": "page", "value": page["id"]}
    kept = await exp.make(
        "endpoints", route="/a", method="get", staticReply=reply, experienceGroupIds=[group["id"]]
    )
    later = await exp.make("endpoints", route="/b", method="get")
    await exp.patch("versions/develop", globals=[{"key": "unit", "json": '"C"'}], notFoundReply=reply)
    made = await exp.make("versions", version="v1.0 first", description="d")
    assert made["globals"] == [{"key": "unit", "json": '"C"'}]
    assert made["notFoundReply"] == reply
    await exp.patch(f"views/{page['id']}", body="new", name="start")
    await exp.patch(f"endpoints/{kept['id']}", route="/changed")
    await exp.patch(f"groups/{group['id']}", experienceEndpointIds=[later["id"]])
    await exp.delete(f"endpoints/{later['id']}")
    named = "?version=v1.0 first"
    then = await exp.get(f"endpoints{named}")
    assert [each["route"] for each in then["items"]] == ["/a", "/b"]
    assert (then["totalCount"], then["items"][0]["id"]) == (2, kept["id"])
    assert then["items"][0]["experienceGroups"] == [{"id": group["id"], "name": "g"}]
    assert (await exp.get(f"views/{page['id']}{named}"))["body"] == "old"
    assert (await exp.get(f"views/{page['id']}?version={made['id']}"))["name"] == "home"
    assert await exp.ids(f"views{named}&viewType=page&sortField=id") == [page["id"]]
    assert (await exp.get(f"endpoints/{later['id']}{named}"))["route"] == "/b"
    assert await exp.refused("GET", f"endpoints/{later['id']}", status=404)
    assert (
        await exp.refused("GET", "endpoints?version=v2", status=404)
        == "There is no experience version v2 here."
    )
    # The version takes the content of develop, and develop gets that of another version back.
    second = await exp.make("versions", version="v2")
    back = await exp.patch("versions/develop", sourceVersionIdOrName="v1.0 first")
    assert back["version"] == "develop"
    assert [each["route"] for each in (await exp.get("endpoints"))["items"]] == ["/a", "/b"]
    assert (await exp.get(f"views/{page['id']}"))["name"] == "home"
    assert (await exp.get(f"groups/{group['id']}"))["experienceEndpointIds"] == [kept["id"]]
    assert await exp.ids("endpoints?version=v2") == [kept["id"]]
    await exp.patch(f"versions/{second['id']}", sourceVersionIdOrName="develop")
    assert await exp.ids("endpoints?version=v2") == [kept["id"], later["id"]]
    await exp.delete("versions/v1.0%20first")
    await exp.refused("GET", f"versions/{made['id']}", status=404)
    await exp.refused("GET", f"endpoints{named}", status=404)
    assert await exp.ids("endpoints?version=v2") == [kept["id"], later["id"]]


async def test_develop_is_a_version_that_is_always_there(exp: Experience) -> None:
    await exp.server.call("PATCH", exp.application, {"endpointDefaultCors": True})
    develop = await exp.get("versions/develop")
    assert develop.items() >= {"version": "develop", "endpointDefaultCors": True, "globals": []}.items()
    assert await exp.get(f"versions/{develop['id']}") == develop
    assert (await exp.get("versions"))["items"] == [develop]
    async with exp.server.client() as client:
        url, body = f"{exp.path}/versions/develop", {"endpointDefaultCors": False}
        assert (
            await client.patch(url, json=body, headers={"If-Match": '"0123456789abcdef"'})
        ).status_code == 412
        changed = (await client.patch(url, json=body, headers={"If-Match": f'"{develop["_etag"]}"'})).json()
    assert (changed["id"], changed["endpointDefaultCors"]) == (develop["id"], False)
    assert changed["lastUpdated"] > develop["lastUpdated"]
    assert "cannot be deleted" in await exp.refused("DELETE", "versions/develop")
    await exp.make("versions", version="b")
    await exp.make("versions", version="A")
    listed = await exp.get("versions?perPage=2&page=0&sortDirection=desc")
    assert [each["version"] for each in listed["items"]] == ["develop", "b"]
    assert listed["totalCount"] == 3
    assert [
        each["version"] for each in (await exp.get("versions?filterField=version&filter=a"))["items"]
    ] == ["A"]
    assert (await exp.server.call("GET", exp.application))["summary"]["experienceVersionCount"] == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"version": "develop"}, "version: develop cannot be the name"),
        ({"version": NO_ID}, f"version: {NO_ID} cannot be the name"),
        ({"version": "a/b"}, "version: 'a/b' has a slash"),
        ({"version": "v1"}, "version: there is a version v1 already"),
        ({"version": "w", "domainIds": [NO_ID]}, "domainIds: there is no experience domain"),
        ({"version": "w", "slugIds": [NO_ID]}, "slugIds: there is no experience slug"),
        ({"version": "w", "globals": [{"key": "a", "json": "{"}]}, "globals[0].json: is not JSON"),
        ({"version": "w", "globals": [{"key": "a", "json": "1"}] * 2}, "globals: the key a appears twice"),
        ({"version": "w", "responseHeaders": {"x y": "1"}}, "responseHeaders: 'x y'"),
        ({"version": "w", "responseHeaders": {"x": "1\r\nSet-Cookie: a=b"}}, "responseHeaders.x: "),
        (
            {"version": "w", "responseHeaders": {"Content-Length": "1"}},
            "responseHeaders: Content-Length frames",
        ),
        (
            {"version": "w", "notFoundReply": {"type": "redirect", "value": " "}},
            "notFoundReply.value: is empty",
        ),
        ({"version": "w", "allowedCorsOrigins": ["https://a.example/path"]}, "allowedCorsOrigins: "),
        ({"version": "w", "notFoundReply": {"type": "page", "value": NO_ID}}, "notFoundReply.value: "),
    ],
)
async def test_a_version_that_does_not_fit_is_400(exp: Experience, body: Json, said: str) -> None:
    await exp.make("versions", version="v1")
    assert (await exp.refused("POST", "versions", body)).startswith(said)
    assert (await exp.get("versions"))["totalCount"] == 2
