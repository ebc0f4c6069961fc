"""Commands over MQTT, on real sockets: which subscription brings them, and what becomes of those that cannot come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.mqtt_checks import nothing_waits
from tests.e2e.mqtt_house import VERSIONS, House, house, house_in
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import Filter

__all__ = ["house"]  # the fixture


async def command(house: House, name: str, device: str = "", **fields: Any) -> None:
    await house.server.call("POST", f"{device or house.device}/command", {"name": name, **fields})


# Subscriptions that overlap.


@VERSIONS
@pytest.mark.parametrize("is_first_best", [False, True])
async def test_a_command_comes_once_with_the_highest_qos_of_its_subscriptions(
    house: House, version: int, is_first_best: bool
) -> None:
    named, wildcard, other = (f"{each}/command" for each in (f"losant/{house.id}", "losant/+", "trunkline/+"))
    for first, second in ((named, wildcard), (wildcard, named), (other, named), (named, other)):
        async with house.client(version=version) as client:
            best = first if is_first_best else second
            await client.subscribe(Filter(first, int(best == first)), Filter(second, int(best == second)))
            await command(house, "open")
            message = await client.message()
            assert message.qos == 1
            assert message.topic == best.replace("+", house.id)
            await nothing_waits(client)


async def test_a_command_has_the_identifiers_of_the_subscriptions_that_select_its_topic(house: House) -> None:
    fields: dict[str, Any] = {"clean_start": False, "properties": {"session_expiry_interval": 100}}
    async with house.client(**fields) as client:
        await client.subscribe(Filter(f"losant/{house.id}/command", 1), subscription_identifier=[7])
        await client.subscribe(Filter("losant/+/#", 0), subscription_identifier=[8])
        await client.subscribe(Filter("trunkline/+/command", 1), subscription_identifier=[9])
        await command(house, "open")
        assert sorted((await client.message()).properties["subscription_identifier"]) == [7, 8]
    async with house.client(**fields) as client:
        await client.unsubscribe("losant/+/#")
        await command(house, "close")
        assert (await client.message()).properties["subscription_identifier"] == [7]


async def test_a_command_has_the_topic_that_the_filter_asks_for(house: House) -> None:
    upper = house.id.upper()
    async with house.client() as client:
        assert await client.subscribe(f"losant/{upper}/command") == (1,)
        await command(house, "open")
        assert (await client.message()).topic == f"losant/{upper}/command"


async def test_subscriptions_to_commands_count_with_all_others(tmp_path: Path) -> None:
    limits = {"mqtt_subscriptions_max": 3}
    async with house_in(tmp_path / "data", limits=limits) as house, house.client() as client:
        filters = ("losant/+/command", "losant/+/#", "trunkline/+/command", "trunkline/+/#")
        assert await client.subscribe(*filters) == (1, 1, 1, packets.QUOTA_EXCEEDED)
        assert await client.subscribe(*filters[:3], "t") == (1, 1, 1, packets.QUOTA_EXCEEDED)
        await client.unsubscribe(filters[0])
        assert await client.subscribe(filters[3]) == (1,)


# Commands that are too large.


@pytest.mark.parametrize("qos", [0, 1])
async def test_a_command_that_is_too_large_for_the_client_expires(house: House, qos: int) -> None:
    gateway = await house.server.device(house.application, "gateway", deviceClass="gateway")
    belongs = {"deviceClass": "peripheral", "gatewayId": gateway.rpartition("/")[2]}
    near = await house.server.device(house.application, "near", **belongs)
    for each in (gateway, near):
        for name, number in (("first", 1), ("large", 5000), ("last", 1)):
            await command(house, name, each, payload="p" * number, ttlSeconds=1000)
    properties = {"maximum_packet_size": 1000}
    async with house.client(gateway.rpartition("/")[2], properties=properties) as client:
        await client.subscribe("losant/+/command", qos=qos)
        come = [msgspec.json.decode((await client.message()).payload)["name"] for _ in range(4)]
        assert come == ["first", "last"] * 2
        await client.publish("nobody", b"", 1)  # with its answer what became of the commands is on disk
        (listed,) = (await house.server.call("GET", f"{house.application}/mqttClients"))["items"]
        assert listed["refused"] == 2
        assert listed["lastRefusal"]["code"] == packets.PACKET_TOO_LARGE
        assert (
            "has expired: the client takes packets of 1000 bytes at most" in listed["lastRefusal"]["message"]
        )
    for each in (gateway, near):
        logged = await house.server.call("GET", f"{each}/command", params={"limit": 10, "start": 1})
        assert [(entry["name"], entry["status"], "acknowledgedAt" in entry) for entry in logged] == [
            ("last", "acknowledged", True),
            ("large", "expired", False),
            ("first", "acknowledged", True),
        ]
