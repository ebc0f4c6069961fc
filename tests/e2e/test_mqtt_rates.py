"""How much MQTT clients may send, and how much they are sent: no more than the rates of the API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.mqtt_checks import got, nothing_waits
from tests.e2e.mqtt_client import MqttClient, mqtt_client
from tests.e2e.mqtt_house import VERSIONS, House, house_in
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5, Publish
from trunkline.http.mqtt.service import MqttService

KEPT: dict[str, Any] = {"clean_start": False, "properties": {"session_expiry_interval": 1000}}
BY_SESSION = pytest.mark.parametrize("fields", [{}, KEPT], ids=["clean", "kept"])
TOPIC, ALL, WINDOW_S = 3, 5, 15


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    limits = {
        "mqtt_topic": {"calls": TOPIC, "window_s": WINDOW_S},
        "mqtt_client": {"calls": ALL, "window_s": WINDOW_S},
    }
    async with house_in(tmp_path / "data", limits=limits) as made:
        yield made


async def send(house: House, topic: str, numbers: range, qos: int) -> None:
    """Publish a number a message, each as a client of its own."""
    for number in numbers:
        async with house.client(f"{topic}-{number}-{qos}") as client:
            await client.publish(topic, b"%d" % number, qos)
            await client.publish("nobody", b"", 1)  # with its answer the one before is on disk


async def come(client: MqttClient, numbers: range) -> None:
    """Exactly these messages come now."""
    assert await got(client, len(numbers)) == [b"%d" % number for number in numbers]
    await nothing_waits(client)


@BY_SESSION
async def test_a_message_above_a_rate_waits_and_is_not_lost(house: House, fields: dict[str, Any]) -> None:
    async with house.client("a", **fields) as client:
        await client.subscribe("t/#", qos=1)
        await send(house, "t/1", range(TOPIC + 1), 1)
        await come(client, range(TOPIC))
        house.server.move_clock(WINDOW_S)
        await come(client, range(TOPIC, TOPIC + 1))
        house.server.move_clock(WINDOW_S)
        for number in range(ALL + 1):
            await send(house, f"t/all/{number}", range(number, number + 1), 1)
        await come(client, range(ALL))
        house.server.move_clock(WINDOW_S)
        await come(client, range(ALL, ALL + 1))


@BY_SESSION
async def test_a_message_with_qos_0_above_a_rate_is_dropped_and_counted(
    house: House, fields: dict[str, Any]
) -> None:
    service = house.server.system.component(MqttService)
    async with house.client("a", **fields) as client:
        await client.subscribe("t", qos=1)
        await send(house, "t", range(TOPIC + 2), 0)
        await come(client, range(TOPIC))
        assert service.dropped == 2
        house.server.move_clock(WINDOW_S)
        await send(house, "t", range(1), 0)
        await come(client, range(1))
        assert service.dropped == 2


async def test_the_rates_outlive_a_connection_and_each_direction_has_its_own(house: House) -> None:
    async with house.client("a", **KEPT) as client:
        await client.subscribe("t", qos=1)
        await send(house, "t", range(TOPIC), 1)
        await come(client, range(TOPIC))
    async with house.client("a", **KEPT) as client:
        for _ in range(TOPIC):
            await client.publish("t", b"own", 1)
        await nothing_waits(client)
        house.server.move_clock(WINDOW_S)
        assert await got(client, TOPIC) == [b"own"] * TOPIC


async def test_retained_messages_and_commands_do_not_count(house: House) -> None:
    for number in range(ALL + 1):
        async with house.client(f"sender-{number}") as sender:
            await sender.publish(f"shelf/{number}", b"%d" % number, number % 2, retain=True)
            await sender.publish("nobody", b"", 1)
    async with house.client() as client:
        await client.subscribe("shelf/#", qos=1)
        await come(client, range(ALL + 1))
        await client.subscribe(f"losant/{house.id}/command", qos=1)
        for _ in range(ALL + 1):
            await house.server.call("POST", f"{house.device}/command", {"name": "open"})
        assert len(await got(client, ALL + 1)) == ALL + 1


async def test_who_sends_too_much_is_banned_for_longer_each_time(tmp_path: Path) -> None:
    limits = {"mqtt_topic": {"calls": 3, "window_s": 15}, "mqtt_client": {"calls": 5, "window_s": 15}}
    async with house_in(tmp_path / "data", limits=limits) as house:
        for ban_s in (30, 60):
            async with house.client("a") as client:
                for number in range(3):
                    await client.publish("t", b"%d" % number, 1)
                await client.send(writer.publish(V5, Publish("t", b"", 1, packet_id=9)))
                assert await client.farewell() == packets.MESSAGE_RATE_TOO_HIGH
            async with mqtt_client(house.server.mqtt_ports[0]) as client:
                answer = await client.connect("a", **house.credentials)
                assert answer.code == packets.BANNED
            house.server.move_clock(ban_s - 1)
            async with mqtt_client(house.server.mqtt_ports[0]) as client:
                answer = await client.connect("a", **house.credentials)
                assert answer.code == packets.BANNED
            house.server.move_clock(1)
        async with house.client("a") as client:
            for number in range(5):
                await client.publish(f"t/{number}", b"", 1)
            await client.send(writer.publish(V5, Publish("t/6", b"", 1, packet_id=9)))
            assert await client.farewell() == packets.MESSAGE_RATE_TOO_HIGH


@VERSIONS
async def test_what_the_throttle_of_a_device_refuses_bans_nobody(tmp_path: Path, version: int) -> None:
    limits = {"send_state": {"calls": 2, "window_s": WINDOW_S}}
    async with house_in(tmp_path / "data", limits=limits) as house:
        gateway = await house.server.device(house.application, "gateway", deviceClass="gateway")
        gateway_id = gateway.rpartition("/")[2]
        belongs = {"deviceClass": "peripheral", "gatewayId": gateway_id}
        busy = await house.server.device(house.application, "busy", **belongs)
        calm = await house.server.device(house.application, "calm", **belongs)
        busy_topic, calm_topic = (f"losant/{each.rpartition('/')[2]}/state" for each in (busy, calm))
        state = b'{"data": {"temp": 3}}'
        for number in (1, 2):
            await house.server.call("POST", f"{busy}/state", {"data": {"temp": number}})
        async with house.client(gateway_id, version) as client:
            await client.publish(busy_topic, state, 0)
            assert (await client.publish(calm_topic, state, 1)).code == packets.SUCCESS
            if version == V5:
                for qos in (1, 2):
                    assert (await client.publish(busy_topic, state, qos)).code == packets.QUOTA_EXCEEDED
                assert (await client.publish(calm_topic, state, 1)).code == packets.SUCCESS
            else:
                await client.send(writer.publish(version, Publish(busy_topic, state, 1, packet_id=9)))
                assert await client.farewell() is None
        assert await house.states(busy) == [{"temp": 1}, {"temp": 2}]
        house.server.move_clock(WINDOW_S)
        async with house.client(gateway_id, version) as client:
            assert (await client.publish(busy_topic, state, 1)).code == packets.SUCCESS
        assert await house.states(busy) == [{"temp": 1}, {"temp": 2}, {"temp": 3}]


async def test_new_connections_of_an_application_are_limited(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", limits={"mqtt_connect": {"calls": 2, "window_s": 15}}) as house:
        for _ in range(2):
            async with house.client("a"):
                pass
        async with mqtt_client(house.server.mqtt_ports[0]) as client:
            answer = await client.connect("a", **house.credentials)
            assert answer.code == packets.CONNECTION_RATE_EXCEEDED
