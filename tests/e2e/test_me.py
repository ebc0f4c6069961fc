"""The current user: the profile, the password, and how the tokens of a user end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio

from tests.e2e.conftest import EMAIL, PASSWORD, Server
from tests.e2e.rows import api_token
from tests.patience import PATIENCE_S
from trunkline.actors import server_users
from trunkline.actors.catalogue import COUNTED

StartServer = Callable[..., Any]

NEW_PASSWORD = "Better-horse-8"
CREDENTIALS = {"currentCredentials": {"password": PASSWORD}}
WRONG = {"currentCredentials": {"password": "Wrong-horse-88"}}


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def holds(server: Server, token: str) -> bool:
    """Whether a token is let in."""
    async with server.client(token) as client:
        status = (await client.get("/me")).status_code
    assert status in (200, 401)
    return status == 200


# The profile.


async def test_a_user_sees_and_changes_the_profile(server: Server) -> None:
    me = await server.call("GET", "/me")
    assert me["id"] == me["userId"]
    assert (me["email"], me["firstName"], me["fullName"], me["_type"]) == (EMAIL, "owner", "owner", "me")
    assert me["summary"] == dict.fromkeys(COUNTED, 0) | {"apiTokenCount": 0, "appCount": 0, "orgCount": 0}
    assert not {"passwordHash", "password", "tokenGeneration"} & me.keys()
    profile = {
        "firstName": "Ada",
        "lastName": "Lovelace",
        "companyName": "Engines",
        "title": "Countess",
        "phoneNumber": "1",
        "location": "London",
        "url": "https://example.com",
    }
    changed = await server.call("PATCH", "/me?summaryInclude=appCount", profile)
    assert {name: changed[name] for name in profile} == profile
    assert changed["fullName"] == "Ada Lovelace"
    assert changed["summary"] == {"appCount": 0}
    assert changed["passwordLastUpdated"] == me["passwordLastUpdated"]
    for query, fields in (
        ("?summaryInclude=keyCount,appCount&includeRecent=true", {"keyCount", "appCount"}),
        ("?summaryExclude=keyCount,payloadCount", me["summary"].keys() - {"keyCount"}),
    ):
        assert (await server.call("GET", f"/me{query}"))["summary"].keys() == fields
    for query in ("?summaryInclude=keyCounts", "?summaryExclude=x"):
        answer = await server.call("GET", f"/me{query}", status=400)
        assert "is not a valid count" in answer["message"]


async def test_a_profile_that_does_not_fit_is_400(server: Server) -> None:
    before = await server.call("GET", "/me")
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"firstName": ""}, "firstName: "),
        ({"lastName": "x" * 1025}, "lastName: "),
        ({"nickname": "x"}, "nickname: there is no such field"),
        ({"email": "x", **CREDENTIALS}, "email: "),
        ({"password": "Short-1", **CREDENTIALS}, "password: "),
        ({"password": "alllowercase-1", **CREDENTIALS}, "password: "),
        ({"password": "NoDigitsInThis-", **CREDENTIALS}, "password: "),
        ({"password": "NoSignInThis123", **CREDENTIALS}, "password: "),
        ({"tokenCutoff": "yesterday", **CREDENTIALS}, "tokenCutoff: "),
        ({"tokenCutoff": iso(datetime.now(UTC) + timedelta(hours=1)), **CREDENTIALS}, "tokenCutoff: "),
        ({"currentCredentials": {}}, "currentCredentials.password: is missing"),
        ({"currentCredentials": {"password": "x" * 2049}}, "currentCredentials.password: "),
        ({"email": "new@example.com"}, "currentCredentials: is missing"),
        ({"password": NEW_PASSWORD}, "currentCredentials: is missing"),
        ({"tokenCutoff": "2024-01-01T00:00:00Z"}, "currentCredentials: is missing"),
    ]
    for body, sentence in bodies:
        answer = await server.call("PATCH", "/me", body, status=400)
        assert answer["message"].startswith(sentence), (body, answer)
    for body in (
        {"email": "new@example.com"},
        {"password": NEW_PASSWORD},
        {"firstName": "x", "email": "a@b.c"},
    ):
        answer = await server.call("PATCH", "/me", {**body, **WRONG}, status=401)
        assert answer["message"].startswith("currentCredentials.password: ")
    assert await server.call("GET", "/me") == before


async def test_an_address_belongs_to_one_account(server: Server) -> None:
    await server_users.add_user(server.root, "other@example.com", NEW_PASSWORD)
    for taken in ("other@example.com", "OTHER@example.com"):
        answer = await server.call("PATCH", "/me", {"email": taken, **CREDENTIALS}, status=400)
        assert "belongs to another user" in answer["message"]
    await server.call("PATCH", "/me", {"email": EMAIL.upper(), **CREDENTIALS}, status=200)
    await server.call("PATCH", "/me", {"email": "new@example.com", **CREDENTIALS}, status=200)
    login = {"email": EMAIL, "password": PASSWORD}
    await server.call("POST", "/auth/user", login, token="", status=401)
    await server.call("POST", "/auth/user", login | {"email": "New@example.com"}, token="", status=200)
    # The address that was given up is free; the token goes on.
    await server.call("GET", "/me", status=200)
    await server_users.add_user(server.root, EMAIL, NEW_PASSWORD)


async def test_two_users_do_not_win_the_same_address(server: Server) -> None:
    await server_users.add_user(server.root, "other@example.com", PASSWORD)
    tokens = [server.token, await server.log_in("other@example.com")]
    codes: list[int] = []

    async def claim(token: str) -> None:
        async with server.client(token) as client:
            response = await client.patch("/me", json={"email": "same@example.com", **CREDENTIALS})
            codes.append(response.status_code)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for token in tokens:
                nursery.start_soon(claim, token)
    assert sorted(codes) == [200, 400]


async def test_guessing_the_present_password_is_a_failed_login(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": {"calls": 3, "window_s": 60}}) as server:
        for _ in range(3):
            await server.call("PATCH", "/me", {"password": NEW_PASSWORD, **WRONG}, status=401)
        await server.call("PATCH", "/me", {"password": NEW_PASSWORD, **CREDENTIALS}, status=429)
        await server.call("POST", "/auth/user", {"email": EMAIL, "password": PASSWORD}, token="", status=429)
        # What needs no password goes on.
        await server.call("PATCH", "/me", {"firstName": "x"}, status=200)
        server.move_clock(61)
        await server.call("PATCH", "/me", {"password": NEW_PASSWORD, **CREDENTIALS}, status=200)


# How the tokens of a user end.


async def test_a_new_password_ends_every_earlier_token(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    made = await server.call("POST", "/me/tokens", {"name": "t"})
    ending = [
        server.token,
        await server.log_in(tokenTTL=0),
        (await server.call("GET", "/me/refreshToken"))["token"],
        made["token"],
    ]
    staying = await api_token(server, application, "all.Application")
    device_token, _ = await server.device_token(device)
    assert [await holds(server, token) for token in ending] == [True] * 4
    async with (
        server.client() as client,
        client.stream("GET", f"{device}/commandStream?keepAliveInterval=60") as stream,
    ):
        changed = await server.call("PATCH", "/me", {"password": NEW_PASSWORD, **CREDENTIALS}, status=200)
        with trio.fail_after(50):  # at once, not with the next comment
            async for _ in stream.aiter_raw():
                pass
    assert changed["passwordLastUpdated"] == changed["tokenCutoff"]
    assert [await holds(server, token) for token in ending] == [False] * 4
    await server.call("POST", "/auth/user", {"email": EMAIL, "password": PASSWORD}, token="", status=401)
    server.token = await server.log_in(password=NEW_PASSWORD)
    await server.call("GET", device, status=200)
    for token in (staying, device_token):
        await server.call("GET", device, token=token, status=200)


async def test_the_operators_new_password_ends_every_earlier_token(server: Server) -> None:
    await server_users.set_password(server.root, EMAIL, NEW_PASSWORD)
    assert not await holds(server, server.token)
    assert await holds(server, await server.log_in(password=NEW_PASSWORD))


@pytest.mark.slow
@pytest.mark.usefixtures("full_hashes")
async def test_no_token_slips_through_a_change_of_the_password(server: Server) -> None:
    """Renewed again and again while the password changes, a token of the old one ends all the same."""
    renewed = [server.token]
    under_way, done = trio.Event(), trio.Event()

    async def renew() -> None:
        async with server.client("") as client:
            while not done.is_set():
                headers = {"Authorization": f"Bearer {renewed[-1]}"}
                answers = [
                    await client.get("/me/refreshToken", headers=headers),
                    await client.post("/me/tokens", json={"name": "t"}, headers=headers),
                ]
                if any(answer.status_code == 401 for answer in answers):
                    return
                renewed.extend(answer.json()["token"] for answer in reversed(answers))
                if len(renewed) > 4:
                    under_way.set()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(renew)
            await under_way.wait()
            await server.call("PATCH", "/me", {"password": NEW_PASSWORD, **CREDENTIALS}, status=200)
            done.set()
    assert len(renewed) > 4
    assert [token for token in renewed if await holds(server, token)] == []


async def test_a_clock_that_was_set_back_opens_no_gap_and_locks_nobody_out(server: Server) -> None:
    server.move_clock(-3600)
    before = server.token
    assert await holds(server, before)
    await server.call("PATCH", "/me", {"password": NEW_PASSWORD, **CREDENTIALS}, status=200)
    assert not await holds(server, before)
    token = await server.log_in(password=NEW_PASSWORD)
    assert await holds(server, token)
    await server.call(
        "PATCH",
        "/me",
        {"password": PASSWORD, "currentCredentials": {"password": NEW_PASSWORD}},
        token=token,
        status=200,
    )
    server.move_clock(-3600)
    assert not await holds(server, token)
    assert await holds(server, await server.log_in())


async def test_a_cutoff_ends_the_sessions_before_it(server: Server) -> None:
    early = server.token
    refreshed_early = (await server.call("GET", "/me/refreshToken"))["token"]
    server.move_clock(60)
    renewed_late = (await server.call("GET", "/me/refreshToken"))["token"]
    late = await server.log_in()
    cutoff = datetime.now(UTC) + timedelta(seconds=30)
    change = {"tokenCutoff": iso(cutoff), **CREDENTIALS}
    changed = await server.call("PATCH", "/me", change, token=late, status=200)
    assert changed["tokenCutoff"] == iso(cutoff)
    # A renewal does not make a session younger.
    for token in (early, refreshed_early, renewed_late):
        assert not await holds(server, token)
    assert await holds(server, late)
    # The same again is no change; an earlier one would bring ended tokens back.
    await server.call("PATCH", "/me", change, token=late, status=200)
    for back in (cutoff - timedelta(milliseconds=1), datetime(1990, 1, 1, tzinfo=UTC)):
        body = {"tokenCutoff": iso(back), **CREDENTIALS}
        answer = await server.call("PATCH", "/me", body, token=late, status=400)
        assert "lies before the current one" in answer["message"]
    assert not await holds(server, early)


# Renewing.


async def test_a_renewed_token_has_the_scopes_and_the_life_of_the_old_one(server: Server) -> None:
    narrow = await server.log_in(requestedScopes=["me.get", "me.refreshToken"], tokenTTL=60)
    server.move_clock(50)
    answer = await server.call("GET", "/me/refreshToken", token=narrow, status=200)
    assert answer["userId"] == (await server.call("GET", "/me"))["id"]
    server.move_clock(50)
    assert not await holds(server, narrow)
    assert await holds(server, answer["token"])
    await server.call("GET", "/applications", token=answer["token"], status=403)
    server.move_clock(10)
    assert not await holds(server, answer["token"])


async def test_only_a_session_is_renewed(server: Server) -> None:
    application = await server.application()
    mine = await api_token(server, "/me", "all.User")
    answer = await server.call("GET", "/me/refreshToken", token=mine, status=400)
    assert "cannot be renewed" in answer["message"]
    token = await api_token(server, application, "all.Application")
    await server.call("GET", "/me/refreshToken", token=token, status=403)
    device_token, _ = await server.device_token(await server.device(application))
    await server.call("GET", "/me/refreshToken", token=device_token, status=403)
    await server.call("GET", "/me/refreshToken", token="", status=401)
