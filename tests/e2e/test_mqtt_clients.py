"""Who is connected by MQTT: the list of the clients of an application."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.e2e.mqtt_client import MqttClient
from tests.e2e.mqtt_house import House, house
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V3_1_1

__all__ = ["house"]  # the fixture

IDLE = {
    "address": "127.0.0.1",
    "messagesSent": 0,
    "unacknowledged": 0,
    "waiting": 0,
    "hasSession": False,
    "queued": 0,
    "dropped": 0,
    "refused": 0,
}


async def listed(house: House, query: str = "", **more: Any) -> Any:
    return await house.server.call("GET", f"{house.application}/mqttClients{query}", **more)


async def pinged(client: MqttClient) -> None:
    """Wait until the server has handled what the client has sent."""
    await client.send(writer.PINGREQ)
    await client.expect(packets.PingResp)


def without_time(client: dict[str, Any]) -> dict[str, Any]:
    shown = dict(client)
    assert datetime.fromisoformat(shown.pop("connected")).year >= 2024
    return shown


async def test_connected_clients_are_listed_with_what_they_sent_got_and_still_wait_for(house: House) -> None:
    assert (await listed(house))["items"] == []
    other = await house.server.application("other")
    async with (
        house.client() as device,
        house.client("desk", V3_1_1, clean_start=False) as desk,
    ):
        await desk.subscribe("barn/#", qos=1)
        for _ in range(2):
            assert (await device.publish("barn/door", b"open", 1)).code == packets.SUCCESS
        assert (await device.publish("losant/else", b"x", 1)).code >= packets.UNSPECIFIED_ERROR
        await desk.expect(packets.Publish)
        last = await desk.expect(packets.Publish)
        found = await listed(house)
        assert (found["count"], found["totalCount"]) == (2, 2)
        assert [without_time(each) for each in found["items"]] == [
            IDLE
            | {"clientId": "desk", "version": "3.1.1", "hasSession": True, "packetsReceived": 1}
            | {"messagesSent": 2, "unacknowledged": 2, "queued": 2},
            IDLE
            | {"clientId": house.id, "deviceId": house.id, "version": "5.0", "packetsReceived": 3}
            | {"refused": 1},
        ]
        await desk.send(writer.ack(V3_1_1, packets.PUBACK, last.packet_id))
        await pinged(desk)
        (first, *_) = (await listed(house))["items"]
        assert (first["unacknowledged"], first["packetsReceived"]) == (1, 3)
        second = await listed(house, "?page=1&perPage=1")
        assert [each["clientId"] for each in second["items"]] == [house.id]
        assert (await house.server.call("GET", f"{other}/mqttClients"))["items"] == []
        # A client that comes again is a new connection.
        async with house.client() as again:
            assert [each["clientId"] for each in (await listed(house))["items"]] == [house.id, "desk"]
            await pinged(again)
