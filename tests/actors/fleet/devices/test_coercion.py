"""Coercion: what each data type of an attribute takes, keeps and refuses, with the attribute's name."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.coercion import COERCE
from trunkline.store.codec import decode, encode

LARGEST = int(1.7976931348623157e308)
NOT_SCALARS: list[Any] = [None, [], {}, [1], {"a": 1}, [[[]]]]

TAKEN: list[tuple[str, Any, Any]] = [
    # numbers
    ("number", 5, 5),
    ("number", -5.5, -5.5),
    ("number", 0, 0),
    ("number", 2**53 + 1, 2**53 + 1),
    ("number", 2**64, 2**64),
    ("number", LARGEST, LARGEST),
    ("number", "5", 5),
    ("number", " 5.50 ", 5.5),
    ("number", "-1e3", -1000.0),
    ("number", "+7", 7),
    ("number", ".5", 0.5),
    ("number", "9007199254740993", 9007199254740993),
    ("number", True, 1),
    ("number", False, 0),
    # booleans
    ("boolean", True, True),
    ("boolean", False, False),
    ("boolean", 1, True),
    ("boolean", 0, False),
    ("boolean", 1.0, True),
    ("boolean", "true", True),
    ("boolean", "FALSE", False),
    ("boolean", " True ", True),
    ("boolean", "1", True),
    ("boolean", "0", False),
    # text
    ("string", "", ""),
    ("string", "5", "5"),
    ("string", 5, "5"),
    ("string", 5.5, "5.5"),
    ("string", 2**70, str(2**70)),
    ("string", True, "true"),
    ("string", False, "false"),
    ("gps", "48.2,16.4", "48.2,16.4"),
    ("blob", "aGVsbG8=", "aGVsbG8="),
]

REFUSED: list[tuple[str, Any]] = [
    ("number", "five"),
    ("number", ""),
    ("number", "5 apples"),
    ("number", "0x10"),
    ("number", "1_000"),
    ("number", "nan"),
    ("number", "-Infinity"),
    ("number", "1e999"),
    ("number", "٣"),
    ("number", "9" * 400),
    ("number", "9" * 401),
    ("number", LARGEST * 2),
    ("number", -LARGEST * 2),
    ("number", math.nan),
    ("number", math.inf),
    ("boolean", 2),
    ("boolean", -1),
    ("boolean", 0.5),
    ("boolean", "yes"),
    ("boolean", ""),
    ("boolean", math.nan),
    ("string", math.inf),
    ("gps", 5),
    ("gps", True),
    ("blob", 1.5),
    *((kind, value) for kind in COERCE for value in NOT_SCALARS),
]


@pytest.mark.parametrize(("kind", "given", "kept"), TAKEN)
def test_what_loses_nothing_is_taken(kind: str, given: Any, kept: Any) -> None:
    stored = COERCE[kind]("temp", given)
    assert stored == kept
    assert type(stored) is type(kept)


@pytest.mark.parametrize(("kind", "given"), REFUSED)
def test_everything_else_is_refused_with_the_attributes_name(kind: str, given: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        COERCE[kind]("temp", given)
    assert refusal.value.message.startswith("data.temp: ")
    assert len(refusal.value.message) < 250


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(COERCE)), anything)
def test_what_is_kept_can_be_stored_and_answered(kind: str, value: Any) -> None:
    """Whatever comes in: it is refused with a sentence, or it survives the store and is JSON of its type."""
    try:
        kept = COERCE[kind]("temp", value)
    except Invalid:
        return
    expected: dict[str, type | tuple[type, ...]] = {"number": (int, float), "boolean": bool}
    assert isinstance(kept, expected.get(kind, str))
    assert decode(encode(kept)) == kept
    assert math.isfinite(kept) if isinstance(kept, int | float) else True
    assert msgspec.json.decode(msgspec.json.encode(kept)) == kept


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-LARGEST, LARGEST))
def test_a_number_in_text_is_the_number(number: float) -> None:
    assert COERCE["number"]("temp", repr(number)) == number
    assert COERCE["string"]("temp", number) == repr(number)
