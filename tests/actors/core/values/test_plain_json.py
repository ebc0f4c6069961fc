"""What JSON can say: what is refused before it is stored, and how what is stored already is shown."""

from __future__ import annotations

import json
import math
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.nesting import NESTING_MAX, check_nesting
from trunkline.actors.core.values.plain_json import check_json, json_bytes

UNDEFINED: Any = cbor2.undefined


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "meta: is not a finite number; give null"),
        ({"a": [1, -math.inf]}, "meta.a[1]: is not a finite number"),
        (UNDEFINED, "meta: is undefined, which JSON does not have"),
        ([{"b": UNDEFINED}], "meta[0].b: is undefined"),
        (cbor2.CBORSimpleValue(99), "meta: is CBORSimpleValue(99)"),
        (cbor2.CBORTag(64, b"1"), "meta: has the tag 64"),
        ({"a": b"1"}, "meta.a: is bytes"),
        ({"a": {1: 2}}, "meta.a: has a name that is not text"),
        ({"a": {b"1": 2}}, "meta.a: has a name that is not text"),
        ({"a": "\ud800"}, "meta.a: is text with half of a surrogate pair"),
        ({"\ud800": 1}, "meta: has a name that is not text"),
        ({"a" * 500: math.nan}, "meta.aaa"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(value: Any, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_json(value, "meta")
    assert refused.value.message.startswith(said)
    assert len(refused.value.message) < 500


def test_a_body_has_no_field_of_its_own() -> None:
    for value, said in (
        (UNDEFINED, "The body: is undefined"),
        ([{"data": {"x": b""}}], "[0].data.x: is bytes"),
    ):
        with pytest.raises(Invalid) as refused:
            check_json(value)
        assert refused.value.message.startswith(said)


leaves: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=3)
    | st.just(UNDEFINED)
    | st.binary(max_size=2)
    | st.builds(cbor2.CBORSimpleValue, st.integers(0, 19))
    | st.builds(cbor2.CBORTag, st.just(90), st.binary(max_size=2))
    | st.dates()
    | st.frozensets(st.integers(), max_size=2)
    | st.tuples(st.floats())
)
names = st.text(st.characters(exclude_categories=()), max_size=2) | st.sampled_from(
    [1, None, b"1", (1,), 1.5]
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@given(value=values)
def test_what_is_taken_is_shown_as_it_is_and_everything_is_shown_as_json(value: Any) -> None:
    shown = json.loads(json_bytes(value))
    try:
        check_json(value, "meta")
    except Invalid:
        json.dumps(shown, allow_nan=False)
    else:
        assert shown == value


def test_what_json_can_say_of_a_stored_value_is_shown() -> None:
    stored = {"a": [1, UNDEFINED, "x"], None: 1, "b": {"c": math.nan, "d": 2.5}, 7: True}
    assert json.loads(json_bytes(stored)) == {"a": [1, None, "x"], "b": {"c": None, "d": 2.5}, "7": True}


@pytest.mark.parametrize("innermost", [1, [], {}, [1], {"a": 1}])
@pytest.mark.parametrize("levels", [NESTING_MAX - 1, NESTING_MAX, NESTING_MAX + 1])
def test_the_bound_on_nesting_is_that_of_all_free_values(innermost: Any, levels: int) -> None:
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    outcomes = []
    for check in (check_nesting, check_json):
        try:
            check(value, "meta")
        except Invalid as refusal:
            outcomes.append(refusal.message)
        else:
            outcomes.append("")
    assert outcomes[0] == outcomes[1]
