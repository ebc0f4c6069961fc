"""What both specifications demand of a server, at the socket: sessions, the end of connections, and time.

`docs/reference/mqtt-conformance.md` names the checks that show each statement. All checks share one server.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.mqtt_checks import BOTH, Checks, Place, answer, ends, leaves, nothing_waits, publish
from tests.e2e.mqtt_house import house_in
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5, Ack, Publish

CHECKS = Checks()
MOVES = Checks()
"""Checks that move the clock of the server: one after the other, behind all others."""


async def test_the_statements_about_sessions_hold_at_the_socket(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        assert await CHECKS.run(house) == []
        assert await MOVES.run(house, at_once=1) == []


# Sessions.


@CHECKS.of(*BOTH)
async def unacknowledged_messages_come_again_in_order_with_their_ids(place: Place) -> None:
    async with place.client("b") as other:
        async with place.client("a", kept=True) as client:
            await client.subscribe(place.topic, qos=2)
            for number in range(6):
                await other.publish(place.topic, b"%d" % number, 1 + number % 2)
            sent = [await client.expect(Publish) for _ in range(6)]
            assert not any(each.dup for each in sent)
            await client.send(answer(client, packets.PUBACK, sent[2].packet_id))
            await client.send(answer(client, packets.PUBREC, sent[3].packet_id))
            assert (await client.expect(Ack)).type == packets.PUBREL
            await leaves(client)
        await other.publish(place.topic, b"6", 1)
        async with place.client("a", kept=True) as client:
            found: list[tuple[int, bytes, bool]] = []
            while len(found) < 6:
                packet = await client.next()
                if type(packet) is Ack:
                    assert (packet.type, packet.packet_id) == (packets.PUBREL, sent[3].packet_id)
                    found.append((packet.packet_id, b"", True))
                else:
                    assert type(packet) is Publish
                    found.append((packet.packet_id, packet.payload, packet.dup))
            ids = [each.packet_id for each in sent]
            assert found[:5] == [
                (ids[0], b"0", True),
                (ids[1], b"1", True),
                (ids[3], b"", True),
                (ids[4], b"4", True),
                (ids[5], b"5", True),
            ]
            assert found[5][1:] == (b"6", False)
            assert found[5][0] not in ids


@CHECKS.of(*BOTH)
async def a_clean_start_forgets_what_was(place: Place) -> None:
    async with place.client("b") as other:
        async with place.client("a", kept=True) as client:
            await client.subscribe(place.topic, qos=2)
            await client.send(publish(client, "other", b"x", qos=2, packet_id=3))
            assert (await client.expect(Ack)).type == packets.PUBREC
        await other.publish(place.topic, b"x", 1)
        async with place.client("a") as client:
            await other.publish(place.topic, b"y", 1)
            await nothing_waits(client)
        async with place.client("a", kept=True) as client:
            await nothing_waits(client)
            await client.send(answer(client, packets.PUBREL, 3))
            unknown = packets.PACKET_IDENTIFIER_NOT_FOUND if place.version == V5 else 0
            assert (await client.expect(Ack)).code == unknown


# Time.


@MOVES.of(V5)
async def the_time_that_a_message_has_left_is_told(place: Place) -> None:
    for kept in (False, True):
        async with place.client("b") as other:
            async with place.client("a", kept=kept) as client:
                await client.subscribe(place.topic, qos=1)
                if kept:
                    await leaves(client)
                await other.publish(
                    place.topic, b"x", 1, retain=not kept, properties={"message_expiry_interval": 60}
                )
                if not kept:
                    assert (await client.message()).properties["message_expiry_interval"] == 60
            place.house.server.move_clock(20)
            async with place.client("a", kept=kept) as client:
                if not kept:
                    await client.subscribe(place.topic, qos=1)
                assert 38 <= (await client.message()).properties["message_expiry_interval"] <= 40
            place.house.server.move_clock(41)
            async with place.client("c") as client:
                await client.subscribe(place.topic, qos=1)
                await nothing_waits(client)


@MOVES.of(V5)
async def a_message_that_was_begun_expires_no_more(place: Place) -> None:
    own = {"message_expiry_interval": 60}
    async with place.client("b") as other:
        async with place.client("a", kept=True) as client:
            await client.subscribe(place.topic, qos=2)
            await other.publish(place.topic, b"begun", 2, properties=own)
            begun = await client.expect(Publish)
            await leaves(client)
        await other.publish(place.topic, b"waits", 2, properties=own)
        place.house.server.move_clock(61)
        async with place.client("a", kept=True) as client:
            again = await client.message()
            assert (again.payload, again.packet_id, again.dup) == (b"begun", begun.packet_id, True)
            await nothing_waits(client)


@MOVES.of(*BOTH)
async def an_unanswered_qos_2_message_of_a_client_is_finished_after_its_expiry(place: Place) -> None:
    own = {"message_expiry_interval": 60} if place.version == V5 else {}
    async with place.client("a", kept=True) as client:
        await client.send(publish(client, place.topic, b"x", qos=2, packet_id=4, properties=own))
        assert (await client.expect(Ack)).type == packets.PUBREC
    place.house.server.move_clock(61)
    async with place.client("a", kept=True) as client:
        await client.send(publish(client, place.topic, b"x", qos=2, packet_id=4, dup=True, properties=own))
        assert (await client.expect(Ack)).type == packets.PUBREC
        await client.send(answer(client, packets.PUBREL, 4))
        packet = await client.expect(Ack)
        assert (packet.type, packet.code) == (packets.PUBCOMP, packets.SUCCESS)


@CHECKS.of(*BOTH)
async def what_a_client_says_after_its_goodbye_is_not_handled(place: Place) -> None:
    async with place.client("watcher") as watcher, place.client("a") as client:
        await watcher.subscribe(place.topic)
        await client.send(writer.disconnect(client.version) + publish(client, place.topic, b"x"))
        assert await client.next() is None
        await nothing_waits(watcher)


@CHECKS.of(V5)
async def a_goodbye_may_shorten_a_session_and_not_begin_one(place: Place) -> None:
    for kept, expiry_s in ((True, 0), (False, 0)):
        async with place.client("a", kept=kept) as client:
            await client.subscribe(place.topic)
            await client.send(writer.disconnect(V5, 0, {"session_expiry_interval": expiry_s}))
            assert await client.next() is None
        async with place.stranger() as client:
            told = await client.connect(place.id("a"), **place.house.credentials, clean_start=False)
            assert not told.session_present
    async with place.client("a") as client:
        await client.send(writer.disconnect(V5, 0, {"session_expiry_interval": 5}))
        await ends(client, packets.PROTOCOL_ERROR)
