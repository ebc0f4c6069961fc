"""Throttles over HTTP: exactly 30 calls in any 15 seconds, a bucket for each device and kind of call."""

from __future__ import annotations

import math
from typing import Any

import httpx
import pytest

from tests.actors.house import ManualClock
from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of

STATE = ("state", {"data": {"temp": 1}})
COMMAND = ("command", {"name": "go"})
CONNECTION = ("setConnectionStatus", {"status": "connected"})
BUCKETS = {"state": "send_state", "command": "send_command", "setConnectionStatus": "set_connection_status"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def server(start_server: Any, clock: ManualClock) -> Any:
    """A server with the API's throttles, whose clock stands still."""
    async with start_server(clock=clock) as running:
        yield running


async def send(client: httpx.AsyncClient, device: str, call: tuple[str, Any]) -> httpx.Response:
    return await client.post(f"{device}/{call[0]}", json=call[1])


async def spend(client: httpx.AsyncClient, device: str, call: tuple[str, Any], count: int) -> None:
    for _ in range(count):
        assert (await send(client, device, call)).status_code == 200


@pytest.mark.parametrize("call", [STATE, COMMAND, CONNECTION], ids=lambda call: call[0])
async def test_exactly_thirty_of_thirty_one_pass(server: Server, call: tuple[str, Any]) -> None:
    device = await server.device(await server.application())
    bucket = BUCKETS[call[0]]
    async with server.client() as client:
        for left in range(29, -1, -1):
            passed = await send(client, device, call)
            assert passed.status_code == 200
            assert passed.headers["ratelimit-policy"] == f'"{bucket}";q=30;w=15'
            assert passed.headers["ratelimit"] == f'"{bucket}";r={left};t=15'
        refused = await send(client, device, call)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "15"
    assert refused.headers["ratelimit-policy"] == f'"{bucket}";q=30;w=15'
    assert refused.headers["ratelimit"] == f'"{bucket}";r=0;t=15'
    assert refused.json() == {
        "type": "TooManyRequests",
        "message": f"This device takes 30 calls of {bucket} in any 15 seconds. "
        "The next one is allowed in 15.000 seconds.",
    }


async def test_the_window_slides_to_the_call(server: Server, clock: ManualClock) -> None:
    """Ten calls at once, twenty five seconds later: then exactly ten are free at 15 s and twenty at 20 s."""
    device = await server.device(await server.application())
    async with server.client() as client:
        await spend(client, device, STATE, 10)
        clock.pass_s(5)
        await spend(client, device, STATE, 20)
        for wait_s, passing in ((9.999, 0), (0.001, 10), (4.999, 0), (0.001, 20), (15.0, 30)):
            clock.pass_s(wait_s)
            await spend(client, device, STATE, passing)
            refused = await send(client, device, STATE)
            assert refused.status_code == 429
            after_s = int(refused.headers["retry-after"])
            assert 1 <= after_s <= 15
        clock.pass_s(after_s)
        await spend(client, device, STATE, 1)
    assert (await server.call("GET", f"{device}/payloadCounts"))["deviceState"] == 91


async def test_who_comes_back_when_told_passes(server: Server, clock: ManualClock) -> None:
    device = await server.device(await server.application())
    async with server.client() as client:
        for _ in range(30):
            await spend(client, device, COMMAND, 1)
            clock.pass_s(0.37)
        for _ in range(30):
            refused = await send(client, device, COMMAND)
            assert refused.status_code == 429
            wait_s = float(refused.json()["message"].rsplit(" ", 2)[1])
            assert int(refused.headers["retry-after"]) == max(1, math.ceil(wait_s))
            clock.pass_s(wait_s)
            await spend(client, device, COMMAND, 1)


async def test_each_kind_of_call_and_each_device_has_a_bucket_of_its_own(server: Server) -> None:
    application = await server.application()
    one, two = await server.device(application), await server.device(application)
    async with server.client() as client:
        await spend(client, one, STATE, 30)
        assert (await send(client, one, STATE)).status_code == 429
        await spend(client, one, COMMAND, 30)
        await spend(client, one, CONNECTION, 30)
        await spend(client, two, STATE, 30)
        for call in (STATE, COMMAND, CONNECTION):
            assert (await send(client, one, call)).status_code == 429
        for resource in ("state", "command", "logs", "compositeState"):
            for _ in range(35):
                assert (await client.get(f"{one}/{resource}")).status_code == 200, "reading is not throttled"


async def test_an_array_of_states_is_one_call(server: Server) -> None:
    device = await server.device(await server.application())
    many = ("state", [{"data": {"temp": number}, "time": 1000 + number} for number in range(100)])
    async with server.client() as client:
        await spend(client, device, many, 30)
        assert (await send(client, device, many)).status_code == 429


async def test_a_refused_call_costs_nothing_and_an_invalid_one_counts(
    server: Server, clock: ManualClock
) -> None:
    device = await server.device(await server.application())
    wrong = ("state", {"data": {"temp": "warm"}})
    async with server.client() as client:
        for _ in range(10):
            assert (await send(client, device, wrong)).status_code == 400
        await spend(client, device, STATE, 20)
        for _ in range(50):
            assert (await send(client, device, STATE)).status_code == 429
        clock.pass_s(15)
        await spend(client, device, STATE, 30)


async def test_the_limit_of_a_peripheral_is_its_own(server: Server) -> None:
    application = await server.application()
    gateway = await server.device(application, deviceClass="gateway")
    token, _ = await server.device_token(gateway)
    sensors = [
        await server.device(application, deviceClass="peripheral", gatewayId=id_of(gateway)) for _ in range(2)
    ]
    async with server.client(token) as client:
        for device in (gateway, *sensors):
            await spend(client, device, STATE, 30)
            assert (await send(client, device, STATE)).status_code == 429


async def test_who_calls_does_not_matter_the_bucket_is_the_devices(server: Server) -> None:
    device = await server.device(await server.application())
    token, _ = await server.device_token(device)
    async with server.client() as owner, server.client(token) as itself:
        await spend(owner, device, STATE, 15)
        await spend(itself, device, STATE, 15)
        for client in (owner, itself):
            assert (await send(client, device, STATE)).status_code == 429


async def test_a_command_to_many_spends_one_call_of_each(server: Server) -> None:
    application = await server.application()
    one, two = await server.device(application), await server.device(application)
    to_both = {"name": "all", "deviceIds": [id_of(one), id_of(two)]}
    async with server.client() as client:
        await spend(client, one, COMMAND, 10)
        for left in range(19, -1, -1):
            passed = await client.post(f"{application}/devices/command", json=to_both)
            assert passed.status_code == 200
            assert passed.headers["ratelimit"] == f'"send_command";r={left};t=15', "of the one that has least"
            assert passed.headers["ratelimit-policy"] == '"send_command";q=30;w=15'
        assert (await client.post(f"{application}/devices/command", json=to_both)).status_code == 429
        await spend(client, two, COMMAND, 10)
        assert (await send(client, two, COMMAND)).status_code == 429


async def test_lifted_throttles_say_nothing_of_limits(start_server: Any, clock: ManualClock) -> None:
    limits = {"send_state": "off", "send_command": {"calls": 2, "window_s": 3}}
    async with start_server(limits=limits, clock=clock) as server:
        device = await server.device(await server.application())
        async with server.client() as client:
            for _ in range(40):
                passed = await send(client, device, STATE)
                assert passed.status_code == 200
                assert "ratelimit" not in passed.headers
            await spend(client, device, COMMAND, 2)
            refused = await send(client, device, COMMAND)
    assert refused.status_code == 429
    assert refused.headers["ratelimit-policy"] == '"send_command";q=2;w=3'
