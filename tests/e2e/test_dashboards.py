"""Dashboards: of users and of applications, by their id alone, and without a token where they are public."""

from __future__ import annotations

from tests.e2e.conftest import Server
from trunkline.actors import boot

PASSWORD = "Planted-secret-7"
OTHER_PASSWORD = "Other-horse-9"


async def other_user(server: Server) -> str:
    """The token of another user."""
    await boot.add_user(server.system, "other@example.com", OTHER_PASSWORD)
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
    await server.call("GET", listed, token=token, status=404)


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
