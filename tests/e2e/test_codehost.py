"""Logging in by a code host: it names the e-mail addresses of the bearer of a token."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pyotp
import pytest
import trio

from tests.e2e.conftest import EMAIL, PASSWORD, Server
from tests.e2e.receivers import Line
from trunkline.actors import server_users
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings

StartServer = Callable[..., Any]

UNTHROTTLED = {"login_per_account": "off", "login_per_address": "off"}
OTHER = "other@example.com"
VERIFIED = {"email": EMAIL, "primary": True, "verified": True}


class CodeHost:
    """Answers each request with `status` and `answer`; keeps the request heads."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: Any = {"email": EMAIL}
        self.heads: list[list[bytes]] = []
        self.port = 0

    async def serve(self, stream: trio.abc.Stream) -> None:
        line = Line(stream)
        head = [await line.read()]
        while head[-1]:
            head.append(await line.read())
        self.heads.append(head)
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        fields = (
            f"content-length: {len(body)}\r\nlocation: http://127.0.0.1:{self.port}/\r\nconnection: close\r\n"
        )
        await stream.send_all(f"HTTP/1.1 {self.status} x\r\n{fields}\r\n".encode() + body)


@asynccontextmanager
async def serving(start_server: StartServer, **settings: Any) -> AsyncIterator[tuple[Server, CodeHost]]:
    """A code host, and a server that asks it. The owner's address is verified."""
    host = CodeHost()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    host.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, host.serve, listeners))
        url = f"http://127.0.0.1:{host.port}/user?x=y"
        async with start_server(**{"codehost_url": url, "limits": UNTHROTTLED, **settings}) as server:
            await server_users.verify_email(server.root, EMAIL)
            yield server, host
        nursery.cancel_scope.cancel()


async def log_in(server: Server, status: int = 200, **more: Any) -> Any:
    body = {"accessToken": "token-of-the-host", **more}
    return await server.call("POST", "/auth/user/codehost", body, token="", status=status)


async def test_a_verified_address_logs_in(start_server: StartServer) -> None:
    async with serving(start_server) as (server, host):
        await server_users.add_user(server.root, OTHER, PASSWORD)
        answer = await log_in(server, requestedScopes=["me.get"], tokenTTL=60)
        me = await server.call("GET", "/me", token=answer["token"])
        assert (me["id"], me["codehostConnected"]) == (answer["userId"], True)
        await server.call("GET", "/applications", token=answer["token"], status=403)
        assert host.heads[0][0] == b"GET /user?x=y HTTP/1.1"
        assert b"Authorization: Bearer token-of-the-host" in host.heads[0]
        for answer in (
            [VERIFIED],
            [{"email": "x@y.z", "verified": True}, VERIFIED],
            # The account with this address is not verified, so it may be that of somebody else.
            [{"email": OTHER, "verified": True}, VERIFIED],
            {"email": EMAIL.upper()},
        ):
            host.answer = answer
            assert (await log_in(server))["userId"] == me["id"]


async def test_everything_else_does_not(start_server: StartServer) -> None:
    async with serving(start_server) as (server, host):
        await server_users.add_user(server.root, OTHER, PASSWORD)
        await server_users.add_user(server.root, "strasse@example.com", PASSWORD)
        await server_users.verify_email(server.root, "strasse@example.com")
        answers: list[tuple[Any, int, str]] = [
            ({"email": "nobody@example.com"}, 401, "There is no user"),
            ({"email": OTHER}, 401, "is not verified"),
            # Equal without regard to case in Unicode, and the address of somebody else.
            ({"email": "straße@example.com"}, 401, "is not that of the user"),
            ({"email": EMAIL, "verified": False}, 401, "names no verified e-mail address"),
            ([{"email": EMAIL}], 401, "names no verified e-mail address"),
            ([], 401, "names no verified e-mail address"),
            ({"email": None}, 401, "names no verified e-mail address"),
            ("owner@example.com", 401, "names no verified e-mail address"),
            (b"<html>", 503, "did not answer with JSON"),
            (b" " * 70_000, 503, "more than 65536 bytes"),
        ]
        for host.answer, status, sentence in answers:
            assert sentence in (await log_in(server, status))["message"]
        host.answer = {"email": EMAIL}
        for host.status, status in ((401, 401), (302, 401), (500, 503), (429, 503)):
            await log_in(server, status)
        assert len(host.heads) == len(answers) + 4, "redirects are not followed"
        for text in ("", "a b", "a\r\nx: y"):
            refused = await log_in(server, 400, accessToken=text)
            assert refused["message"].startswith("accessToken: ")
        await server.call("POST", "/auth/user", {"email": EMAIL, "password": PASSWORD}, token="", status=200)


async def test_a_user_disconnects_and_connects_the_code_host(start_server: StartServer) -> None:
    async with serving(start_server) as (server, host):
        await log_in(server)
        assert (await server.call("PATCH", "/me/disconnectCodehost"))["codehostConnected"] is False
        assert "has disconnected" in (await log_in(server, 401))["message"]
        host.answer = {"email": OTHER}
        connect = {"accessToken": "t"}
        await server.call("PATCH", "/me/connectCodehost", connect, status=401)
        host.answer = {"email": EMAIL}
        assert (await server.call("PATCH", "/me/connectCodehost", connect))["codehostConnected"] is True
        await log_in(server)


async def test_a_second_factor_is_not_left_out(start_server: StartServer) -> None:
    async with serving(start_server) as (server, _):
        key = (await server.call("PATCH", "/me/generateTwoFactorAuth"))["key"]
        code = pyotp.TOTP(key).at(server.system.clock.wall_ms() // 1000)
        await server.call("PATCH", "/me/enableTwoFactorAuth", {"password": PASSWORD, "twoFactorCode": code})
        assert "has a second factor" in (await log_in(server, 401))["message"]


async def test_failed_log_ins_count_for_the_address(start_server: StartServer) -> None:
    limits = {"login_per_address": {"calls": 2, "window_s": 60}}
    async with serving(start_server, limits=limits) as (server, host):
        host.answer = []
        for _ in range(2):
            await log_in(server, 401)
        await log_in(server, 429)
        assert len(host.heads) == 2


async def test_those_behind_one_address_do_not_count_as_one_account(start_server: StartServer) -> None:
    """Not those who log in at the same time, nor those who fail."""
    limits = {"login_per_account": {"calls": 2, "window_s": 60}}
    async with serving(start_server, limits=limits) as (server, host):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(log_in, server)
        host.answer = []
        for _ in range(3):
            await log_in(server, 401)
        host.answer = {"email": EMAIL}
        await log_in(server)


async def test_without_a_code_host_nobody_is_asked(server: Server) -> None:
    assert "has no code host" in (await log_in(server, 401))["message"]


@pytest.mark.parametrize(
    "url", ["http://api.example.com/user", "api.example.com", "ftp://127.0.0.1/", "https://"]
)
def test_tokens_are_sent_by_tls_only(url: str) -> None:
    with pytest.raises(SettingsError, match="codehost_url is"):
        Settings(codehost_url=url)
