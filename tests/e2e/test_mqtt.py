"""MQTT on real sockets: who may connect, what devices do, and how connections end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cbor2
import msgspec
import pytest

from tests.e2e.conftest import running_server
from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.mqtt_house import VERSIONS, House, house, house_in
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V3_1, V3_1_1, V5, Filter, Publish, Will

__all__ = ["house"]  # the fixture


# Connecting.


@pytest.mark.parametrize("version", [V3_1, V3_1_1, V5])
async def test_a_device_reports_and_every_acknowledged_state_is_stored(house: House, version: int) -> None:
    async with house.client(version=version) as client:
        topic = f"losant/{house.id}/state"
        await client.publish(topic, b'{"data": {"temp": 1}, "time": 1000}')
        for number, qos in ((2, 1), (3, 2)):
            body = msgspec.json.encode(
                {"data": {"temp": number}, "time": {"$date": f"2024-05-0{number}T00:00:00Z"}}
            )
            answer = await client.publish(topic, body, qos)
            assert (answer.type, answer.code) == ((packets.PUBACK, 0) if qos == 1 else (packets.PUBCOMP, 0))
        many = msgspec.json.encode([{"data": {"temp": 4}}, {"data": {"temp": 5, "on": True}}])
        await client.publish(f"trunkline/{house.id}/state", many, 1)
        await client.goodbye()
    assert [state["temp"] for state in await house.states()] == [1, 2, 3, 4, 5]


async def test_a_state_may_be_cbor(house: House) -> None:
    async with house.client() as client:
        topic = f"losant/{house.id}/state"
        answer = await client.publish(
            topic, cbor2.dumps({"data": {"temp": 1.5}}), 1, properties={"content_type": "application/cbor"}
        )
        assert answer.code == packets.SUCCESS
        for payload, said in (
            (b"\xff", "The body is not CBOR: "),
            (cbor2.dumps(5), "The body: is 5; give an object with data or an array."),
        ):
            answer = await client.publish(topic, payload, 1, properties={"content_type": "application/cbor"})
            assert answer.code == packets.PAYLOAD_FORMAT_INVALID
            assert answer.properties["reason_string"].startswith(said)
    assert await house.states() == [{"temp": 1.5}]


@VERSIONS
async def test_wrong_credentials_are_refused(house: House, version: int) -> None:
    selected = await house.key_of(deviceIds=[house.id])
    inactive = await house.server.call("POST", f"{house.application}/keys", {})
    path = f"{house.application}/keys/{inactive['id']}"
    await house.server.call("PATCH", path, {"status": "inactive"})
    for client_id, given in (
        (house.id, {**house.credentials, "password": b"wrong"}),
        (house.id, {**house.credentials, "username": "0" * 48}),
        (house.id, {**house.credentials, "username": "nobody"}),
        ("somebody", selected),
        (house.id, {"username": inactive["key"], "password": inactive["secret"].encode()}),
    ):
        async with mqtt_client(house.server.mqtt_ports[0], version) as client:
            answer = await client.connect(client_id, **given)
            assert answer.code == (packets.BAD_USER_NAME_OR_PASSWORD if version == V5 else 4)
            assert await client.next() is None
    async with mqtt_client(house.server.mqtt_ports[0], version) as client:
        answer = await client.connect(house.id)
        assert answer.code == (packets.NOT_AUTHORIZED if version == V5 else 5)


async def test_tokens_are_passwords(house: House) -> None:
    token, _ = await house.server.device_token(house.device)
    application = house.application.rpartition("/")[2]
    user = house.server.token.encode()
    for client_id, username, password, code in (
        (house.id, "token", token.encode(), packets.SUCCESS),
        ("another", "token", token.encode(), packets.BAD_USER_NAME_OR_PASSWORD),
        ("desk", f"token/{application}", user, packets.SUCCESS),
        (house.id, f"token/{application}", user, packets.BAD_USER_NAME_OR_PASSWORD),
        ("desk", "token", user, packets.BAD_USER_NAME_OR_PASSWORD),
        ("desk", f"token/{'0' * 24}", user, packets.NOT_AUTHORIZED),
        ("desk", "token", b"nonsense", packets.BAD_USER_NAME_OR_PASSWORD),
    ):
        async with mqtt_client(house.server.mqtt_ports[0]) as client:
            answer = await client.connect(client_id, username=username, password=password)
            assert answer.code == code, (client_id, username, answer)


@VERSIONS
async def test_nobody_has_the_id_of_a_deleted_device_until_it_is_restored(house: House, version: int) -> None:
    server, application = house.server, house.application.rpartition("/")[2]
    user = {"username": f"token/{application}", "password": server.token.encode()}
    async with house.client(version=version) as client:
        await server.call("DELETE", house.device)
        assert await client.farewell() == (packets.NOT_AUTHORIZED if version == V5 else None)
    for given in (house.credentials, user):
        for client_id in (house.id, house.id.upper()):
            async with mqtt_client(server.mqtt_ports[0], version) as client:
                answer = await client.connect(client_id, **given)
                assert answer.code == (packets.NOT_AUTHORIZED if version == V5 else 5)
                assert await client.next() is None
    await server.call("POST", f"{house.application}/devices/restore", {"query": {"id": house.id}})
    async with house.client(version=version) as client:
        assert await client.subscribe("losant/+/command") == (1,)
        await client.publish(f"losant/{house.id}/state", b'{"data": {"temp": 1}}', 1)
        await server.call("POST", f"{house.device}/command", {"name": "open"})
        assert (await client.message()).topic == f"losant/{house.id}/command"
    assert await house.states() == [{"temp": 1}]


async def test_a_connection_ends_with_its_token(house: House) -> None:
    made = await house.server.call("POST", f"{house.application}/keys", {})
    credentials = {"deviceId": house.id, "key": made["key"], "secret": made["secret"], "tokenTTL": 1}
    token = (await house.server.call("POST", "/auth/device", credentials, token=""))["token"]
    async with mqtt_client(house.server.mqtt_ports[0]) as client:
        answer = await client.connect(house.id, username="token", password=token.encode(), keep_alive_s=60)
        assert answer.code == packets.SUCCESS
        assert await client.farewell() == packets.NOT_AUTHORIZED


async def test_a_silent_client_is_disconnected(house: House) -> None:
    async with house.client(keep_alive_s=1) as client, house.client("b", V3_1_1, keep_alive_s=1) as older:
        assert await client.farewell() == packets.KEEP_ALIVE_TIMEOUT
        assert await older.farewell() is None


async def test_a_sentence_that_is_too_long_for_a_client_is_left_out(house: House) -> None:
    for wanted, topic, is_told in (
        ({}, "losant/x", True),
        ({}, "losant/" + "x" * 60_000, False),
        ({"request_problem_information": False}, "losant/x", False),
        ({"maximum_packet_size": 50}, "losant/x", False),
    ):
        async with house.client("a", properties=wanted) as client:
            answer = await client.publish(topic, b"", 1)
            assert answer.code == packets.NOT_AUTHORIZED
            assert ("reason_string" in answer.properties) is is_told


async def test_an_anonymous_key_lets_in_who_has_no_password(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        key = house.key
    async with running_server(tmp_path / "data", mqtt_port=0, mqtt_anonymous_key=key) as server:
        async with mqtt_client(server.mqtt_ports[0], V3_1_1) as client:
            assert (await client.connect("whoever")).code == 0
            assert await client.subscribe("a/#") == (1,)
            await client.publish("a/b", b"1", 1)
            assert (await client.message()).payload == b"1"
        for username in ("", "somebody", key):
            async with mqtt_client(server.mqtt_ports[0]) as client:
                assert (await client.connect("whoever", username=username)).code == 0
        async with mqtt_client(server.mqtt_ports[0], V3_1_1) as client:
            assert (await client.connect("whoever", username=key, password=b"wrong")).code == 4


async def test_a_connack_says_what_the_server_does(house: House) -> None:
    async with mqtt_client(house.server.mqtt_ports[0]) as client:
        asked = {"session_expiry_interval": 0xFFFF_FFFF}
        answer = await client.connect("", **house.credentials, clean_start=False, properties=asked)
        told = answer.properties
        assert not answer.session_present
        assert told["session_expiry_interval"] == house.server.system.limits.mqtt_session_s_max
        assert told["assigned_client_identifier"].startswith("auto-")
        limits = house.server.system.limits
        assert told["receive_maximum"] == limits.mqtt_in_flight_messages_max
        assert told["maximum_packet_size"] == limits.mqtt_packet_bytes_max
    for version, client_id, more, code in (
        (V3_1_1, "", {"clean_start": False}, 2),
        (V5, "x" * 257, {}, packets.CLIENT_IDENTIFIER_NOT_VALID),
        (V5, "a", {"properties": {"authentication_method": "SCRAM"}}, packets.BAD_AUTHENTICATION_METHOD),
        (V5, "a", {"will": Will("$SYS/x", b"")}, packets.TOPIC_NAME_INVALID),
        (V5, house.id, {"will": Will(f"losant/{house.id}/state", b"{}")}, packets.TOPIC_NAME_INVALID),
        (V3_1_1, house.id, {"will": Will(f"losant/{house.id}/state", b"{}")}, 5),
    ):
        async with mqtt_client(house.server.mqtt_ports[0], version) as client:
            answer = await client.connect(client_id, **house.credentials, **more)
            assert answer.code == code, answer


async def test_what_is_not_mqtt_is_closed(house: House) -> None:
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x10\x02\x00\x00", b"\xc0\x00", b"\x00" * 100):
        async with mqtt_client(house.server.mqtt_ports[0]) as client:
            await client.send(data)
            while await client.next() is not None:
                pass
    async with house.client() as client:
        await client.send(b"\x30\xff\xff\xff\xff\x00")
        assert await client.farewell() == packets.MALFORMED_PACKET
    async with house.client() as client:
        await client.send(b"\x30\xff\xff\xff\x7f")
        assert await client.farewell() == packets.PACKET_TOO_LARGE


async def test_packets_may_come_before_the_connack(house: House) -> None:
    async with mqtt_client(house.server.mqtt_ports[0]) as client:
        connect = packets.Connect(V5, house.id, **house.credentials)
        subscribe = packets.Subscribe(1, (Filter("a"),))
        publish = Publish("a", b"early", 0)
        await client.send(
            writer.connect(connect)
            + writer.subscribe(V5, subscribe)
            + writer.publish(V5, publish)
            + writer.PINGREQ
        )
        kinds = [type(await client.next()) for _ in range(4)]
        assert kinds == [packets.ConnAck, packets.SubAck, packets.PingResp, Publish]


async def test_a_second_connection_takes_over(house: House) -> None:
    for client_id in (house.id, "desk"):
        async with house.client(client_id) as first, house.client(client_id) as second:
            assert await first.farewell() == packets.SESSION_TAKEN_OVER
            await second.publish("a", b"x", 1)


async def test_a_revoked_key_and_a_deleted_device_end_connections(house: House) -> None:
    async with house.client() as device, house.client("desk") as desk:
        await house.server.call("PATCH", house.key_path, {"status": "inactive"})
        assert await device.farewell() == packets.NOT_AUTHORIZED
        assert await desk.farewell() == packets.NOT_AUTHORIZED
        await house.server.call("PATCH", house.key_path, {"status": "active"})
    async with house.client() as device:
        await house.server.call("DELETE", house.device)
        assert await device.farewell() in (packets.NOT_AUTHORIZED, packets.ADMINISTRATIVE_ACTION)
    async with house.client("desk") as desk:
        await house.server.call("DELETE", house.application)
        assert await desk.farewell() in (packets.NOT_AUTHORIZED, packets.ADMINISTRATIVE_ACTION)


async def test_the_connection_log_has_the_connections_of_devices(house: House) -> None:
    async with house.client() as client:
        found = await house.server.call("GET", house.device)
        assert found["connectionInfo"]["connected"]
        await client.publish(f"losant/{house.id}/state", b'{"data": {"temp": 1}}', 1)
        await client.goodbye()
        assert await client.next() is None

    async def log() -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = await house.server.call("GET", f"{house.device}/logs")
        return entries

    entries = await log()
    assert entries[0]["disconnectReason"] == "MQTT 5.0: the client has disconnected"
    assert entries[0]["messagesFromClient"] == 2


# Commands.


@VERSIONS
async def test_commands_wait_for_a_subscription_and_its_acknowledgement(house: House, version: int) -> None:
    async with house.client(version=version) as client:
        await client.goodbye()
        assert await client.next() is None
    for name in ("first", "second"):
        body = {"name": name, "payload": {"x": 1}, "time": "2024-05-01T00:00:00.000Z", "ttlSeconds": 3600}
        await house.server.call("POST", f"{house.device}/command", body)
    async with house.client(version=version) as client:
        await client.subscribe("losant/+/command")
        first = await client.message()
        assert first.topic == f"losant/{house.id}/command"
        assert msgspec.json.decode(first.payload) == {
            "name": "first",
            "payload": {"x": 1},
            "time": {"$date": "2024-05-01T00:00:00.000Z"},
        }
        second = await client.expect(Publish)
        assert msgspec.json.decode(second.payload)["name"] == "second"
        # not acknowledged
    async with house.client(version=version) as client:
        await client.subscribe(f"trunkline/{house.id}/command", qos=2)
        again = await client.message()
        assert again.topic == f"trunkline/{house.id}/command"
        assert (msgspec.json.decode(again.payload)["name"], again.qos) == ("second", 1)
        await house.server.call("POST", f"{house.device}/command", {"name": "third"})
        assert msgspec.json.decode((await client.message()).payload)["name"] == "third"
    async with house.client(version=version) as client:
        await client.subscribe("losant/+/command")
        await house.server.call("POST", f"{house.device}/command", {"name": "fourth"})
        assert msgspec.json.decode((await client.message()).payload)["name"] == "fourth"


async def test_a_gateway_speaks_for_its_peripherals(house: House) -> None:
    server = house.server
    gateway = await server.device(house.application, "gateway", deviceClass="gateway")
    gateway_id = gateway.rpartition("/")[2]
    near = await server.device(house.application, "near", deviceClass="peripheral", gatewayId=gateway_id)
    near_id = near.rpartition("/")[2]
    async with house.client(gateway_id) as client:
        answer = await client.publish(f"losant/{near_id}/state", b'{"data": {"temp": 7}}', 1)
        assert answer.code == packets.SUCCESS
        answer = await client.publish(f"losant/{house.id}/state", b'{"data": {"temp": 7}}', 1)
        assert answer.code == packets.NOT_AUTHORIZED
        await client.subscribe(f"losant/{gateway_id}/command")
        await server.call("POST", f"{near}/command", {"name": "near", "ttlSeconds": 60})
        await server.call("POST", f"{gateway}/command", {"name": "own", "ttlSeconds": 60})
        assert (await client.message()).topic == f"losant/{gateway_id}/command"
        assert await client.subscribe(f"losant/{near_id}/command", f"losant/{house.id}/command") == (1, 0x87)
        assert (await client.message()).topic == f"losant/{near_id}/command"
    assert await house.states(near) == [{"temp": 7}]


async def test_states_of_a_gateway_and_its_peripherals_may_alternate(house: House) -> None:
    server = house.server
    gateway = await server.device(house.application, "gateway", deviceClass="gateway")
    gateway_id = gateway.rpartition("/")[2]
    near = await server.device(house.application, "near", deviceClass="peripheral", gatewayId=gateway_id)
    own, peripheral, other = (
        f"losant/{device_id}/state" for device_id in (gateway_id, near.rpartition("/")[2], house.id)
    )
    sent = [own, peripheral, own, own.replace("losant", "trunkline"), other, own, peripheral]
    async with house.client(gateway_id) as client:
        for at, topic in enumerate(sent):
            answer = await client.publish(topic, b'{"data": {"temp": %d}, "time": %d}' % (at, 1000 + at), 1)
            assert answer.code == (packets.NOT_AUTHORIZED if topic == other else packets.SUCCESS)
    assert [state["temp"] for state in await house.states(gateway)] == [0, 2, 3, 5]
    assert [state["temp"] for state in await house.states(near)] == [1, 6]
    assert await house.states() == []


# Refusals and limits.


async def test_a_wrong_state_is_refused_and_the_connection_goes_on(house: House) -> None:
    topic = f"losant/{house.id}/state"
    async with house.client() as client:
        for body in (b"", b"{", b'{"data": {"unknown": 1}}', b'{"data": {"temp": "warm"}}', b"[1]"):
            for qos in (1, 2):
                answer = await client.publish(topic, body, qos)
                assert answer.code == packets.PAYLOAD_FORMAT_INVALID
                assert answer.properties["reason_string"]
        await client.publish(topic, b'{"data": {"temp": 1}}', 1)
    async with house.client(version=V3_1_1) as client:
        await client.publish(topic, b'{"data": {"unknown": 1}}', 1)
        await client.publish(topic, b'{"data": {"unknown": 1}}', 2)
        await client.publish(topic, b'{"data": {"temp": 2}}', 1)
    assert await house.states() == [{"temp": 1}, {"temp": 2}]


async def test_states_count_in_the_bucket_of_the_device(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", limits={"send_state": {"calls": 2, "window_s": 15}}) as house:
        await house.server.call("POST", f"{house.device}/state", {"data": {"temp": 1}})
        async with house.client() as client:
            topic = f"losant/{house.id}/state"
            assert (await client.publish(topic, b'{"data": {"temp": 2}}', 1)).code == 0
            refused = await client.publish(topic, b'{"data": {"temp": 3}}', 1)
            assert refused.code == packets.QUOTA_EXCEEDED
            assert "takes 2 calls of send_state in any 15 seconds" in refused.properties["reason_string"]
        assert [state["temp"] for state in await house.states()] == [1, 2]


async def test_a_client_gets_no_more_at_once_than_it_wants(house: House) -> None:
    async with house.client("a", properties={"receive_maximum": 2, "maximum_packet_size": 100}) as client:
        await client.subscribe("t", qos=2)
        async with house.client("b") as sender:
            for number in range(5):
                await sender.publish("t", b"%d" % number, 1)
            await sender.publish("t", b"x" * 200, 1)
            await sender.publish("t", b"end", 1)
        first, second = [await client.expect(Publish) for _ in range(2)]
        await client.send(writer.PINGREQ)
        assert type(await client.next()) is packets.PingResp, "no third message before an acknowledgement"
        for each in (first, second):
            await client.send(writer.ack(V5, packets.PUBACK, each.packet_id))
        got = [await client.message() for _ in range(4)]
        assert [each.payload for each in got] == [b"2", b"3", b"4", b"end"]


async def test_a_client_that_takes_nothing_is_disconnected(tmp_path: Path) -> None:
    async with (
        house_in(tmp_path / "data", limits={"mqtt_waiting_messages_max": 10}) as house,
        house.client("a", properties={"receive_maximum": 1}) as client,
    ):
        await client.subscribe("t")
        async with house.client("b") as sender:
            for number in range(20):
                await sender.publish("t", b"%d" % number, 1)
        assert type(await client.next()) is Publish
        assert await client.farewell() == packets.QUOTA_EXCEEDED


async def test_the_server_says_goodbye_when_it_stops(tmp_path: Path) -> None:
    async with (
        house_in(tmp_path / "data") as house,
        house.client("a") as client,
        house.client("b", V3_1_1) as older,
    ):
        await house.server.stop()
        assert await client.farewell() == packets.SERVER_SHUTTING_DOWN
        assert await older.farewell() is None
