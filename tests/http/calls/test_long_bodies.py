"""Bodies with many values are decoded beside the loop, and refusals cost no more than what they refuse."""

from __future__ import annotations

import json

import msgspec
import pytest

from trunkline.actors.values.errors import Invalid, PayloadTooLarge
from trunkline.http.calls.json_body import (
    INLINE_VALUES_MAX,
    PLAIN_VALUES_MAX,
    decode,
    decode_beside,
    is_long_work,
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
    assert await decode_beside(VALUES, raw, 100_000) == decode(VALUES, raw)
    with pytest.raises(Invalid, match="not JSON"):
        await decode_beside(VALUES, raw[:-1], 100_000)


async def test_too_many_values_are_refused_but_not_those_within_texts() -> None:
    with pytest.raises(PayloadTooLarge, match="values; a call takes at most 10000"):
        await decode_beside(VALUES, body(20_000), 10_000)
    commas = json.dumps({"text": 'a,"[{\\' * 10_000}).encode()
    assert is_long_work(commas)
    assert await decode_beside(VALUES, commas, 100) == json.loads(commas)


def test_a_refusal_does_not_decode_a_long_body_again() -> None:
    with pytest.raises(Invalid, match="is 'some text'; give an integer"):
        decode(NUMBERS, b'["some text"]')
    with pytest.raises(Invalid, match="does not fit; give an integer"):
        decode(NUMBERS, b'["some text"' + b", 123456789012345" * PLAIN_VALUES_MAX + b"]")
