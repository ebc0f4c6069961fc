"""Guessing at the logins of applications is throttled: by account, by address, and only where it was tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.experience_browser import browser
from tests.e2e.experiences import new_experience
from tests.e2e.test_webhooks import send, webhook

StartServer = Callable[..., Any]

BY_ACCOUNT = {"login_per_account": {"calls": 3, "window_s": 60}}
BY_ADDRESS = {"login_per_address": {"calls": 3, "window_s": 60}}
TRUSTING = {"trust_forwarded_for": True}


async def form_of(server: Server, slug: str) -> tuple[Any, dict[str, str]]:
    """The first experience of a new application: a browser at it, and the form that logs its user in."""
    exp = await new_experience(server)
    made = await server.call("PATCH", f"{exp.path}/bootstrap", {"slug": slug})
    return browser(exp, f"{slug}.localhost"), {"email": made["email"], "password": made["password"]}


@pytest.mark.parametrize("known", [True, False])
async def test_wrong_passwords_for_one_account_are_refused(start_server: StartServer, known: bool) -> None:
    async with start_server(limits=BY_ACCOUNT, **TRUSTING) as server:
        at, right = await form_of(server, "farm")
        account = right if known else {"email": "nobody@example.com"}
        tried = []
        for number in range(5):
            # From another address each time, and written in another way.
            email = account["email"].upper() if number % 2 else account["email"]
            headers = {"X-Forwarded-For": f"192.0.2.{number}"}
            form = {"email": email, "password": f"guess {number}"}
            tried.append(await at.send("POST", "/log-in", data=form, headers=headers))
        assert [each.status_code for each in tried] == [401, 401, 401, 429, 429]
        assert tried[-1].json()["error"].startswith("Too many failed attempts to log in at this account")
        assert 0 < int(tried[-1].headers["retry-after"]) <= 60
        # The account is closed for a while, and only this one, and only here.
        closed = await at.send("POST", "/log-in", data=right)
        assert closed.status_code == (429 if known else 302)
        other, form = await form_of(server, "mill")
        assert (await other.send("POST", "/log-in", data=form)).status_code == 302
        await server.log_in()


async def test_wrong_passwords_from_one_address_are_refused(start_server: StartServer) -> None:
    """One password for many accounts, which no window of an account would notice."""
    async with start_server(limits=BY_ADDRESS, **TRUSTING) as server:
        at, right = await form_of(server, "farm")

        async def tried(email: str, password: str, address: str) -> int:
            form = {"email": email, "password": password}
            answer = await at.send("POST", "/log-in", data=form, headers={"X-Forwarded-For": address})
            return int(answer.status_code)

        found = [await tried(f"user{number}@example.com", "Summer-2026", "192.0.2.1") for number in range(5)]
        assert found == [401, 401, 401, 429, 429]
        assert await tried(right["email"], right["password"], "192.0.2.1") == 429
        assert await tried(right["email"], right["password"], "192.0.2.2") == 302
        other, form = await form_of(server, "mill")
        headers = {"X-Forwarded-For": "192.0.2.1"}
        assert (await other.send("POST", "/log-in", data=form, headers=headers)).status_code == 302


async def test_right_passwords_are_not_counted(start_server: StartServer) -> None:
    async with start_server(limits=BY_ACCOUNT | BY_ADDRESS) as server:
        at, right = await form_of(server, "farm")
        for _ in range(5):
            assert (await at.send("POST", "/log-in", data=right)).status_code == 302


async def test_a_run_that_is_refused_tells_why(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": {"calls": 1, "window_s": 60}}) as server:
        at, right = await form_of(server, "farm")
        for _ in range(2):
            await at.send("POST", "/log-in", data=right | {"password": "wrong"})
        application = (await server.call("GET", "/applications"))["items"][0]["id"]
        (flow,) = (await server.call("GET", f"/applications/{application}/flows?flowClass=experience"))[
            "items"
        ]
        errors = await server.call("GET", f"/applications/{application}/flows/{flow['id']}/errors")
        assert "Too many failed attempts" in str(errors)


async def test_wrong_passwords_of_a_webhook_are_refused(start_server: StartServer) -> None:
    async with start_server(limits=BY_ACCOUNT) as server:
        hook = await webhook(server, basicAuthUsername="u", basicAuthPassword="right")
        other = await webhook(server, basicAuthUsername="u", basicAuthPassword="right")

        async def tried(password: str | None, at: Any = hook) -> int:
            given: dict[str, Any] = {} if password is None else {"auth": ("u", password)}
            return int((await send(server, at["address"], **given)).status_code)

        # Who gives no password does not guess.
        assert [await tried(None) for _ in range(5)] == [401] * 5
        assert [await tried("right") for _ in range(5)] == [200] * 5
        assert [await tried(f"guess {number}") for number in range(5)] == [401, 401, 401, 429, 429]
        assert await tried("right") == 429
        assert await tried("right", other) == 200
