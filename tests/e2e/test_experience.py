"""The experience of an application: records that refer to each other, and the rules between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Server
from tests.e2e.experiences import NO_ID, Experience, Json, new_experience
from trunkline.actors.catalogue import RESOURCES
from trunkline.actors.core.records import records
from trunkline.actors.maintenance.verify import verify
from trunkline.actors.presentation.experience.feature import FEATURE
from trunkline.actors.presentation.experience.kind import USER
from trunkline.http.routes import TABLE

PASSWORD = "planted-secret-7"


@pytest.fixture
async def exp(server: Server) -> Experience:
    return await new_experience(server)


BODIES: dict[str, tuple[str, Json, Json]] = {
    "experienceEndpoint": ("endpoints", {"route": "/a", "method": "get"}, {"description": "changed"}),
    "experienceView": ("views", {"name": "first", "viewType": "component"}, {"description": "changed"}),
    "experienceVersion": ("versions", {"version": "v1"}, {"description": "changed"}),
    "experienceDomain": ("domains", {"domainName": "www.first.example"}, {"domainName": "www.other.example"}),
    "experienceSlug": ("slugs", {"slug": "first"}, {"slug": "other"}),
    "experienceGroup": ("groups", {"name": "first"}, {"description": "changed"}),
    "experienceUser": ("users", {"email": "a@example.com", "password": PASSWORD}, {"firstName": "changed"}),
}
"""For each resource its path, a body that creates a record, and one that changes it."""

RESOURCE = pytest.mark.parametrize("name", sorted(BODIES))


def test_every_resource_is_tested_and_has_its_rows() -> None:
    found = {resource.name for resource in FEATURE.resources}
    assert set(BODIES) == found
    for name in found:
        rows = [
            route
            for route in TABLE.routes
            if route.resource is RESOURCES[name] and not route.path.endswith("/linkedResources")
        ]
        assert sorted(route.method for route in rows) == ["DELETE", "GET", "GET", "PATCH", "POST"]


@RESOURCE
async def test_a_record_lives_and_ends(exp: Experience, name: str) -> None:
    kind, (nouns, post, patch) = RESOURCES[name].kind, BODIES[name]
    made = await exp.make(nouns, **post)
    each = f"{nouns}/{made['id']}"
    assert (made["_type"], made[f"{name}Id"]) == (kind.name, made["id"])
    assert made["_links"]["self"]["href"] == f"{exp.path}/{each}"
    assert (await exp.get(each)).items() <= made.items()
    changed = await exp.patch(each, **patch)
    assert patch.items() <= changed.items()
    assert changed["lastUpdated"] > made["lastUpdated"]
    listed = await exp.get(f"{nouns}?sortField=creationDate&sortDirection=desc")
    others = 1 if nouns == "versions" else 0  # develop is always there
    assert listed["items"][0] == changed
    assert (listed["count"], listed["totalCount"]) == (1 + others, 1 + others)
    summary = (await exp.server.call("GET", exp.application))["summary"]
    assert summary[kind.counted_as] == 1
    async with exp.server.client() as client:
        url, stale = f"{exp.path}/{each}", {"If-Match": '"0123456789abcdef"'}
        assert (await client.patch(url, json=patch, headers=stale)).status_code == 412
        assert (await client.delete(url, headers=stale)).status_code == 412
    unknown = await exp.refused("PATCH", each, {"colour": "red"})
    assert unknown.startswith("colour: there is no such field")
    other = await exp.server.application("other")
    assert await exp.server.call("GET", f"{other}/experience/{each}", status=404)
    await exp.delete(each)
    for method, body in (("GET", None), ("PATCH", patch), ("DELETE", None)):
        assert await exp.refused(method, each, body, 404) == f"There is no {kind.noun} {made['id']} here."


# Endpoints.


async def test_endpoints_are_listed_in_the_order_in_which_they_are_tried(exp: Experience) -> None:
    tried = ["/", "/a", "/a/b", "/a/{p}", "/a/{p}/c", "/a/{rest*}", "/b", "/{p}", "/{rest*}"]
    for route in reversed(tried):
        await exp.make("endpoints", route=route, method="get")
    listed = await exp.get("endpoints")
    assert [each["route"] for each in listed["items"]] == tried
    assert listed["items"][0].items() >= {"access": "public", "enabled": True, "experienceGroups": []}.items()
    assert "requestCount" not in listed["items"][0]
    counted = await exp.get(
        "endpoints?requestCountDuration=3600000&sortField=requestCount&filterField=route&filter=/b"
    )
    assert [each["requestCount"] for each in counted["items"]] == [0]
    assert counted["notFoundRequestCount"] == 0


async def test_a_route_that_clashes_is_refused_and_names_the_other_endpoint(exp: Experience) -> None:
    first = await exp.make("endpoints", route="/devices/{id}", method="get", enabled=False)
    other = await exp.make("endpoints", route="/devices/{id}", method="post")
    said = await exp.refused("POST", "endpoints", {"route": "/devices/{name?}", "method": "get"})
    assert said.startswith("route: get /devices/{name?} could match the same requests")
    assert first["id"] in said
    assert "get /devices/{id}" in said
    assert first["id"] in await exp.refused("PATCH", f"endpoints/{other['id']}", {"method": "get"})
    assert (await exp.patch(f"endpoints/{first['id']}", route="/devices/{number}"))[
        "route"
    ] == "/devices/{number}"
    assert (await exp.get("endpoints"))["totalCount"] == 2
    assert (await exp.get(f"endpoints/{other['id']}"))["method"] == "post"


# Groups, their users and their endpoints.


async def test_both_sides_of_a_relation_agree_whichever_is_changed(exp: Experience) -> None:
    users = [await exp.make("users", email=f"{n}@example.com", password=PASSWORD) for n in "abc"]
    endpoint = await exp.make("endpoints", route="/a", method="get", access="group")
    twice = [users[0]["id"].upper(), users[0]["id"]]
    group = await exp.make(
        "groups", name="g", experienceUserIds=twice, experienceEndpointIds=[endpoint["id"]]
    )
    each = f"groups/{group['id']}"
    assert group["experienceUserIds"] == [users[0]["id"]]
    named = {"id": group["id"], "name": "g"}
    assert (await exp.get(f"users/{users[0]['id']}"))["experienceGroups"] == [named]
    assert (await exp.get(f"endpoints/{endpoint['id']}"))["experienceGroups"] == [named]
    assert await exp.ids(f"endpoints?experienceGroupId={group['id']}") == [endpoint["id"]]
    await exp.patch(f"users/{users[1]['id']}", experienceGroupIds=[group["id"]])
    assert (await exp.get(each))["experienceUserIds"] == [users[0]["id"], users[1]["id"]]
    await exp.patch(each, experienceUserIds=[users[2]["id"], users[1]["id"]])
    assert (await exp.get(f"users/{users[0]['id']}"))["experienceGroups"] == []
    assert (await exp.get(f"users/{users[2]['id']}"))["experienceGroups"] == [named]
    await exp.delete(f"users/{users[1]['id']}")
    assert (await exp.get(each))["experienceUserIds"] == [users[2]["id"]]
    await exp.patch(f"endpoints/{endpoint['id']}", experienceGroupIds=[])
    assert (await exp.get(each))["experienceEndpointIds"] == []
    await exp.delete(each)
    assert (await exp.get(f"users/{users[2]['id']}"))["experienceGroups"] == []
    for place, body in (
        ("users", {"email": "d@example.com", "password": PASSWORD, "experienceGroupIds": [group["id"]]}),
        ("endpoints", {"route": "/b", "method": "get", "experienceGroupIds": [group["id"]]}),
        ("groups", {"name": "h", "experienceUserIds": [users[1]["id"]]}),
        ("groups", {"name": "h", "experienceEndpointIds": [NO_ID]}),
        ("groups", {"name": "h", "deviceIds": [NO_ID]}),
        ("groups", {"name": "h", "parentId": NO_ID}),
        ("groups", {"name": "h", "deviceQueryJson": "{"}),
        ("groups", {"name": "h", "deviceQueryJson": '{"colour": 1}'}),
    ):
        field = list(body)[-1]
        assert (await exp.refused("POST", place, body)).startswith(field), field
    assert (await exp.get("users"))["totalCount"] == 2


async def test_groups_form_a_tree(exp: Experience) -> None:
    top = await exp.make("groups", name="top", groupTags={"floor": "1"})
    middle = await exp.make("groups", name="middle", parentId=top["id"])
    bottom = await exp.make("groups", name="bottom", parentId=middle["id"])
    assert bottom["ancestorIds"] == [middle["id"], top["id"]]
    assert "cannot be its own ancestor" in await exp.refused(
        "PATCH", f"groups/{top['id']}", {"parentId": bottom["id"]}
    )
    assert "cannot be its own ancestor" in await exp.refused(
        "PATCH", f"groups/{top['id']}", {"parentId": top["id"]}
    )
    below = json.dumps({"ancestorId": top["id"]})
    assert await exp.ids(f"groups?query={below}") == [bottom["id"], middle["id"]]
    assert await exp.ids(
        f"groups?filterField=name&filter=top&query={json.dumps({'parentId': middle['id']})}"
    ) == [bottom["id"]]
    assert await exp.ids('groups?query={"groupTags":{"floor":"1"}}') == [top["id"]]
    assert "1 experience groups have this group as their parent" in await exp.refused(
        "DELETE", f"groups/{middle['id']}"
    )
    moved = await exp.patch(f"groups/{bottom['id']}", parentId=None)
    assert "parentId" not in moved
    assert moved["ancestorIds"] == []
    await exp.delete(f"groups/{middle['id']}")


async def test_the_users_of_a_group_are_found_also_by_the_groups_above(exp: Experience) -> None:
    top = await exp.make("groups", name="top")
    bottom = await exp.make("groups", name="bottom", parentId=top["id"])
    chief = await exp.make(
        "users", email="chief@example.com", password=PASSWORD, experienceGroupIds=[top["id"]]
    )
    worker = await exp.make(
        "users", email="worker@example.com", password=PASSWORD, experienceGroupIds=[bottom["id"]]
    )
    assert worker["experienceGroups"] == [{"id": bottom["id"], "name": "bottom", "parentId": top["id"]}]
    inside = f"users?experienceGroupId={bottom['id']}"
    assert await exp.ids(inside) == [worker["id"]]
    assert await exp.ids(f"{inside}&includeAncestorGroups=true") == [chief["id"], worker["id"]]
    assert await exp.ids(f"users?query={json.dumps({'experienceGroupId': top['id']})}") == [chief["id"]]
    assert await exp.ids(f"users?experienceGroupId={NO_ID}") == []


async def test_the_devices_of_a_group_are_counted_once_each(exp: Experience) -> None:
    server, tag = exp.server, {"key": "floor", "value": "1"}
    first = await server.device(exp.application, "first", tags=[tag])
    await server.device(exp.application, "second", tags=[tag])
    await server.device(exp.application, "third")
    await server.device(exp.application, "fourth")
    top = await exp.make(
        "groups", name="top", deviceIds=[first.rpartition("/")[2]], deviceTags=[{"key": "floor"}]
    )
    await exp.make(
        "groups", name="b", parentId=top["id"], deviceQueryJson='{"name": {"$in": ["first", "third"]}}'
    )
    assert "directDeviceCount" not in await exp.get(f"groups/{top['id']}")
    shown = await exp.get(f"groups/{top['id']}?includeDirectDeviceCount=true&includeTotalDeviceCount=true")
    assert (shown["directDeviceCount"], shown["totalDeviceCount"]) == (2, 3)


async def test_a_group_is_sent_back_as_it_was_read_though_a_device_was_deleted(exp: Experience) -> None:
    server, unknown = exp.server, "0" * 24
    old, new = [await server.device(exp.application, name) for name in ("old", "new")]
    gone, more = (each.rpartition("/")[2] for each in (old, new))
    group = await exp.make("groups", name="g", deviceIds=[gone])
    path = f"{exp.path}/groups/{group['id']}"
    await server.call("DELETE", old)
    read = await server.call("GET", path)
    assert read["deviceIds"] == [gone]
    body = {"name": "h", "deviceIds": [*read["deviceIds"], more]}
    assert (await server.call("PATCH", path, body))["deviceIds"] == [gone, more]
    refused = await server.call("PATCH", path, {"deviceIds": [gone, unknown]}, status=400)
    assert refused["message"] == f"deviceIds: there is no device {unknown} in this application."
    await server.call("PATCH", path, {"deviceIds": [more]})
    await server.call("PATCH", path, {"deviceIds": [gone]}, status=400)


async def test_devices_are_found_by_their_groups_and_by_the_users_in_them(exp: Experience) -> None:
    server, tag = exp.server, {"key": "floor", "value": "1"}
    first = (await server.device(exp.application, "first")).rpartition("/")[2]
    second = (await server.device(exp.application, "second", tags=[tag])).rpartition("/")[2]
    third = (await server.device(exp.application, "third")).rpartition("/")[2]
    await server.device(exp.application, "fourth")
    user = await exp.make("users", email="a@example.com", password=PASSWORD)
    top = await exp.make("groups", name="top", deviceIds=[first], experienceUserIds=[user["id"]])
    below = await exp.make("groups", name="below", parentId=top["id"], deviceTags=[{"value": "1"}])
    await exp.make("groups", name="other", deviceQueryJson='{"name": "third"}')

    async def found(query: Json) -> list[str]:
        listed = await server.call("GET", f"{exp.application}/devices?query={json.dumps(query)}&sortField=id")
        return [each["id"] for each in listed["items"]]

    assert await found({"experienceGroupId": below["id"]}) == [second]
    assert await found({"experienceGroupId": top["id"]}) == [first, second]
    assert await found({"experienceUserId": user["id"]}) == [first, second]
    assert third not in await found({"experienceGroupId": None})
    assert len(await found({"experienceGroupId": None})) == 1
    circular = {"deviceQueryJson": json.dumps({"experienceGroupId": top["id"]})}
    said = await exp.refused("PATCH", f"groups/{below['id']}", circular)
    assert said.startswith("deviceQueryJson: experienceGroupId depends on")


# What is stored and could not work.


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"staticReply": {"type": "redirect", "value": ""}}, "staticReply.value: is empty; give the address"),
        ({"unauthorizedReply": {"type": "redirect", "value": " "}}, "unauthorizedReply.value: is empty"),
        ({"access": "device"}, "deviceIdTemplate: the access device needs it; give a template such as"),
        ({"access": "device", "deviceIdTemplate": " "}, "deviceIdTemplate: the access device needs it"),
        ({"access": "device", "deviceIdTemplate": "{{bad"}, "deviceIdTemplate: is not a template. "),
    ],
)
async def test_an_endpoint_that_could_serve_nobody_is_400(exp: Experience, body: Json, said: str) -> None:
    new = {"route": "/a", "method": "get"}
    assert (await exp.refused("POST", "endpoints", new | body)).startswith(said)
    made = await exp.make("endpoints", **new)
    assert (await exp.refused("PATCH", f"endpoints/{made['id']}", body)).startswith(said)


async def test_the_template_of_a_device_cannot_be_taken_away(exp: Experience) -> None:
    more = {"access": "device", "deviceIdTemplate": "{{request.params.id}}"}
    made = await exp.make("endpoints", route="/{id}", method="get", **more)
    said = await exp.refused("PATCH", f"endpoints/{made['id']}", {"deviceIdTemplate": ""})
    assert said.startswith("deviceIdTemplate: the access device needs it")
    await exp.patch(f"endpoints/{made['id']}", access="public", deviceIdTemplate="")


@pytest.mark.parametrize("type", ["nonsense", "text/plain\r\nX: y", "text/"])
async def test_the_type_of_a_page_is_a_media_type(exp: Experience, type: str) -> None:
    body = {"name": "p", "viewType": "page", "headers": {"content-type": type}}
    said = await exp.refused("POST", "views", body)
    assert said == "headers.content-type: is not a media type; give one such as text/html or text/css."


# Users.


async def test_an_address_is_unique_in_its_application_and_a_password_comes_back_nowhere(
    exp: Experience,
) -> None:
    user = await exp.make(
        "users", email="Anna@example.com", password=PASSWORD, tokenCutoff="2024-05-01T12:00:00.000Z"
    )
    assert user["tokenCutoff"] == "2024-05-01T12:00:00.000Z"
    ahead = {"tokenCutoff": "2099-01-01T00:00:00Z"}
    for method, path in (("PATCH", f"users/{user['id']}"), ("POST", "users")):
        new = {"email": "b@example.com", "password": PASSWORD} if method == "POST" else {}
        refusal = await exp.refused(method, path, new | ahead)
        assert refusal.startswith("tokenCutoff: 2099-01-01T00:00:00.000Z lies ahead of the server's ")
    same = {"email": "anna@EXAMPLE.com", "password": PASSWORD}
    assert (await exp.refused("POST", "users", same)).startswith(
        "email: anna@EXAMPLE.com belongs to another user"
    )
    long = "x" * 300
    await exp.make("users", email=f"{long}1@example.com", password=PASSWORD)
    second = await exp.make("users", email=f"{long}2@example.com", password=PASSWORD)
    each = f"users/{user['id']}"
    assert (await exp.patch(each, email="ANNA@example.com"))["email"] == "ANNA@example.com"
    assert (await exp.refused("PATCH", f"users/{second['id']}", same)).startswith("email: ")
    other = Experience(exp.server, await exp.server.application("other"))
    await other.make("users", **same)
    changed = await exp.patch(each, password=PASSWORD + "8")
    assert changed["passwordLastUpdated"] > user["passwordLastUpdated"]
    shown = json.dumps([user, changed, await exp.get(each), await exp.get("users")])
    assert PASSWORD not in shown
    assert "argon2" not in shown
    assert "password" not in changed
    with exp.server.system.store.snapshot() as snapshot:
        application = bytes.fromhex(exp.application.split("/")[2])
        stored = records.find(snapshot, USER, application, bytes.fromhex(user["id"]))
    assert stored is not None
    assert "password" not in stored.doc
    await exp.delete(each)
    await exp.make("users", **same)


# The store.


async def test_a_store_with_an_experience_is_verified(exp: Experience) -> None:
    user = await exp.make("users", email="a@example.com", password=PASSWORD)
    await exp.make("endpoints", route="/a/{p?}", method="get")
    await exp.make("groups", name="g", experienceUserIds=[user["id"]])
    await exp.patch("versions/develop", description="d")
    for name in ("v1", "v2"):
        await exp.make("views", name=name, viewType="page")
        await exp.make("versions", version=name)
    await exp.patch("versions/develop", sourceVersionIdOrName="v1")
    await exp.patch("versions/v1", sourceVersionIdOrName="v2")
    await exp.delete("versions/v2")
    await exp.server.stop()
    report = verify(Path(exp.server.settings.data_dir))
    assert report.ok, report.problems
