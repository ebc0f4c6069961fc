"""What both specifications demand of a server, at the socket: subscriptions, retained messages, and messages.

`docs/reference/mqtt-conformance.md` names the checks that show each statement. All checks share one server.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.mqtt_checks import BOTH, Checks, Place, answer, got, leaves, nothing_waits, publish
from tests.e2e.mqtt_client import MqttClient
from tests.e2e.mqtt_house import house_in
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import (
    V5,
    Ack,
    Filter,
    Publish,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
)

CHECKS = Checks()


async def test_the_statements_about_messages_hold_at_the_socket(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        assert await CHECKS.run(house) == []


# Subscriptions.


@CHECKS.of(*BOTH)
async def each_filter_is_answered_in_its_place(place: Place) -> None:
    async with place.client("a") as client:
        filters = [Filter("x/0", 0), Filter("x/#/y"), Filter("x/2", 2), Filter("x+"), Filter("x/1", 1)]
        await client.send(writer.subscribe(client.version, Subscribe(7, filters)))
        told = await client.expect(SubAck)
        wrong = packets.TOPIC_FILTER_INVALID if client.version == V5 else packets.UNSPECIFIED_ERROR
        assert (told.packet_id, told.codes, dict(told.properties)) == (7, (0, wrong, 2, wrong, 1), {})
        await client.send(writer.unsubscribe(client.version, Unsubscribe(8, ["x/2", "X/0", "x/+", "x/0"])))
        ended = await client.expect(UnsubAck)
        none = packets.NO_SUBSCRIPTION_EXISTED
        assert (ended.packet_id, ended.codes) == (8, (0, none, none, 0) if client.version == V5 else ())
        assert not ended.properties
        await client.send(writer.unsubscribe(client.version, Unsubscribe(9, ["x/0"])))
        assert (await client.expect(UnsubAck)).packet_id == 9


@CHECKS.of(*BOTH)
async def a_filter_selects_the_topics_that_it_should(place: Place) -> None:
    top = place.topic
    for filter, topics in (
        (f"{top}/a", ["a"]),
        (f"{top}/+", ["a", "A", "é", "e\u0301", "\ufeffa", " ", ""]),
        (f"{top}/#", ["a", "A", "é", "e\u0301", "\ufeffa", " ", "", "a/b", "a/", "/", "a//b"]),
        (f"{top}/+/+", ["a/b", "a/", "/"]),
        (f"{top}/a/#", ["a", "a/b", "a/", "a//b"]),
        (f"{top}/+/b", ["a/b"]),
        (f"+/{place.version}/é", ["é"]),
        (f"{top}/a//b", ["a//b"]),
    ):
        async with place.client("watcher") as watcher, place.client("b") as other:
            assert await watcher.subscribe(filter, qos=2) == (2,)
            for level in ("a", "A", "é", "e\u0301", "\ufeffa", " ", "", "a/b", "a/", "/", "a//b"):
                await other.publish(f"{top}/{level}", b"", 1)
            assert [(await watcher.message()).topic for _ in topics] == [f"{top}/{each}" for each in topics]
            await nothing_waits(watcher)


@CHECKS.of(*BOTH)
async def a_filter_that_comes_again_replaces_the_subscription(place: Place) -> None:
    async with place.client("a") as client, place.client("b") as other:
        await other.publish(place.topic, b"kept", 1, retain=True)
        for qos in (2, 0, 1):
            assert await client.subscribe(place.topic, qos=qos) == (qos,)
            packet = await client.message()
            assert (packet.payload, packet.retain, packet.qos) == (b"kept", True, min(qos, 1))
        await other.publish(place.topic, b"new", 2)
        packet = await client.message()
        assert (packet.payload, packet.retain, packet.qos) == (b"new", False, 1)
        await nothing_waits(client)


@CHECKS.of(*BOTH)
async def overlapping_subscriptions_give_one_message_with_the_highest_qos(place: Place) -> None:
    for kept in (False, True):
        async with place.client("a", kept=kept) as client, place.client("b") as other:
            await client.subscribe(Filter(f"{place.topic}/#", 0), Filter(f"{place.topic}/a", 2))
            for qos in (0, 1, 2):
                await other.publish(f"{place.topic}/a", b"x", qos)
                assert (await client.message()).qos == qos
            await nothing_waits(client)


@CHECKS.of(V5)
async def overlapping_subscriptions_give_one_message_with_all_identifiers(place: Place) -> None:
    for kept in (False, True):
        async with place.client("a", kept=kept) as client, place.client("b") as other:
            for number, filter in enumerate((f"{place.topic}/#", f"{place.topic}/a", f"{place.topic}/+")):
                await client.subscribe(Filter(filter, number), subscription_identifier=[number + 1])
            await other.publish(f"{place.topic}/a", b"x", 2)
            packet = await client.message()
            assert (packet.qos, sorted(packet.properties["subscription_identifier"])) == (2, [1, 2, 3])
            await client.subscribe(Filter(f"{place.topic}/a", 2), subscription_identifier=[200_000_000])
            await client.unsubscribe(f"{place.topic}/+")
            await other.publish(f"{place.topic}/a", b"y", 1)
            packet = await client.message()
            assert sorted(packet.properties["subscription_identifier"]) == [1, 200_000_000]
            await nothing_waits(client)


@CHECKS.of(*BOTH)
async def an_unsubscription_lets_begun_messages_end(place: Place) -> None:
    for kept in (False, True):
        async with place.client("a", kept=kept) as client, place.client("b") as other:
            await client.subscribe(place.topic, qos=2)
            await other.publish(place.topic, b"1", 1)
            await other.publish(place.topic, b"2", 2)
            first, second = [await client.expect(Publish) for _ in range(2)]
            await client.unsubscribe(place.topic)
            await other.publish(place.topic, b"3", 1)
            await client.send(answer(client, packets.PUBREC, second.packet_id))
            released = await client.expect(Ack)
            assert (released.type, released.packet_id) == (packets.PUBREL, second.packet_id)
            await client.send(answer(client, packets.PUBACK, first.packet_id))
            await client.send(answer(client, packets.PUBCOMP, second.packet_id))
            await nothing_waits(client)


@CHECKS.of(V5)
async def options_of_a_subscription_hold(place: Place) -> None:
    for kept in (False, True):
        async with place.client("a", kept=kept) as client, place.client("b") as other:
            top = f"{place.topic}/{kept}"
            await client.subscribe(Filter(f"{top}/own", 2, no_local=True), Filter(f"{top}/plain", 2))
            await client.subscribe(Filter(f"{top}/kept", 2, retain_as_published=True))
            for qos in (0, 1, 2):
                await client.publish(f"{top}/own", b"mine", qos)
                await other.publish(f"{top}/own", b"theirs", qos)
                assert await got(client, 1) == [b"theirs"]
                for retain in (True, False):
                    await other.publish(f"{top}/kept", b"x", qos, retain=retain)
                    assert (await client.message()).retain is retain
                    await other.publish(f"{top}/plain", b"x", qos, retain=retain)
                    assert not (await client.message()).retain
            await nothing_waits(client)
            for handling, expected in ((2, 0), (1, 0), (0, 1)):
                await client.subscribe(Filter(f"{top}/plain", 1, retain_handling=handling))
                assert len(await got(client, expected)) == expected
                await nothing_waits(client)
            await client.unsubscribe(f"{top}/plain")
            await client.subscribe(Filter(f"{top}/plain", 1, retain_handling=1))
            assert (await client.message()).retain


@CHECKS.of(*BOTH)
async def a_shared_subscription_gives_each_message_to_one_member_with_its_qos(place: Place) -> None:
    async with place.client("a") as one, place.client("b", kept=True) as two, place.client("c") as other:
        filter = f"$share/crew/{place.topic}"
        assert await one.subscribe(filter, qos=0) == (0,)
        assert await two.subscribe(filter, qos=1) == (1,)
        assert await other.subscribe(place.topic, qos=2) == (2,)
        for number in range(6):
            await other.publish(place.topic, b"%d" % number, 2)
        firsts, seconds = [[await each.message() for _ in range(3)] for each in (one, two)]
        assert {each.qos for each in firsts} == {0}
        assert {each.qos for each in seconds} == {1}
        assert sorted(each.payload for each in (*firsts, *seconds)) == [b"%d" % each for each in range(6)]
        assert await got(other, 6) == [b"%d" % each for each in range(6)]


@CHECKS.of(V5)
async def a_message_of_a_group_stays_with_the_member_that_was_given_it(place: Place) -> None:
    async with place.client("b") as other:
        async with place.client("a", kept=True) as one, place.client("c") as two:
            filter = f"$share/crew/{place.topic}"
            await one.subscribe(filter, qos=2)
            await two.subscribe(filter, qos=2)
            await other.publish(place.topic, b"first", 2)
            await other.publish(place.topic, b"second", 2)
            begun = await one.expect(Publish)
            assert await got(two, 1) == [b"second"]
            await leaves(two)
        async with place.client("c") as two:
            await two.subscribe(filter, qos=2)
            await nothing_waits(two)
            async with place.client("a", kept=True) as one:
                again = await one.message()
                assert (again.payload, again.packet_id, again.dup) == (b"first", begun.packet_id, True)
            await other.publish(place.topic, b"third", 1)
            packet = await two.expect(Publish)
            await two.send(answer(two, packets.PUBACK, packet.packet_id, packets.UNSPECIFIED_ERROR))
            await nothing_waits(two)
        async with place.client("a", kept=True) as one:
            await nothing_waits(one)


# Retained messages.


@CHECKS.of(*BOTH)
async def a_topic_has_the_last_message_that_was_retained(place: Place) -> None:
    async def retained() -> list[tuple[bytes, int]]:
        async with place.client("reader") as reader:
            await reader.subscribe(place.topic, qos=2)
            await reader.send(writer.PINGREQ)
            found = []
            while type(packet := await reader.next()) is Publish:
                assert packet.retain
                found.append((packet.payload, packet.qos))
            return found

    async with place.client("a", kept=True) as client, place.client("b") as watcher:
        await watcher.subscribe(place.topic)
        for payload, qos, retain, expected in (
            (b"1", 1, True, [(b"1", 1)]),
            (b"2", 2, False, [(b"1", 1)]),
            (b"3", 2, True, [(b"3", 2)]),
            (b"", 1, False, [(b"3", 2)]),
            (b"4", 0, True, [(b"4", 0)]),
            (b"", 0, True, []),
            (b"5", 1, True, [(b"5", 1)]),
        ):
            await client.publish(place.topic, payload, qos, retain=retain)
            packet = await watcher.message()
            assert (packet.payload, packet.retain) == (payload, False)
            assert await retained() == expected
    async with place.client("a"):
        pass
    assert await retained() == [(b"5", 1)], "it is no part of a session"


@CHECKS.of(*BOTH)
async def what_a_client_has_published_before_it_subscribes_is_no_new_message(place: Place) -> None:
    for kept in (False, True):
        for qos in (0, 1):
            async with place.client("a", kept=kept) as client:
                topics = [f"{place.topic}/{kept}/{qos}/{name}" for name in ("plain", "kept", "asked")]
                number = 1 if qos else 0
                asked = [Filter(topics[0]), Filter(topics[1]), Filter(topics[2], retain_handling=2)]
                await client.send(
                    publish(client, topics[0], b"x", qos=qos, packet_id=number)
                    + publish(client, topics[1], b"x", qos=qos, packet_id=2 * number, retain=True)
                    + publish(client, topics[2], b"x", qos=qos, packet_id=3 * number, retain=True)
                    + writer.subscribe(client.version, Subscribe(9, asked[: 3 if place.version == V5 else 2]))
                )
                for _ in range(3 * qos):
                    await client.expect(Ack)
                await client.expect(SubAck)
                packet = await client.message()
                assert (packet.topic, packet.retain) == (topics[1], True)
                await nothing_waits(client)


# Messages.


@CHECKS.of(*BOTH)
async def a_message_has_the_lower_qos_of_publisher_and_subscription_and_no_dup(place: Place) -> None:
    for asked in (0, 1, 2):
        async with place.client("a") as client, place.client("b") as other:
            await client.subscribe(place.topic, qos=asked)
            for sent in (0, 1, 2):
                packet_id = 9 if sent else 0
                dup = sent > 0
                await other.send(publish(other, place.topic, b"x", qos=sent, packet_id=packet_id, dup=dup))
                packet = await client.message()
                assert (packet.qos, packet.dup) == (min(asked, sent), False)
                assert bool(packet.packet_id) is (packet.qos > 0)
                if sent:
                    assert (await other.expect(Ack)).packet_id == 9
                if sent == 2:
                    await other.send(answer(other, packets.PUBREL, 9))
                    assert (await other.expect(Ack)).type == packets.PUBCOMP


@CHECKS.of(*BOTH)
async def a_packet_id_is_free_when_its_message_is_done(place: Place) -> None:
    for kept in (False, True):
        async with place.client("a", kept=kept) as client, place.client("b") as watcher:
            await watcher.subscribe(place.topic, qos=0)

            async def send(payload: bytes, qos: int, client: MqttClient = client) -> tuple[int, int, int]:
                await client.send(
                    publish(client, place.topic, payload, qos=qos, packet_id=5, dup=payload == b"again")
                )
                packet = await client.expect(Ack)
                return packet.type, packet.packet_id, packet.code

            assert await send(b"1", 1) == (packets.PUBACK, 5, 0)
            assert await send(b"again", 1) == (packets.PUBACK, 5, 0)
            assert await got(watcher, 2) == [b"1", b"again"]
            assert await send(b"2", 2) == (packets.PUBREC, 5, 0)
            assert await send(b"again", 2) == (packets.PUBREC, 5, 0)
            await client.send(answer(client, packets.PUBREL, 5))
            released = await client.expect(Ack)
            assert (released.type, released.packet_id, released.code) == (packets.PUBCOMP, 5, 0)
            assert await send(b"3", 2) == (packets.PUBREC, 5, 0)
            assert await got(watcher, 2) == [b"2", b"3"]
            await client.send(answer(client, packets.PUBREL, 5))
            assert (await client.expect(Ack)).type == packets.PUBCOMP


@CHECKS.of(*BOTH)
async def a_message_that_is_not_allowed_is_answered(place: Place) -> None:
    """3.1.1 has no way to refuse it: it is acknowledged as any other."""
    async with place.client("a") as client:
        for qos, kind in ((1, packets.PUBACK), (2, packets.PUBREC)):
            await client.send(publish(client, "losant/x", b"", qos=qos, packet_id=5))
            packet = await client.expect(Ack)
            refused = packets.NOT_AUTHORIZED if client.version == V5 else packets.SUCCESS
            assert (packet.type, packet.packet_id, packet.code) == (kind, 5, refused)
            assert set(packet.properties) <= {"reason_string"}
        await nothing_waits(client)


@CHECKS.of(*BOTH)
async def a_publisher_of_5_is_told_that_nobody_listens(place: Place) -> None:
    async def told(client: MqttClient) -> set[int]:
        codes = set()
        for qos in (1, 2):
            await client.send(publish(client, place.topic, b"x", qos=qos, packet_id=qos))
            codes.add((await client.expect(Ack)).code)
        await client.send(answer(client, packets.PUBREL, 2))
        assert (await client.expect(Ack)).code == packets.SUCCESS
        return codes

    nobody = {packets.NO_MATCHING_SUBSCRIBERS if place.version == V5 else packets.SUCCESS}
    async with place.client("b") as other:
        assert await told(other) == nobody
        for filter in (place.topic, f"$share/crew/{place.topic}"):
            async with place.client("a", kept=True) as client:
                await client.subscribe(filter)
                assert await told(other) == {packets.SUCCESS}
                await got(client, 2)
                await leaves(client)
            assert await told(other) == {packets.SUCCESS}
            async with place.client("a") as client:
                await leaves(client)
            found = await told(other)
            assert found == nobody, (filter, found)


@CHECKS.of(V5)
async def a_refused_packet_id_is_free(place: Place) -> None:
    async with place.client("a") as client, place.client("b") as watcher:
        await watcher.subscribe(place.topic, qos=0)
        await client.send(publish(client, "losant/x", b"", qos=2, packet_id=5))
        assert (await client.expect(Ack)).code == packets.NOT_AUTHORIZED
        await client.send(publish(client, place.topic, b"x", qos=2, packet_id=5))
        packet = await client.expect(Ack)
        assert (packet.type, packet.code) == (packets.PUBREC, packets.SUCCESS)
        assert await got(watcher, 1) == [b"x"]


@CHECKS.of(*BOTH)
async def messages_come_in_the_order_in_which_they_were_published(place: Place) -> None:
    for kept in (False, True):
        async with place.client("a", kept=kept) as client, place.client("b") as other:
            await client.subscribe(place.topic, qos=2)
            for qos in (0, 1, 2):
                await other.send(
                    b"".join(
                        publish(other, place.topic, b"%d" % each, qos=qos, packet_id=each + 1 if qos else 0)
                        for each in range(100)
                    )
                )
                if qos:
                    answers = [await other.expect(Ack) for _ in range(100)]
                    assert [each.packet_id for each in answers] == list(range(1, 101))
                assert await got(client, 100) == [b"%d" % each for each in range(100)]


@CHECKS.of(V5)
async def properties_reach_the_receiver_unaltered_and_in_order(place: Place) -> None:
    own = {
        "payload_format_indicator": 1,
        "content_type": "text/\ufeffplain",
        "response_topic": "answer/é",
        "correlation_data": bytes(range(256)),
        "user_property": [("b", "2"), ("a", "1"), ("b", "2"), ("", "")],
    }
    for kept in (False, True):
        async with place.client("a", kept=kept) as client, place.client("b") as other:
            await client.subscribe(place.topic, qos=2)
            for qos in (0, 1, 2):
                await other.publish(place.topic, b"x", qos, properties={**own, "topic_alias": 1})
                assert dict((await client.message()).properties) == own
