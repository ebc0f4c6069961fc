"""What both specifications demand of a server, at the socket: what a client allows, and what the server allows it.

`docs/reference/mqtt-conformance.md` names the checks that show each statement. All checks share one server.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.mqtt_checks import Checks, Place, answer, closed_with, ends, got, nothing_waits, publish
from tests.e2e.mqtt_house import house_in
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5, Ack, Connect, Disconnect, Filter, Publish

CHECKS = Checks()
IN_FLIGHT = 8
"""How many messages with QoS 1 and 2 a client may send at once here."""


async def test_the_statements_about_bounds_hold_at_the_socket(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", limits={"mqtt_in_flight_messages_max": IN_FLIGHT}) as house:
        assert await CHECKS.run(house) == []


# The sizes and numbers that a client allows.


@CHECKS.of(V5)
async def no_packet_is_larger_than_the_client_allows(place: Place) -> None:
    async with place.stranger() as client:
        own = {"maximum_packet_size": 15}
        told = await client.connect(place.id("a"), **place.house.credentials, properties=own)
        assert told.code == packets.PACKET_TOO_LARGE
        assert await client.next() is None
    async with place.stranger() as client:
        own = {"maximum_packet_size": 4}
        connect = Connect(V5, place.id("a"), **place.house.credentials, properties=own)
        assert await closed_with(client, writer.connect(connect)) == b""
    async with place.client("a", properties={"maximum_packet_size": 16}) as client:
        await client.subscribe(*(f"{number}" for number in range(11)))
        await client.send(
            writer.subscribe(V5, packets.Subscribe(1, [Filter(f"{number}") for number in range(12)]))
        )
        await ends(client, packets.PACKET_TOO_LARGE)
    async with place.client("a", properties={"maximum_packet_size": 16}) as client:
        names = [f"{number}" for number in range(12)]
        await client.send(writer.unsubscribe(V5, packets.Unsubscribe(1, names)))
        await ends(client, packets.PACKET_TOO_LARGE)


@CHECKS.of(V5)
async def a_message_that_is_too_large_for_a_client_counts_as_sent(place: Place) -> None:
    for kept in (False, True):
        own = {"maximum_packet_size": 200, "receive_maximum": 1}
        async with place.client("a", kept=kept, properties=own) as client:
            await client.subscribe(place.topic, qos=2)
            async with place.client("b") as other:
                for number, payload in enumerate((b"x" * 200, b"1", b"x" * 200, b"2")):
                    await other.publish(place.topic, payload, 1 + number % 2)
            assert await got(client, 2) == [b"1", b"2"]
            await nothing_waits(client)
        async with place.client("a", kept=kept) as client:
            await nothing_waits(client)


@CHECKS.of(V5)
async def who_sends_more_at_once_than_allowed_is_disconnected(place: Place) -> None:
    async with place.client("a") as client:
        for number in range(IN_FLIGHT):
            await client.send(publish(client, place.topic, b"x", qos=2, packet_id=1 + number))
            assert (await client.expect(Ack)).type == packets.PUBREC
        await client.send(publish(client, place.topic, b"x", qos=2, packet_id=1, dup=True))
        assert (await client.expect(Ack)).type == packets.PUBREC
        await client.send(answer(client, packets.PUBREL, 1))
        assert (await client.expect(Ack)).type == packets.PUBCOMP
        assert (await client.publish(place.topic, b"x", 1)).code == packets.NO_MATCHING_SUBSCRIBERS
        await client.send(publish(client, place.topic, b"x", qos=2, packet_id=100))
        assert (await client.expect(Ack)).type == packets.PUBREC
        await client.send(publish(client, place.topic, b"x", qos=1, packet_id=101))
        await ends(client, packets.RECEIVE_MAXIMUM_EXCEEDED)
    async with place.client("a") as client:
        many = (
            publish(client, place.topic, b"x", qos=1, packet_id=1 + each) for each in range(IN_FLIGHT + 1)
        )
        await client.send(b"".join(many))
        while type(packet := await client.next()) is Ack:
            assert packet.code == packets.NO_MATCHING_SUBSCRIBERS
        assert type(packet) is Disconnect
        assert packet.code == packets.RECEIVE_MAXIMUM_EXCEEDED


@CHECKS.of(V5)
async def a_client_gets_no_more_at_once_than_it_allows_but_all_other_packets(place: Place) -> None:
    async with place.client("a", properties={"receive_maximum": 2}) as client:
        await client.subscribe(place.topic, qos=2)
        async with place.client("b") as other:
            for number in range(5):
                await other.publish(place.topic, b"%d" % number, 1 + number % 2)
        first, second = [await client.expect(Publish) for _ in range(2)]
        await nothing_waits(client)
        assert await client.subscribe("other") == (1,)
        assert (await client.publish("nobody", b"x", 1)).code == packets.NO_MATCHING_SUBSCRIBERS
        await client.send(answer(client, packets.PUBREC, second.packet_id))
        assert (await client.expect(Ack)).type == packets.PUBREL
        await nothing_waits(client)
        await client.send(answer(client, packets.PUBACK, first.packet_id))
        third = await client.expect(Publish)
        await nothing_waits(client)
        await client.send(answer(client, packets.PUBCOMP, second.packet_id))
        fourth = await client.expect(Publish)
        assert [each.payload for each in (first, second, third, fourth)] == [b"0", b"1", b"2", b"3"]
        assert len({first.packet_id, third.packet_id, fourth.packet_id, 0}) == 4


@CHECKS.of(V5)
async def a_refusal_of_the_client_is_the_end_of_a_message(place: Place) -> None:
    own = {"receive_maximum": 1}
    async with place.client("a", kept=True, properties=own) as client, place.client("b") as other:
        await client.subscribe(place.topic, qos=2)
        for qos, kind in ((1, packets.PUBACK), (2, packets.PUBREC)):
            await other.publish(place.topic, b"refused", qos)
            packet = await client.expect(Publish)
            await client.send(answer(client, kind, packet.packet_id, packets.IMPLEMENTATION_SPECIFIC_ERROR))
            await other.publish(place.topic, b"next", 1)
            assert (await client.message()).payload == b"next"
    async with place.client("a", kept=True) as client:
        await nothing_waits(client)


# Aliases.


@CHECKS.of(V5)
async def aliases_hold_for_one_connection(place: Place) -> None:
    most = place.house.server.system.limits.mqtt_topic_aliases_max
    async with place.client("watcher") as watcher:
        await watcher.subscribe(f"{place.topic}/#")
        async with place.client("a") as client:
            for alias in (1, most):
                await client.publish(f"{place.topic}/{alias}", b"", properties={"topic_alias": alias})
                await client.publish("", b"", properties={"topic_alias": alias})
            await client.publish(f"{place.topic}/new", b"", properties={"topic_alias": 1})
            await client.publish("", b"", properties={"topic_alias": 1})
            topics = [(await watcher.message()).topic for _ in range(6)]
            assert topics == [f"{place.topic}/{each}" for each in (1, 1, most, most, "new", "new")]
        async with place.client("a") as client:
            await client.publish("", b"", properties={"topic_alias": 1})
            await ends(client, packets.PROTOCOL_ERROR)
        for alias, code in ((0, packets.TOPIC_ALIAS_INVALID), (most + 1, packets.TOPIC_ALIAS_INVALID)):
            async with place.client("a") as client:
                await client.publish(place.topic, b"", properties={"topic_alias": alias})
                await ends(client, code)


@CHECKS.of(V5)
async def a_client_gets_no_alias_that_it_does_not_allow(place: Place) -> None:
    for own in ({}, {"topic_alias_maximum": 0}):
        async with place.client("a", properties=own) as client:
            await client.subscribe(place.topic)
            for _ in range(3):
                await client.publish(place.topic, b"x", 1, properties={"topic_alias": 5})
                packet = await client.message()
                assert (packet.topic, dict(packet.properties)) == (place.topic, {})


@CHECKS.of(V5)
async def a_client_gets_the_aliases_that_it_allows(place: Place) -> None:
    own = {"topic_alias_maximum": 2, "maximum_packet_size": 400}
    for kept in (False, True):
        async with place.client("a", kept=kept, properties=own) as client, place.client("b") as other:
            await client.subscribe(f"{place.topic}/+", qos=2)
            for qos in (0, 1, 2):
                for name in ("1", "2", "3"):
                    await other.publish(f"{place.topic}/{name}", b"x", qos)
            found = [await client.message() for _ in range(9)]
            told = [(each.topic, each.properties.get("topic_alias", 0)) for each in found]
            first, second, third = [f"{place.topic}/{name}" for name in ("1", "2", "3")]
            assert told == [(first, 1), (second, 2), (third, 0), *[("", 1), ("", 2), (third, 0)] * 2]
            await client.unsubscribe(f"{place.topic}/+")
        async with place.client("a", kept=kept, properties=own) as client, place.client("b") as other:
            await client.subscribe(place.topic, qos=0)
            size = len(writer.publish(V5, Publish(place.topic, b"")))
            for payload in (b"x" * (400 - size), b"x" * (399 - size), b"y", b"z" * (399 - size), b"z"):
                await other.publish(place.topic, payload)
            sent = [await client.message() for _ in range(4)]
            with_signs = [
                (each.topic, each.properties.get("topic_alias", 0), each.payload[:1]) for each in sent
            ]
            topic = place.topic
            assert with_signs == [(topic, 0, b"x"), (topic, 1, b"y"), ("", 1, b"z"), ("", 1, b"z")]
            await nothing_waits(client)
