"""Plain resources: created, listed, read, changed and deleted in the same way, whatever they are about.

The first part runs over every plain resource of the catalogue, so one that is added is tested with its line there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.certificates import make_certificate
from tests.e2e.conftest import Server
from tests.e2e.row_examples import row_examples
from trunkline.actors import server_users
from trunkline.actors.catalogue import RESOURCES
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import value_at
from trunkline.actors.presentation.experience.feature import FEATURE as EXPERIENCE
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

StartServer = Callable[..., Any]

PLANTED = "Planted-secret-7"

_DASHBOARD = {
    "name": "first",
    "password": PLANTED,
    "reportConfigs": [{"cron": "@daily", "toEmail": ["a@example.com"]}],
}
BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{each.resource.name: (each.post, each.patch) for each in row_examples()},
    "applicationKey": ({"name": "first"}, {"description": "changed"}),
    "applicationApiToken": ({"name": "first"}, {"description": "changed"}),
    "userApiToken": ({"name": "first"}, {"description": "changed"}),
    "applicationDashboard": (_DASHBOARD, {"description": "changed"}),
    "dashboard": (_DASHBOARD, {"description": "changed"}),
    "webhook": ({"name": "first", "basicAuthPassword": PLANTED}, {"description": "changed"}),
    "applicationCertificate": ({}, {"description": "changed"}),
    "applicationCertificateAuthority": (
        {"name": "first", "caBundle": make_certificate("farm", ca=True)},
        {"description": "changed"},
    ),
    "credential": (
        {"name": "first", "type": "sendgrid", "sendgridConfig": {"apiKey": PLANTED}},
        {"description": "changed"},
    ),
    "integration": (
        {
            "name": "first",
            "integrationType": "particle",
            "particleConfig": {"accessToken": PLANTED, "productSlugOrId": "p"},
        },
        {"particleConfig": {"productSlugOrId": "changed"}},
    ),
    "notebook": ({"name": "first"}, {"description": "changed"}),
}
"""For each resource a body that creates a record, with what is to be hidden, and one that changes it: by default the
examples of its row."""


def post_of(name: str, label: str = "first") -> dict[str, Any]:
    """A body that creates a record with this name, and with no unique value that another one has."""
    post, _ = BODIES[name]
    if name == "applicationCertificate":
        return {**post, "certificate": make_certificate(label)}
    return {**post, "name": label}


def label_of(name: str, record: dict[str, Any]) -> Any:
    """The name of a record as `post_of` gave it."""
    return value_at(record, "certificateInfo.commonName" if name == "applicationCertificate" else "name")


PLAIN = {name for name, resource in RESOURCES.items() if resource not in EXPERIENCE.resources}
"""Those of an experience refer to each other and have tests of their own."""

RESOURCE = pytest.mark.parametrize("name", sorted(PLAIN))


def test_every_resource_of_the_catalogue_is_tested_and_has_its_rows() -> None:
    assert set(BODIES) == PLAIN
    for resource in RESOURCES.values():
        own = (route for route in TABLE.routes if route.resource is resource)
        rows = [route for route in own if not route.path.endswith("/linkedResources")]
        assert sorted(route.method for route in rows) == ["DELETE", "GET", "GET", "PATCH", "POST"]


def row(name: str, method: str, *, many: bool = False) -> Route:
    """The row of a resource."""
    (found,) = (
        route
        for route in TABLE.routes
        if route.resource is RESOURCES[name]
        and route.method == method
        and (method != "GET" or isinstance(route.reply, tuple) == many)
    )
    return found


async def place(server: Server, name: str) -> str:
    """Where the records of a resource lie, in an application of its own."""
    application = await server.application()
    return row(name, "POST").path.replace("/applications/{applicationId}", application)


@RESOURCE
async def test_a_record_lives_and_ends(server: Server, name: str) -> None:
    resource, (_, patch) = RESOURCES[name], BODIES[name]
    path = await place(server, name)
    made = await server.call("POST", path, post_of(name), status=201)
    each = f"{path}/{made['id']}"
    assert made[f"{resource.kind.name}Id"] == made["id"]
    assert label_of(name, made) == "first"
    assert made["_type"] == resource.kind.name
    assert made["_links"]["self"]["href"] == each
    shown = await server.call("GET", each)
    assert shown.items() <= made.items()
    changed = await server.call("PATCH", each, patch)
    assert patch.items() <= changed.items()
    assert changed["lastUpdated"] > made["lastUpdated"]
    assert changed["_etag"] != made["_etag"]
    listed = await server.call("GET", path)
    assert listed["items"] == [changed]
    assert (listed["count"], listed["totalCount"], listed["_type"]) == (1, 1, resource.plural)
    assert listed["_links"]["self"]["href"] == path
    assert await server.call("DELETE", each) == {"success": True}
    for method, body in (("GET", None), ("PATCH", patch), ("DELETE", None)):
        refusal = await server.call(method, each, body, status=404)
        assert refusal["message"] == f"There is no {resource.kind.noun} {made['id']} here."
    assert (await server.call("GET", path))["totalCount"] == 0


@RESOURCE
async def test_a_revision_guards_a_change(server: Server, name: str) -> None:
    path, (_, patch) = await place(server, name), BODIES[name]
    made = await server.call("POST", path, post_of(name), status=201)
    each, stale = f"{path}/{made['id']}", {"If-Match": '"0123456789abcdef"'}
    async with server.client() as client:
        assert (await client.patch(each, json=patch, headers=stale)).status_code == 412
        assert (await client.delete(each, headers=stale)).status_code == 412
        right = {"If-Match": f'"{made["_etag"]}"'}
        unchanged = {"If-None-Match": (await client.get(each)).headers["etag"]}
        assert (await client.get(each, headers=unchanged)).status_code == 304
        assert (await client.patch(each, json=patch, headers=right)).is_success
        assert (await client.patch(each, json=patch, headers=right)).status_code == 412


@RESOURCE
async def test_a_field_that_is_not_known_is_refused_by_its_name(server: Server, name: str) -> None:
    path, post, (_, patch) = await place(server, name), post_of(name), BODIES[name]
    made = await server.call("POST", path, post, status=201)
    for method, target, body in (("POST", path, post), ("PATCH", f"{path}/{made['id']}", patch)):
        refusal = await server.call(method, target, {**body, "colour": "red"}, status=400)
        assert refusal["message"].startswith("colour: there is no such field")
    assert (await server.call("GET", path))["totalCount"] == 1


@RESOURCE
async def test_what_is_hidden_or_shown_once_comes_back_nowhere(server: Server, name: str) -> None:
    resource, (_, patch) = RESOURCES[name], BODIES[name]
    path = await place(server, name)
    made = await server.call("POST", path, post_of(name), status=201)
    each = f"{path}/{made['id']}"
    later = [
        await server.call("GET", each),
        await server.call("PATCH", each, patch),
        await server.call("GET", path),
    ]
    once = [made[field] for field in ("secret", "token") if field in made and resource.shows_once]
    assert bool(once) == resource.shows_once
    for secret in (PLANTED, "$argon2id$", *once):
        assert all(secret not in json.dumps(answer) for answer in later)
    assert PLANTED not in json.dumps(made)
    with server.system.store.snapshot() as snapshot:
        parent = bytes.fromhex(path.split("/")[2]) if resource.parent == "application" else user_of(server)
        found = records.find(snapshot, resource.kind, parent, bytes.fromhex(made["id"]))
    assert found is not None
    assert resource.hidden <= found.doc.keys()
    assert not resource.hidden & {*made, *later[0], *later[1]}


def user_of(server: Server) -> bytes:
    return bytes.fromhex(server_users.users(server.root)[0].id)


async def test_the_summary_of_the_application_counts_them(server: Server) -> None:
    application = await server.application()
    for name in PLAIN:
        if RESOURCES[name].parent == "application":
            path = row(name, "POST").path.replace("/applications/{applicationId}", application)
            for label in ("first", "second"):
                await server.call("POST", path, post_of(name, label), status=201)
    summary = (await server.call("GET", application))["summary"]
    counted = {RESOURCES[name].kind.counted_as for name in PLAIN}
    assert {field: summary[field] for field in counted if field} == dict.fromkeys(counted, 2)


# Device recipes.


async def test_a_recipe_is_shown_in_the_shape_that_is_asked_for(server: Server) -> None:
    path = f"{await server.application()}/device-recipes"
    body = {
        "name": "sensor",
        "deviceName": "Sensor",
        "tags": [{"key": "room", "value": "1"}, {"key": "room", "value": "2"}],
        "attributes": [{"name": "temp", "dataType": "number"}],
    }
    made = await server.call("POST", f"{path}?tagsAsObject=true", body, status=201)
    assert made["tags"] == {"room": ["1", "2"]}
    assert made["attributes"] == body["attributes"]
    assert made["deviceClass"] == "standalone"
    each = f"{path}/{made['id']}"
    assert (await server.call("GET", each))["tags"] == body["tags"]
    shaped = await server.call("GET", f"{each}?attributesAsObject=true")
    assert shaped["attributes"] == {"temp": {"dataType": "number"}}
    (listed,) = (await server.call("GET", f"{path}?tagsAsObject=true&attributesAsObject=true"))["items"]
    assert (listed["tags"], listed["attributes"]) == (made["tags"], shaped["attributes"])
    upper = await server.call("PATCH", each, {"parentId": "ABCDEFABCDEFABCDEFABCDEF"})
    assert upper["parentId"] == "abcdefabcdefabcdefabcdef"
    assert "parentId" not in await server.call("PATCH", each, {"parentId": None})
    declared = body["attributes"]
    assert isinstance(declared, list)
    twice = {"attributes": declared * 2}
    refusal = await server.call("PATCH", each, twice, status=400)
    assert refusal["message"].startswith("attributes: temp is declared twice")


# Webhooks.


async def test_a_webhook_has_an_address_of_its_own_that_stays(server: Server) -> None:
    path = f"{await server.application()}/webhooks"
    made = [await server.call("POST", path, {"name": "same"}, status=201) for _ in range(3)]
    tokens = {webhook["token"] for webhook in made}
    assert len(tokens) == 3
    assert all(len(token) >= 48 + 32 for token in tokens)
    changed = await server.call("PATCH", f"{path}/{made[0]['id']}", {"responseCode": 204, "enabled": False})
    assert (changed["token"], changed["responseCode"], changed["enabled"]) == (made[0]["token"], 204, False)
    await server.call("DELETE", f"{path}/{made[0]['id']}?includeWorkflows=true")
    assert (await server.call("GET", path))["totalCount"] == 2


# The size of a page.


@pytest.mark.parametrize("query", ["?sortField=name", "?sortField=name&filterField=name&filter=*"])
async def test_a_page_has_a_bound_in_bytes(start_server: StartServer, query: str) -> None:
    async with start_server(limits={"answer_bytes_max": 50_000}) as server:
        path = f"{await server.application()}/webhooks"
        for number in range(4):
            await server.call("POST", path, {"name": f"{number}", "description": "x" * 20_000}, status=201)
        refusal = await server.call("GET", f"{path}{query}", status=413)
        assert refusal["message"].startswith("The answer would be larger than 50000 bytes")
        page = await server.call("GET", f"{path}{query}&perPage=2&page=1")
        assert (page["count"], page["totalCount"]) == (2, 4)
