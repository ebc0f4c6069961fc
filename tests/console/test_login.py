"""Logging in to the console: the password, the second factor, and where the token is and is not."""

from __future__ import annotations

import pyotp
import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import EMAIL, PASSWORD, Server

pytestmark = pytest.mark.slow

TOKEN = (
    "fetch('/auth/session', { method: 'POST' }).then((answer) => answer.json()).then(({ token }) => token)"
)
"""A token of the login that the browser remembers; that of the page is in its memory only."""
REMEMBERED = "localStorage.getItem('trunkline.login')"


async def test_a_wrong_password_is_told_and_the_right_one_opens_the_console(
    server: Server, page: ConsolePage
) -> None:
    await page.at("textbox", "E-mail address").fill(EMAIL)
    await page.at(css="input[type=password]").fill("Wrong-horse-77")
    async with page.expecting("status of 401"):
        await page.at("button", "Log in").click()
        await page.at(css="[role=alert]").shown()
    await page.log_in(EMAIL, PASSWORD)
    await page.sees("There are no applications yet")
    await page.reload()
    await page.sees("There are no applications yet")
    assert EMAIL in await page.run(REMEMBERED)
    for place in (
        "location.href",
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }])",
        "document.cookie",
    ):
        assert "eyJ" not in await page.run(place), "a token begins so"


async def test_a_second_factor_is_asked_for(server: Server, page: ConsolePage) -> None:
    made = await server.call("PATCH", "/me/generateTwoFactorAuth")
    app = pyotp.TOTP(made["key"])
    now_s = server.system.clock.wall_ms() // 1000
    body = {"twoFactorAuthKey": made["key"], "password": PASSWORD, "twoFactorCode": app.at(now_s)}
    codes = (await server.call("PATCH", "/me/enableTwoFactorAuth", body))["recoveryCodes"]
    await page.at("textbox", "E-mail address").fill(EMAIL)
    await page.at(css="input[type=password]").fill(PASSWORD)
    async with page.expecting("status of 401"):
        await page.at("button", "Log in").click()
        await page.at("textbox", "Code of your second factor").fill(codes[0])
    await page.at("button", "Log in").click()
    await page.sees("There are no applications yet")


async def test_a_token_that_is_not_valid_any_more_leads_to_the_login(
    server: Server, console: ConsolePage
) -> None:
    await console.sees("There are no applications yet")
    application = await server.application("house")
    await console.go("#/applications")
    await console.sees("house")
    token = await console.run(TOKEN)
    body = {"password": PASSWORD, "newPassword": "Other-horse-99", "invalidateExistingTokens": True}
    await server.call("PATCH", "/me/changePassword", body, token=token)
    await console.at("button", "Create an application").click()
    await console.at("dialog").at("textbox", "Name").fill("barn")
    async with console.expecting("status of 401"):
        async with console.held("*/applications") as asked:
            await console.at("dialog").at("button", "Create").click()
            await asked()
            await console.go(f"#{application}")
            await console.sees("You are logged out")
        await console.settled()
    assert await console.run(REMEMBERED) is None
    await console.log_in(EMAIL, "Other-horse-99")
    await console.sees("no devices yet")
    # What came after the login had ended is not for this one.
    assert await console.at(css=".notes > div").count() == 0


async def test_a_second_tab_needs_no_second_login(server: Server, console: ConsolePage) -> None:
    await console.sees("There are no applications yet")
    async with console.second_tab() as other:
        await other.sees("There are no applications yet")
        token = await other.run(TOKEN)
        await other.at("button", "Log out").click()
        await console.sees("You have logged out in another tab.")
        await server.call("GET", "/me", token=token, status=401)
        await console.log_in(EMAIL, PASSWORD)
        await console.sees("There are no applications yet")
        await other.sees("There are no applications yet")
