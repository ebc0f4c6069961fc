"""Bodies with many values are decoded beside the loop, and refusals cost no more than what they refuse."""

from __future__ import annotations

import json

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.core.values.errors import Invalid, Overloaded, PayloadTooLarge
from trunkline.http.calls.json_body import (
    INLINE_VALUES_MAX,
    PLAIN_VALUES_MAX,
    decode,
    decode_beside,
    is_long_work,
    turns,
)

VALUES = msgspec.json.Decoder(dict[str, object])
NUMBERS = msgspec.json.Decoder(list[int])


def body(values: int) -> bytes:
    return json.dumps({f"key {number}": number for number in range(values)}).encode()


def test_what_costs_is_the_number_of_values() -> None:
    assert not is_long_work(body(1000))
    assert not is_long_work(b'"' + b"a" * 1_000_000 + b'"'), "a long text is one value"
    assert is_long_work(body(INLINE_VALUES_MAX + 1))
    assert is_long_work(b"[" + b"{}," * 20_000 + b"{}]")


async def test_a_long_body_is_decoded_as_a_short_one() -> None:
    raw = body(20_000)
    assert await decode_beside(VALUES, raw, 100_000, "owner") == decode(VALUES, raw)
    with pytest.raises(Invalid, match="not JSON"):
        await decode_beside(VALUES, raw[:-1], 100_000, "owner")


async def test_too_many_values_are_refused_but_not_those_within_texts() -> None:
    with pytest.raises(PayloadTooLarge, match="values; a call takes at most 10000"):
        await decode_beside(VALUES, body(20_000), 10_000, "owner")
    commas = json.dumps({"text": 'a,"[{\\' * 10_000}).encode()
    assert is_long_work(commas)
    assert await decode_beside(VALUES, commas, 100, "owner") == json.loads(commas)


def test_a_refusal_does_not_decode_a_long_body_again() -> None:
    with pytest.raises(Invalid, match="is 'some text'; give an integer"):
        decode(NUMBERS, b'["some text"]')
    with pytest.raises(Invalid, match="does not fit; give an integer"):
        decode(NUMBERS, b'["some text"' + b", 123456789012345" * PLAIN_VALUES_MAX + b"]")


async def test_owners_take_turns_at_decoding() -> None:
    """However many long bodies of one owner wait, the first one of another owner is next."""
    raw, ended = body(20_000), []

    async def send(owner: str) -> None:
        await decode_beside(VALUES, raw, 100_000, owner)
        ended.append(owner)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(send, "greedy")
        await wait_all_tasks_blocked()
        before = len(ended)
        nursery.start_soon(send, "quiet")
    assert ended.index("quiet") - before <= 2
    assert turns().running == turns().waiting == 0


async def test_who_fills_the_room_for_long_bodies_is_refused_and_never_another_owner() -> None:
    raw, refused = body(11_000), []

    async def send(owner: str) -> None:
        try:
            await decode_beside(VALUES, raw, 100_000, owner)
        except Overloaded as refusal:
            refused.append((owner, str(refusal)))

    async with trio.open_nursery() as nursery:
        for _ in range(300):
            nursery.start_soon(send, "greedy")
        await wait_all_tasks_blocked()
        for _ in range(3):
            nursery.start_soon(send, "quiet")
    assert {owner for owner, _ in refused} == {"greedy"}
    assert all("long bodies of this owner wait already" in sentence for _, sentence in refused)
