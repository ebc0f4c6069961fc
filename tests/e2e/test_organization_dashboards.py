"""Dashboards of organizations: who reaches them by which role."""

from __future__ import annotations

from tests.e2e.conftest import Server
from tests.e2e.test_dashboards import PLACE, other_user
from tests.e2e.test_invitations import mail_to
from trunkline.actors import server_users


async def test_an_organization_owns_dashboards(server: Server) -> None:
    org = (await server.call("POST", "/orgs", {"name": "crew"}, status=201))["id"]
    made = [
        await server.call("POST", "/dashboards", {"name": name, "orgId": org}, status=201)
        for name in ("a", "b")
    ]
    assert (made[0]["ownerId"], made[0]["ownerType"], made[0]["organizationName"]) == (
        org,
        "organization",
        "crew",
    )
    barn = (await server.call("POST", "/applications", {"name": "barn", "orgId": org}, status=201))["id"]
    await server.call("POST", f"/applications/{barn}/dashboards", {"name": "c"}, status=201)
    await server.call("POST", "/dashboards", {"name": "mine"}, status=201)
    token = await other_user(server)

    async def names(query: str, token: str | None = None) -> list[str]:
        return [
            each["name"] for each in (await server.call("GET", f"/dashboards{query}", token=token))["items"]
        ]

    assert await names("", token) == []
    each = f"/dashboards/{made[0]['id']}"
    await server.call("GET", each, token=token, status=403)
    await server.call("GET", f"/dashboards?orgId={org}", token=token, status=400)
    await server.call("POST", "/dashboards", {"name": "d", "orgId": org}, token=token, status=403)
    assert await names(f"?orgId={org}&applicationId=") == ["a", "b"]
    assert await names(f"?orgId={org}") == ["a", "b", "c"]
    assert await names("?orgId=") == ["mine"]
    assert await names("?sortDirection=desc") == ["mine", "c", "b", "a"]
    block = {"blockType": "event-list", **PLACE, "applicationId": barn}
    await server.call("PATCH", each, {"name": "e", "blocks": [block]}, status=200)
    body = {"name": "theirs", "blocks": [block]}
    await server.call("POST", "/dashboards", body, token=token, status=400)
    await server.call("DELETE", each, status=200)
    await server.call("DELETE", f"/applications/{barn}")
    await server.call("DELETE", f"/orgs/{org}", status=400)  # it owns a dashboard
    await server.call("DELETE", f"/dashboards/{made[1]['id']}", status=200)
    await server.call("DELETE", f"/orgs/{org}", status=200)
    assert await names("") == ["mine"]


async def test_members_reach_the_dashboards_of_an_organization_by_their_role(server: Server) -> None:
    org = await server.organization()
    org_id = org.rpartition("/")[2]
    first, second = [
        await server.call("POST", "/dashboards", {"name": name, "orgId": org_id}, status=201)
        for name in ("a", "b")
    ]
    barn = (await server.call("POST", "/applications", {"name": "barn", "orgId": org_id}, status=201))["id"]
    await server.call("POST", f"/applications/{barn}/dashboards", {"name": "c"}, status=201)
    token = await other_user(server)
    other = next(user.id for user in server_users.users(server.root) if user.email == "other@example.com")
    await server.call("POST", f"{org}/invites", {"email": "other@example.com", "role": "view"})
    answer = {"email": "other@example.com", "token": mail_to(server, "other@example.com")[1], "accept": True}
    await server.call("POST", "/invites", answer, token="")

    async def names(query: str = "") -> list[str]:
        return [
            each["name"] for each in (await server.call("GET", f"/dashboards{query}", token=token))["items"]
        ]

    async def role(name: str, *dashboards: dict[str, str]) -> None:
        body = {"userId": other, "role": name, "dashboardRoles": list(dashboards)}
        await server.call("PATCH", f"{org}/member", body)

    each = f"/dashboards/{first['id']}"
    assert await names() == ["a", "b", "c"]
    assert await names(f"?orgId={org_id}&applicationId=") == ["a", "b"]
    assert await names("?orgId=") == []
    order, block = {"toEmail": ["a@example.com"]}, {"blockType": "event-list", **PLACE, "applicationId": barn}
    mine = {"name": "mine", "blocks": [block]}
    # What the roles view, collaborate, edit and none may do, in this order; then a role in one dashboard.
    steps = (
        ("view", {"GET": 200, "PATCH": 403, "POST": 403, "DELETE": 403}, 201),
        ("collaborate", {"GET": 200, "PATCH": 200, "POST": 202, "DELETE": 403}, 201),
        ("none", {"GET": 403, "PATCH": 403, "POST": 403, "DELETE": 403}, 400),
        ("edit", {"GET": 200, "PATCH": 200, "DELETE": 200}, 201),
    )
    for name, wanted, own in steps:
        await role(name)
        for method, status in wanted.items():
            body = {"PATCH": {"description": "d"}, "POST": order}.get(method)
            await server.call(method, each, body, token=token, status=status)
        # A dashboard of a user shows what the user can read.
        await server.call("POST", "/dashboards", mine, token=token, status=own)
    await role("view", {"resourceId": second["id"], "role": "none"})
    assert await names("?orgId=" + org_id) == ["c"]
    await server.call("GET", f"/dashboards/{second['id']}", token=token, status=403)
