"""Connection status over HTTP: what a device or its watcher says, and the log that comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.house import START_MS, ManualClock, at
from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of, names

DAY_MS = 86_400_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def server(start_server: Any, clock: ManualClock) -> Any:
    """A server whose clock stands still."""
    async with start_server(clock=clock, limits={"set_connection_status": "off"}) as running:
        yield running


async def say(server: Server, device: str, status: str, **fields: Any) -> None:
    answer = await server.call("POST", f"{device}/setConnectionStatus", {"status": status, **fields})
    assert answer == {"success": True}


async def info(server: Server, device: str) -> Any:
    return (await server.call("GET", device))["connectionInfo"]


async def logs(server: Server, device: str, query: str = "limit=1000&sortDirection=asc") -> Any:
    return await server.call("GET", f"{device}/logs?{query}")


async def test_a_device_comes_and_goes(server: Server, clock: ManualClock) -> None:
    device = await server.device(await server.application())
    assert await info(server, device) == {"connected": None}
    assert await logs(server, device) == []
    await say(server, device, "connected", ipAddress="192.0.2.7")
    assert await info(server, device) == {"connected": 1, "time": at(0)}
    clock.pass_s(60)
    more = {"disconnectReason": "battery", "messagesFromClient": 5, "messagesToClient": 0, "ipAddress": "::1"}
    await say(server, device, "disconnected", **more)
    assert await info(server, device) == {"connected": 0, "time": at(60_000)}
    assert await logs(server, device) == [
        {"connected": 1, "time": at(0), "ipAddress": "192.0.2.7"},
        {"connected": 0, "time": at(60_000), **more},
    ]
    assert (await logs(server, device, ""))[0]["connected"] == 0, "the newest first, and one of them"


async def test_a_watcher_reports_afterwards(server: Server) -> None:
    """One call tells of a whole connection; the beginning is logged once."""
    device = await server.device(await server.application())
    begin, end = START_MS - 5000, START_MS - 1000
    await say(server, device, "disconnected", connectedAt=begin, disconnectedAt={"$date": at(-1000)})
    both = [{"connected": 1, "time": at(-5000)}, {"connected": 0, "time": at(-1000)}]
    assert await logs(server, device) == both
    assert await info(server, device) == {"connected": 0, "time": at(-1000)}
    await say(server, device, "connected", connectedAt=START_MS - 500)
    await say(server, device, "disconnected", connectedAt=at(-500))
    assert await logs(server, device) == [
        *both,
        {"connected": 1, "time": at(-500)},
        {"connected": 0, "time": at(0)},
    ]
    assert end < START_MS


async def test_windows_of_the_log(server: Server) -> None:
    device = await server.device(await server.application())
    for offset in range(-6, 0):
        await say(server, device, "connected", connectedAt=START_MS + offset)
    for query, expected in (
        ("", [-1]),
        ("limit=2&sortDirection=asc", [-6, -5]),
        ("since=-3&limit=9", [-1, -2]),
        (f"start={START_MS - 4}&end={START_MS - 3}&limit=9", [-3, -4]),
        ("duration=2&limit=9", [-1, -2]),
        ("end=-5&limit=9", [-5, -6]),
    ):
        found = await logs(server, device, query)
        assert [entry["time"] for entry in found] == [at(offset) for offset in expected], query


REFUSED: list[tuple[Any, str]] = [
    ({}, "status: is missing"),
    ({"status": "gone"}, "status: "),
    ({"status": None}, "status: "),
    ({"connected": 1}, "status: is missing"),
    ({"status": "connected", "disconnectReason": "x"}, "disconnectReason: there is no such field"),
    ({"status": "connected", "connectedAt": "soon"}, "connectedAt: 'soon'"),
    ({"status": "connected", "connectedAt": START_MS + DAY_MS + 1}, "connectedAt: "),
    ({"status": "disconnected", "disconnectedAt": START_MS + DAY_MS + 1}, "disconnectedAt: "),
    (
        {"status": "disconnected", "connectedAt": START_MS, "disconnectedAt": START_MS - 1},
        "connectedAt: 2024-05-01T12:00:00.000Z is later than disconnectedAt",
    ),
    ({"status": "disconnected", "messagesFromClient": -1}, "messagesFromClient: "),
    ({"status": "disconnected", "messagesToClient": 2**31}, "messagesToClient: "),
    ({"status": "disconnected", "disconnectReason": "x" * 1025}, "disconnectReason: "),
    ({"status": "connected", "ipAddress": "x"}, "ipAddress: "),
    ({"status": "connected", "ipAddress": "x" * 40}, "ipAddress: "),
    ([], "The body: "),
]


async def test_a_wrong_status_is_refused_by_the_name_of_its_field(server: Server) -> None:
    device = await server.device(await server.application())
    for body, sentence in REFUSED:
        refused = await server.call("POST", f"{device}/setConnectionStatus", body, status=400)
        assert refused["message"].startswith(sentence), refused["message"]
    assert await logs(server, device) == []
    assert await info(server, device) == {"connected": None}


async def test_devices_are_found_by_their_connection(server: Server, clock: ManualClock) -> None:
    application = await server.application()
    on, off, _ = [await server.device(application, name) for name in ("on", "off", "never")]
    await say(server, on, "connected")
    await say(server, off, "disconnected")
    clock.pass_s(1)
    for query, expected in (
        ('{"connectionStatus":"connected"}', ["on"]),
        ('{"connectionStatus":"disconnected"}', ["off"]),
        ('{"connectionStatus":"notConnected"}', ["never"]),
        ('{"connectedAt":null}', ["never", "off"]),
        (f'{{"connectedAt":{{"$lte":"{at(0)}"}}}}', ["on"]),
        (f'{{"disconnectedAt":{{"$gt":{START_MS}}}}}', []),
        (f'{{"disconnectedAt":{START_MS}}}', ["off"]),
    ):
        assert await names(server, application, f"query={query}") == expected, query


async def test_a_device_reports_itself_and_its_peripherals(server: Server) -> None:
    application = await server.application()
    gateway = await server.device(application, deviceClass="gateway")
    sensor = await server.device(application, deviceClass="peripheral", gatewayId=id_of(gateway))
    stranger = await server.device(application)
    token, _ = await server.device_token(gateway)
    body = {"status": "connected"}
    for device, status in ((gateway, 200), (sensor, 200), (stranger, 403)):
        await server.call("POST", f"{device}/setConnectionStatus", body, token=token, status=status)
    assert (await info(server, sensor))["connected"] == 1
    assert await info(server, stranger) == {"connected": None}
