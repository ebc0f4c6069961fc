"""Commands over the link, on real sockets: at once, after an absence, for peripherals, until they are acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.link_house import BASE_MS, House, house, house_in
from tests.e2e.link_peer import CBOR, JSON, linked

__all__ = ["house"]


async def test_a_command_comes_at_once_and_again_until_it_is_acknowledged(house: House) -> None:
    server, device = house.server, house.device
    async with linked(server, device, house.token) as (peer, _):
        await server.call("POST", f"{device}/command", {"name": "first", "payload": {"a": 1}})
        kind, first, name, payload, _ = await peer.next()
        assert (kind, name, payload) == (3, "first", {"a": 1})
        await server.call("POST", f"{device}/command", {"name": "second"})
        second = await peer.next()
        assert second[2:4] == ["second", None]
        await peer.send(4, first)
    async with linked(server, device, house.token) as (peer, _):
        assert (await peer.next())[1:3] == [second[1], "second"]
        await peer.send(4, second[1])
        await server.call("POST", f"{device}/command", {"name": "third"})
        assert (await peer.next())[2] == "third"
    logged = await server.call("GET", f"{device}/command", params={"limit": 10, "start": 1})
    assert [(entry["name"], entry["status"]) for entry in logged] == [
        ("third", "sent"),
        ("second", "acknowledged"),
        ("first", "acknowledged"),
    ]


async def test_commands_while_the_device_is_away_wait_for_it(house: House) -> None:
    server, device = house.server, house.device
    await server.call("POST", f"{device}/command", {"name": "before the first link"})
    async with linked(server, device, house.token) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        assert await peer.until_stored(1) == []
    for name in "abc":
        await server.call("POST", f"{device}/command", {"name": name})
    async with linked(server, device, house.token) as (peer, _):
        assert [(await peer.next())[2] for _ in "abc"] == ["a", "b", "c"]


async def test_a_gateway_gets_the_commands_of_its_peripherals(house: House) -> None:
    server = house.server
    gateway = await server.device(house.application, "gateway", deviceClass="gateway")
    belongs = {"deviceClass": "peripheral", "gatewayId": gateway.rpartition("/")[2]}
    own = await server.device(house.application, "own", **belongs)
    token, _ = await server.device_token(gateway)
    async with linked(server, gateway, token) as (peer, _):
        await server.call("POST", f"{own}/command", {"name": "blink"})
        kind, id, name, _, _, device = await peer.next()
        assert (kind, name, device) == (3, "blink", own.rpartition("/")[2])
        await peer.send(4, id, device)
        await peer.send(4, 4_000_000_000)
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        assert await peer.until_stored(1) == []
    (entry,) = await server.call("GET", f"{own}/command")
    assert entry["status"] == "acknowledged"


@pytest.mark.parametrize("protocol", [CBOR, JSON])
async def test_a_command_that_is_larger_than_a_frame_may_be_expires(tmp_path: Path, protocol: str) -> None:
    async with house_in(tmp_path / "data", link_frame_bytes_max=4096) as house:
        server = house.server
        gateway = await server.device(house.application, "gateway", deviceClass="gateway")
        belongs = {"deviceClass": "peripheral", "gatewayId": gateway.rpartition("/")[2]}
        near = await server.device(house.application, "near", **belongs)
        token, _ = await server.device_token(gateway)
        async with linked(server, gateway, token, protocol=protocol) as (peer, facts):
            # The frame of the second one is just too large, that of the third has room.
            for name, number in (("first", 1), ("large", 4090), ("almost", 4000), ("last", 1)):
                await server.call("POST", f"{near}/command", {"name": name, "payload": "p" * number})
            for name in ("first", "almost", "last"):
                _, id, come, payload, _, device = await peer.next()
                assert come == name
                assert len(payload) < facts["frameBytes"]
                await peer.send(4, id, device)
            await peer.send(1, 1, BASE_MS, {"temp": 1})
            assert await peer.until_stored(1) == []
        async with linked(server, gateway, token, protocol=protocol) as (peer, _):
            await peer.send(1, 2, BASE_MS + 1, {"temp": 1})
            assert await peer.until_stored(2) == []
        logged = await server.call("GET", f"{near}/command", params={"limit": 10, "start": 1})
    assert [(entry["name"], entry["status"]) for entry in logged] == [
        ("last", "acknowledged"),
        ("almost", "acknowledged"),
        ("large", "expired"),
        ("first", "acknowledged"),
    ]
