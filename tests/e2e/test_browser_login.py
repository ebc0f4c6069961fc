"""A browser remembers a login: by a cookie that only pages of the server can use, and only to get a token."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.e2e.conftest import PASSWORD, Server
from tests.e2e.rows import api_token
from trunkline.http.resources.people.browser_login import PATH

DAY_S = 86_400


async def remembered(server: Server, token: str) -> tuple[str, dict[str, str | None]]:
    """The cookie that a browser gets for a token, and its attributes."""
    async with server.client(token) as client:
        answer = await client.post("/me/session")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    first, *rest = answer.headers["set-cookie"].split("; ")
    name, _, value = first.partition("=")
    attributes = [part.partition("=") for part in rest]
    return f"{name}={value}", {key: value if equals else None for key, equals, value in attributes}


async def asked(server: Server, cookie: str, **headers: str) -> httpx.Response:
    async with server.client("") as client:
        return await client.post(PATH, headers={"origin": server.url, "cookie": f"a=b; {cookie}", **headers})


async def test_a_page_gets_a_token_of_the_same_login(server: Server) -> None:
    token = await server.log_in(tokenTTL=DAY_S, requestedScopes=["all.User.read", "me.logout"])
    cookie, attributes = await remembered(server, token)
    assert attributes == {"Path": PATH, "Max-Age": str(DAY_S), "HttpOnly": None, "SameSite": "Strict"}
    answer = await asked(server, cookie)
    given = answer.json()
    assert (answer.status_code, given["userId"]) == (200, (await server.call("GET", "/me"))["id"])
    assert answer.headers["set-cookie"].startswith(cookie.partition("=")[0])
    assert await server.call("GET", "/me", token=given["token"], status=200)
    # With the scopes of the token that was remembered.
    await server.call("PATCH", "/me", {"title": "Farmer"}, token=given["token"], status=403)
    # The login ends with either of them, and the cookie with it.
    await server.call("POST", "/me/logout", token=given["token"], status=200)
    await server.call("GET", "/me", token=token, status=401)
    ended = await asked(server, cookie)
    assert (ended.status_code, ended.json()["type"]) == (401, "Unauthorized")


async def test_the_cookie_lets_nobody_in_anywhere_else(server: Server) -> None:
    token = await server.log_in()
    cookie, _ = await remembered(server, token)
    name, _, text = cookie.partition("=")
    await server.call("GET", "/me", token=text, status=401)
    async with server.client("") as client:
        answer = await client.get("/me", headers={"cookie": cookie, "origin": server.url})
    assert answer.status_code == 401
    assert (await asked(server, f"{name}={token}")).status_code == 401, "a token is no cookie"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://plant.localhost:{port}", ""])
async def test_a_page_of_another_origin_gets_nothing(server: Server, origin: str) -> None:
    cookie, _ = await remembered(server, await server.log_in())
    origin = origin.format(port=server.url.rpartition(":")[2])
    headers: dict[str, Any] = {"cookie": cookie}
    async with server.client("") as client:
        answer = await client.post(PATH, headers=headers | ({"origin": origin} if origin else {}))
    assert answer.status_code == 403
    assert answer.json()["message"].startswith("Origin: ")
    assert "set-cookie" not in answer.headers


async def test_without_a_login_there_is_none_to_remember(server: Server) -> None:
    async with server.client("") as client:
        answer = await client.post(PATH, headers={"origin": server.url})
        assert (answer.status_code, answer.json()["message"]) == (
            401,
            "This browser remembers no login; log in.",
        )
    await server.call("POST", "/me/session", token="", status=401)
    answer = await server.call(
        "POST", "/me/session", token=await api_token(server, "/me", "all.User"), status=400
    )
    assert "API token" in answer["message"]


async def test_a_changed_password_ends_what_browsers_remember(server: Server) -> None:
    cookie, _ = await remembered(server, server.token)
    body = {"password": PASSWORD, "newPassword": "Other-horse-99", "invalidateExistingTokens": True}
    await server.call("PATCH", "/me/changePassword", body)
    assert (await asked(server, cookie)).status_code == 401


async def test_it_expires_with_the_token(server: Server) -> None:
    cookie, _ = await remembered(server, await server.log_in(tokenTTL=60))
    server.move_clock(61)
    answer = await asked(server, cookie)
    assert (answer.status_code, "expired" in answer.json()["message"]) == (401, True)
