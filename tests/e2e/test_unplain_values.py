"""Values that CBOR has and JSON has not: refused with their place, and shown as null where they are stored already."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import cbor2
import pytest

from tests.e2e.link_house import BASE_MS
from tests.e2e.link_peer import linked
from tests.e2e.mqtt_house import House, house, house_in
from tests.e2e.sse_client import EventReader, opened_stream
from trunkline.actors.fleet.devices.record.attributes import META
from trunkline.http.mqtt import packets
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.codec import encode
from trunkline.store.flusher import Flusher

__all__ = ["house"]  # the fixture

CBOR = {"content_type": "application/cbor"}
UNPLAIN: list[tuple[Any, str]] = [
    (cbor2.undefined, "meta: is undefined"),
    ({"a": [cbor2.undefined]}, "meta.a[0]: is undefined"),
    (cbor2.CBORSimpleValue(99), "meta: is CBORSimpleValue(99)"),
    (cbor2.CBORTag(64, b"1"), "meta: has the tag 64 of CBOR"),
    (b"1", "meta: is bytes"),
    ({b"a": 1}, "meta: has a name that is not text"),
    (math.nan, "meta: is not a finite number"),
    ({"a": [1, {"b": -math.inf}]}, "meta.a[1].b: is not a finite number"),
]
NOT_TAKEN = "it has a tag other than those of numbers and typed arrays"


async def test_a_state_over_mqtt_has_only_what_json_can_say(house: House) -> None:
    topic = f"losant/{house.id}/state"
    bodies: list[tuple[bytes, str]] = [
        (cbor2.dumps({"data": {"temp": 1}, "meta": meta}), said) for meta, said in UNPLAIN
    ]
    bodies += [
        (
            cbor2.dumps([{"data": {"temp": 1}}, {"data": {"temp": math.inf}}]),
            "[1].data.temp: inf is not a number",
        ),
        (cbor2.dumps({"data": {"on": cbor2.CBORSimpleValue(1)}}), "data.on: is CBORSimpleValue(1)"),
        (cbor2.dumps(cbor2.undefined), "The body: is undefined"),
        (cbor2.dumps({"data": {"temp": 1}, "meta": {1: 2}}), "The body is not CBOR: "),
        (b"\xa1\x64meta\xc1\x01", f"The body is not CBOR: {NOT_TAKEN}"),
        (b"\xa1\x64meta\x63\xed\xa0\x80", "The body is not CBOR: a text in it is not UTF-8"),
        (cbor2.dumps({"data": {"temp": 1}}) * 2, "The body is not CBOR: after the item there are more bytes"),
    ]
    async with house.client() as client:
        for body, said in bodies:
            answer = await client.publish(topic, body, 1, properties=CBOR)
            assert answer.code == packets.PAYLOAD_FORMAT_INVALID, said
            assert answer.properties["reason_string"].startswith(said), answer
        plain = {"a": [1, 2.5, None, {"b": "é"}], "c": 2**70}
        answer = await client.publish(
            topic, cbor2.dumps({"data": {"temp": 2}, "meta": plain}), 1, properties=CBOR
        )
        assert answer.code == packets.SUCCESS
    (state,) = await history(house)
    assert (state["data"], state["meta"]) == ({"temp": 2}, plain)


async def test_a_report_over_the_link_has_only_what_json_can_say(house: House) -> None:
    token, _ = await house.server.device_token(house.device)
    async with linked(house.server, house.device, token) as (peer, _):
        for n, (meta, said) in enumerate(UNPLAIN, 1):
            await peer.send(1, n, BASE_MS, {"temp": 1}, {"meta": meta}, checked=False)
            refusal = await peer.next()
            assert refusal[:3] == [2, n, "Validation"]
            assert refusal[3].startswith(said)
        await peer.send(1, 100, BASE_MS, {"temp": 2}, {"meta": {"a": [None, 1.5]}})
        await peer.until_stored(100)
    (state,) = await history(house)
    assert (state["data"], state["meta"]) == ({"temp": 2}, {"a": [None, 1.5]})


@pytest.mark.parametrize("is_flushed", [False, True])
async def test_what_is_stored_already_is_shown_as_far_as_json_can_say_it(
    tmp_path: Path, *, is_flushed: bool
) -> None:
    """Earlier versions stored it."""
    expected = [None, {"a": [None, 1]}, None, {"b": 1}, {"1": 2}, None]
    async with house_in(tmp_path / "data") as house:
        await house.server.call("POST", f"{house.device}/state", {"data": {"temp": 0}, "time": BASE_MS})
        async with opened_stream(house.server, house.device, resource="stateStream") as stream:
            await house.server.call("POST", f"{house.device}/state", {"data": {"temp": 1}})
            first = await stream.event()
        assert first is not None
        batch = Batch()
        for number, meta in enumerate(
            (
                cbor2.undefined,
                {"a": [cbor2.CBORTag(64, b"1"), 1]},
                math.nan,
                {None: 1, "b": 1},
                {1: 2},
                -math.inf,
            )
        ):
            batch.report(bytes.fromhex(house.id), BASE_MS + number, encode({0: number, META: meta}))
        await house.server.system.journal.submit(batch).wait()
        for path in (house.device, house.application):
            async with opened_stream(house.server, path, resource="stateStream", last_id=first.id) as stream:
                assert [event.data["meta"] for event in await taken(stream, 6)] == expected
        if is_flushed:
            await house.server.system.component(Flusher).flush_all()
        assert [state["meta"] for state in (await history(house))[:6]] == expected
        assert verify(house.server.system.store).problems == []


async def taken(stream: EventReader, count: int) -> list[Any]:
    return [await stream.event() for _ in range(count)]


async def history(house: House) -> list[Any]:
    query = {"limit": 1000, "sortDirection": "asc", "start": 1}
    found: list[Any] = await house.server.call("GET", f"{house.device}/state", params=query)
    return found
