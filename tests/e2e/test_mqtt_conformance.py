"""What both specifications demand of a server, at the socket: connections, wrong packets, and wills.

`docs/reference/mqtt-conformance.md` names the checks that show each statement. All checks share one server.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.mqtt_checks import BOTH, Checks, Place, answer, closed_with, ends, got, nothing_waits, publish
from tests.e2e.mqtt_house import house_in
from tests.http.mqtt.test_malformed import FIRST_OF_CLIENTS, OF_CLIENTS
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V3_1, V3_1_1, V5, Ack, Connect, Publish, Will

CHECKS = Checks()


async def test_the_statements_of_the_specifications_hold_at_the_socket(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        assert await CHECKS.run(house) == []


# Packets that are wrong.


@CHECKS.of(*BOTH)
async def wrong_packets_end_the_connection_with_their_code(place: Place) -> None:
    for number, case in enumerate(OF_CLIENTS):
        if place.version in case.versions:
            async with place.client(str(number)) as client:
                await client.send(case.data)
                code = await client.farewell()
                assert code == (case.code if place.version == V5 else None), case


@CHECKS.of(V3_1_1)
async def wrong_first_packets_are_not_answered(place: Place) -> None:
    for case in FIRST_OF_CLIENTS:
        async with place.stranger() as client:
            expected = b"\x20\2\0\1" if case.code == packets.UNSUPPORTED_PROTOCOL_VERSION else b""
            assert await closed_with(client, case.data) == expected, case


@CHECKS.of(*BOTH)
async def acknowledgements_of_the_wrong_kind_end_the_connection(place: Place) -> None:
    for qos, kinds in (
        (1, (packets.PUBREC,)),
        (1, (packets.PUBCOMP,)),
        (2, (packets.PUBACK,)),
        (2, (packets.PUBCOMP,)),
        (2, (packets.PUBREC, packets.PUBACK)),
    ):
        async with place.client("a") as client:
            await client.subscribe(place.topic, qos=qos)
            await client.publish(place.topic, b"x", qos)
            packet = await client.expect(Publish)
            for kind in kinds[:-1]:
                await client.send(answer(client, kind, packet.packet_id))
                assert (await client.expect(Ack)).type == packets.PUBREL
            await client.send(answer(client, kinds[-1], packet.packet_id))
            await ends(client, packets.PROTOCOL_ERROR)


@CHECKS.of(*BOTH)
async def acknowledgements_of_nothing_change_nothing(place: Place) -> None:
    async with place.client("a") as client:
        for kind in (packets.PUBACK, packets.PUBCOMP):
            await client.send(answer(client, kind, 77))
        await nothing_waits(client)
        await client.send(answer(client, packets.PUBREC, 77) + answer(client, packets.PUBREL, 78))
        unknown = packets.PACKET_IDENTIFIER_NOT_FOUND if place.version == V5 else packets.SUCCESS
        for kind, number in ((packets.PUBREL, 77), (packets.PUBCOMP, 78)):
            packet = await client.expect(Ack)
            assert (packet.type, packet.packet_id, packet.code) == (kind, number, unknown)


# CONNECT and CONNACK.


@CHECKS.of(V5)
async def a_client_id_may_have_the_forms_that_every_server_allows(place: Place) -> None:
    signs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for version in (V3_1, V3_1_1, V5):
        for client_id in ("a", signs[:23], signs[23:46], signs[39:]):
            async with place.house.client(client_id, version) as client:
                await nothing_waits(client)


@CHECKS.of(V3_1, V3_1_1, V5)
async def a_client_without_an_id_is_given_one(place: Place) -> None:
    clean, old = {"clean_start": True}, {"clean_start": False}
    refused = packets.CLIENT_IDENTIFIER_NOT_VALID if place.version == V5 else 2
    accepted = {V3_1: (), V3_1_1: (clean,), V5: (clean, old)}[place.version]
    for fields in (clean, old):
        async with place.stranger() as client, place.stranger() as other:
            told = await client.connect("", **place.house.credentials, **fields)
            if fields not in accepted:
                assert (told.code, told.session_present) == (refused, False)
                assert await client.next() is None
                continue
            again = await other.connect("", **place.house.credentials, **fields)
            assert (told.code, again.code) == (packets.SUCCESS, packets.SUCCESS)
            ids = {each.properties.get("assigned_client_identifier") for each in (told, again)}
            assert len(ids) == (2 if place.version == V5 else 1)
            await nothing_waits(client)


@CHECKS.of(*BOTH)
async def a_connack_says_whether_there_was_a_session(place: Place) -> None:
    own = {"session_expiry_interval": 1000} if place.version == V5 else {}
    for clean_start, is_present in ((False, False), (False, True), (True, False)):
        async with place.stranger() as client:
            connect = Connect(
                place.version,
                place.id("a"),
                clean_start,
                **place.house.credentials,
                properties=packets.NONE if clean_start else own,
            )
            await client.send(writer.connect(connect))
            head = b""
            while len(head) < 4:
                head += bytes(await client.stream.receive_some(4 - len(head)))
            assert (head[0], head[2], head[3]) == (0x20, is_present, 0)
    async with place.client("b", kept=True) as client:
        await nothing_waits(client)
    async with place.stranger() as client:
        told = await client.connect(
            place.id("b"), username=place.house.key, password=b"no", clean_start=False
        )
        assert told.code
        assert not told.session_present
        assert await client.next() is None


@CHECKS.of(*BOTH)
async def nothing_behind_a_refused_connect_is_handled(place: Place) -> None:
    async with place.client("watcher") as watcher, place.stranger() as client:
        await watcher.subscribe(place.topic)
        connect = Connect(place.version, place.id("a"), username=place.house.key, password=b"wrong")
        await client.send(writer.connect(connect) + publish(client, place.topic, b"x", retain=True))
        assert (await client.expect(packets.ConnAck)).code
        assert await client.next() is None
        await nothing_waits(watcher)


@CHECKS.of(V5)
async def a_client_with_a_method_of_authentication_is_refused(place: Place) -> None:
    async with place.stranger() as client:
        own = {"authentication_method": "SCRAM-SHA-1", "authentication_data": b"x"}
        told = await client.connect(place.id("a"), **place.house.credentials, properties=own)
        assert told.code == packets.BAD_AUTHENTICATION_METHOD
        assert await client.next() is None
    async with place.client("a") as client:
        await client.send(writer.auth(packets.RE_AUTHENTICATE, {"authentication_method": "SCRAM-SHA-1"}))
        await ends(client, packets.PROTOCOL_ERROR)


@CHECKS.of(V5)
async def a_connack_promises_what_the_server_does(place: Place) -> None:
    async with place.stranger() as client:
        own = {"request_response_information": True}
        told = await client.connect(place.id("a"), **place.house.credentials, properties=own, keep_alive_s=60)
        limits = place.house.server.system.limits
        assert told.properties["receive_maximum"] == limits.mqtt_in_flight_messages_max
        absent = {
            "maximum_qos",
            "retain_available",
            "wildcard_subscription_available",
            "subscription_identifier_available",
            "shared_subscription_available",
            "server_keep_alive",
            "response_information",
            "authentication_method",
        }
        assert not absent & set(told.properties)


# Wills.


@CHECKS.of(*BOTH)
async def a_will_is_published_as_it_was_given(place: Place) -> None:
    pairs = [("b", "2"), ("a", "1"), ("b", "3")]
    for retain in (False, True):
        own = {"user_property": pairs, "content_type": "text/plain"} if place.version == V5 else {}
        will = Will(place.topic, b"bye", 1, retain, own)
        async with place.client("watcher") as watcher:
            await watcher.subscribe(place.topic)
            async with place.client("a", will=will):
                pass
            packet = await watcher.message()
            assert (packet.payload, packet.qos, packet.retain) == (b"bye", 1, False)
            assert packet.properties.get("user_property", pairs) == pairs
        async with place.client("later") as later:
            await later.subscribe(place.topic)
            if retain:
                assert (await later.message()).retain
            await nothing_waits(later)


@CHECKS.of(*BOTH)
async def a_will_ends_with_a_goodbye_and_is_published_once(place: Place) -> None:
    async with place.client("watcher") as watcher:
        await watcher.subscribe(place.topic)
        async with place.client("a", will=Will(place.topic, b"1")) as client:
            await client.goodbye()
            assert await client.next() is None
        async with place.client("a", will=Will(place.topic, b"2")):
            pass
        assert await got(watcher, 1) == [b"2"]
        async with place.client("a"):
            pass
        async with place.client("a", will=Will(place.topic, b"3")) as older, place.client("a"):
            await ends(older, packets.SESSION_TAKEN_OVER)
            assert await got(watcher, 1) == [b"3"]
        await watcher.publish(place.topic, b"end")
        assert await got(watcher, 1) == [b"end"]
