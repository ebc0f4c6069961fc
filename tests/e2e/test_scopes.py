"""Scopes: which token is accepted by which operation, for every route."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import Server
from tests.e2e.rows import (
    DEVICE_READS,
    DEVICE_WRITES,
    ROWS,
    UNKNOWN,
    api_token,
    expected_scopes,
    path_of,
    send,
)
from trunkline.http.calls.auth import SCOPE_FAMILIES
from trunkline.http.routes import TABLE

NAMED = {"name", "flowVersionId", "experienceVersionIdOrName"}
"""The path parameters that take a name."""


async def test_the_table_has_the_rows_that_this_test_knows() -> None:
    operations = {route.operation for route in TABLE.routes}
    assert operations >= DEVICE_READS | DEVICE_WRITES
    assert {route.operation for route in TABLE.routes if route.access == "none"} == {
        "auth.authenticateUser",
        "auth.authenticateDevice",
        "auth.authenticateUserCodehost",
        "auth.authenticateUserSaml",
        "auth.continueLogin",
        "auth.ssoDomain",
        "auth.verifyEmail",
        "auth.verifyEmailPage",
        "contents.get",
        "downloads.get",
        "files.download",
        "mqtt.open",
        "orgInvites.get",
        "orgInvites.post",
        "uploads.post",
        "whitelabels.domain",
        *(f"webhookAddress.{method}" for method in ("post", "get", "put", "patch", "delete")),
    }


@pytest.mark.slow
async def test_every_row_opens_to_its_scopes_and_to_no_other(server: Server) -> None:
    others = {"device.*", "applicationKeys.*", "device.patch", "applicationKeys.get"}
    resources = {f"{route.operation.partition('.')[0]}.*" for route in ROWS}
    scopes = SCOPE_FAMILIES | resources | {route.scope for route in ROWS}
    tokens = {scope: await api_token(server, "/me", scope) for scope in sorted(scopes)}
    together: dict[frozenset[str], str] = {}
    async with server.client("") as client:
        for route in ROWS:
            resource = f"{route.operation.partition('.')[0]}.*"
            opening = expected_scopes(route)
            for scope in sorted(opening):
                response = await send(client, route, path_of(route), tokens[scope])
                assert response.status_code < 500
                assert response.status_code != 403, (route.operation, scope)
            # Every family, the scopes of the operation itself, and some that are of others: if they open nothing
            # together, none of them does.
            rest = frozenset(SCOPE_FAMILIES | others | {resource, route.scope}) - opening
            if rest not in together:
                together[rest] = await api_token(server, "/me", *sorted(rest))
            response = await send(client, route, path_of(route), together[rest])
            assert response.status_code == 403, (route.operation, sorted(rest))
            assert route.operation in response.json()["message"]


async def test_no_row_opens_without_a_token(server: Server) -> None:
    async with server.client("") as client:
        for route in ROWS:
            status = 426 if route.upgrades else 404 if route.anonymous else 401
            assert (await send(client, route, path_of(route))).status_code == status, route.operation


async def test_an_unknown_application_is_404_on_every_path_under_it(server: Server) -> None:
    async with server.client() as client:
        for route in ROWS:
            if "{applicationId}" in route.path:
                response = await send(client, route, path_of(route))
                assert response.status_code == 404, route.operation
                assert UNKNOWN in response.json()["message"]


async def test_an_id_that_is_no_id_is_400_on_every_path(server: Server) -> None:
    application = (await server.application()).rpartition("/")[2]
    odd = ["x", "0" * 23, "0" * 25, "g" * 24, "%20" * 24, f"{UNKNOWN}%0A", "٠" * 24]
    async with server.client() as client:
        for route in ROWS:
            for name in (part.placeholder for part in route.path_parameters):
                if name in NAMED:
                    continue
                path = (
                    route.path.replace("{applicationId}", application)
                    if name != "applicationId"
                    else route.path
                )
                for each in odd if route.method == "GET" else odd[:1]:
                    filled = re.sub(r"\{\w+\}", UNKNOWN, path.replace(f"{{{name}}}", each))
                    response = await send(client, route, filled)
                    assert response.status_code == 400, (route.operation, each, response.text)
                    assert each.endswith("%0A") or response.json()["message"].startswith(f"{name}: ")


async def test_unknown_query_parameters_are_400_on_every_path(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    org = await server.organization()
    ids = [path.rpartition("/")[2] for path in (application, device, org)]
    token = await api_token(server, "/me", "all.User")  # which no call logs out
    async with server.client(token) as client:
        for route in TABLE.routes:
            if route.free_query:
                continue
            response = await send(client, route, f"{path_of(route, *ids)}?perpage=1")
            assert response.status_code == 400, (route.operation, response.text)
            assert response.json()["message"].startswith("perpage: there is no such field")
            # What every client of such an API sends is no mistake.
            response = await send(
                client, route, f"{path_of(route)}?_actions=false&_embedded=true&_links=false"
            )
            assert "_" not in response.json().get("message", "")[:1], (route.operation, response.text)
