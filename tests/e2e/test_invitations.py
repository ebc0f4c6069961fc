"""Invitations to organizations: sent by mail, answered once, bounded in time and number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import trio

from tests.e2e.conftest import EMAIL, Server
from tests.e2e.receivers import MailServer, kept_messages, link_in, listening
from trunkline.actors import server_users

StartServer = Callable[..., Any]

OTHER, PASSWORD = "other@example.com", "Other-horse-9"
WEEK_S = 7 * 86400


def mail_to(server: Server, address: str) -> tuple[str, str]:
    """The text of the newest mail to an address, and the token in it."""
    return kept_invitation(Path(server.settings.data_dir), address)


def kept_invitation(data_dir: Path, address: str) -> tuple[str, str]:
    """The same, of a server that may be in another process."""
    mails = [each for each in kept_messages(data_dir) if each["To"] == address]
    text = mails[-1].get_content()
    (answer,) = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert (answer["email"], answer["accept"]) == (address, True)
    return text, answer["token"]


async def other_user(server: Server, email: str = OTHER) -> str:
    """Create a user with a verified address; returns a token."""
    await server_users.add_user(server.root, email, PASSWORD)
    token = await server.log_in(email, PASSWORD)
    await server.call("POST", "/me/verify-email", token=token)
    (mail,) = [
        each
        for each in kept_messages(Path(server.settings.data_dir))
        if each["To"] == email and each["Subject"].startswith("Verify")
    ]
    await server.call("POST", link_in(mail), token="")
    return token


async def members(server: Server, org: str) -> dict[str, str]:
    return {each["email"]: each["role"] for each in (await server.call("GET", org))["members"]}


async def test_the_token_of_the_mail_accepts_once(server: Server) -> None:
    org = await server.organization()
    invite = {"email": OTHER, "role": "collaborate"}
    (pending,) = await server.call("POST", f"{org}/invites", invite, status=200)
    assert (pending["email"], pending["role"], pending["ttl"]) == (OTHER, "collaborate", WEEK_S)
    assert (pending["hasExpired"], pending["disallowTransfer"]) == (False, False)
    assert await server.call("GET", f"{org}/invites") == [pending]
    assert (await server.call("GET", org))["summary"]["pendingInviteCount"] == 1
    text, token = mail_to(server, OTHER)
    assert EMAIL in text
    assert token not in json.dumps([pending, await server.call("GET", org)])
    link = f"/invites?token={token}&email=OTHER@example.com"
    info = await server.call("GET", link, token="")
    assert (info["orgName"], info["email"], info["role"]) == ("farm", OTHER, "collaborate")
    for wrong in (f"/invites?token={token}&email=x@example.com", f"/invites?token=x&email={OTHER}"):
        await server.call("GET", wrong, token="", status=404)
    answer = {"email": OTHER, "token": token, "accept": True}
    # Without a user there is nobody to become a member; the invitation waits.
    refusal = await server.call("POST", "/invites", answer, token="", status=400)
    assert refusal["message"].startswith(f"email: there is no user {OTHER}, and there is no sign-up")
    await server_users.add_user(server.root, OTHER, PASSWORD)
    answers: list[httpx.Response] = []

    async def accept(client: httpx.AsyncClient) -> None:
        answers.append(await client.post("/invites", json=answer))

    async with server.client("") as client, trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(accept, client)
    (accepted,) = [each.json() for each in answers if each.is_success]
    assert accepted == {"accepted": True, "orgId": org.rpartition("/")[2]}
    assert [each.status_code for each in answers].count(404) == 7
    assert await members(server, org) == {EMAIL: "admin", OTHER: "collaborate"}
    assert await server.call("GET", f"{org}/invites") == []
    await server.call("POST", "/invites", answer, token="", status=404)
    await server.call("GET", link, token="", status=404)
    refusal = await server.call("POST", f"{org}/invites", invite, status=400)
    assert refusal["message"].startswith(f"email: {OTHER} is a member already")


async def test_an_invitation_is_declined_revoked_replaced_and_expires(server: Server) -> None:
    org = await server.organization()
    await server_users.add_user(server.root, OTHER, PASSWORD)

    async def invite(role: str = "view") -> tuple[str, str]:
        sent = await server.call("POST", f"{org}/invites", {"email": OTHER, "role": role})
        return sent[-1]["id"], mail_to(server, OTHER)[1]

    async def answer(token: str, status: int, *, accept: bool = True) -> None:
        body = {"email": OTHER, "token": token, "accept": accept}
        await server.call("POST", "/invites", body, token="", status=status)

    _, token = await invite()
    await answer(token, 200, accept=False)
    await answer(token, 404)
    id, token = await invite()
    assert await server.call("DELETE", f"{org}/invites?inviteId={id}") == []
    await server.call("DELETE", f"{org}/invites?inviteId={id}", status=404)
    await answer(token, 404)
    _, first = await invite("view")
    _, second = await invite("edit")
    assert [each["role"] for each in await server.call("GET", f"{org}/invites")] == ["edit"]
    await answer(first, 404)
    server.move_clock(WEEK_S)
    server.token = await server.log_in()
    assert (await server.call("GET", f"{org}/invites"))[0]["hasExpired"] is True
    await server.call("GET", f"/invites?token={second}&email={OTHER}", token="", status=410)
    await answer(second, 410)
    assert await members(server, org) == {EMAIL: "admin"}
    # An organization takes its invitations with it.
    _, third = await invite()
    await server.call("DELETE", org)
    await answer(third, 404)


async def test_a_user_answers_the_invitations_to_a_verified_address(server: Server) -> None:
    org, second = await server.organization("farm"), await server.organization("mill")
    await server_users.add_user(server.root, "liar@example.com", PASSWORD)
    liar = await server.log_in("liar@example.com", PASSWORD)
    change = {"email": OTHER, "currentCredentials": {"password": PASSWORD}}
    await server.call("PATCH", "/me", change, token=liar)
    sent = {}
    for path in (org, second):
        (pending,) = await server.call("POST", f"{path}/invites", {"email": OTHER, "role": "view"})
        sent[path] = pending["id"]
    # Anyone can enter any address, so one that is not verified shows and answers nothing.
    for method, path, body in (
        ("GET", "/me/invites", None),
        ("GET", f"/me/invites/{sent[org]}", None),
        ("POST", f"/me/invites/{sent[org]}", {"action": "accept"}),
    ):
        refusal = await server.call(method, path, body, token=liar, status=400)
        assert "not verified" in refusal["message"]
    back = {"email": "liar@example.com", "currentCredentials": {"password": PASSWORD}}
    await server.call("PATCH", "/me", back, token=liar)
    other = await other_user(server)
    listed = await server.call("GET", "/me/invites", token=other)
    assert [(each["id"], each["orgName"]) for each in listed] == [(sent[org], "farm"), (sent[second], "mill")]
    assert (listed[0]["expired"], listed[0]["requiresMFA"]) == (False, False)
    assert listed[0]["invitedBy"] == {"fullName": "owner", "email": EMAIL}
    assert await server.call("GET", f"/me/invites/{sent[org]}", token=other) == listed[0]
    for path in (f"/me/invites/{sent[org]}", "/me/invites"):  # nothing of others
        answer = await server.call("GET", path, token=liar, status=400)
        assert "not verified" in answer["message"]

    async def respond(path: str, action: str, status: int = 200) -> Any:
        return await server.call(
            "POST", f"/me/invites/{sent[path]}", {"action": action}, token=other, status=status
        )

    assert (await respond(second, "dismiss"))["result"] == "dismissed"
    assert [each["id"] for each in await server.call("GET", "/me/invites", token=other)] == [sent[org]]
    assert (await respond(org, "accept")) == {"result": "accepted", "orgId": org.rpartition("/")[2]}
    await respond(org, "accept", 404)
    assert (await respond(second, "reject"))["result"] == "rejected"
    assert [each["name"] for each in (await server.call("GET", "/orgs", token=other))["items"]] == ["farm"]


async def test_invitations_are_bounded(start_server: StartServer) -> None:
    limits = {"organization_invites_max": 2, "address_invites_max": 2, "organization_members_max": 1}
    async with start_server(limits=limits) as server:
        org = await server.organization()
        for address in ("a@example.com", "b@example.com", "a@example.com"):
            await server.call("POST", f"{org}/invites", {"email": address, "role": "view"}, status=200)
        refusal = await server.call("POST", f"{org}/invites", {"email": OTHER, "role": "view"}, status=400)
        assert refusal["message"].startswith("The organization has 2 open invitations")
        second, third = await server.organization("second"), await server.organization("third")
        await server.call("POST", f"{second}/invites", {"email": "a@example.com", "role": "view"}, status=200)
        refusal = await server.call(
            "POST", f"{third}/invites", {"email": "A@example.com", "role": "view"}, status=400
        )
        assert refusal["message"].startswith("email: this address has 2 open invitations")
        # An answer that does not fit leaves the invitation as it is.
        await server_users.add_user(server.root, "a@example.com", PASSWORD)
        answer = {"email": "a@example.com", "token": mail_to(server, "a@example.com")[1], "accept": True}
        refusal = await server.call("POST", "/invites", answer, token="", status=400)
        assert refusal["message"].startswith("The organization has 1 members")
        assert len(await server.call("GET", f"{second}/invites")) == 1


async def test_a_mail_that_is_not_sent_leaves_no_invitation(start_server: StartServer) -> None:
    mails = MailServer(refused=frozenset({OTHER}))
    async with listening(mails):
        settings = {"smtp_host": "127.0.0.1", "smtp_port": mails.port, "smtp_tls": "none"}
        async with start_server(**settings) as server:
            org = await server.organization()
            refusal = await server.call(
                "POST", f"{org}/invites", {"email": OTHER, "role": "view"}, status=503
            )
            assert "Nobody was invited" in refusal["message"]
            assert await server.call("GET", f"{org}/invites") == []


async def test_roles_that_do_not_fit_are_400(server: Server) -> None:
    org, house = await server.organization(), await server.application()
    mine = house.rpartition("/")[2]
    own = (await server.call("POST", "/applications", {"name": "b", "orgId": org.rpartition("/")[2]}))["id"]
    role = {"resourceId": own, "role": "view"}
    for body, said in (
        ({"role": "owner"}, "role: "),
        (
            {"role": "view", "applicationRoles": [{"resourceId": own, "role": "edit"}]},
            "applicationRoles[0].role",
        ),
        (
            {"role": "view", "applicationRoles": [role, role]},
            f"applicationRoles: {own} appears twice in the list",
        ),
        (
            {"role": "view", "applicationRoles": [role, {"resourceId": mine, "role": "view"}]},
            f"applicationRoles[1].resourceId: the organization has no application {mine}",
        ),
        ({"role": "view", "dashboardRoles": [role]}, "dashboardRoles[0].resourceId: the organization has no"),
        (
            {"role": "admin", "applicationRoles": [role]},
            "applicationRoles: an administrator reaches everything",
        ),
        ({"role": "view", "email": "nobody"}, "email: "),
    ):
        refusal = await server.call("POST", f"{org}/invites", {"email": OTHER, **body}, status=400)
        assert refusal["message"].startswith(said), refusal
    assert await server.call("GET", f"{org}/invites") == []
