"""Connections that stay open: streams, links and WebSockets of webhooks leave half of all for other owners."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
from trio_websocket import ConnectionRejected

from tests.e2e.conftest import ENGINE
from tests.e2e.link_peer import connected
from tests.e2e.neighbours import Tenant, neighbours
from tests.e2e.sse_client import until
from tests.e2e.test_webhooks import webhook
from tests.e2e.webhook_clients import connected as webhook_client
from trunkline.actors.fleet.devices.commands.links import Links

pytestmark = pytest.mark.skipif(ENGINE == "stock", reason="only the other engine takes WebSockets")


async def device(tenant: Tenant, application: str) -> tuple[str, str]:
    """The path of a new device, and its token."""
    server = tenant.server
    made = await tenant.call("POST", f"{application}/devices", {"name": "pump", "attributes": []})
    key = await tenant.call("POST", f"{application}/keys", {})
    credentials = {"deviceId": made["id"], "key": key["key"], "secret": key["secret"]}
    token = (await server.call("POST", "/auth/device", credentials, token=""))["token"]
    return f"{application}/devices/{made['id']}", token


async def stream_status(tenant: Tenant, application: str, held: AsyncExitStack) -> int:
    """Open a stream of an application for as long as `held`; the status of the answer."""
    client = await held.enter_async_context(tenant.server.client(tenant.token))
    answer = await held.enter_async_context(client.stream("GET", f"{application}/stateStream"))
    return answer.status_code


async def link(tenant: Tenant, application: str, held: AsyncExitStack) -> tuple[int, str]:
    """Open a link of a new device for as long as `held`; 0, or the code and the sentence with which it is closed."""
    path, token = await device(tenant, application)
    peer = await held.enter_async_context(connected(tenant.server, path, token))
    links, id = tenant.server.system.component(Links), bytes.fromhex(path.rpartition("/")[2])
    lasting = tenant.server.system.lasting
    before = lasting.refused
    await peer.send(0, {"session": 7})
    await until(lambda: links.of(id) is not None or lasting.refused > before)
    return (0, "") if links.of(id) is not None else await peer.close_code()


async def test_streams_of_many_applications_leave_half_for_other_owners(start_server: Any) -> None:
    async with start_server(limits={"streams_max": 8}) as server, AsyncExitStack() as held:
        greedy, quiet = await neighbours(server, 5)
        opened = [await stream_status(greedy, each, held) for each in greedy.applications]
        assert opened == [200, 200, 200, 200, 503]
        assert [await stream_status(quiet, quiet.applications[0], held) for _ in range(2)] == [200, 200]


async def test_what_stays_open_leaves_half_of_the_connections_for_other_owners(start_server: Any) -> None:
    async with start_server(limits={"connections_max": 16}) as server, AsyncExitStack() as held:
        greedy, quiet = await neighbours(server, 4)
        for application in greedy.applications[:3]:
            assert await stream_status(greedy, application, held) == 200
            assert (await link(greedy, application, held))[0] == 0
        hook, full = [await webhook(server, isWebsocket=True) for _ in range(2)]  # of the greedy one
        for _ in range(2):
            await held.enter_async_context(webhook_client(server, hook))
        assert server.system.lasting.running == 8
        code, sentence = await link(greedy, greedy.applications[3], held)
        assert (code, sentence.partition(";")[0]) == (
            4503,
            "8 lasting connections of this owner are under way already",
        )
        assert await stream_status(greedy, greedy.applications[3], held) == 503
        with pytest.raises(ConnectionRejected) as refused:
            await held.enter_async_context(webhook_client(server, full))
        assert refused.value.status_code == 503
        assert await stream_status(quiet, quiet.applications[0], held) == 200
        assert (await link(quiet, quiet.applications[0], held))[0] == 0
        await held.aclose()
        await until(lambda: server.system.lasting.running == 0)
