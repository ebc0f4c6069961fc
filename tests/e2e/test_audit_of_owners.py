"""A call that concerns several owners has an entry in the audit log of each, and in no log of others."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.e2e.conftest import EMAIL, PASSWORD, Json, Server
from tests.e2e.test_audit_log import operation
from tests.e2e.test_imports import bundle_of, send
from tests.e2e.test_invitations import mail_to, other_user
from trunkline.actors import server_users
from trunkline.http.calls import audit

OTHER, OTHER_PASSWORD = "eve@example.com", "Other-horse-9"


async def log_of(server: Server, owner: str, token: str | None = None) -> list[Json]:
    """The entries of an organization, or of a user (`/me`), the oldest first."""
    query = {"sortDirection": "asc"}
    listed = await server.call("GET", f"{owner}/audit-logs", token=token, params=query)
    return list(listed["items"])


def said(entries: list[Json]) -> list[tuple[str, int, str | None]]:
    return [(operation(each), each["responseStatus"], each.get("primaryTargetName")) for each in entries]


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


async def other(server: Server) -> tuple[str, str]:
    """The id and a token of another user."""
    user = await server_users.add_user(server.root, OTHER, OTHER_PASSWORD)
    return user, await server.log_in(OTHER, OTHER_PASSWORD)


async def test_a_transfer_is_in_the_logs_of_who_gives_and_of_who_receives(server: Server) -> None:
    user, token = await other(server)
    org, application = await server.organization(), await server.application("house")
    me = (await server.call("GET", "/me"))["id"]
    given = ("me.transferResources", 200, "house")

    async def give(giver: str, to: str, type: str, **what: Any) -> None:
        body = {"destinationId": to, "destinationType": type, **what}
        await server.call("PATCH", f"{giver}/transferResources", body, status=200)

    await give("/me", id_of(org), "organization", applicationIds=[id_of(application)])
    (entry,) = await log_of(server, org)
    assert said([entry]) == [given]
    assert (entry["primaryTargetId"], entry["actorName"]) == (id_of(application), EMAIL)
    assert entry["requestBody"]["destinationId"] == id_of(org)
    assert said(await log_of(server, "/me")) == [("applications.post", 201, "house"), given]

    await give(org, me, "user", applicationIds=[id_of(application)])
    assert said(await log_of(server, org))[1:] == [("org.transferResources", 200, None)]
    assert said(await log_of(server, "/me"))[2:] == [("org.transferResources", 200, "house")]

    await give("/me", user, "user", applicationIds=[id_of(application)])
    assert said(await log_of(server, "/me"))[3:] == [given]
    (entry,) = await log_of(server, "/me", token)
    assert said([entry]) == [given]

    board = (await server.call("POST", "/dashboards", {"name": "board"}))["id"]
    await give("/me", id_of(org), "organization", dashboardIds=[board])
    assert said(await log_of(server, org))[2:] == [("me.transferResources", 200, None)]
    assert len(await log_of(server, "/me")) == 4, "the log of a person is about applications"


async def test_a_transfer_that_is_refused_is_in_no_log_where_the_caller_may_not_act(server: Server) -> None:
    user, token = await other(server)
    theirs = (await server.call("POST", "/orgs", {"name": "theirs"}, token=token))["id"]
    org = await server.organization()
    given = {"applicationIds": ["0" * 24]}
    for to, type in ((user, "user"), (theirs, "organization"), (id_of(org), "organization")):
        body = {"destinationId": to, "destinationType": type, **given}
        await server.call("PATCH", "/me/transferResources", body, status=400)
    assert await log_of(server, "/me", token) == []
    assert await log_of(server, f"/orgs/{theirs}", token) == []
    assert said(await log_of(server, org)) == [("me.transferResources", 400, None)]
    assert said(await log_of(server, "/me")) == [("me.transferResources", 400, None)] * 3


async def test_an_answer_to_an_invitation_is_in_the_log_of_the_organization(server: Server) -> None:
    org = await server.organization()
    token = await other_user(server, OTHER)
    member = (await server.call("GET", "/me", token=token))["id"]

    async def invite(email: str) -> tuple[str, str]:
        (sent,) = await server.call("POST", f"{org}/invites", {"email": email, "role": "view"})
        return sent["id"], mail_to(server, email)[1]

    async def newest() -> Json:
        return (await log_of(server, org))[-1]

    id, _ = await invite(OTHER)
    await server.call("POST", f"/me/invites/{id}", {"action": "accept"}, token=token, status=200)
    entry = await newest()
    assert said([entry]) == [("me.respondToInvite", 200, None)]
    assert (entry["actorId"], entry["actorName"]) == (member, OTHER)
    assert (entry["primaryTargetType"], entry["primaryTargetId"]) == ("OrgInvite", id)
    assert entry["requestBody"] == {"action": "accept"}
    await server.call("DELETE", f"{org}/member?userId={member}", token=token)

    id, mailed = await invite(OTHER)
    body = {"email": OTHER, "token": mailed, "accept": True}
    await server.call("POST", "/invites", body, token="", status=200)
    entry = await newest()
    assert said([entry]) == [("orgInvites.post", 200, None)]
    assert (entry["actorId"], entry["actorName"]) == (member, OTHER)
    assert entry["requestBody"] == {"email": OTHER, "token": audit.HIDDEN, "accept": True}

    # Who has no account can decline.
    _, mailed = await invite("nobody@example.com")
    body = {"email": "nobody@example.com", "token": mailed, "accept": False}
    await server.call("POST", "/invites", {**body, "token": "wrong"}, token="", status=404)
    await server.call("POST", "/invites", body, token="", status=200)
    *_, invited, entry = await log_of(server, org)
    assert said([invited, entry]) == [("org.inviteMember", 200, None), ("orgInvites.post", 200, None)]
    assert (entry["actorType"], entry["actorName"]) == ("User", "nobody@example.com")
    assert "actorId" not in entry


async def test_a_clone_is_in_the_logs_of_both_owners(server: Server) -> None:
    org, application = await server.organization(), await server.application("house")
    body = {"ownerType": "organization", "ownerId": id_of(org)}
    await server.call("POST", f"{application}/clone", {**body, "dryRun": True}, status=200)
    made = await server.call("POST", f"{application}/clone", body, status=201)
    queued = await server.call("POST", f"{application}/clone", {**body, "forceJob": True}, status=202)
    first, second = await log_of(server, org)
    assert said([first, second]) == [
        ("application.clone", 201, made["application"]["name"]),
        ("application.clone", 202, None),
    ]
    assert first["primaryTargetId"] == made["application"]["id"]
    assert second["responseBody"]["jobId"] == queued["jobId"]
    assert [each["primaryTargetId"] for each in await log_of(server, "/me")] == [id_of(application)] * 4


async def test_an_import_is_in_the_log_of_the_owner(server: Server) -> None:
    org = await server.organization()

    async def upload(content: bytes, **fields: Any) -> httpx.Response:
        return await send(server, "/applications", content, **fields)

    mine = (await upload(bundle_of({}))).json()["application"]
    to_org = {"ownerType": "organization", "ownerId": id_of(org)}
    theirs = (await upload(bundle_of({}), **to_org)).json()["application"]
    assert (await upload(b"no bundle", **to_org)).status_code == 400
    assert (await upload(bundle_of({}), options={"forceJob": True}, **to_org)).status_code == 202
    (entry,) = await log_of(server, "/me")
    assert said([entry]) == [("applications.import", 201, "Copied")]
    assert entry["primaryTargetId"] == mine["id"]
    entries = await log_of(server, org)
    assert said(entries) == [
        ("applications.import", 201, "Copied"),
        ("applications.import", 400, None),
        ("applications.import", 202, None),
    ]
    assert entries[0]["primaryTargetId"] == theirs["id"]


async def test_a_member_who_deletes_the_own_account_leaves_with_an_entry(server: Server) -> None:
    org = await server.organization()
    token = await other_user(server, OTHER)
    (sent,) = await server.call("POST", f"{org}/invites", {"email": OTHER, "role": "view"})
    await server.call("POST", f"/me/invites/{sent['id']}", {"action": "accept"}, token=token)
    gone = {"email": OTHER, "password": "Wrong-horse-88"}
    await server.call("POST", "/me/delete", gone, token=token, status=401)
    await server.call("POST", "/me/delete", {**gone, "password": OTHER_PASSWORD}, token=token, status=200)
    entries = await log_of(server, org)
    assert said(entries[2:]) == [("me.delete", 200, None)]
    assert entries[2]["actorName"] == OTHER
    assert OTHER_PASSWORD not in json.dumps(entries)
    assert PASSWORD not in json.dumps(entries)
