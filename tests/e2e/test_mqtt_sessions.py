"""Sessions of MQTT clients that outlive their connections and the server: what waits for them, and when they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import trio

from tests.e2e.conftest import running_server
from tests.e2e.mqtt_client import MqttClient, mqtt_client
from tests.e2e.mqtt_house import VERSIONS, House, house, house_in
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.data.topics.session_sweep import SessionSweep
from trunkline.actors.maintenance.sweep import sweep
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5, Ack, Publish
from trunkline.store import keys

__all__ = ["house"]  # the fixture


def kept(version: int = V5) -> dict[str, Any]:
    """The fields of a CONNECT whose session outlives its connection."""
    more = {"properties": {"session_expiry_interval": 3600}} if version == V5 else {}
    return {"clean_start": False, **more}


async def opened(client: MqttClient, house: House, client_id: str, **fields: Any) -> bool:
    """Connect; whether the session was there before."""
    answer = await client.connect(client_id, **house.credentials, **fields)
    assert answer.code == packets.SUCCESS, answer
    return answer.session_present


def client_of(house: House, version: int = V5) -> Any:
    return mqtt_client(house.server.mqtt_ports[0], version)


async def leftovers(house: House) -> list[bytes]:
    """The keys of sessions and what waits for them."""
    with house.server.system.store.snapshot() as snapshot:
        return [bytes(key) for key in snapshot.keys(keys.MESSAGES, b"", None)]


@VERSIONS
async def test_messages_wait_for_a_client_that_is_away(house: House, version: int) -> None:
    async with client_of(house, version) as client:
        assert not await opened(client, house, "sleeper", **kept(version))
        await client.subscribe("a/+", qos=1)
        await client.subscribe("b", qos=2)
        await client.goodbye()
        assert await client.next() is None
    async with house.client("sender") as sender:
        await sender.publish("a/1", b"1", 1)
        await sender.publish("b", b"2", 2)
        await sender.publish("a/2", b"not kept", 0)
        await sender.publish("c", b"not subscribed", 1)
        await sender.publish("a/3", b"3" * 1000, 2)
    async with client_of(house, version) as client:
        assert await opened(client, house, "sleeper", **kept(version))
        got = [await client.message() for _ in range(3)]
        assert [(each.topic, each.qos, each.dup) for each in got] == [
            ("a/1", 1, False),
            ("b", 2, False),
            ("a/3", 1, False),
        ]
        async with house.client("sender") as sender:
            await sender.publish("a/4", b"4", 1)
            assert (await client.message()).payload == b"4"
        await client.goodbye()
        assert await client.next() is None
    async with client_of(house, version) as client:
        assert await opened(client, house, "sleeper", clean_start=True) is False
        await client.send(writer.PINGREQ)
        assert type(await client.next()) is packets.PingResp, "a clean start has no subscriptions"
    while await house.server.system.component(SessionSweep).sweep():
        pass
    assert await leftovers(house) == []


@VERSIONS
async def test_sessions_and_what_waits_survive_a_restart(tmp_path: Path, version: int) -> None:
    async with (
        house_in(tmp_path / "data") as house,
        client_of(house, version) as client,
        house.client("sender") as sender,
    ):
        await opened(client, house, "sleeper", **kept(version))
        await client.subscribe("a", qos=2)
        await sender.publish("a", b"1", 1)
        first = await client.expect(Publish)
        await sender.publish("a", b"2", 2)
        second = await client.expect(Publish)
        await client.send(writer.ack(version, packets.PUBREC, second.packet_id))
        released = await client.expect(Ack)
        assert (released.type, released.packet_id) == (packets.PUBREL, second.packet_id)
    async with running_server(tmp_path / "data", mqtt_port=0) as server:
        house.server = server
        async with house.client("sender") as sender:
            await sender.publish("a", b"3", 1)
        async with client_of(house, version) as client:
            assert await opened(client, house, "sleeper", **kept(version))
            again = await client.message()
            assert (again.payload, again.packet_id, again.dup) == (b"1", first.packet_id, True)
            release = await client.expect(Ack)
            assert (release.type, release.packet_id) == (packets.PUBREL, second.packet_id)
            await client.send(writer.ack(version, packets.PUBCOMP, second.packet_id))
            third = await client.message()
            assert (third.payload, third.dup) == (b"3", False)


@VERSIONS
async def test_a_message_with_qos_2_is_stored_once_however_often_it_comes(house: House, version: int) -> None:
    body = b'{"data": {"temp": 1}, "time": 1700000000000}'
    for topic, payload in ((f"losant/{house.id}/state", body), ("a", b"x")):
        packet = writer.publish(version, Publish(topic, payload, 2, packet_id=7))
        async with client_of(house, version) as client:
            await opened(client, house, house.id, **kept(version))
            await client.subscribe("a", qos=1)
            await client.send(packet)
            assert (await client._answer(Ack)).type == packets.PUBREC
        async with client_of(house, version) as client:
            assert await opened(client, house, house.id, **kept(version))
            await client.send(packet)
            assert (await client._answer(Ack)).type == packets.PUBREC
            await client.send(writer.ack(version, packets.PUBREL, 7))
            assert (await client._answer(Ack)).type == packets.PUBCOMP
            if topic == "a":
                assert (await client.message()).payload == b"x"
            await client.send(writer.ack(version, packets.PUBREL, 7))
            unknown = await client.expect(Ack)
            assert unknown.code == (packets.PACKET_IDENTIFIER_NOT_FOUND if version == V5 else 0)
    assert await house.states() == [{"temp": 1}]


async def test_a_session_ends_when_its_client_stays_away(house: House) -> None:
    async with client_of(house) as client:
        await opened(client, house, "sleeper", **kept())
        await client.subscribe("a")
    async with client_of(house) as client:
        await opened(client, house, "other", **kept())
        await client.subscribe("a")
        await client.send(writer.disconnect(V5, 0, {"session_expiry_interval": 10}))
        assert await client.next() is None
    sessions = house.server.system.component(SessionSweep)
    async with house.client("sender") as sender:
        await sender.publish("a", b"x" * 1000, 1)
        house.server.move_clock(11)
        while await sessions.sweep():
            pass
        assert sessions.ended == 1
        await sender.publish("a", b"y", 1)
    async with client_of(house) as client:
        assert not await opened(client, house, "other", **kept())
    async with client_of(house) as client:
        assert await opened(client, house, "sleeper", **kept())
        assert [(await client.message()).payload for _ in range(2)] == [b"x" * 1000, b"y"]
        await client.send(writer.disconnect(V5, 0, {"session_expiry_interval": 0}))
        assert await client.next() is None
    async with client_of(house) as client:
        assert not await opened(client, house, "sleeper", **kept())
    async with client_of(house) as client:
        await opened(client, house, "brief", clean_start=True)
        await client.send(writer.disconnect(V5, 0, {"session_expiry_interval": 10}))
        assert await client.farewell() == packets.PROTOCOL_ERROR


async def test_a_full_queue_drops_counts_and_logs(tmp_path: Path) -> None:
    limits = {"mqtt_queue_messages_max": 3, "mqtt_queue_bytes_max": 2000}
    async with house_in(tmp_path / "data", limits=limits) as house:
        async with client_of(house) as client:
            await opened(client, house, "sleeper", **kept())
            await client.subscribe("a")
        async with house.client("sender") as sender:
            for number in range(5):
                await sender.publish("a", b"%d" % number, 1)
        assert house.server.system.component(Broker).dropped == 2
        async with client_of(house) as client:
            await opened(client, house, "sleeper", **kept())
            assert [(await client.message()).payload for _ in range(3)] == [b"0", b"1", b"2"]
            await client.goodbye()
            assert await client.next() is None
        async with house.client("sender") as sender:
            await sender.publish("a", b"x" * 1900, 1)
            await sender.publish("a", b"y" * 1900, 1)
        async with client_of(house) as client:
            await opened(client, house, "sleeper", **kept())
            assert (await client.message()).payload == b"x" * 1900
            await client.send(writer.PINGREQ)
            assert type(await client.next()) is packets.PingResp


async def test_a_client_that_is_behind_gets_all_in_order(house: House) -> None:
    slow = {"session_expiry_interval": 3600, "receive_maximum": 5}
    async with client_of(house) as client:
        await opened(client, house, "sleeper", clean_start=False, properties=slow)
        await client.subscribe("a", qos=2)
        async with house.client("sender") as sender:
            for number in range(300):
                await sender.publish("a", b"%d" % number, 1 + number % 2)
        got = [await client.message() for _ in range(300)]
        assert [each.payload for each in got] == [b"%d" % number for number in range(300)]


async def test_a_session_of_a_key_that_may_less_keeps_what_it_may(house: House) -> None:
    made = await house.server.call("POST", f"{house.application}/keys", {})
    path = f"{house.application}/keys/{made['id']}"
    given = {"username": made["key"], "password": made["secret"].encode()}
    async with client_of(house) as client:
        assert (await client.connect("sleeper", **given, **kept())).code == 0
        assert await client.subscribe("a", "b") == (1, 1)
    await house.server.call("PATCH", path, {"filterType": "whitelist", "subTopics": ["b"]})
    async with client_of(house) as client:
        assert (await client.connect("sleeper", **given, **kept())).session_present
        async with house.client("sender") as sender:
            await sender.publish("a", b"1", 1)
            await sender.publish("b", b"2", 1)
        assert (await client.message()).topic == "b"


async def test_commands_reach_a_session_that_was_subscribed_before(house: House) -> None:
    async with client_of(house) as client:
        await opened(client, house, house.id, **kept())
        await client.subscribe("losant/+/command")
    await house.server.call("POST", f"{house.device}/command", {"name": "go", "ttlSeconds": 60})
    async with client_of(house) as client:
        assert await opened(client, house, house.id, **kept())
        assert msgspec.json.decode((await client.message()).payload)["name"] == "go"


@VERSIONS
async def test_messages_wait_for_a_shared_subscription_without_a_connected_member(
    tmp_path: Path, version: int
) -> None:
    filter, expected = "$share/crew/job/+", [b"%d" % number for number in range(200)]
    async with house_in(tmp_path / "data") as house:
        for name in ("one", "two"):
            async with client_of(house, version) as client:
                await opened(client, house, name, **kept(version))
                assert await client.subscribe(filter, qos=2) == (2,)
                await client.goodbye()
                assert await client.next() is None
        async with house.client("sender") as sender:
            for payload in expected[:100]:
                await sender.publish("job/short", payload, 1 + len(payload) % 2)
    loose = {"mqtt_topic": "off", "mqtt_client": "off"}
    async with running_server(tmp_path / "data", mqtt_port=0, limits=loose) as server:
        house.server = server
        async with house.client("sender") as sender:
            for payload in expected[100:]:
                await sender.publish("job/long", payload + b" " * 300, 1)
        got: list[bytes] = []
        async with client_of(house, version) as client:
            assert await opened(client, house, "one", **kept(version))
            got += [(await client.message()).payload.strip() for _ in range(64)]
        async with trio.open_nursery() as nursery:

            async def receive(name: str) -> None:
                async with client_of(house, version) as client:
                    assert await opened(client, house, name, **kept(version))
                    while True:
                        got.append((await client.message()).payload.strip())
                        if set(got) == set(expected):
                            nursery.cancel_scope.cancel()

            nursery.start_soon(receive, "one")
            nursery.start_soon(receive, "two")
        # The acknowledgements of the first connection may not have come: these are sent again.
        assert sorted(set(got)) == sorted(expected)
        assert len(got) <= 200 + 64
        async with house.client("sender") as sender, client_of(house, version) as client:
            assert await opened(client, house, "one", **kept(version))
            await sender.publish("job/now", b"at once", 1)
            while (await client.message()).payload != b"at once":
                pass
            for name in ("one", "two"):
                async with client_of(house, version) as member:
                    await opened(member, house, name, **kept(version))
                    await member.unsubscribe(filter)
            async with client_of(house, version) as member:
                await opened(member, house, "two", **kept(version))
                await member.subscribe(filter)
            # A group of the same name begins anew, before what waited for the one of before is removed.
            await sender.publish("job/new", b"new", 1)
            while await server.system.component(SessionSweep).sweep():
                pass
            async with client_of(house, version) as member:
                await opened(member, house, "two", **kept(version))
                assert (await member.message()).payload == b"new"
        for name in ("one", "two"):
            async with client_of(house, version) as client:
                await opened(client, house, name, clean_start=True)
        while await server.system.component(SessionSweep).sweep():
            pass
        assert await leftovers(house) == []


async def test_the_sweep_does_not_go_on_at_once_where_a_session_cannot_be_swept(house: House) -> None:
    """It would take the whole core until it can: here the application is deleted before its messages are removed."""
    async with client_of(house) as client:
        await opened(client, house, "sleeper", **kept())
        await client.subscribe("a", qos=1)
    async with house.client("sender") as sender:
        await sender.publish("a", b"x", 1)
    async with client_of(house) as client:
        await opened(client, house, "sleeper", clean_start=True)
    await house.server.call("DELETE", house.application)
    assert await leftovers(house)
    assert not await house.server.system.component(SessionSweep).sweep()


async def test_what_waits_is_not_for_a_client_that_may_no_longer_have_it(house: House) -> None:
    made = await house.server.call("POST", f"{house.application}/keys", {})
    path = f"{house.application}/keys/{made['id']}"
    given = {"username": made["key"], "password": made["secret"].encode()}
    async with client_of(house) as client:
        assert (await client.connect("sleeper", **given, **kept())).code == 0
        await client.subscribe("a", "b")
    async with house.client("sender") as sender:
        for topic in ("a", "b"):
            await sender.publish(topic, b"waits", 1)
    await house.server.call("PATCH", path, {"filterType": "whitelist", "subTopics": ["b"]})
    async with client_of(house) as client:
        assert (await client.connect("sleeper", **given, **kept())).session_present
        assert (await client.message()).topic == "b"
        await house.server.call("PATCH", path, {"subTopics": ["c"]})
        async with house.client("sender") as sender:
            await sender.publish("b", b"too late", 1)
        await client.send(writer.PINGREQ)
        assert type(await client.next()) is packets.PingResp


async def test_a_deleted_application_takes_its_sessions_along(house: House) -> None:
    async with client_of(house) as client:
        await opened(client, house, "sleeper", **kept())
        await client.subscribe("a")
    async with house.client("sender") as sender:
        await sender.publish("a", b"x" * 1000, 1, retain=True)
    assert await leftovers(house)
    await house.server.call("DELETE", house.application)
    while await sweep(house.server.system):
        pass
    assert await leftovers(house) == []


async def test_sessions_that_end_together_leave_nothing(house: House) -> None:
    for name in ("first", "second", "third"):
        async with client_of(house) as client:
            await opened(client, house, name, clean_start=False, properties={"session_expiry_interval": 10})
            await client.subscribe("a")
            await client.goodbye()
            assert await client.next() is None
    async with house.client("sender") as sender:
        await sender.publish("a", b"x" * 1000, 1)
    house.server.move_clock(11)
    sessions = house.server.system.component(SessionSweep)
    await sessions.sweep()
    assert sessions.ended == 3
    while await sessions.sweep():
        pass
    assert await leftovers(house) == []


async def test_a_message_on_its_way_to_the_disk_is_known_to_the_next_connection(house: House) -> None:
    packet = Publish("a", b"x", 2, packet_id=7)
    async with house.client("watcher") as watcher, client_of(house) as first, client_of(house) as second:
        await watcher.subscribe("a", qos=1)
        await opened(first, house, "client", **kept())
        house.server.system.journal._sync_delay_s = lambda: 0.2
        await first.send(writer.publish(V5, packet))
        assert await opened(second, house, "client", **kept())
        await second.send(writer.publish(V5, packet))
        assert (await second.expect(Ack)).type == packets.PUBREC
        house.server.system.journal._sync_delay_s = None
        assert (await watcher.message()).payload == b"x"
        await watcher.send(writer.PINGREQ)
        assert type(await watcher.next()) is packets.PingResp


async def test_nothing_is_sent_before_the_connack(tmp_path: Path) -> None:
    """A session has its subscriptions before it is on disk that its client has come back. The time between is short, so
    there are several attempts."""
    limits = {"mqtt_topic": "off", "mqtt_client": "off"}
    async with house_in(tmp_path / "data", limits=limits) as house, house.client("other") as other:
        async with client_of(house) as client:
            await opened(client, house, "sleeper", **kept())
            await client.subscribe("a")

        async def pour() -> None:
            while True:
                await other.publish("a", b"x")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pour)
            for _ in range(20):
                async with client_of(house) as client:
                    assert await opened(client, house, "sleeper", **kept())
            nursery.cancel_scope.cancel()
