"""How many integrations are enabled and connected, of an application and of an owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.test_integrations import failure, mqtt
from trunkline.actors import server_users

Start = Callable[..., Any]


async def test_so_many_integrations_of_an_application_are_enabled(start_server: Start) -> None:
    limits = {"enabled_integrations_max": 2, "integration_connections_max": 4}
    async with start_server(limits=limits) as server:
        application, other = await server.application(), await server.application()
        first = await mqtt(server, application, 1)
        await mqtt(server, application, 1)
        path = f"{application}/integrations"
        broker = {"host": "h", "port": 1, "protocol": "mqtt"}
        body = {"name": "third", "integrationType": "mqtt", "mqttConfig": broker}
        refusal = await server.call("POST", path, body, status=400)
        assert (
            refusal["message"]
            == "enabled: 2 integrations of this application are enabled, which is the limit."
        )
        third = await mqtt(server, other, 1)
        waiting = (await server.call("GET", third))["status"]["disconnectInfo"]
        bound = "All 4 connections of this server are in use, or half of them by this owner."
        assert waiting == {"ts": None, "error": bound}
        # Another owner is not delayed by that.
        await server_users.add_user(server.root, "eve@example.com", "Other-horse-9")
        server.token, token = await server.log_in("eve@example.com", "Other-horse-9"), server.token
        assert "not public" in await failure(server, await mqtt(server, await server.application(), 1))
        server.token = token
        await server.call("DELETE", first)
        assert "not public" in await failure(server, third)
