"""Messages that expire take no room: among the retained ones, and among those that wait for sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.e2e.mqtt_checks import nothing_waits
from tests.e2e.mqtt_client import MqttClient
from tests.e2e.mqtt_house import VERSIONS, House, house, house_in
from tests.e2e.test_mqtt_sessions import client_of, kept, leftovers, opened
from trunkline.actors.data.topics.session_sweep import SessionSweep
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import V5, Filter, Publish

__all__ = ["house"]  # the fixture

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


async def asleep(house: House, client_id: str, version: int, *filters: Filter) -> None:
    """Leave a session with these subscriptions."""
    async with client_of(house, version) as client:
        await opened(client, house, client_id, **kept(version))
        await client.subscribe(*filters)
        await client.goodbye()
        assert await client.next() is None


@VERSIONS
async def test_expired_messages_make_room_in_the_queue_of_a_session(tmp_path: Path, version: int) -> None:
    """Some are shared by the sessions, and one does not expire."""
    small, large, fresh = b"small", b"large" * 100, b"fresh" * 100
    async with house_in(tmp_path / "data", limits={"mqtt_queue_messages_max": 5}) as house:
        for client_id in ("one", "two"):
            await asleep(house, client_id, version, Filter("q/#", 2))
        async with house.client("sender") as sender:
            for payload, properties in (
                (small, SHORT),
                (large, SHORT),
                (small, {}),
                (large, SHORT),
                (large, SHORT),
            ):
                await sender.publish("q/old", payload, 1, properties=properties)
            house.server.move_clock(2)
            for number in range(6):
                await sender.publish(f"q/{number}", fresh, 1)
        listed = await house.server.call("GET", f"{house.application}/mqttClients?state=sleeping")
        assert [(each["queued"], each["dropped"]) for each in listed["items"]] == [(5, 2), (5, 2)]
        for client_id in ("one", "two"):
            async with client_of(house, version) as client:
                assert await opened(client, house, client_id, **kept(version))
                got = [await client.message() for _ in range(5)]
                assert [each.topic for each in got] == ["q/old", "q/0", "q/1", "q/2", "q/3"]
                assert [each.payload for each in got] == [small, *[fresh] * 4]
                await nothing_waits(client)
            async with client_of(house, version) as client:
                await opened(client, house, client_id, clean_start=True)
        while await house.server.system.component(SessionSweep).sweep():
            pass
        assert await leftovers(house) == []


async def test_expired_messages_make_room_in_the_queue_of_a_shared_subscription(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", limits={"mqtt_queue_messages_max": 3}) as house:
        await asleep(house, "member", V5, Filter("$share/crew/q/#", 1))
        async with house.client("sender") as sender:
            for _ in range(3):
                await sender.publish("q/old", b"x", 1, properties=SHORT)
            house.server.move_clock(2)
            for number in range(3):
                await sender.publish(f"q/{number}", b"x", 1)
        async with client_of(house) as client:
            assert await opened(client, house, "member", **kept())
            assert [(await client.message()).topic for _ in range(3)] == ["q/0", "q/1", "q/2"]


async def test_a_message_that_was_begun_keeps_its_room_and_comes_again(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", limits={"mqtt_queue_messages_max": 2}) as house:
        async with client_of(house) as client, house.client("sender") as sender:
            await opened(client, house, "sleeper", **kept())
            await client.subscribe("q/#")
            await sender.publish("q/begun", b"x", 1, properties=SHORT)
            assert (await client.expect(Publish)).topic == "q/begun"
            await client.goodbye()
            assert await client.next() is None
            await sender.publish("q/waits", b"x", 1, properties=SHORT)
            house.server.move_clock(2)
            for topic in ("q/fresh", "q/dropped"):
                await sender.publish(topic, b"x", 1)
        async with client_of(house) as client:
            assert await opened(client, house, "sleeper", **kept())
            got = [await client.message() for _ in range(2)]
            assert [(each.topic, each.dup) for each in got] == [("q/begun", True), ("q/fresh", False)]


async def test_expired_messages_do_not_count_in_the_rate_of_their_client(tmp_path: Path) -> None:
    limits = {"mqtt_client": {"calls": 3, "window_s": 3600}}
    async with house_in(tmp_path / "data", limits=limits) as house:
        await asleep(house, "sleeper", V5, Filter("q/#", 1))
        for number in range(5):
            async with house.client(f"sender-{number}") as sender:
                await sender.publish("q/old", b"x", 1, properties=SHORT)
        house.server.move_clock(2)
        async with house.client("sender") as sender:
            await sender.publish("q/fresh", b"x", 1)
        async with client_of(house) as client:
            assert await opened(client, house, "sleeper", **kept())
            assert (await client.message()).topic == "q/fresh"


async def test_what_waited_behind_the_messages_that_were_sent_was_not_begun(house: House) -> None:
    """It counted as sent, because its client was connected: it came with DUP, and never expired."""
    fields = kept()
    fields["properties"]["receive_maximum"] = 1
    async with client_of(house) as client, house.client("sender") as sender:
        await opened(client, house, "sleeper", **fields)
        await client.subscribe("q/#")
        for topic, properties in (("q/begun", SHORT), ("q/old", SHORT), ("q/kept", {})):
            await sender.publish(topic, b"x", 1, properties=properties)
        assert (await client.expect(Publish)).topic == "q/begun"
        await client.goodbye()
        assert await client.next() is None
    house.server.move_clock(2)
    async with client_of(house) as client:
        assert await opened(client, house, "sleeper", **kept())
        got = [await client.message() for _ in range(2)]
        assert [(each.topic, each.dup) for each in got] == [("q/begun", True), ("q/kept", False)]
