"""Rows and columns over MQTT: many states in one message, stored before their acknowledgement."""

from __future__ import annotations

from typing import Any

import cbor2
import msgspec
import numpy as np
import pytest

from tests.e2e.mqtt_house import House, house
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import V3_1_1

__all__ = ["house"]  # the fixture

MS = 1_700_000_000_000
ROWS = [["temp", "on"], [[MS, 1.5, True], [MS + 1000, 2, None]]]
COLUMNS = [MS, [0, 1000], {"temp": [1.5, 2], "on": [True, None]}]
STORED = [{"temp": 1.5, "on": True}, {"temp": 2}]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("encode", [msgspec.json.encode, cbor2.dumps])
@pytest.mark.parametrize(("about", "payload"), [("rows", ROWS), ("columns", COLUMNS)])
async def test_many_states_are_stored_when_the_acknowledgement_comes(
    house: House, about: str, payload: Any, encode: Any, qos: int
) -> None:
    async with house.client(version=V3_1_1) as client:
        await client.publish(f"trunkline/{house.id}/{about}", encode(payload), qos)
        assert await house.states() == STORED
        await client.publish(f"trunkline/{house.id}/{about}", encode([*payload, {"flowVersion": "a"}]), qos)
        assert await house.states() == STORED


async def test_a_message_may_have_a_thousand_states_of_typed_arrays(house: House) -> None:
    deltas = cbor2.CBORTag(70, np.arange(1000, dtype="<u4").tobytes())
    temps = cbor2.CBORTag(86, np.arange(1000, dtype="<f8").tobytes())
    uniform = [["temp"], [[MS + 2000 + number, float(number)] for number in range(1000)]]
    async with house.client() as client:
        answer = await client.publish(
            f"trunkline/{house.id}/columns", cbor2.dumps([MS, deltas, {"temp": temps}]), 1
        )
        assert answer.code == packets.SUCCESS
        assert await house.states() == [{"temp": number} for number in range(1000)]
        answer = await client.publish(f"trunkline/{house.id}/rows", cbor2.dumps(uniform), 1)
        assert answer.code == packets.SUCCESS
    counts = await house.server.call("GET", f"{house.application}/payloadCounts")
    assert counts["deviceState"]["total"] == 2000


@pytest.mark.parametrize(
    ("about", "payload", "said"),
    [
        ("rows", b"", "the payload must be an array"),
        ("rows", b"{}", "the payload must be an array"),
        ("rows", b"\x9f\xff", "the payload must be an array"),
        ("rows", b"[", "the frame is not valid JSON"),
        ("rows", b"\x82", "the frame is not CBOR"),
        ("rows", b"[]", "the frame is not valid JSON"),
        ("rows", b'[["temp"], []]', "rows: must be an array of at least one row"),
        ("rows", b'[["temp"], [[1]]]', "rows[0]: must be an array of its time and 1 values"),
        ("columns", b'[1, [0], {"temp": [1, 2]}]', "'temp': has 2 values for 1 states"),
        ("rows", b'[["temp"], [[1, 2]], {"backlog": true}]', "options: may have flowVersion only"),
        (
            "rows",
            b'[["temp"], [[1, 2]], {"device": "575ece2b7ae143cd83dc4a9b"}]',
            "options: may have flowVersion only",
        ),
        ("rows", b'[["other"], [[1, 2]]]', "other"),
    ],
)
async def test_a_payload_that_is_wrong_is_refused_with_a_sentence(
    house: House, about: str, payload: bytes, said: str
) -> None:
    async with house.client() as client:
        answer = await client.publish(f"trunkline/{house.id}/{about}", payload, 1)
        assert answer.code == packets.PAYLOAD_FORMAT_INVALID
        assert said in answer.properties["reason_string"]
        answer = await client.publish(f"trunkline/{house.id}/rows", msgspec.json.encode(ROWS), 1)
        assert answer.code == packets.SUCCESS
    assert await house.states() == STORED


async def test_rows_are_for_the_own_device_and_for_peripherals(house: House) -> None:
    server = house.server
    gateway = await server.device(house.application, "gateway", deviceClass="gateway")
    gateway_id = gateway.rpartition("/")[2]
    near = await server.device(house.application, "near", deviceClass="peripheral", gatewayId=gateway_id)
    rows = msgspec.json.encode(ROWS)
    async with house.client(gateway_id) as client:
        answer = await client.publish(f"trunkline/{near.rpartition('/')[2]}/rows", rows, 1)
        assert answer.code == packets.SUCCESS
        for topic in (f"trunkline/{house.id}/rows", f"losant/{gateway_id}/rows"):
            answer = await client.publish(topic, rows, 1)
            assert answer.code == packets.NOT_AUTHORIZED, topic
    async with house.client("nobody") as client:
        answer = await client.publish(f"trunkline/{house.id}/rows", rows, 1)
        assert answer.code == packets.NOT_AUTHORIZED
    assert await house.states(near) == STORED
    assert await house.states() == []


async def test_too_many_states_are_refused(house: House) -> None:
    most = house.server.system.limits.states_per_call_max
    rows = [["temp"], [[MS + number, 1] for number in range(most + 1)]]
    async with house.client() as client:
        answer = await client.publish(f"trunkline/{house.id}/rows", msgspec.json.encode(rows), 1)
        assert f"send at most {most} a call" in answer.properties["reason_string"]
    assert await house.states() == []
