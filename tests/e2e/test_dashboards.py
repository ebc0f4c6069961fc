"""Dashboards: of users and of applications, by their id alone, and without a token where they are public."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Server
from trunkline.actors import server_users

PASSWORD = "Planted-secret-7"
OTHER_PASSWORD = "Other-horse-9"
NESTED: dict[str, Any] = {}
for _ in range(200):
    NESTED = {"a": NESTED}


async def other_user(server: Server) -> str:
    """The token of another user."""
    await server_users.add_user(server.root, "other@example.com", OTHER_PASSWORD)
    return await server.log_in("other@example.com", OTHER_PASSWORD)


async def test_a_user_lists_own_dashboards_and_those_of_own_applications(server: Server) -> None:
    house, barn = await server.application("house"), await server.application("barn")
    await server.call("POST", f"{house}/dashboards", {"name": "b"}, status=201)
    house_id = house.rpartition("/")[2]
    made = await server.call("POST", "/dashboards", {"name": "D", "applicationId": house_id}, status=201)
    assert (made["applicationId"], made["applicationName"]) == (house_id, "house")
    assert made["ownerType"] == "user"
    await server.call("POST", f"{barn}/dashboards", {"name": "c"}, status=201)
    own = await server.call("POST", "/dashboards", {"name": "a"}, status=201)
    assert "applicationId" not in own

    async def names(query: str) -> list[str]:
        return [each["name"] for each in (await server.call("GET", f"/dashboards?{query}"))["items"]]

    assert await names("") == ["a", "b", "c", "D"]
    assert await names("sortDirection=desc&perPage=2&page=1") == ["b", "a"]
    assert await names("sortField=creationDate") == ["b", "D", "c", "a"]
    assert await names("sortField=id&sortDirection=desc") == ["a", "c", "D", "b"]
    assert await names("sortField=applicationId") == ["a", "b", "D", "c"]
    assert await names("filterField=name&filter=d") == ["D"]
    assert await names("applicationId=") == ["a"]
    assert await names(f"applicationId={house_id}") == ["b", "D"]
    assert (await server.call("GET", "/dashboards?perPage=1"))["totalCount"] == 4
    in_house = await server.call("GET", f"{house}/dashboards")
    assert [each["name"] for each in in_house["items"]] == ["b", "D"]
    changed = await server.call("PATCH", f"/dashboards/{made['id']}", {"refreshRate": 30})
    assert (await server.call("GET", f"{house}/dashboards/{made['id']}"))["refreshRate"] == 30
    assert changed["_etag"] != made["_etag"]
    await server.call("DELETE", f"/dashboards/{made['id']}")
    assert (await server.call("GET", f"{house}/dashboards"))["totalCount"] == 1
    await server.call("DELETE", house)
    assert await names("") == ["a", "c"]


async def test_nobody_reaches_the_dashboards_of_another_user(server: Server) -> None:
    house = await server.application()
    paths = [
        f"/dashboards/{(await server.call('POST', path, {'name': 'd'}))['id']}"
        for path in ("/dashboards", f"{house}/dashboards")
    ]
    token = await other_user(server)
    assert (await server.call("GET", "/dashboards", token=token))["totalCount"] == 0
    for path in paths:
        for method, body in (("GET", None), ("PATCH", {"name": "e"}), ("DELETE", None)):
            await server.call(method, path, body, token=token, status=403)
            status = 404 if method == "GET" else 401
            await server.call(method, path, body, token="", status=status)
        assert (await server.call("GET", path))["name"] == "d"
    body = {"name": "d", "applicationId": house.rpartition("/")[2]}
    await server.call("POST", "/dashboards", body, token=token, status=403)
    listed = f"/dashboards?applicationId={house.rpartition('/')[2]}"
    await server.call("GET", listed, token=token, status=400)


async def test_a_public_dashboard_is_read_without_a_token(server: Server) -> None:
    house = await server.application()
    report = {"cron": "0 8 * * *", "toEmail": ["secret@example.com"]}
    for path in ("/dashboards", f"{house}/dashboards"):
        body = {"name": "d", "public": True, "reportConfigs": [report]}
        made = await server.call("POST", path, body, status=201)
        each = f"/dashboards/{made['id']}"
        assert made["reportConfigs"] == [report]
        seen = await server.call("GET", each, token="")
        assert (seen["name"], seen["reportConfigs"]) == ("d", [])
        await server.call("PATCH", each, {"password": PASSWORD})
        for query, status in (("", 401), ("?password=wrong", 401), (f"?password={PASSWORD}", 200)):
            answer = await server.call("GET", f"{each}{query}", token="", status=status)
            assert "passwordHash" not in answer
        assert (await server.call("GET", each))["reportConfigs"] == [report]
        await server.call("PATCH", each, {"public": False})
        await server.call("GET", f"{each}?password={PASSWORD}", token="", status=404)


async def test_the_password_of_a_public_dashboard_cannot_be_guessed(server: Server) -> None:
    body = {"name": "d", "public": True, "password": PASSWORD}
    made = await server.call("POST", "/dashboards", body, status=201)
    path = f"/dashboards/{made['id']}?password="
    limit = server.system.limits.login_per_account
    assert limit is not None
    for _ in range(limit.calls):
        await server.call("GET", f"{path}wrong", token="", status=401)
    await server.call("GET", f"{path}{PASSWORD}", token="", status=429)
    await server.call("GET", f"/dashboards/{made['id']}", status=200)


# What is kept and what is refused.


async def test_a_dashboard_keeps_its_blocks_and_its_password(server: Server) -> None:
    path = f"{await server.application()}/dashboards"
    block = {
        "blockType": "gauge", "startX": 0, "startY": 1.5, "width": 2, "height": 3,
        "config": {"gaugeType": "dial", "segment": {"attribute": "temp"}},
    }  # fmt: skip
    parameter = {"name": "room", "type": "deviceTag", "defaultValue": {"key": "room", "value": "1"}}
    report = {"cron": "0 8 * * *", "toEmail": ["a@example.com"], "ctx": {"room": {"key": "room"}, "n": 1.5}}
    body = {
        "name": "d", "blocks": [block], "contextConfiguration": [parameter], "reportConfigs": [report],
        "refreshRate": 60, "public": True, "password": PASSWORD,
    }  # fmt: skip
    made = await server.call("POST", path, body, status=201)
    assert made["isPasswordProtected"] is True
    for field in ("blocks", "contextConfiguration", "reportConfigs", "refreshRate", "public"):
        assert made[field] == body[field], field
    each = f"{path}/{made['id']}"
    open_to_all = await server.call("PATCH", each, {"password": None})
    assert open_to_all["isPasswordProtected"] is False
    assert (await server.call("PATCH", each, {"password": PASSWORD}))["isPasswordProtected"] is True
    assert (await server.call("PATCH", each, {"name": "e"}))["isPasswordProtected"] is True


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"blocks": [{"blockType": "clock", "startX": 0, "startY": 0, "width": 1, "height": 1}]},
            "blocks[0]",
        ),
        ({"reportConfigs": [{"cron": "0 8 * * *"}]}, "reportConfigs[0]: goes nowhere"),
        (
            {"contextConfiguration": [{"name": "a", "type": "number", "defaultValue": 1}] * 2},
            "contextConfiguration: a appears twice in the list",
        ),
        ({"refreshRate": 4}, "refreshRate: "),
        ({"reportConfigs": [{"cron": "* * * * *", "toEmail": ["a@example.com"]}] * 11}, "reportConfigs: "),
    ],
)
async def test_a_dashboard_that_does_not_fit_is_400(server: Server, wrong: dict[str, Any], said: str) -> None:
    path = f"{await server.application()}/dashboards"
    refusal = await server.call("POST", path, {"name": "d", **wrong}, status=400)
    assert refusal["message"].startswith(said), refusal
    assert (await server.call("GET", path))["totalCount"] == 0


async def test_places_outside_the_grid_and_ids_that_stand_twice_are_refused(server: Server) -> None:
    path = f"{await server.application()}/dashboards"
    clock = {"blockType": "section-header", **PLACE}
    outside = ({"startX": -1}, {"startY": -1}, {"width": 0}, {"height": 0}, {"startX": 6, "width": 3})
    for blocks, said in (
        *(([clock, {**clock, **wrong}], "blocks[1]: startX ") for wrong in outside),
        ([{**clock, "id": "a"}] * 2, "blocks[1].id: 'a' is also the id of blocks[0]"),
    ):
        refusal = await server.call("POST", path, {"name": "d", "blocks": blocks}, status=400)
        assert refusal["message"].startswith(said), refusal
    blocks = [clock, {**clock, "startX": 6}, {**clock, "id": "a"}, {**clock, "id": "b"}]
    await server.call("POST", path, {"name": "d", "blocks": blocks}, status=201)


PLACE = {"startX": 0, "startY": 0, "width": 2, "height": 2}
UNKNOWN = "0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("type", "config", "said"),
    [
        ("gauge", {"segments": []}, "blocks[0].config.segments: there is no such field"),
        ("gauge", {"gaugeType": "clock"}, "blocks[0].config.gaugeType: "),
        (
            "graph",
            {"segments": [{"attribute": "temp", "aggregation": "MODE"}]},
            "blocks[0].config.segments[0].aggregation: ",
        ),
        (
            "graph",
            {"segments": [{"deviceIds": [UNKNOWN]}]},
            f"blocks[0].config.segments[0].deviceIds[0]: there is no device {UNKNOWN}",
        ),
        ("data-table", {"dataTableId": UNKNOWN}, "blocks[0].config.dataTableId: there is no data table"),
        ("map", {"query": "{"}, "blocks[0].config.query: is not JSON"),
        ("map", {"query": '{"colour": "red"}'}, "blocks[0].config.query"),
        ("event-list", {"query": '{"level": {"$near": 1}}'}, "blocks[0].config.query"),
        (
            "custom-chart",
            {"segments": [{"queryType": "events", "query": "[1"}]},
            "blocks[0].config.segments[0].query",
        ),
        ("input", {"controls": [{"type": "lever"}]}, "blocks[0].config.controls[0].type: "),
        ("event-list", {"eventState": NESTED}, "blocks[0].config: nests deeper"),
    ],
)
async def test_a_configuration_that_does_not_fit_its_block_is_400(
    server: Server, type: str, config: dict[str, Any], said: str
) -> None:
    path = f"{await server.application()}/dashboards"
    body = {"name": "d", "blocks": [{"blockType": type, **PLACE, "config": config}]}
    refusal = await server.call("POST", path, body, status=400)
    assert refusal["message"].startswith(said), refusal
    assert (await server.call("GET", path))["totalCount"] == 0


async def test_a_dashboard_refers_to_what_exists_and_is_reached(server: Server) -> None:
    house, barn = await server.application("house"), await server.application("barn")
    device = (await server.device(house)).rpartition("/")[2]
    house_id, barn_id = house.rpartition("/")[2], barn.rpartition("/")[2]
    gauge = {
        "blockType": "gauge",
        **PLACE,
        "config": {"segment": {"attribute": "temp", "deviceIds": [device]}},
    }
    made = await server.call("POST", f"{house}/dashboards", {"name": "d", "blocks": [gauge]}, status=201)
    refused = [
        (f"{barn}/dashboards", gauge, "there is no device"),
        (f"{house}/dashboards", {**gauge, "applicationId": barn_id}, "is another application"),
        ("/dashboards", {**gauge, "applicationId": barn_id}, "there is no device"),
        ("/dashboards", {**gauge, "applicationId": UNKNOWN}, "there is no application"),
    ]
    for path, block, said in refused:
        refusal = await server.call("POST", path, {"name": "d", "blocks": [block]}, status=400)
        assert said in refusal["message"], refusal
    await server.call(
        "POST", "/dashboards", {"name": "d", "blocks": [{**gauge, "applicationId": house_id}]}, status=201
    )
    token = await other_user(server)
    body = {"name": "d", "blocks": [{**gauge, "applicationId": house_id}]}
    refusal = await server.call("POST", "/dashboards", body, token=token, status=400)
    assert "there is no application" in refusal["message"]
    # A device that was deleted since stays where it is; a new block cannot name it.
    await server.call("DELETE", f"{house}/devices/{device}")
    each = f"{house}/dashboards/{made['id']}"
    await server.call("PATCH", each, {"blocks": [{**gauge, "title": "t"}]}, status=200)
    await server.call("POST", f"{house}/dashboards", {"name": "d", "blocks": [gauge]}, status=400)


# The context.


async def test_the_context_is_checked_and_completed(server: Server) -> None:
    house = await server.application()
    kitchen = (await server.device(house, "kitchen", tags=[{"key": "room", "value": "1"}])).rpartition("/")[2]
    cellar = (await server.device(house, "cellar", description="d")).rpartition("/")[2]
    group = await server.call("POST", f"{house}/experience/groups", {"name": "g"}, status=201)
    person = {"email": "e@example.com", "password": PASSWORD, "experienceGroupIds": [group["id"]]}
    member = (await server.call("POST", f"{house}/experience/users", person, status=201))["id"]
    person = {"email": "f@example.com", "password": PASSWORD}
    stranger = (await server.call("POST", f"{house}/experience/users", person, status=201))["id"]
    tag = {"key": "room", "value": "1"}

    def parameter(name: str, type: str, default: object, **config: Any) -> dict[str, Any]:
        given = {"name": name, "type": type, "defaultValue": default, "validationEnabled": True}
        return {**given, "validationConfig": config} if config else given

    parameters = [
        parameter("attribute", "deviceAttribute", "temp", attributes=["temp", "label"]),
        parameter("device", "deviceId", cellar, includeFullDevice=True),
        parameter("tagged", "deviceId", kitchen, deviceTags=[tag]),
        parameter("found", "deviceId", cellar, query='{"name": "cellar"}'),
        parameter("tag", "deviceTag", tag, deviceTags=[{"key": "room"}]),
        parameter("number", "number", "5", min=1, max=10),
        parameter("text", "string", "abc", regExp="^a.c$"),
        parameter("person", "experienceUser", member, experienceGroupIds=[group["id"]]),
        {"name": "free", "type": "number", "defaultValue": 1, "validationConfig": {"max": 0}},
    ]
    body = {
        "name": "d",
        "public": True,
        "refreshRate": 60,
        "duration": 1000,
        "contextConfiguration": parameters,
    }
    made = await server.call("POST", f"{house}/dashboards", body, status=201)
    path = f"/dashboards/{made['id']}/validateContext"
    answer = await server.call("POST", path, {"number": 7, "other": "x"}, token="", status=200)
    whole = answer["ctx"].pop("device")
    assert (whole["id"], whole["name"], whole["description"]) == (cellar, "cellar", "d")
    assert whole["attributes"]["temp"] == {"dataType": "number"}
    assert answer["ctx"] == {
        "attribute": "temp", "tagged": kitchen, "found": cellar, "tag": tag, "number": 7, "text": "abc",
        "person": member, "free": 1,
    }  # fmt: skip
    assert answer["dashboard"] == {"name": "d", "id": made["id"], "duration": 1000, "refreshRate": 60}
    ranged = await server.call("POST", f"{path}?duration=5000&resolution=10&end=-5", {})
    assert (ranged["dashboard"]["duration"], ranged["dashboard"]["resolution"]) == (5000, 10)
    refused: list[tuple[str, Any]] = [
        ("attribute", "other"), ("device", "kitchen"), ("device", UNKNOWN), ("tagged", cellar), ("found", kitchen),
        ("tag", {"key": "floor"}), ("tag", "room"), ("number", 11), ("number", "many"), ("number", "nan"),
        ("text", "abcd"), ("text", 5), ("person", stranger), ("free", "x"),
    ]  # fmt: skip
    for name, value in refused:
        refusal = await server.call("POST", path, {name: value}, status=400)
        assert refusal["invalidCtxName"] == name, (name, value, refusal)
        assert refusal["message"].startswith(f"ctx.{name}: ")
        assert (refusal["type"], refusal["dashboard"]["id"]) == ("Validation", made["id"])
    await server.call("PATCH", f"/dashboards/{made['id']}", {"public": False})
    await server.call("POST", path, {}, token="", status=404)


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        (
            {"type": "string", "validationConfig": {"regExp": "(a"}},
            "[0].validationConfig.regExp: is not a regular",
        ),
        (
            {"type": "string", "validationConfig": {"regExp": "(?=a)"}},
            "[0].validationConfig.regExp: is not a regular",
        ),
        ({"type": "deviceId", "validationConfig": {"query": "{"}}, "[0].validationConfig.query: is not JSON"),
        (
            {"type": "number", "validationConfig": {"min": 2, "max": 1}},
            "[0].validationConfig: min 2 is greater",
        ),
        ({"type": "number", "defaultValue": "x"}, "[0].defaultValue: 'x' is not a number."),
        ({"type": "string", "applicationId": UNKNOWN}, "[0].applicationId: there is no application"),
    ],
)
async def test_a_parameter_that_cannot_be_used_is_400(
    server: Server, parameter: dict[str, Any], said: str
) -> None:
    body = {"name": "d", "contextConfiguration": [{"name": "p", "defaultValue": "1", **parameter}]}
    refusal = await server.call("POST", "/dashboards", body, status=400)
    assert refusal["message"].startswith(f"contextConfiguration{said}"), refusal
