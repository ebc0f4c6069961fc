"""The verification of a user's e-mail address."""

from __future__ import annotations

from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.conftest import EMAIL, PASSWORD, Server
from tests.e2e.receivers import MailServer, kept_messages, link_in, listening
from tests.e2e.server_process import trunkline
from trunkline.actors import server_users

StartServer = Callable[..., Any]


def mails(server: Server) -> list[EmailMessage]:
    return kept_messages(Path(server.settings.data_dir))


async def is_verified(server: Server) -> bool:
    me = await server.call("GET", "/me")
    assert me["emailVerified"] is not me["needsToVerifyEmail"]
    login = await server.call("POST", "/auth/user", {"email": me["email"], "password": PASSWORD}, token="")
    assert login["needsToVerifyEmail"] is me["needsToVerifyEmail"]
    return bool(me["emailVerified"])


async def test_the_link_of_a_mail_verifies_the_address(server: Server) -> None:
    assert not await is_verified(server)
    await server.call("POST", "/me/verify-email")
    (mail,) = mails(server)
    assert (mail["To"], mail["Subject"]) == (EMAIL, "Verify your e-mail address")
    link = link_in(mail)
    async with server.client("") as client:
        page = await client.get(link)
        assert page.headers["content-type"].startswith("text/html")
        assert '<form method="post">' in page.text
        assert not await is_verified(server), "a program that opens links verifies nothing"
        # As a browser sends the form of the page.
        form = {"content-type": "application/x-www-form-urlencoded", "accept": "text/html,*/*"}
        client.event_hooks = {}
        done = await client.post(link, headers=form)
        assert "is verified" in done.text
    assert await is_verified(server)
    await server.call("POST", link, token="", status=200)
    # There is nothing more to send.
    await server.call("POST", "/me/verify-email")
    assert len(mails(server)) == 1


async def test_a_new_address_has_to_be_verified_again(server: Server) -> None:
    await server.call("POST", "/me/verify-email")
    first = link_in(mails(server)[0])
    await server.call("POST", first, token="")
    change = {"email": "new@example.com", "currentCredentials": {"password": PASSWORD}}
    assert (await server.call("PATCH", "/me", change))["needsToVerifyEmail"] is True
    answer = await server.call("POST", first, token="", status=404)
    assert "another e-mail address" in answer["message"]
    assert not await is_verified(server)
    await server.call("POST", "/me/verify-email")
    await server.call("POST", link_in(mails(server)[-1]), token="")
    assert await is_verified(server)
    # Only a difference in the text counts: the same address keeps what was proved.
    await server.call("PATCH", "/me", change)
    assert await is_verified(server)


async def test_links_of_others_and_old_links_are_refused(server: Server) -> None:
    await server.call("POST", "/me/verify-email")
    link = link_in(mails(server)[0])
    token = parse_qs(urlsplit(link).query)["token"][0]
    for wrong in (server.token, token[:-3], "x"):
        for method in ("GET", "POST"):
            answer = await server.call(method, f"/auth/verifyEmail?token={wrong}", token="", status=403)
            assert answer["message"].startswith("This is not a link")
    await server.call("GET", "/me", token=token, status=401)
    server.move_clock(86_401)
    server.token = await server.log_in()
    await server.call("POST", link, token="", status=404)
    assert not await is_verified(server)


async def test_mails_are_throttled_and_a_mail_that_is_not_sent_is_told(start_server: StartServer) -> None:
    receiver = MailServer()
    receiver.reserve()
    settings = {"smtp_host": "127.0.0.1", "smtp_port": receiver.port, "smtp_tls": "none"}
    async with start_server(**settings, public_url="https://devices.example.com/") as server:
        answer = await server.call("POST", "/me/verify-email", status=503)
        assert answer["message"].startswith("The mail was not sent. ")
        async with listening(receiver):
            await server.call("POST", "/me/verify-email")
            (mail,) = await receiver.number(1)
            assert "https://devices.example.com/auth/verifyEmail?token=" in mail.message.get_content()
            async with server.client() as client:
                answer = await client.post("/me/verify-email")
                assert answer.headers["ratelimit"].startswith('"verify_email";r=0;t=')
                assert (await client.post("/me/verify-email")).status_code == 429


@pytest.mark.slow
async def test_an_operator_verifies_an_address(server: Server) -> None:
    data = ("--data", server.settings.data_dir)
    assert (await trunkline("user", "verify-email", EMAIL, *data)).returncode == 0
    assert await is_verified(server)
    for command in ("verify-email", "reset-two-factor"):
        done = await trunkline("user", command, "nobody@example.com", *data)
        assert done.returncode == 1
        assert "There is no user nobody@example.com." in done.stderr
    assert (await trunkline("user", "reset-two-factor", EMAIL, *data)).returncode == 0
    assert [line.email for line in server_users.users(server.root)] == [EMAIL]
