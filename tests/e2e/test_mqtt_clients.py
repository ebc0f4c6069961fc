"""Who is connected by MQTT: the list of the clients of an application."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs
from trio_websocket import open_websocket_url

from tests.e2e.mqtt_client import MqttClient, mqtt_client
from tests.e2e.mqtt_house import House, house, house_in
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V3_1_1
from trunkline.http.mqtt.service import MqttService

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
    "state": "connected",
    "transport": "tcp",
}


RESERVED = (
    "losant/else is reserved; devices publish to losant/DEVICE_ID/state, trunkline/DEVICE_ID/rows and "
    "trunkline/DEVICE_ID/columns."
)


async def listed(house: House, query: str = "", **more: Any) -> Any:
    return await house.server.call("GET", f"{house.application}/mqttClients{query}", **more)


async def pinged(client: MqttClient) -> None:
    """Wait until the server has handled what the client has sent."""
    await client.send(writer.PINGREQ)
    await client.expect(packets.PingResp)


def without_time(client: dict[str, Any]) -> dict[str, Any]:
    shown = dict(client)
    assert datetime.fromisoformat(shown.pop("connected")).year >= 2024
    if "lastRefusal" in shown:
        assert shown["lastRefusal"].pop("time") >= client["connected"]
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
            | {"refused": 1, "lastRefusal": {"code": packets.NOT_AUTHORIZED, "message": RESERVED}},
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


async def test_sleeping_clients_are_listed_with_what_waits_for_them(house: House) -> None:
    assert (await listed(house, "?state=sleeping"))["items"] == []
    for name, filters in (("short", ["barn/#"]), (house.id, ["barn/+", "yard"])):
        expiry = {"session_expiry_interval": 100 if name == "short" else 1000}
        async with house.client(name, properties=expiry, clean_start=False) as client:
            for filter in filters:
                await client.subscribe(filter, qos=1)
            assert (await listed(house, "?state=sleeping"))["totalCount"] == int(name == house.id)
            await client.goodbye()
            assert await client.next() is None
    async with house.client("desk") as desk:
        await desk.publish("barn/door", b"open", 1)
        found = await listed(house, "?state=sleeping")
    assert (found["count"], found["totalCount"]) == (2, 2)
    shown = [
        (each["clientId"], each.get("deviceId"), each["state"], each["queued"], each["subscriptions"])
        for each in found["items"]
    ]
    assert shown == [("short", None, "sleeping", 1, 1), (house.id, house.id, "sleeping", 1, 2)]
    first = found["items"][0]
    lasts = datetime.fromisoformat(first["ends"]) - datetime.fromisoformat(first["disconnected"])
    assert lasts.total_seconds() == 100
    second = await listed(house, "?state=sleeping&page=1&perPage=1")
    assert ([each["clientId"] for each in second["items"]], second["totalCount"]) == ([house.id], 2)
    async with house.client("short", properties={"session_expiry_interval": 100}, clean_start=False):
        found = await listed(house, "?state=sleeping")
        assert [each["clientId"] for each in found["items"]] == [house.id]
    other = await house.server.application("other")
    assert (await house.server.call("GET", f"{other}/mqttClients?state=sleeping"))["totalCount"] == 0


async def test_a_refused_subscription_is_shown_with_its_reason(house: House) -> None:
    key = await house.key_of(filterType="whitelist", subTopics=["barn/#"])
    async with house.client("desk", V3_1_1, **key) as client:
        for filter in ("barn/a", "yard", "a/#/b"):
            await client.subscribe(filter)
        (shown,) = (await listed(house))["items"]
        assert (shown["refused"], shown["lastRefusal"]["code"]) == (2, packets.TOPIC_FILTER_INVALID)
        assert shown["lastRefusal"]["message"] == "This is not a filter that a subscription may have: a/#/b"


async def test_the_transport_of_a_client_is_shown(house: House) -> None:
    url = house.server.url.replace("http", "ws") + "/mqtt"
    connect = packets.Connect(V3_1_1, "desk", username=house.key, password=house.secret.encode())
    async with open_websocket_url(url, subprotocols=["mqtt"]) as socket:
        await socket.send_message(writer.connect(connect))
        await socket.get_message()
        assert [each["transport"] for each in (await listed(house))["items"]] == ["websocket"]


async def test_the_log_says_why_a_client_of_3_1_1_was_disconnected(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", limits={"mqtt_topic": {"calls": 2, "window_s": 15}}) as house:
        with capture_logs() as logged:
            async with house.client(version=V3_1_1) as client:
                for _ in range(3):
                    await client.send(
                        writer.publish(V3_1_1, packets.Publish("barn/door", b"x", 0)),
                    )
                assert await client.next() is None
            async with mqtt_client(house.server.mqtt_ports[0], V3_1_1) as again:
                await again.connect(house.id, **house.credentials)
        ends = [each for each in logged if each["event"] == "an MQTT connection was ended"]
        assert [(each["client_id"], each["code"]) for each in ends] == [
            (house.id, "0x96"),
            (house.id, "0x8A"),
        ]
        reason = "more than 2 messages in 15 s were sent to one topic; connect again in 30 s"
        assert ends[0]["reason"] == reason
        (entry, *_) = await house.server.call("GET", f"{house.device}/logs")
        assert entry["disconnectReason"] == f"MQTT 3.1.1: {reason}"
        assert house.server.system.component(MqttService).ends.count == 2
