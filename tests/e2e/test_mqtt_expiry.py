"""Messages that expire take no room: among the retained ones, and among those that wait for sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.e2e.mqtt_client import MqttClient
from tests.e2e.mqtt_house import VERSIONS, house_in
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import V5

SHORT: Final[dict[str, Any]] = {"message_expiry_interval": 1}


async def retained(client: MqttClient, number: int) -> dict[str, bytes]:
    """So many retained messages, and no others: a message that is published behind them comes next."""
    await client.subscribe("r/#", qos=0)
    found = {each.topic: each.payload for each in [await client.message() for _ in range(number)]}
    await client.publish("r/end")
    assert (await client.message()).topic == "r/end"
    await client.unsubscribe("r/#")
    return found


async def test_expired_retained_messages_make_room_for_new_ones(tmp_path: Path) -> None:
    async with (
        house_in(tmp_path / "data", limits={"retained_messages_max": 4}) as house,
        house.client("publisher") as client,
    ):
        for topic, properties in (("r/a", SHORT), ("r/b", {}), ("r/c", SHORT), ("r/d", SHORT)):
            await client.publish(topic, b"old", 1, retain=True, properties=properties)
        refused = await client.publish("r/new", b"new", 1, retain=True, properties=SHORT)
        assert refused.code == packets.QUOTA_EXCEEDED
        house.server.move_clock(2)
        for topic in ("r/new", "r/c", "r/more"):
            answer = await client.publish(topic, b"new", 1, retain=True, properties=SHORT)
            assert answer.code == packets.NO_MATCHING_SUBSCRIBERS
        assert (await client.publish("r/last", b"new", 1, retain=True)).code == packets.QUOTA_EXCEEDED
        kept = {"r/new": b"new", "r/c": b"new", "r/more": b"new", "r/b": b"old"}
        assert await retained(client, 4) == kept
        house.server.move_clock(2)
        assert await retained(client, 1) == {"r/b": b"old"}
        for topic in ("r/1", "r/2", "r/3"):
            await client.publish(topic, b"new", 1, retain=True)
        assert len(await retained(client, 4)) == 4


@VERSIONS
async def test_a_message_that_cannot_be_retained_is_refused_or_delivered(
    tmp_path: Path, version: int
) -> None:
    """A client of 3.1.1 cannot be told that it is refused, nor any client with QoS 0."""
    async with (
        house_in(tmp_path / "data", limits={"retained_messages_max": 1}) as house,
        house.client("watcher", version) as watcher,
        house.client("publisher", version) as client,
    ):
        await client.publish("r/0", b"x", 1, retain=True)
        await watcher.subscribe("r/#")
        assert (await watcher.message()).topic == "r/0"
        refused = await client.publish("r/1", b"x", 1, retain=True)
        await client.publish("r/2", b"x", 0, retain=True)
        await client.publish("r/3", b"x", 1)
        is_told = version == V5
        assert refused.code == (packets.QUOTA_EXCEEDED if is_told else packets.SUCCESS)
        topics = ["r/2", "r/3"] if is_told else ["r/1", "r/2", "r/3"]
        assert [(await watcher.message()).topic for _ in topics] == topics
        assert await retained(client, 1) == {"r/0": b"x"}
        shown = await house.server.call("GET", f"{house.application}/overview")
        assert shown["traffic"]["refused"] == {"storage": 2}
        assert "retained messages" in shown["recent"]["refused"][0]["message"]
