"""The pages of the account: the profile, the password, the second factor, API tokens, and how logins end."""

from __future__ import annotations

import re

import pyotp
import pytest

from tests.console import qr_code
from tests.console.console_page import ConsolePage
from tests.console.target import Target
from tests.e2e.conftest import EMAIL, PASSWORD, Server
from trunkline.actors import server_users

pytestmark = pytest.mark.slow

NEW_PASSWORD = "Better-horse-8"
OTHER = "other@example.com"
TOKEN = (
    "fetch('/auth/session', { method: 'POST' }).then((answer) => answer.json()).then(({ token }) => token)"
)
"""A token of the login that the browser remembers; that of the page is in its memory only."""
REMEMBERED = "localStorage.getItem('trunkline.login')"


async def holds(server: Server, token: str) -> bool:
    """Whether a token is let in."""
    async with server.client(token) as client:
        return (await client.get("/me")).status_code == 200


async def modules(drawn: Target) -> list[list[bool]]:
    """The modules of a QR code that is drawn with one square for each dark one, without its quiet zone."""
    size = int((await drawn.attribute("viewBox") or "").split()[-1]) - 8
    squares = re.findall(r"M(\d+) (\d+)h1v1h-1z", await drawn.at(css="path").attribute("d") or "")
    dark = {(int(y) - 4, int(x) - 4) for x, y in squares}
    return [[(row, column) in dark for column in range(size)] for row in range(size)]


async def test_logging_out_ends_the_log_in_on_the_server(server: Server, console: ConsolePage) -> None:
    token = await console.run(TOKEN)
    assert await holds(server, token)
    await console.at("button", "Log out").click()
    await console.sees("You have logged out.")
    assert not await holds(server, token)
    assert await holds(server, server.token)
    assert await console.run(REMEMBERED) is None


async def test_profile_password_and_log_ins(server: Server, console: ConsolePage) -> None:
    await console.go("#/account")
    await console.at("textbox", re.compile("^Company")).fill("A farm")
    await console.at("button", "Save").click()
    await console.sees("The profile is saved.")
    assert (await server.call("GET", "/me"))["companyName"] == "A farm"

    # A wrong password is told, and does not log out.
    await console.at("link", "Login").click()
    await console.at("button", "Change the password").click()
    form = console.at("dialog")
    await form.at(css="[name=password]").fill("Wrong-horse-77")
    await form.at(css="[name=newPassword]").fill(NEW_PASSWORD)
    await form.at(css="[name=again]").fill("Something else 1")
    await form.at("checkbox").click()
    await form.at("button", "Change the password").click()
    await form.says("the two new passwords are not equal")
    await form.at(css="[name=again]").fill(NEW_PASSWORD)
    async with console.expecting("status of 401"):
        await form.at("button", "Change the password").click()
        await form.says("password: is not the current password.")
    await form.at(css="[name=password]").fill(PASSWORD)
    await form.at("button", "Change the password").click()
    await console.sees("The password is changed.")
    assert not await holds(server, server.token)
    token = await console.run(TOKEN)
    assert await holds(server, token)

    await console.at("button", "End all logins").click()
    await console.at("dialog").at(css="[name=password]").fill(NEW_PASSWORD)
    await console.at("dialog").at("button", "End all logins").click()
    await console.sees("You have ended all logins.")
    assert not await holds(server, token)
    await console.log_in(EMAIL, NEW_PASSWORD)
    await console.sees("All ended before")


async def test_a_second_factor_is_enabled_and_disabled(server: Server, console: ConsolePage) -> None:
    await console.go("#/account/security")
    await console.at("button", "Enable").click()
    form = console.at("dialog")
    await form.at("image", "The key as a QR code").shown()
    key = await form.at(css=".snippet pre").text()
    link = await form.at("link", "open it in one").attribute("href") or ""
    assert f"secret={key}" in link
    assert qr_code.read(await modules(form.at(css=".qr-code"))) == link
    await form.at(css="[name=twoFactorCode]").fill(pyotp.TOTP(key).at(server.system.clock.wall_ms() // 1000))
    await form.at(css="[name=password]").fill(PASSWORD)
    await form.at("button", "Enable").click()
    await console.at("heading", "Recovery codes").shown()
    codes = (await form.at(css=".snippet pre").text()).split()
    assert len(codes) == 10
    await form.at("button", "I have kept them").click()
    await console.sees("A login needs the password and a code of your app.")
    await console.at("button", "Log out").click()
    await console.at("textbox", "E-mail address").fill(EMAIL)
    await console.at(css="input[type=password]").fill(PASSWORD)
    async with console.expecting("status of 401"):
        await console.at("button", "Log in").click()
        await console.at("textbox", "Code of your second factor").fill(codes[0])
    await console.at("button", "Log in").click()
    await console.at("button", "Disable").click()
    await form.at(css="[name=password]").fill(PASSWORD)
    await form.at(css="[name=twoFactorCode]").fill(codes[1])
    await form.at("button", "Disable").click()
    await console.sees("Two-factor authentication is disabled.")
    assert not (await server.call("GET", "/me"))["twoFactorAuthEnabled"]


async def test_an_api_token_is_shown_once_and_revoked(server: Server, console: ConsolePage) -> None:
    await console.go("#/account/tokens")
    await console.sees("You have no API tokens")
    await console.at("button", "Create an API token").click()
    form = console.at("dialog")
    await form.at("textbox", re.compile("^Name")).fill("backup")
    read = form.at("checkbox", re.compile("^all.User.read "))
    await read.click()
    async with console.expecting("status of 400"):
        await form.at("button", "Create").click()
        await form.at("alert").says("scope: is empty")
    await read.click()
    await form.at("checkbox", re.compile("^me.get ")).click()
    await form.at("button", "Create").click()
    await console.at("heading", "The API token").shown()
    token = (await form.at(css=".snippet pre").text()).strip()
    await form.at("button", "I have copied it").click()
    assert token not in await console.shows()
    assert (await server.call("GET", "/me/tokens"))["items"][0]["scope"] == ["all.User.read", "me.get"]
    assert await holds(server, token)
    await console.at("button", "Deactivate backup").click()
    await console.sees("backup is inactive.")
    assert not await holds(server, token)
    await console.at("button", "Delete backup").click()
    await form.at("button", "Delete").click()
    await console.sees("You have no API tokens")


async def test_an_account_is_deleted_after_its_address_is_typed(server: Server, page: ConsolePage) -> None:
    await server_users.add_user(server.system, OTHER, PASSWORD)
    await page.log_in(OTHER, PASSWORD)
    await page.go("#/account/delete")
    await page.at("button", "Delete my account").click()
    form = page.at("dialog")
    await form.at(css="[name=password]").fill(PASSWORD)
    await form.at(css="[name=email]").fill(EMAIL)
    await form.at("button", "Delete my account").click()
    await form.says(f"email: is not {OTHER}.")
    await form.at(css="[name=email]").fill(OTHER)
    await form.at("button", "Delete my account").click()
    await page.sees("Your account is deleted.")
    body = {"email": OTHER, "password": PASSWORD}
    await server.call("POST", "/auth/user", body, token="", status=401)
