"""Values survive encoding and decoding, and damage raises ValueError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.store import codec

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(plain)
def test_what_goes_in_comes_out(obj: Any) -> None:
    again = codec.decode(codec.encode(obj))
    assert again == obj
    assert type(again) is type(obj)


@pytest.mark.parametrize("raw", [b"", b"\xff", b"\xa1", b"\x1c", b"\x62\xff\xff", b"\x5b" + b"\xff" * 8])
def test_damage_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not valid CBOR"):
        codec.decode(raw)


edges = st.sampled_from([2**bits + by for bits in (0, 8, 16, 32, 64) for by in (-2, -1, 0, 1)] + [23, 24, 25])


@given(
    st.dictionaries(
        st.integers(-3, 300),
        st.floats()
        | st.integers()
        | edges
        | st.booleans()
        | st.text(max_size=30)
        | st.none()
        | st.lists(st.floats(), max_size=2),
        max_size=30,
    )
)
def test_a_numbered_map_has_the_bytes_of_any_other(values: dict[int, Any]) -> None:
    assert codec.encode_numbered(values) == codec.encode(values)


@pytest.mark.parametrize("others", [0, 1, 5, 22])
def test_a_map_with_a_value_that_is_encoded_already(others: int) -> None:
    values = {f"n{number}": number for number in range(others)}
    whole = {**values, "payload": {"a": [1, "ä", None]}}
    raw = codec.encode_with({**values, "payload": "old"}, "payload", codec.encode(whole["payload"]))
    assert raw == codec.encode(whole)
    assert codec.encode_with(values, "payload", codec.encode(whole["payload"])) == raw


def test_a_large_map_is_not_put_together() -> None:
    with pytest.raises(ValueError, match="the map has 24 names"):
        codec.encode_with({f"n{number}": number for number in range(23)}, "payload", b"\xf6")


@given(plain)
def test_values_are_the_same_decoded_in_parts(value: Any) -> None:
    raw = codec.encode(value)
    assert codec.decode_in_parts(raw, lambda: None) == codec.decode(raw)


def test_parts_are_looked_at_while_they_are_decoded() -> None:
    looked: list[None] = []
    value = {"nodes": [{"id": number, "outputs": [[]]} for number in range(300)], "name": "a"}
    assert codec.decode_in_parts(codec.encode(value), lambda: looked.append(None)) == value
    assert len(looked) == 301


@pytest.mark.parametrize("raw", [b"", b"\xa1", b"\x82\x01", b"\xa1\x61a\x82\x01", b"\x9b\xff"])
def test_what_is_cut_off_is_no_cbor_in_parts_either(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not valid CBOR"):
        codec.decode_in_parts(raw, lambda: None)


NESTED = {
    "list": [1, 2.5, "text", b"bytes" * 99, None, {"large": 10**30, "text": "y" * 300}],
    "0": {"1": 1.5},
}


@pytest.mark.parametrize("work", [codec.encode, codec.decode, codec.loads, codec.decode_in_parts])
def test_each_allocation_that_fails_is_a_memory_error(work: Callable[..., object]) -> None:
    """Neither damage, nor the panic of a library, which would end the process."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no test modules")
    given: tuple[object, ...] = (NESTED,) if work is codec.encode else (codec.encode(NESTED),)
    if work is codec.decode_in_parts:
        given = (*given, lambda: None)
    told: list[BaseException | None] = []
    for number in range(300):
        failure = None
        testcapi.set_nomemory(number, number + 1)
        try:
            work(*given)
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            failure = error
        finally:
            testcapi.remove_mem_hooks()
        told.append(failure)
    assert told[-1] is None
    assert {type(failure) for failure in told} == {MemoryError, type(None)}


def test_another_panic_of_the_library_is_an_exception() -> None:
    class PanicException(BaseException):
        """As those are that the library raises: no Exception."""

    def panic(*_args: object) -> None:
        raise PanicException("index out of bounds")

    with pytest.raises(RuntimeError, match="panicked: index out of bounds"):
        codec.loads(codec.encode(codec.Tag(1, 1)), semantic_decoders={1: panic})
