"""Organizations: their records, their members, and the applications that they own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.conftest import Server
from trunkline.actors import server_users
from trunkline.actors.core.records.owners import Owners

StartServer = Callable[..., Any]

OTHER, OTHER_PASSWORD = "other@example.com", "Other-horse-9"
ORG = {
    "name": "farm",
    "description": "Three barns",
    "billingEmail": "bills@example.com",
    "iconColor": "green",
}


async def test_an_organization_lives_and_ends(server: Server) -> None:
    made = await server.call("POST", "/orgs", ORG, status=201)
    path = f"/orgs/{made['id']}"
    assert made["orgId"] == made["id"]
    assert ORG.items() <= made.items()
    assert (made["mfaMode"], made["_type"], made["_links"]["self"]["href"]) == ("notRequired", "org", path)
    me = await server.call("GET", "/me")
    assert me["summary"]["orgCount"] == 1
    (member,) = made["members"]
    assert (member["userId"], member["email"], member["role"]) == (me["id"], me["email"], "admin")
    assert (made["summary"]["memberCount"], made["summary"]["appCount"]) == (1, 0)
    assert await server.call("GET", path) == made
    changed = await server.call("PATCH", path, {"name": "big farm"})
    assert (changed["name"], changed["mfaMode"], changed["iconColor"]) == ("big farm", "notRequired", "green")
    assert changed["lastUpdated"] > made["lastUpdated"]
    await server.call("PATCH", path, {"name": "x"}, headers={"If-Match": f'"{made["_etag"]}"'}, status=412)
    for field in ("planId", "cardToken"):
        refusal = await server.call("PATCH", path, {field: "x"}, status=400)
        assert refusal["message"].startswith(f"{field}: this server has no")
    listed = await server.call("GET", "/orgs")
    assert (listed["items"], listed["totalCount"], listed["_type"]) == ([changed], 1, "orgs")
    assert await server.call("DELETE", path) == {"success": True}
    await server.call("GET", path, status=404)
    assert (await server.call("GET", "/orgs"))["totalCount"] == 0
    assert (await server.call("GET", "/me"))["summary"]["orgCount"] == 0


async def test_the_organizations_of_a_user_are_sorted_paged_and_filtered(server: Server) -> None:
    for name in ("delta", "Alpha", "charlie", "bravo"):
        await server.organization(name)
    await server_users.add_user(server.root, OTHER, OTHER_PASSWORD)
    other = await server.log_in(OTHER, OTHER_PASSWORD)
    await server.call("POST", "/orgs", {"name": "theirs"}, token=other)

    async def names(query: str) -> list[str]:
        return [each["name"] for each in (await server.call("GET", f"/orgs?{query}"))["items"]]

    assert await names("") == ["Alpha", "bravo", "charlie", "delta"]
    assert await names("sortDirection=desc&perPage=1&page=1") == ["charlie"]
    assert await names("sortField=creationDate") == ["delta", "Alpha", "charlie", "bravo"]
    assert await names("sortField=id&sortDirection=desc") == ["bravo", "charlie", "Alpha", "delta"]
    assert await names("filterField=name&filter=*a") == ["Alpha", "delta"]


async def test_a_user_belongs_to_a_limited_number_of_organizations(start_server: StartServer) -> None:
    async with start_server(limits={"user_organizations_max": 2}) as server:
        for name in ("a", "b"):
            await server.organization(name)
        refusal = await server.call("POST", "/orgs", {"name": "c"}, status=400)
        assert refusal["message"].startswith("The user belongs to 2 organizations, which is the most")
        assert (await server.call("GET", "/me"))["summary"]["orgCount"] == 2


async def test_an_organization_owns_applications(server: Server) -> None:
    org = await server.organization()
    org_id = org.rpartition("/")[2]
    body = {"name": "barn", "orgId": org_id.upper()}
    made = await server.call("POST", "/applications", body, status=201)
    assert (made["ownerId"], made["ownerType"], made["organizationName"]) == (org_id, "organization", "farm")
    application = f"/applications/{made['id']}"
    assert await server.call("GET", application) == made
    own = await server.application("house")
    device = await server.device(application)
    token, _ = await server.device_token(device)
    key = await server.call("POST", f"{application}/keys", {})
    credentials = {"deviceId": device.rpartition("/")[2], "key": key["key"], "secret": key["secret"]}
    answer = await server.call("POST", "/auth/device", credentials, token="")
    assert answer["ownerType"] == "organization"
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}}, token=token, status=200)

    async def names(query: str) -> list[str]:
        listed = await server.call("GET", f"/applications{query}")
        assert listed["totalCount"] == len(listed["items"])
        return [each["name"] for each in listed["items"]]

    assert await names("") == ["barn", "house"]
    assert await names("?sortDirection=desc") == ["house", "barn"]
    assert await names("?filterField=name&filter=b*") == ["barn"]
    assert await names("?orgId=") == ["house"]
    assert await names(f"?orgId={org_id}") == ["barn"]
    assert (await server.call("GET", "/me"))["summary"]["appCount"] == 1
    summary = (await server.call("GET", org))["summary"]
    assert (summary["appCount"], summary["deviceCount"], summary["keyCount"]) == (1, 1, 2)
    chosen = await server.call("GET", f"{org}?summaryInclude=deviceCount")
    assert chosen["summary"] == {"deviceCount": 1}
    refusal = await server.call("DELETE", org, status=400)
    assert refusal["message"].startswith("The organization owns applications: 1.")
    await server.call("GET", application, status=200)
    await server.call("DELETE", application)
    await server.call("DELETE", org, status=200)
    await server.call("GET", own, status=200)


async def test_nobody_else_reaches_an_organization(server: Server) -> None:
    org = await server.organization()
    application = await server.call(
        "POST", "/applications", {"name": "barn", "orgId": org.rpartition("/")[2]}
    )
    await server_users.add_user(server.root, OTHER, OTHER_PASSWORD)
    other = await server.log_in(OTHER, OTHER_PASSWORD)
    for method, body in (("GET", None), ("PATCH", {"name": "mine"}), ("DELETE", None)):
        await server.call(method, org, body, token=other, status=403)
        await server.call(method, f"/applications/{application['id']}", body, token=other, status=403)
    post = {"name": "mine", "orgId": org.rpartition("/")[2]}
    await server.call("POST", "/applications", post, token=other, status=403)
    assert (await server.call("GET", "/applications", token=other))["items"] == []
    await server.call("GET", f"/applications?orgId={org.rpartition('/')[2]}", token=other, status=400)
    await server.call("GET", f"/orgs/{'0' * 24}", status=404)


async def test_organizations_of_one_founder_have_one_share(server: Server) -> None:
    token = server.token
    me = (await server.call("GET", "/me", token=token))["id"]
    owners = server.system.component(Owners)
    for name in ("one", "two"):
        org = await server.call("POST", "/orgs", {"name": name}, token=token)
        made = await server.call("POST", "/applications", {"name": "house", "orgId": org["id"]}, token=token)
        assert owners.of(bytes.fromhex(made["id"])).hex() == me
        assert "founderId" not in org, "who pays is not a field of the API"
