"""Payload paths read, write and remove what they name, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.paths import ARRAY_ITEMS_MAX, PATH_CHARS_MAX, PATH_KEYS_MAX, compile_path
from trunkline.actors.core.formulas.values import UNDEFINED

PAYLOAD: dict[str, Any] = {
    "time": 1,
    "data": {
        "a": 5,
        "none": None,
        "text": "Hello",
        "list": [44, "Goodbye", {"deep": [1, [2]]}],
        "a key": {"x-y": 1},
        "0": "zero",
        "length": "own",
    },
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".", PAYLOAD),
        (" data.a ", 5),
        ("data.none", None),
        ("data.none.x", UNDEFINED),
        ("data.list.[1]", "Goodbye"),
        ("data.list[1]", "Goodbye"),
        ("data.list.1", "Goodbye"),
        ("data.list.[1].[2]", "o"),
        ("data.list.[2].deep[1][0]", 2),
        ("data.list.[8]", UNDEFINED),
        ("data.list.[-1]", UNDEFINED),
        ("data.list.[01]", UNDEFINED),
        ("data.list.[1].[7]", UNDEFINED),
        ("data.list.length", 3),
        ("data.text.length", 5),
        ("data.text.[0]", "H"),
        ("data.a.length", UNDEFINED),
        ("data.length", "own"),
        ("data.[0]", "zero"),
        ("data.[a key].x-y", 1),
        ("data['a key'][\"x-y\"]", 1),
        ("[data].[a]", 5),
        ("data.missing.deeper", UNDEFINED),
        ("a", UNDEFINED),
    ],
)
def test_a_path_reads(path: str, value: Any) -> None:
    assert compile_path(path).get(PAYLOAD) == value


@pytest.mark.parametrize("payload", [None, 5, "text", [], UNDEFINED, True])
def test_a_path_into_something_else_than_an_object_is_undefined(payload: Any) -> None:
    for path in ("a", "a.b", "a.b.c", "[9]", "[9].b"):
        assert compile_path(path).get(payload) is UNDEFINED


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a", {}, {"a": 7}),
        ("a.b.c", {"x": 1}, {"x": 1, "a": {"b": {"c": 7}}}),
        ("a.b", {"a": None}, {"a": {"b": 7}}),
        ("a.b", {"a": "text"}, {"a": {"b": 7}}),
        ("a.[0]", {}, {"a": {"0": 7}}),
        ("a.[0]", {"a": [1, 2]}, {"a": [7, 2]}),
        ("a.[2]", {"a": []}, {"a": [None, None, 7]}),
        ("a.[1].b", {"a": [1, 2]}, {"a": [1, {"b": 7}]}),
        ("a.[1].b", {"a": [1]}, {"a": [1, {"b": 7}]}),
        ("[a b].c", {}, {"a b": {"c": 7}}),
        (".", {"x": 1}, 7),
        ("a", "text", {"a": 7}),
    ],
)
def test_a_path_writes_and_creates_what_is_on_the_way(path: str, before: Any, after: Any) -> None:
    payload = copy.deepcopy(before)
    assert compile_path(path).set(payload, 7) == after
    assert path == "." or not isinstance(before, dict) or payload == after


def test_an_array_takes_indexes_only_and_does_not_grow_without_a_bound() -> None:
    payload: dict[str, Any] = {"a": [1]}
    for path in ("a.b", "a.b.c", f"a.[{ARRAY_ITEMS_MAX}]"):
        with pytest.raises(EvaluationError, match=r"^a"):
            compile_path(path).set(payload, 7)
    assert payload == {"a": [1]}


@pytest.mark.parametrize(
    ("path", "after"),
    [
        ("a", {"b": {"c": 1}}),
        ("b.c", {"a": [1, 2, 3], "b": {}}),
        ("a.[1]", {"a": [1, 3], "b": {"c": 1}}),
        ("a.[9]", {"a": [1, 2, 3], "b": {"c": 1}}),
        ("a.length", {"a": [1, 2, 3], "b": {"c": 1}}),
        ("x.y.z", {"a": [1, 2, 3], "b": {"c": 1}}),
        ("b.c.d", {"a": [1, 2, 3], "b": {"c": 1}}),
        (".", {}),
    ],
)
def test_a_path_removes(path: str, after: Any) -> None:
    assert compile_path(path).delete({"a": [1, 2, 3], "b": {"c": 1}}) == after


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "key is missing at position 1"),
        ("a..b", "key is missing at position 3"),
        (".a", "key is missing at position 1"),
        ("a.", "key is missing at position 3"),
        ("a.[b", "bracket at position 3 is not closed"),
        ("a]", "expected a dot at position 2"),
        ("[a]b", "expected a dot at position 4"),
        ("a" * (PATH_CHARS_MAX + 1), "at most"),
        (".".join("a" * (PATH_KEYS_MAX + 1)), "at most"),
    ],
)
def test_a_malformed_path_is_refused_with_its_place(path: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=problem):
        compile_path(path)


@given(
    st.text(st.sampled_from("ab0.[]'\" ") | st.characters(), max_size=30), st.integers() | st.just(PAYLOAD)
)
def test_any_text_is_a_path_or_a_formula_error(text: str, value: Any) -> None:
    try:
        path = compile_path(text)
    except FormulaError:
        return
    payload = path.set({}, value)
    assert path.get(payload) is value
    assert path.keys == () or path.get(path.delete(payload)) is UNDEFINED
