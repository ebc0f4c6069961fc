"""Roles: what the members of an organization may do, on every route of the table."""

from __future__ import annotations

from typing import Final

import pytest
import trio

from tests.e2e.conftest import EMAIL, Json, Server
from tests.e2e.rows import ROWS, UNKNOWN, is_read, path_of, send
from tests.e2e.test_invitations import StartServer, mail_to
from tests.e2e.test_two_factor import enabled
from tests.patience import PATIENCE_S
from trunkline.actors import server_users
from trunkline.actors.core.values.errors import Invalid
from trunkline.http.calls.route import Route

PASSWORD: Final = "Other-horse-9"
ROLES: Final = ("none", "view", "collaborate", "edit", "admin")

EDIT: Final = frozenset(
    {
        "applicationApiToken", "applicationApiTokens", "applicationCertificate", "applicationCertificates",
        "applicationCertificateAuthority", "applicationCertificateAuthorities", "applicationKey", "applicationKeys",
    }
)  # fmt: skip
"""Resources whose writes need the role edit."""
ADMIN_READS: Final = frozenset({"auditLog", "auditLogs"})


def lowest_role(route: Route) -> str:
    """The lowest role that may call an operation on an organization or in one of its applications."""
    resource, _, verb = route.operation.partition(".")
    if resource == "org":
        if verb in ("get", "removeMember"):
            return "none"
        return "view" if is_read(route) and verb != "pendingInvites" else "admin"
    if resource in ADMIN_READS:
        return "admin"
    if is_read(route) or route.access == "read":
        return "view"
    if route.operation == "application.delete" or resource in EDIT:
        return "edit"
    return "collaborate"


class Farm:
    """An organization with a member of each role, and the applications barn and mill. `tokens` are those of members."""

    def __init__(self, server: Server, org: str, barn: str, mill: str) -> None:
        self.server = server
        self.org = org
        self.org_id = org.rpartition("/")[2]
        self.barn = barn
        self.mill = mill
        self.tokens: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    async def join(self, name: str, role: str, **roles: Json) -> str:
        """Invite a new user, accept, and return the token of the member."""
        email = f"{name}@example.com"
        await server_users.add_user(self.server.root, email, PASSWORD)
        await self.server.call("POST", f"{self.org}/invites", {"email": email, "role": role, **roles})
        answer = {"email": email, "token": mail_to(self.server, email)[1], "accept": True}
        await self.server.call("POST", "/invites", answer, token="", status=200)
        self.tokens[name] = await self.server.log_in(email, PASSWORD)
        self.ids[name] = (await self.server.call("GET", "/me", token=self.tokens[name]))["id"]
        return self.tokens[name]

    async def change(self, name: str, **roles: Json) -> None:
        """Change the roles of a member."""
        await self.server.call("PATCH", f"{self.org}/member", {"userId": self.ids[name], **roles}, status=200)

    async def names(self, token: str, query: str = "") -> list[str]:
        """The applications that a member finds in a list."""
        listed = await self.server.call("GET", f"/applications{query}", token=token)
        assert listed["totalCount"] == len(listed["items"])
        return [each["name"] for each in listed["items"]]


async def make_farm(server: Server) -> Farm:
    org = await server.organization()
    paths = []
    for name in ("barn", "mill"):
        body = {"name": name, "orgId": org.rpartition("/")[2]}
        paths.append(f"/applications/{(await server.call('POST', '/applications', body))['id']}")
    return Farm(server, org, *paths)


@pytest.mark.slow
async def test_every_route_opens_to_its_role_and_those_above(server: Server) -> None:
    farm = await make_farm(server)
    device = await server.device(farm.barn)
    ids = (farm.barn.rpartition("/")[2], device.rpartition("/")[2], farm.org_id)
    for role in ROLES:
        await farm.join(role, role)
    rows = [route for route in ROWS if "{applicationId}" in route.path or "{orgId}" in route.path]
    assert len(rows) > 100
    rows.sort(key=lambda route: route.method == "DELETE")
    for role in ROLES:
        async with server.client(farm.tokens[role]) as client:
            for route in rows:
                if route.event is not None:
                    continue  # its stream would not end; the next test opens one
                lowest = lowest_role(route)
                if ROLES.index(role) < ROLES.index(lowest):
                    response = await send(client, route, path_of(route, *ids))
                    assert response.status_code == 403, (role, route.operation, response.text)
                    assert lowest in response.json()["message"] or role == "none", response.text
                elif route.operation not in ("application.delete", "org.delete"):
                    # A query that no operation takes: the call is let in, and does nothing.
                    response = await send(client, route, path_of(route, *ids) + "?perpage=1")
                    assert response.status_code == 400, (role, route.operation, response.text)
    # What was left out above.
    await server.call("DELETE", farm.mill, token=farm.tokens["collaborate"], status=403)
    await server.call("DELETE", farm.mill, token=farm.tokens["edit"], status=200)
    await server.call("DELETE", farm.barn, token=farm.tokens["admin"], status=200)
    for role in ("edit", "view", "none"):
        await server.call("DELETE", farm.org, token=farm.tokens[role], status=403)
    await server.call("DELETE", farm.org, token=farm.tokens["admin"], status=200)
    for role in ROLES:
        await server.call("GET", farm.org, token=farm.tokens[role], status=404)
        assert (await server.call("GET", "/orgs", token=farm.tokens[role]))["totalCount"] == 0


async def test_a_role_in_one_application_applies_there(server: Server) -> None:
    farm = await make_farm(server)
    barn = farm.barn.rpartition("/")[2]
    one = await farm.join(
        "one", "none", applicationRoles=[{"resourceId": barn.upper(), "role": "collaborate"}]
    )
    some = await farm.join("some", "edit", applicationRoles=[{"resourceId": barn, "role": "none"}])
    await server.device(farm.barn)
    await server.device(farm.mill, "wheel")
    # Lists and counts show what the roles open, and nothing else.
    for token, seen, path in ((one, ["barn"], farm.barn), (some, ["mill"], farm.mill)):
        for query in ("", f"?orgId={farm.org_id}", "?sortField=creationDate&sortDirection=desc"):
            assert await farm.names(token, query) == seen
        assert await farm.names(token, "?orgId=") == []
        summary = (await server.call("GET", farm.org, token=token))["summary"]
        assert (summary["appCount"], summary["deviceCount"]) == (1, 1)
        for each in (farm.barn, farm.mill):
            await server.call("GET", f"{each}/devices", token=token, status=200 if each == path else 403)
        periods = await server.call("GET", "/applications/periodSummaries", token=token)
        assert [each["name"] for each in periods["items"]] == seen
    assert await farm.names(server.token) == ["barn", "mill"]
    days = await server.call("GET", f"{farm.org}/deviceCounts", token=some)
    assert days["counts"][-1]["total"] == 1
    assert (await server.call("GET", f"{farm.org}/deviceCounts"))["counts"][-1]["total"] == 2
    await server.call("GET", f"{farm.org}/deviceCounts", token=one, status=403)
    await server.call("PATCH", farm.barn, {"description": "d"}, token=one, status=200)
    await server.call("DELETE", farm.barn, token=one, status=403)
    await server.call("POST", f"{farm.barn}/keys", {}, token=one, status=403)
    assert "members" not in await server.call("GET", farm.org, token=one)
    assert len((await server.call("GET", farm.org, token=some))["members"]) == 3
    # An application in the roles that was deleted is in no list and no count, and in the way of no change.
    await server.call("DELETE", farm.barn)
    assert await farm.names(one) == []
    assert await farm.names(some) == ["mill"]
    await farm.change("one", role="view")
    assert await farm.names(one) == ["mill"]
    await farm.change("one", role="admin")
    roles = {each["userId"]: each for each in (await server.call("GET", farm.org, token=one))["members"]}
    assert roles[farm.ids["one"]]["applicationRoles"] == []


async def test_a_changed_role_and_a_removed_member_end_access_at_once(server: Server) -> None:
    farm = await make_farm(server)
    device = await server.device(farm.barn)
    token = await farm.join("worker", "collaborate")
    made = await server.call("POST", "/me/tokens", {"name": "t"}, token=token)
    command = {"name": "go"}

    async def open_stream(bearer: str) -> None:
        """Read a stream of states until it ends."""
        async with (
            server.client(bearer) as client,
            client.stream("GET", f"{device}/stateStream?keepAliveInterval=1") as response,
        ):
            assert response.status_code == 200
            opened.set()
            async for _ in response.aiter_raw():
                pass

    for bearer in (token, made["token"]):
        await server.call("POST", f"{device}/command", command, token=bearer, status=200)
    # A role that may still read keeps the stream. Where the access ends the stream does: the nursery waits for it.
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            opened = trio.Event()
            nursery.start_soon(open_stream, token)
            await opened.wait()
            await farm.change("worker", role="view")
            for bearer in (token, made["token"]):
                await server.call("POST", f"{device}/command", command, token=bearer, status=403)
                await server.call("GET", device, token=bearer, status=200)
            await farm.change("worker", role="none")
            await server.call("GET", device, token=token, status=403)
    assert await farm.names(token) == []
    await farm.change("worker", role="edit")
    await server.call("GET", device, token=token, status=200)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            opened = trio.Event()
            nursery.start_soon(open_stream, made["token"])
            await opened.wait()
            await server.call("DELETE", f"{farm.org}/member?userId={farm.ids['worker']}")
    for bearer in (token, made["token"]):
        await server.call("GET", device, token=bearer, status=403)
        await server.call("GET", farm.org, token=bearer, status=403)
    assert (await server.call("GET", "/orgs", token=token))["items"] == []


async def test_an_organization_keeps_an_administrator(server: Server) -> None:
    farm = await make_farm(server)
    me = (await server.call("GET", "/me"))["id"]
    token = await farm.join("second", "edit")
    last = "is the only administrator"
    for method, path, body in (
        ("DELETE", f"{farm.org}/member?userId={me}", None),
        ("PATCH", f"{farm.org}/member", {"userId": me, "role": "edit"}),
    ):
        assert last in (await server.call(method, path, body, status=400))["message"]
    await server.call("DELETE", f"{farm.org}/member?userId={me}", token=token, status=403)
    await server.call("DELETE", f"{farm.org}/member?userId={UNKNOWN}", status=404)
    with pytest.raises(Invalid, match=last):
        await server_users.delete_user(server.root, EMAIL, with_applications=True)
    assert await farm.names(server.token) == ["barn", "mill"], "nothing was deleted"
    await farm.change("second", role="admin")
    left = await server.call("DELETE", f"{farm.org}/member?userId={me}", status=200)
    assert "members" not in left
    await server.call("GET", farm.barn, status=403)
    # A user who is deleted leaves.
    await farm.server.call(
        "PATCH", f"{farm.org}/member", {"userId": farm.ids["second"]}, token=token, status=200
    )
    assert await server_users.delete_user(server.root, EMAIL, with_applications=False) == 0
    members = (await server.call("GET", farm.org, token=token))["members"]
    assert [each["email"] for each in members] == ["second@example.com"]


async def test_an_organization_requires_a_second_factor(server: Server) -> None:
    farm = await make_farm(server)
    refusal = await server.call("PATCH", farm.org, {"mfaMode": "required"}, status=400)
    assert refusal["message"].startswith("mfaMode: enable two-factor authentication for yourself first")
    await enabled(server)
    worker, boss = await farm.join("worker", "edit"), await farm.join("boss", "admin")
    for mode, closed in (("adminRequired", {boss}), ("required", {boss, worker}), ("notRequired", set())):
        await server.call("PATCH", farm.org, {"mfaMode": mode}, status=200)
        for token in (worker, boss):
            status = 403 if token in closed else 200
            refusal = await server.call("GET", f"{farm.barn}/devices", token=token, status=status)
            assert status == 200 or "requires two-factor authentication" in refusal["message"]
            assert await farm.names(token) == ([] if token in closed else ["barn", "mill"])
            await server.call("GET", farm.org, token=token, status=200)
        await server.call("GET", f"{farm.barn}/devices", status=200)


async def test_a_long_list_of_several_owners_is_merged_from_their_indexes(start_server: StartServer) -> None:
    async with start_server() as server:
        farm = await make_farm(server)
        second = await server.organization("second")
        names = {"barn", "mill"}
        for number in range(12):
            owner = ({}, {"orgId": farm.org_id}, {"orgId": second.rpartition("/")[2]})[number % 3]
            name = f"{(number * 5) % 12:02} App"
            names.add(name)
            await server.call("POST", "/applications", {"name": name, **owner}, status=201)
        for order, expected in (("asc", sorted(names)), ("desc", sorted(names, reverse=True))):
            for more in ("", "&filterField=name&filter=*"):
                found = []
                for page in range(4):
                    query = f"?sortField=name&sortDirection={order}&perPage=4&page={page}{more}"
                    listed = await server.call("GET", f"/applications{query}")
                    assert listed["totalCount"] == len(names)
                    found += [each["name"] for each in listed["items"]]
                assert found == expected


async def test_a_member_is_told_the_role_in_an_application(server: Server) -> None:
    farm = await make_farm(server)
    access = f"{farm.barn}/access"
    for name, role, roles in (
        ("reader", "view", {}),
        ("writer", "none", {"applicationRoles": [{"resourceId": farm.barn[-24:], "role": "collaborate"}]}),
    ):
        token = await farm.join(name, role, **roles)
        told = await server.call("GET", access, token=token)
        assert told["role"] == ("view" if name == "reader" else "collaborate")
        assert EMAIL in told["administrators"]
    assert (await server.call("GET", access))["role"] == "admin"
    token = await farm.join("other", "view")
    refused = await server.call("PATCH", farm.barn, {"name": "b"}, token=token, status=403)
    assert (
        "and yours is view; an administrator of the organization can give you another" in refused["message"]
    )
    own = await server.application()
    assert (await server.call("GET", f"{own}/access"))["role"] == "owner"
    await server.call("GET", f"{own}/access", token=token, status=403)


async def test_a_member_is_told_the_role_with_a_dashboard(server: Server) -> None:
    farm = await make_farm(server)
    made = await server.call("POST", "/dashboards", {"name": "board", "orgId": farm.org_id})
    board = f"/dashboards/{made['id']}"
    for name, role, roles, told in (
        ("reader", "view", {}, "view"),
        (
            "writer",
            "none",
            {"dashboardRoles": [{"resourceId": made["id"], "role": "collaborate"}]},
            "collaborate",
        ),
        ("editor", "edit", {}, "edit"),
    ):
        token = await farm.join(name, role, **roles)
        access = await server.call("GET", f"{board}/access", token=token)
        assert access == {"role": told, "organizationName": "farm", "administrators": [EMAIL]}
        await server.call("PATCH", board, {"name": name}, token=token, status=403 if told == "view" else 200)
    stranger = await farm.join("stranger", "none")
    await server.call("GET", f"{board}/access", token=stranger, status=403)
    own = await server.call("POST", "/dashboards", {"name": "own"})
    assert await server.call("GET", f"/dashboards/{own['id']}/access") == {"role": "owner"}
    await server.call("GET", f"/dashboards/{own['id']}/access", token=stranger, status=403)
    of_barn = await server.call("POST", f"{farm.barn}/dashboards", {"name": "of the barn"})
    assert (await server.call("GET", f"/dashboards/{of_barn['id']}/access"))["role"] == "admin"
