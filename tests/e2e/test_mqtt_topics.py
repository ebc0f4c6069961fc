"""Topics over MQTT: what reaches whom, retained messages, and wills."""

from __future__ import annotations

import pytest

from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.mqtt_house import VERSIONS, House, house
from tests.e2e.test_topics import listening
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V3_1_1, V5, Filter, Publish, Will

__all__ = ["house"]  # the fixture


# Topics of the application.


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_message_reaches_who_is_subscribed(house: House, version: int, qos: int) -> None:
    async with (
        house.client("a", version) as one,
        house.client("b", version) as other,
        house.client("c") as sender,
    ):
        assert await one.subscribe("barn/+", qos=qos) == (qos,)
        assert await other.subscribe("barn/#", "attic", qos=2) == (2, 2)
        for number in range(3):
            await sender.publish("barn/door", b"%d" % number, 2, retain=number == 2)
        for receiver, expected in ((one, qos), (other, 2)):
            got = [await receiver.message() for _ in range(3)]
            assert [(each.topic, each.payload, each.qos, each.retain) for each in got] == [
                ("barn/door", b"%d" % number, expected, False) for number in range(3)
            ]
        assert await one.unsubscribe("barn/+", "other") == ((0, 0x11) if version == V5 else ())
        await sender.publish("barn/door", b"last", 1)
        assert (await other.message()).payload == b"last"
        await one.send(writer.PINGREQ)
        assert type(await one.next()) is packets.PingResp


async def test_retained_messages_come_with_a_subscription(house: House) -> None:
    async with house.client("a") as client:
        for number in range(200):
            await client.publish(f"shelf/{number:03}", b"%d" % number, 1, retain=True)
        await client.publish("shelf/000", b"", 1, retain=True)
        await client.subscribe("shelf/#", qos=1, subscription_identifier=[5])
        got = [await client.message() for _ in range(199)]
        assert [each.payload for each in got] == [b"%d" % number for number in range(1, 200)]
        assert all(each.retain and each.properties["subscription_identifier"] == [5] for each in got)
        for handling, expected in ((1, 0), (2, 0), (0, 1)):
            await client.subscribe(Filter("shelf/001", 0, retain_handling=handling))
            if handling == 1:  # the first subscription to this filter
                expected = 1
            await client.send(writer.PINGREQ)
            seen = 0
            while type(packet := await client.next()) is Publish:
                seen += 1
            assert type(packet) is packets.PingResp
            assert seen == expected


async def test_options_of_subscriptions(house: House) -> None:
    async with house.client("a") as client, house.client("b") as other:
        await client.subscribe(Filter("own", 1, no_local=True), Filter("kept", 1, retain_as_published=True))
        await client.publish("own", b"mine", 1)
        await other.publish("own", b"theirs", 1)
        await other.publish("kept", b"k", 1, retain=True)
        assert (await client.message()).payload == b"theirs"
        assert (await client.message()).retain


async def test_properties_go_through_and_messages_expire(house: House) -> None:
    async with house.client("a") as client, house.client("b") as other:
        await other.subscribe("ask")
        sent = {
            "content_type": "text/plain",
            "response_topic": "answer",
            "correlation_data": b"\x01",
            "payload_format_indicator": 1,
            "user_property": [("k", "1"), ("k", "2")],
            "message_expiry_interval": 60,
        }
        await client.publish("ask", b"?", 1, properties=sent)
        assert dict((await other.message()).properties) == sent
        await client.publish("ask", b"kept", 1, retain=True, properties={"message_expiry_interval": 60})
        await other.message()
        house.server.move_clock(61)
        await client.subscribe("ask")
        await client.publish("ask", b"now", 1)
        assert (await client.message()).payload == b"now", "the retained message has expired"


async def test_topic_aliases(house: House) -> None:
    async with house.client("a") as client, house.client("b") as other:
        await other.subscribe("long/topic")
        await client.publish("long/topic", b"1", 1, properties={"topic_alias": 3})
        await client.publish("", b"2", 1, properties={"topic_alias": 3})
        assert [(await other.message()).payload for _ in range(2)] == [b"1", b"2"]
        await client.send(writer.publish(V5, Publish("", b"", properties={"topic_alias": 4})))
        assert await client.farewell() == packets.PROTOCOL_ERROR
    async with house.client("a") as client:
        await client.send(writer.publish(V5, Publish("x", b"", properties={"topic_alias": 65_535})))
        assert await client.farewell() == packets.TOPIC_ALIAS_INVALID


async def test_a_shared_subscription_divides_the_messages(house: House) -> None:
    async with house.client("a") as one, house.client("b") as other, house.client("c") as sender:
        for member in (one, other):
            assert await member.subscribe("$share/crew/job") == (1,)
        for number in range(10):
            await sender.publish("job", b"%d" % number, 1)
        got = [[(await member.message()).payload for _ in range(5)] for member in (one, other)]
        assert sorted(got[0] + got[1]) == [b"%d" % number for number in range(10)]
        await sender.send(
            writer.subscribe(V5, packets.Subscribe(9, (Filter("$share/crew/job", 1, no_local=True),)))
        )
        assert await sender.farewell() == packets.PROTOCOL_ERROR


async def test_wrong_filters_and_topics_are_refused(house: House) -> None:
    async with house.client("a") as client:
        wrong = ("a/#/b", "a+", "$share//a", "$share/a+/b", "x" * 2000)
        codes = await client.subscribe("fine", *wrong)
        assert codes[0] == 1
        assert set(codes[1:]) == {packets.TOPIC_FILTER_INVALID}
        for topic in ("losant/x", f"losant/{house.id}/state", f"losant/{house.id}/command"):
            assert (await client.publish(topic, b"{}", 1)).code == packets.NOT_AUTHORIZED
            assert (await client.publish(topic, b"{}", 2)).code == packets.NOT_AUTHORIZED
        assert await client.subscribe(f"losant/{house.id}/command", "losant/#", "$SYS/#") == (
            0x87,
            0x87,
            0x87,
        )
        assert (await client.publish("$SYS/x", b"", 1)).code == packets.TOPIC_NAME_INVALID
    async with house.client("a", V3_1_1) as client:
        assert await client.subscribe("a/#/b", "b") == (0x80, 1)


async def test_the_topics_of_a_key_act(house: House) -> None:
    given = await house.key_of(filterType="whitelist", pubTopics=["out/+"], subTopics=["in/#"])
    async with house.client(**given) as client:
        assert await client.subscribe("in/a", "in/#", "#", "out/a") == (1, 1, 0x87, 0x87)
        assert (await client.publish("out/a", b"", 1)).code == packets.NO_MATCHING_SUBSCRIBERS
        assert (await client.publish("in/a", b"", 1)).code == packets.NOT_AUTHORIZED
        assert (await client.publish(f"losant/{house.id}/state", b'{"data": {"temp": 1}}', 1)).code == 0
        assert await client.subscribe(f"losant/{house.id}/command") == (1,)
        refused = await client.publish("in/a", b"", 2)
        assert (refused.type, refused.code) == (packets.PUBREC, packets.NOT_AUTHORIZED)
        assert "access key" in refused.properties["reason_string"]
    async with mqtt_client(house.server.mqtt_ports[0]) as client:
        answer = await client.connect(house.id, **given, will=Will("in/a", b""))
        assert answer.code == packets.NOT_AUTHORIZED


async def test_nothing_crosses_an_application(house: House) -> None:
    other = await house.server.application("other")
    made = await house.server.call("POST", f"{other}/keys", {})
    async with (
        house.client("a") as client,
        house.client("a", username=made["key"], password=made["secret"].encode()) as stranger,
    ):
        await client.subscribe("#")
        await stranger.subscribe("#")
        await client.publish("x", b"ours", 1, retain=True)
        await stranger.publish("x", b"theirs", 1)
        assert (await client.message()).payload == b"ours"
        assert (await stranger.message()).payload == b"theirs"


async def test_the_api_and_mqtt_share_the_topics(house: House) -> None:
    async with house.client("a") as client:
        await client.subscribe("desk")
        body = {"topic": "desk", "message": "öffnen"}
        await house.server.call("POST", f"{house.application}/mqttPublishMessage", body)
        assert (await client.message()).payload == "öffnen".encode()


async def test_a_stream_and_a_workflow_listen_too(house: House) -> None:
    trigger = {"type": "mqttTopic", "key": "flow", "config": {"integrationId": "local"}}
    flow = {"name": "listens", "triggers": [trigger], "nodes": []}
    await house.server.call("POST", f"{house.application}/flows", flow)
    async with house.client("a") as client, listening(house.server, house.application, "stream/+"):
        for topic, code in (
            ("stream/1", packets.SUCCESS),
            ("flow", packets.SUCCESS),
            ("else", packets.NO_MATCHING_SUBSCRIBERS),
        ):
            assert (await client.publish(topic, b"", 1)).code == code, topic


# Wills.


@VERSIONS
async def test_a_will_is_published_when_the_connection_is_lost(house: House, version: int) -> None:
    async with house.client("watcher") as watcher:
        await watcher.subscribe("gone/#")
        for leaves, expected in (("cut", True), ("goodbye", False)):
            will = Will(f"gone/{leaves}", b"bye", 1, retain=True)
            async with house.client("mortal", version, will=will) as client:
                if leaves == "goodbye":
                    await client.goodbye()
                    assert await client.next() is None
            if expected:
                got = await watcher.message()
                assert (got.topic, got.payload, got.qos) == (f"gone/{leaves}", b"bye", 1)
        if version == V5:
            async with house.client("mortal", will=Will("gone/asked", b"bye")) as client:
                await client.goodbye(packets.DISCONNECT_WITH_WILL_MESSAGE)
                assert (await watcher.message()).topic == "gone/asked"
        await watcher.publish("gone/end", b"", 1)
        assert (await watcher.message()).topic == "gone/end"
