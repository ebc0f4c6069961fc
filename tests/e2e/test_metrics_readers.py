"""The figures of the whole server are for operators, and for who is on the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import EMAIL, Server
from trunkline.actors import server_users

StartServer = Callable[..., Any]


async def status(server: Server, token: str = "", **headers: str) -> int:
    async with server.client(token) as client:
        answer = await client.get("/metrics", headers=headers)
    assert ("trunkline_calls_total" in answer.text) is (answer.status_code == 200)
    return answer.status_code


async def test_a_user_who_is_no_operator_reads_no_figures_of_the_server(server: Server) -> None:
    await server_users.add_user(server.root, "eve@example.com", "Other-horse-9")
    eve = await server.log_in("eve@example.com", "Other-horse-9")
    assert await status(server, eve) == 403
    assert await status(server, server.token) == 200  # the first user
    assert await status(server) == 200  # from the machine itself
    assert await status(server, "nonsense") == 401
    for name in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"):
        assert await status(server, **{name: "203.0.113.7"}) == 401
    await server_users.set_operator(server.root, "eve@example.com", is_operator=True)
    assert await status(server, eve, **{"X-Forwarded-For": "203.0.113.7"}) == 200
    assert (await server.call("GET", "/me", token=eve))["isOperator"]
    await server_users.set_operator(server.root, EMAIL, is_operator=False)
    assert await status(server, server.token) == 403
    assert "isOperator" not in await server.call("GET", "/me")


async def test_an_operator_reads_them_with_a_token_for_that_purpose(server: Server) -> None:
    body = {"name": "prometheus", "scope": ["all.User.read"]}
    made = await server.call("POST", "/me/tokens", body)
    assert await status(server, made["token"]) == 200
    await server.call("PATCH", f"/me/tokens/{made['id']}", {"status": "inactive"})
    assert await status(server, made["token"]) == 401
    narrow = await server.call("POST", "/me/tokens", {"name": "narrow", "scope": ["me.get"]})
    assert await status(server, narrow["token"]) == 403
    application = await server.application()
    of_application = await server.call("POST", f"{application}/tokens", {"name": "app"})
    assert await status(server, of_application["token"]) == 403


async def test_ipv4_on_a_socket_for_both_versions_is_the_machine_too(start_server: StartServer) -> None:
    """There the kernel writes ::ffff:127.0.0.1."""
    async with start_server(host="::", engine="fast") as server:
        server.url = server.url.replace("[::]", "127.0.0.1")
        assert await status(server) == 200
        assert await status(server, **{"X-Forwarded-For": "203.0.113.7"}) == 401


@pytest.mark.parametrize(("metrics_for", "expected"), [("operators", 401), ("all", 200)])
async def test_the_setting_says_who_else_reads_them(
    start_server: StartServer, metrics_for: str, expected: int
) -> None:
    async with start_server(metrics_for=metrics_for) as server:
        assert await status(server) == expected
        assert await status(server, server.token) == 200
