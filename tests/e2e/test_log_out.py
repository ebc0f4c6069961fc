"""Logging out ends one login: its token, those renewed from it, and their streams. Nothing else of the user ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.rows import api_token
from tests.e2e.server_process import OWNER, serving
from tests.patience import PATIENCE_S

StartServer = Callable[..., Any]
DAY_S = 86_400


async def holds(server: Server, token: str) -> bool:
    """Whether a token is let in."""
    async with server.client(token) as client:
        return (await client.get("/me")).status_code == 200


async def renewed(server: Server, token: str) -> str:
    """A token that was renewed from another one."""
    return str((await server.call("GET", "/me/refreshToken", token=token, status=200))["token"])


async def test_a_log_out_ends_its_log_in_and_nothing_else(server: Server) -> None:
    device = await server.device(await server.application())
    mine, other = await server.log_in(), await server.log_in()
    again = await renewed(server, mine)
    third = await renewed(server, again)
    api = await api_token(server, "/me", "all.User")
    made_by_mine = (await server.call("POST", "/me/tokens", {"name": "kept"}, token=mine))["token"]
    async with (
        server.client(third) as client,
        client.stream("GET", f"{device}/commandStream?keepAliveInterval=60") as stream,
    ):
        assert await server.call("POST", "/me/logout", token=again, status=200) == {"success": True}
        with trio.fail_after(50):  # at once, not with the next comment
            async for _ in stream.aiter_raw():
                pass
    assert [await holds(server, token) for token in (mine, again, third)] == [False] * 3
    assert [await holds(server, token) for token in (other, api, made_by_mine, server.token)] == [True] * 4
    answer = await server.call("POST", "/me/logout", token=mine, status=401)
    assert "log in again" in answer["message"]
    assert await holds(server, await server.log_in())


@pytest.mark.slow
async def test_no_token_slips_through_a_log_out(server: Server) -> None:
    """Renewed again and again while its login ends, each token of it ends all the same."""
    tokens = [await server.log_in()]
    under_way, done = trio.Event(), trio.Event()

    async def renew() -> None:
        async with server.client("") as client:
            while not done.is_set():
                answer = await client.get(
                    "/me/refreshToken", headers={"Authorization": f"Bearer {tokens[-1]}"}
                )
                if answer.status_code == 401:
                    return
                tokens.append(answer.json()["token"])
                if len(tokens) > 8:
                    under_way.set()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(renew)
            await under_way.wait()
            await server.call("POST", "/me/logout", token=tokens[0], status=200)
            done.set()
    assert [token for token in tokens if await holds(server, token)] == []


async def test_a_log_out_needs_no_scope_to_write(server: Server) -> None:
    for scope in ("all.User.read", "me.logout"):
        token = await server.log_in(requestedScopes=[scope, "me.get"])
        await server.call("POST", "/me/logout", token=token, status=200)
        assert not await holds(server, token)
    narrow = await server.log_in(requestedScopes=["me.get"])
    await server.call("POST", "/me/logout", token=narrow, status=403)


async def test_an_api_token_is_deleted_instead(server: Server) -> None:
    made = await server.call("POST", "/me/tokens", {"name": "t"})
    answer = await server.call("POST", "/me/logout", token=made["token"], status=400)
    assert f"`DELETE /me/tokens/{made['id']}`" in answer["message"]
    assert await holds(server, made["token"])
    application = await server.application()
    for token in (
        await api_token(server, application, "all.Application"),
        (await server.device_token(await server.device(application)))[0],
    ):
        await server.call("POST", "/me/logout", token=token, status=403)


async def test_the_bound_ends_older_log_ins_and_locks_nobody_out(start_server: StartServer) -> None:
    async with start_server(limits={"ended_logins_max": 2}) as server:
        tokens = []
        for _ in range(4):
            server.move_clock(1)
            tokens.append(await server.log_in(tokenTTL=0))
        first, *ending = tokens
        for token in ending:
            await server.call("POST", "/me/logout", token=token, status=200)
        # The third logout has displaced the oldest entry, and with it ended what began before.
        assert not await holds(server, first)
        assert [await holds(server, token) for token in ending] == [False] * 3
        server.move_clock(-DAY_S)
        assert await holds(server, await server.log_in())


async def test_a_log_out_survives_a_kill(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE_S):
        async with serving(tmp_path / "data", env=OWNER) as server:
            ended, stays = await server.log_in(), await server.log_in()
            also_ended = await renewed(server, ended)
            await server.call("POST", "/me/logout", token=ended, status=200)
            await server.kill()
        async with serving(tmp_path / "data", env=OWNER) as server:
            assert [await holds(server, token) for token in (ended, also_ended, stays)] == [
                False,
                False,
                True,
            ]
