"""The values of workflows mean what JavaScript says they mean: truth, equality, order and conversions."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.core.formulas.javascript import JavaScript, same
from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.values import (
    NESTING_MAX,
    TEXT_CHARS_MAX,
    UNDEFINED,
    character_at,
    compare,
    length_of,
    loose_equal,
    strict_equal,
    to_number,
    to_text,
    truth,
    type_of,
)


def is_written_alike(number: float) -> bool:
    """Whether QuickJS writes a number as the standard says: of some powers of two it writes one digit too many."""
    return math.frexp(number)[0] not in (-0.5, 0.5) or 2**-23 <= abs(number) <= 2**53


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 20)
    | st.integers().filter(is_written_alike)
    | st.floats(allow_nan=False, allow_infinity=False).filter(is_written_alike)
    | st.sampled_from(
        ["", "0", " 12 ", "1e3", "0x1f", "-1", "true", "null", "a", "B", "\ue000", "\U0001f600"]
    )
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)

NUMBERS: list[tuple[Any, float]] = [
    ("", 0),
    (" 12 ", 12),
    ("\ufeff\u20031\n", 1),
    ("0x1f", 31),
    ("0b101", 5),
    ("-0x1f", math.nan),
    ("1_000", math.nan),
    ("١", math.nan),
    ("12px", math.nan),
    (".5", 0.5),
    ("5.", 5),
    (".", math.nan),
    ("-Infinity", -math.inf),
    ("inf", math.nan),
    ("1e999", math.inf),
    (None, 0),
    (UNDEFINED, math.nan),
    (True, 1),
    ([], 0),
    ([5], 5),
    ([[["7"]]], 7),
    ([1, 2], math.nan),
    ({}, math.nan),
    (2**53 + 1, 2**53),
    (10**400, math.inf),
]

TEXTS: list[tuple[Any, str]] = [
    (1e21, "1e+21"),
    (1e20, "100000000000000000000"),
    (2**70, "1.1805916207174113e+21"),
    (2**60, "1152921504606847000"),
    (-0.0, "0"),
    (3.0, "3"),
    (-2.5, "-2.5"),
    (1e-6, "0.000001"),
    (1.5e-7, "1.5e-7"),
    (123456.789, "123456.789"),
    (math.nan, "NaN"),
    (-math.inf, "-Infinity"),
    (None, "null"),
    (UNDEFINED, "undefined"),
    (True, "true"),
    ([], ""),
    (2.0**-24, "5.960464477539063e-8"),
    ([[], [None], {}, [1, [2, "b"]]], ",,[object Object],1,2,b"),
    ({"a": 1}, "[object Object]"),
]


@pytest.fixture(scope="module")
def javascript() -> JavaScript:
    return JavaScript()


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_a_value_has_the_number_of_javascript(value: Any, number: float) -> None:
    assert same(to_number(value), number)


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_a_value_has_the_text_of_javascript(value: Any, text: str) -> None:
    assert to_text(value) == text


@pytest.mark.parametrize("value", [None, UNDEFINED, False, 0, 0.0, -0.0, math.nan, ""])
def test_these_values_are_false(value: Any) -> None:
    assert not truth(value)


@pytest.mark.parametrize("value", [True, 1, -0.5, math.inf, "0", "false", " ", [], {}])
def test_all_others_are_true(value: Any) -> None:
    assert truth(value)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (None, UNDEFINED, True),
        (None, 0, False),
        (UNDEFINED, False, False),
        ("", 0, True),
        ("1", True, True),
        ("true", True, False),
        ([], False, True),
        ([5], 5, True),
        ([5], "5", True),
        ([], [], False),
        ({}, "[object Object]", True),
        (math.nan, math.nan, False),
        (2**53, 2**53 + 1, True),
        (1, 1.0, True),
    ],
)
def test_loose_equality(one: Any, other: Any, equal: bool) -> None:
    assert loose_equal(one, other) is loose_equal(other, one) is equal


def test_strict_equality_knows_one_type_of_numbers_and_compares_objects_by_identity() -> None:
    shared: list[Any] = []
    assert strict_equal(1, 1.0)
    assert strict_equal(2**53, 2**53 + 1)
    assert strict_equal(shared, shared)
    assert not strict_equal([], [])
    assert not strict_equal(1, True)
    assert not strict_equal(0, "0")
    assert not strict_equal(None, UNDEFINED)
    assert not strict_equal(math.nan, math.nan)


def test_texts_are_ordered_by_utf_16_and_all_else_as_numbers() -> None:
    assert compare("\U0001f600", "\ue000") == -1
    assert compare("10", "9") == -1
    assert compare("10", 9) == 1
    assert compare([10], "9") == -1
    assert compare("a", 1) is None
    assert compare(UNDEFINED, 1) is None
    assert compare(None, 0) == 0


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (UNDEFINED, "undefined"),
        (None, "null"),
        (False, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_the_names_of_types(value: Any, name: str) -> None:
    assert type_of(value) == name


def test_lengths_and_characters_count_utf_16_and_halves_of_a_pair_are_replaced() -> None:
    assert length_of("a\U0001f600") == 3
    assert [character_at("a\U0001f600b", at) for at in range(5)] == ["a", "\ufffd", "\ufffd", "b", UNDEFINED]
    assert [length_of(value) for value in ([1, 2], {"a": 1}, 5)] == [2, 1, UNDEFINED]


def test_undefined_stays_one_value_in_a_copy() -> None:
    assert copy.deepcopy([UNDEFINED])[0] is copy.copy(UNDEFINED) is UNDEFINED


def test_the_text_of_an_array_is_bounded_in_length_and_depth() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    deep: list[Any] = ["x"]
    for _ in range(NESTING_MAX - 1):
        deep = [deep]
    assert to_text(deep) == "x"
    for value in (endless, [deep], ["x" * TEXT_CHARS_MAX, "y"]):
        with pytest.raises(EvaluationError):
            to_text(value)


@settings(max_examples=1000, deadline=None)
@given(one=VALUES, other=VALUES)
def test_values_behave_as_in_javascript(javascript: JavaScript, one: Any, other: Any) -> None:
    source = """[String(root.a), Number(root.a) === 0 ? 0 : String(Number(root.a)), !!root.a,
        root.a == root.b, root.a === root.b, root.a < root.b, root.a > root.b, root.a <= root.b]"""
    order = compare(one, other)
    number = to_number(one)
    ours = [
        to_text(one),
        0 if number == 0 else to_text(number),
        truth(one),
        loose_equal(one, other),
        strict_equal(one, other),
        order == -1,
        order == 1,
        order in (-1, 0),
    ]
    assert ours == javascript.evaluate(source, {"a": one, "b": other})
