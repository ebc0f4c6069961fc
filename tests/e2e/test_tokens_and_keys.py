"""Access keys and API tokens: shown once, fixed at creation, ended at will."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.conftest import Server
from tests.e2e.rows import api_token

UNKNOWN = "0123456789abcdef01234567"


# Access keys.


async def test_the_secret_of_a_key_is_shown_once(server: Server) -> None:
    application = await server.application()
    made = await server.call("POST", f"{application}/keys", {"name": "roof", "description": "d"}, status=201)
    secret, key = made.pop("secret"), made["key"]
    assert len(secret) >= 64
    assert re.fullmatch(r"[0-9a-f]{48}", key)
    path = f"{application}/keys/{made['id']}"
    listed = await server.call("GET", f"{application}/keys")
    patched = await server.call("PATCH", path, {"description": "e"})
    assert await server.call("GET", path) == patched
    assert listed["items"] == [made]
    for answer in (listed, patched):
        assert secret not in json.dumps(answer)
        assert "ecret" not in json.dumps(answer)
    assert made["id"] == made["applicationKeyId"]
    assert (made["status"], made["filterType"], made["addressFilterType"]) == ("active", "all", "all")
    assert made["createdByType"] == made["lastUpdatedByType"] == "user"
    assert made["_type"] == "applicationKey"


async def test_a_key_body_that_does_not_fit_is_400(server: Server) -> None:
    application = await server.application()
    key = await server.call("POST", f"{application}/keys", {})
    path = f"{application}/keys/{key['id']}"
    both: list[tuple[dict[str, Any], str]] = [
        ({"filterType": "some"}, "filterType: "),
        ({"name": ""}, "name: "),
        ({"description": "x" * 32768}, "description: "),
        ({"addressFilterType": "none"}, "addressFilterType: "),
        ({"addresses": ["192.0.2.300"]}, "addresses[0]: '192.0.2.300' is neither"),
        ({"addresses": ["::1", "localhost"]}, "addresses[1]: 'localhost' is neither"),
        ({"addresses": ["x" * 49]}, "addresses[0]: "),
        ({"addresses": ["::1"] * 101}, "addresses: "),
        ({"pubTopics": [""]}, "pubTopics[0]: "),
        ({"secret": "mine"}, "secret: there is no such field"),
        ({"key": "mine"}, "key: there is no such field"),
    ]
    only_at_creation: list[tuple[dict[str, Any], str]] = [
        ({"deviceIds": ["x"]}, "deviceIds[0]: "),
        ({"deviceIds": [UNKNOWN] * 1001}, "deviceIds: "),
        ({"deviceIds": [UNKNOWN]}, f"deviceIds[0]: there is no device {UNKNOWN} in this application."),
        ({"deviceTags": [{"key": "a b"}]}, "deviceTags[0].key: "),
        ({"deviceTags": [{}]}, "deviceTags[0]: does not fit; a choice by tag needs a key, a value, or both."),
        ({"deviceTags": [{"colour": "x"}]}, "deviceTags[0].colour: there is no such field"),
        ({"status": "inactive"}, "status: there is no such field"),
    ]
    only_at_change: list[tuple[dict[str, Any], str]] = [
        ({"status": "asleep"}, "status: "),
        ({"deviceIds": [UNKNOWN]}, "deviceIds: there is no such field"),
    ]
    for method, where, bodies in (
        ("POST", f"{application}/keys", both + only_at_creation),
        ("PATCH", path, both + only_at_change),
    ):
        for body, sentence in bodies:
            answer = await server.call(method, where, body, status=400)
            assert answer["message"].startswith(sentence), (method, body, answer)
    assert await server.call("GET", path) == {name: key[name] for name in key if name != "secret"}


async def test_a_key_loses_its_name_by_null(server: Server) -> None:
    application = await server.application()
    key = await server.call("POST", f"{application}/keys", {"name": "roof"})
    path = f"{application}/keys/{key['id']}"
    assert "name" not in await server.call("PATCH", path, {"name": None})


async def found(server: Server, path: str, query: str, field: str = "name") -> list[Any]:
    """One field of the items on a page."""
    return [each.get(field) for each in (await server.call("GET", f"{path}?{query}"))["items"]]


async def test_keys_are_listed_sorted_filtered_and_queried(server: Server) -> None:
    application = await server.application()
    path = f"{application}/keys"
    device = (await server.device(application)).rpartition("/")[2]
    made = [
        await server.call("POST", path, body)
        for body in (
            {"name": "pump", "description": "first", "deviceIds": [device, device.upper()]},
            {"name": "Lamp", "deviceTags": [{"key": "floor", "value": "1"}]},
            {"name": "lamp", "addresses": ["192.0.2.0/24"], "pubTopics": ["a/b"]},
            {},
        )
    ]
    await server.call("PATCH", f"{path}/{made[1]['id']}", {"status": "inactive"})
    assert made[0]["deviceIds"] == [device]
    whole = await server.call("GET", path)
    assert (whole["totalCount"], whole["_type"], whole["sortField"], whole["sortDirection"]) == (
        4,
        "applicationKeys",
        "creationDate",
        "desc",
    )
    assert whole["applicationId"] == application.rpartition("/")[2]
    assert [each["id"] for each in whole["items"]] == [each["id"] for each in reversed(made)]
    assert await found(server, path, "sortField=id&sortDirection=asc") == ["pump", "Lamp", "lamp", None]
    assert await found(server, path, "sortField=name&sortDirection=asc") == [None, "Lamp", "lamp", "pump"]
    assert (await found(server, path, "sortField=lastUpdated"))[0] == "Lamp"
    assert (await found(server, path, "sortField=status"))[0] == "Lamp"
    assert (
        await found(server, path, "sortField=key&sortDirection=asc&perPage=2", "key")
        == sorted(each["key"] for each in made)[:2]
    )
    assert await found(server, path, "page=1&perPage=3") == ["pump"]
    for query, names in (
        ("filterField=name&filter=l*", ["lamp", "Lamp"]),
        ("filterField=status&filter=inactive", ["Lamp"]),
        (f"filterField=key&filter=*{made[2]['key'][30:]}", ["lamp"]),
        ('query={"status":"inactive"}', ["Lamp"]),
        ('query={"name":{"$ci":true,"$eq":"LAMP"}}', ["lamp", "Lamp"]),
        (f'query={{"deviceIds":"{device}"}}', ["pump"]),
        ('query={"deviceTags":{"floor":"1"}}', ["Lamp"]),
        ('query={"deviceTags":{"$tagKey":"floor"}}', ["Lamp"]),
        ('query={"filterType":{"$in":["whitelist"]}}', ["Lamp", "pump"]),
        ('query={"description":{"$startsWith":"fi"}}', ["pump"]),
        ('query={"pubTopics":"a/b"}', ["lamp"]),
        ('query={"$nor":[{"name":null},{"status":"inactive"}]}', ["lamp", "pump"]),
        ("query[$or][0][name]=pump&query[$or][1][status]=inactive", ["Lamp", "pump"]),
        (f'query={{"id":{{"$ne":"{made[0]["id"]}"}}}}&filterField=name&filter=*p', ["lamp", "Lamp"]),
        ('query={"creationDate":{"$gt":4102444800000}}', []),
        ("query={}", [None, "lamp", "Lamp", "pump"]),
    ):
        assert await found(server, path, quote(query, safe="=&")) == names, query
    for query, sentence in (
        ('query={"secretHash":"x"}', "query.secretHash: "),
        ('query={"name":{"$regex":"x"}}', "query.name"),
        ('query={"$or":{}}', "query.$or: "),
        ("query={", "query: is not JSON"),
        ("query=pump", "query: is not a JSON object"),
        ("filterField=description&filter=x", "filterField: "),
        ("sortField=secretHash", "sortField: "),
    ):
        answer = await server.call("GET", f"{path}?{quote(query, safe='=&')}", status=400)
        assert answer["message"].startswith(sentence), (query, answer)


# API tokens.


async def owners(server: Server) -> list[str]:
    return [await server.application(), "/me"]


def iso_in(**ahead: float) -> str:
    return (datetime.now(UTC) + timedelta(**ahead)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_an_api_token_is_shown_once(server: Server) -> None:
    for owner in await owners(server):
        body = {"name": "ci", "description": "d"}
        made = await server.call("POST", f"{owner}/tokens", body, status=201)
        token = made.pop("token")
        path = f"{owner}/tokens/{made['id']}"
        listed = await server.call("GET", f"{owner}/tokens")
        assert listed["items"] == [made]
        patched = await server.call("PATCH", path, {"name": "cd"})
        assert patched["name"] == "cd"
        for answer in (listed, patched, await server.call("GET", path)):
            assert token not in json.dumps(answer)
            assert "token" not in answer
        assert made["scope"] == ["all.User" if owner == "/me" else "all.Application"]
        assert (made["ownerType"], made["status"]) == ("user" if owner == "/me" else "application", "active")
        assert made["creatorType"] == "user"
        assert ("applicationId" in made) == (owner != "/me")
        await server.call("GET", owner, token=token, status=200)


async def test_scopes_and_expiry_of_a_token_are_fixed(server: Server) -> None:
    for owner in await owners(server):
        body = {"name": "t", "scope": ["device.get"], "expirationDate": iso_in(hours=1)}
        made = await server.call("POST", f"{owner}/tokens", body)
        assert made["expirationDate"] == body["expirationDate"]
        path = f"{owner}/tokens/{made['id']}"
        for change in ({"scope": ["all.Application"]}, {"expirationDate": iso_in(days=9)}, {"token": "x"}):
            answer = await server.call("PATCH", path, change, status=400)
            assert "there is no such field" in answer["message"]
        assert (await server.call("GET", path))["scope"] == ["device.get"]


async def test_a_token_ends_when_it_is_switched_off_deleted_or_expired(server: Server) -> None:
    for owner in await owners(server):
        made = await server.call("POST", f"{owner}/tokens", {"name": "t"})
        path, token = f"{owner}/tokens/{made['id']}", made["token"]
        await server.call("GET", owner, token=token, status=200)
        await server.call("PATCH", path, {"status": "inactive"})
        await server.call("GET", owner, token=token, status=401)
        await server.call("PATCH", path, {"status": "active"})
        await server.call("GET", owner, token=token, status=200)
        # A token may end itself.
        await server.call("DELETE", path, token=token, status=200)
        await server.call("GET", owner, token=token, status=401)
        born_inactive = await server.call("POST", f"{owner}/tokens", {"name": "t", "status": "inactive"})
        await server.call("GET", owner, token=born_inactive["token"], status=401)


async def test_a_token_ends_on_its_day(server: Server) -> None:
    body = {"name": "t", "expirationDate": iso_in(hours=1)}
    tokens = {
        owner: (await server.call("POST", f"{owner}/tokens", body))["token"] for owner in await owners(server)
    }
    for seconds, status in ((1800, 200), (1800, 401)):
        server.move_clock(seconds)
        for owner, token in tokens.items():
            await server.call("GET", owner, token=token, status=status)


async def test_a_token_body_that_does_not_fit_is_400(server: Server) -> None:
    for owner in await owners(server):
        refused: list[tuple[dict[str, Any], str]] = [
            ({"name": None}, "name: is missing"),
            ({"name": ""}, "name: "),
            ({"expirationDate": "soon"}, "expirationDate: "),
            ({"expirationDate": "2001-01-01T00:00:00Z"}, "expirationDate: lies in the past"),
            ({"scope": []}, "scope: is empty"),
            ({"scope": ["device.fly"]}, "scope[0]: 'device.fly' is not a scope"),
            ({"scope": ["device.get", 5]}, "scope[1]: "),
            ({"status": "asleep"}, "status: "),
            ({"defaultRole": "edit"}, "defaultRole: a token has the roles"),
            (
                {"orgRoles": [{"orgId": "sandbox", "role": "edit"}]},
                "orgRoles: a token has the roles",
            ),
            ({"ttl": 5}, "ttl: there is no such field"),
        ]
        if owner != "/me":
            refused += [
                ({"scope": [scope]}, f"scope[0]: '{scope}' is not for applications")
                for scope in (
                    "all.User",
                    "all.User.read",
                    "all.Organization",
                    "me.get",
                    "me.*",
                    "userApiTokens.post",
                    "applications.get",
                    "applications.*",
                )
            ]
        for body, sentence in refused:
            given = {name: value for name, value in ({"name": "t"} | body).items() if value is not None}
            answer = await server.call("POST", f"{owner}/tokens", given, status=400)
            assert answer["message"].startswith(sentence), (body, answer)
        assert (await server.call("GET", f"{owner}/tokens"))["totalCount"] == 0


HAND_ON: list[tuple[list[str], list[str], list[str]]] = [
    # own scopes, what they may hand on, what they may not
    (
        ["all.User"],
        ["all.User", "all.Application", "all.Organization", "me.*", "device.get", "all.Device"],
        [],
    ),
    (
        ["all.Application", "userApiTokens.*"],
        [
            "all.Application",
            "all.Application.read",
            "all.Device",
            "device.*",
            "device.get",
            "applicationKeys.*",
        ],
        [
            "all.User",
            "all.User.read",
            "all.Organization",
            "applications.post",
            "applications.*",
            "me.get",
            "me.*",
        ],
    ),
    (
        ["userApiTokens.post", "all.Application.read"],
        [
            "all.Application.read",
            "all.Device.read",
            "device.get",
            "data.timeSeriesQuery",
            "userApiTokens.post",
        ],
        [
            "device.*",
            "device.patch",
            "all.Application",
            "all.Device",
            "userApiTokens.*",
            "all.User.read",
            "data.*",
        ],
    ),
    (
        ["userApiTokens.post", "all.User.read"],
        ["me.get", "applications.get", "all.Application.read", "all.Device.read", "all.User.read"],
        ["me.patch", "me.*", "all.User", "all.User.cli", "applications.post", "device.sendState"],
    ),
    (
        ["userApiTokens.post", "all.Device"],
        ["all.Device", "all.Device.read", "device.sendState", "device.get"],
        ["device.*", "device.patch", "all.Application", "deviceAttribute.patch"],
    ),
    (
        ["userApiTokens.post", "device.*"],
        ["device.*", "device.patch"],
        ["devices.get", "all.Device", "all.Device.read", "deviceAttribute.get"],
    ),
    (["userApiTokens.*"], ["userApiTokens.*", "userApiTokens.get"], ["userApiToken.get", "all.User"]),
]


@pytest.mark.parametrize(("own", "may", "may_not"), HAND_ON)
async def test_a_token_hands_on_only_what_it_has(
    server: Server, own: list[str], may: list[str], may_not: list[str]
) -> None:
    token = await server.log_in(requestedScopes=own)
    for scope in may:
        made = await server.call(
            "POST", "/me/tokens", {"name": "t", "scope": [scope]}, token=token, status=201
        )
        assert made["scope"] == [scope]
    for scope in may_not:
        body = {"name": "t", "scope": ["userApiTokens.post", scope]}
        answer = await server.call("POST", "/me/tokens", body, token=token, status=403)
        assert f"does not have {scope}" in answer["message"]


async def test_an_application_token_hands_on_only_what_it_has(server: Server) -> None:
    application = await server.application()
    narrow = await api_token(server, application, "applicationApiTokens.post", "device.get")
    path = f"{application}/tokens"
    await server.call("POST", path, {"name": "t", "scope": ["device.get"]}, token=narrow, status=201)
    for body in (
        {"name": "t"},
        {"name": "t", "scope": ["all.Application"]},
        {"name": "t", "scope": ["device.*"]},
    ):
        await server.call("POST", path, body, token=narrow, status=403)
    wide = await api_token(server, application, "all.Application")
    made = await server.call("POST", path, {"name": "t"}, token=wide, status=201)
    assert made["creatorType"] == "apiToken"
    await server.call("GET", application, token=made["token"], status=200)


async def test_tokens_are_listed_sorted_and_filtered(server: Server) -> None:
    for owner in await owners(server):
        path = f"{owner}/tokens"
        for body in (
            {"name": "pump", "expirationDate": iso_in(hours=2)},
            {"name": "Lamp", "status": "inactive"},
            {"name": "lamp", "expirationDate": iso_in(hours=1)},
        ):
            await server.call("POST", path, body)
        whole = await server.call("GET", path)
        assert (whole["totalCount"], whole["_type"], whole["sortField"]) == (3, "apiTokens", "name")
        assert whole["ownerType"] == ("user" if owner == "/me" else "application")
        assert await found(server, path, "") == ["Lamp", "lamp", "pump"]
        assert await found(server, path, "sortDirection=desc") == ["pump", "lamp", "Lamp"]
        assert await found(server, path, "sortField=creationDate") == ["pump", "Lamp", "lamp"]
        assert await found(server, path, "sortField=expirationDate") == ["Lamp", "lamp", "pump"]
        assert (await found(server, path, "sortField=status&sortDirection=desc"))[0] == "Lamp"
        assert await found(server, path, "page=1&perPage=2") == ["pump"]
        assert await found(server, path, "filterField=name&filter=la*") == ["Lamp", "lamp"]
        assert await found(server, path, "filterField=status&filter=inactive") == ["Lamp"]
        for query in ("sortField=token", "filterField=scope&filter=x", "query={}"):
            await server.call("GET", f"{path}?{query}", status=400)


async def test_a_record_that_is_not_there_is_404(server: Server) -> None:
    application = await server.application()
    for path in (f"{application}/keys", f"{application}/tokens", "/me/tokens"):
        for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
            answer = await server.call(method, f"{path}/{UNKNOWN}", body, status=404)
            assert UNKNOWN in answer["message"]
            answer = await server.call(method, f"{path}/x", body, status=400)
            assert "is not an id" in answer["message"]
