"""Workflows are told who has caused their runs, by the API."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import Server
from tests.e2e.test_webhook_workflows import told


async def watch(server: Server, application: str, type: str, key: str) -> Any:
    """A workflow that shows what it is told."""
    body = {
        "name": "teller",
        "triggers": [{"type": type, "key": key, "outputIds": [["d"]]}],
        "nodes": [{"id": "d", "type": "DebugNode", "config": {}}],
    }
    return await server.call("POST", f"{application}/flows", body, status=201)


async def relays(server: Server, flow: Any) -> list[tuple[str, str]]:
    return [(each["relayType"], each["relayId"]) for each in await told(server, flow)]


async def test_runs_are_told_who_has_caused_them(server: Server) -> None:
    application = await server.application()
    me = (await server.call("GET", "/me"))["id"]
    created = await watch(server, application, "deviceCreate", "/")
    device = await server.device(application, tags=[{"key": "floor", "value": "2"}])
    id = device.rpartition("/")[2]
    states = await watch(server, application, "deviceTag", "floor/2")
    ends = await watch(server, application, "deviceIdDisconnect", id)
    token, _ = await server.device_token(device)
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
    for number in range(3):  # the same head again takes the fast path
        await server.call("POST", f"{device}/state", {"data": {"temp": number}}, token=token)
    await server.call("POST", f"{device}/setConnectionStatus", {"status": "disconnected"}, token=token)
    assert await relays(server, created) == [("user", me)]
    assert await relays(server, states) == [("user", me), *[("device", id)] * 3]
    assert await relays(server, ends) == [("device", id)]
    table = await server.call(
        "POST",
        f"{application}/data-tables",
        {"name": "t", "columns": [{"name": "a", "dataType": "number", "constraint": "optional"}]},
    )
    rows = await watch(server, application, "dataTable", table["id"])
    await server.call("POST", f"{application}/data-tables/{table['id']}/rows", {"a": 1})
    assert await relays(server, rows) == [("user", me)]
    events = await watch(server, application, "event", "any")
    made = await server.call("POST", f"{application}/events", {"level": "info", "subject": "s"})
    await server.call("PATCH", f"{application}/events/{made['id']}", {"comment": "c"})
    assert await relays(server, events) == [("user", me)] * 2
