"""JSON schemas mean what draft 4 says, as the library `jsonschema` has it, and checks by them are bounded."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry

from trunkline.actors.engine.json_formats import FORMATS
from trunkline.actors.engine.json_schema import PROBLEMS_MAX, Check, SchemaError, TooMuchWork
from trunkline.actors.engine.schema_keywords import KEYWORDS, compile_schema

VALIDATOR = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft4Validator,
    # Whole numbers are integers, as in all newer drafts and in JavaScript.
    type_checker=jsonschema.Draft7Validator.TYPE_CHECKER,
)


def problems(schema: Any, value: Any, steps: int = 1_000_000) -> list[tuple[tuple[str | int, ...], str]]:
    check = Check(steps, lambda: None)
    check.run(compile_schema(schema), value, None)
    return [(each.place, each.message) for each in check.problems]


CASES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({}, [None, 1, {}], []),
    ({"type": "integer"}, [1, 1.0, -3], [1.5, "1", True, None]),
    ({"type": ["number", "null"]}, [1.5, None], ["1", False]),
    ({"type": "boolean"}, [True], [0, None]),
    ({"type": "object", "required": ["a"]}, [{"a": None}], [{}, [], "a"]),
    ({"properties": {"a": {"type": "string"}}}, [{"a": ""}, {}, []], [{"a": 1}]),
    (
        {"additionalProperties": False, "properties": {"a": {}}, "patternProperties": {"^x": {}}},
        [{"a": 1, "xy": 1}],
        [{"ax": 1}],
    ),
    ({"additionalProperties": {"type": "string"}}, [{"a": ""}], [{"a": 1}]),
    ({"patternProperties": {"^x": {"type": "string"}}}, [{"xa": "", "y": 1}], [{"xa": 1}]),
    ({"items": {"minimum": 2}}, [[2, "a"], {}], [[1]]),
    ({"items": [{"minimum": 2}], "additionalItems": False}, [[2], []], [[1], [2, 3]]),
    ({"items": [{}], "additionalItems": {"type": "null"}}, [[1, None]], [[1, 2]]),
    ({"items": []}, [[1, 2]], []),
    ({"minimum": 2, "exclusiveMinimum": True}, [2.1, "1"], [2, 1]),
    ({"maximum": 2, "exclusiveMaximum": True}, [1.9], [2, 3]),
    ({"maximum": 2}, [2, 2.0, True], [2.5]),
    ({"multipleOf": 0.1}, [0.3, 4, 0], [0.35]),
    ({"multipleOf": 2}, [4, -2], [3, 0.5]),
    ({"minLength": 2, "maxLength": 3}, ["ab", "\U0001f600\U0001f600", 1], ["a", "abcd"]),
    ({"minItems": 1, "maxItems": 2}, [[1], {}], [[], [1, 2, 3]]),
    ({"minProperties": 1, "maxProperties": 2}, [{"a": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
    ({"pattern": "b+$"}, ["ab", 1], ["ba"]),
    (
        {"enum": [1, "1", None, [1, {"a": 1, "b": True}]]},
        [1, 1.0, "1", None, [1, {"b": True, "a": 1}]],
        [True, 2, [1], [1, {"a": 1, "b": 1}]],
    ),
    (
        {"uniqueItems": True},
        [[1, True, "1", [1], {"a": 1}, {"a": 2}]],
        [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]],
    ),
    ({"uniqueItems": False}, [[1, 1]], []),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1], [0, 3]),
    ({"anyOf": [{"minimum": 5}, {"maximum": 2}]}, [1, 6], [3]),
    ({"oneOf": [{"minimum": 2}, {"maximum": 5}]}, [1, 6], [3]),
    ({"not": {"type": "null"}}, [1], [None]),
    (
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        [{"a": 1, "b": 1}, {"b": 1}],
        [{"a": 1}, {"c": 1}],
    ),
    ({"items": {"$ref": "#/definitions/p~1%25"}, "definitions": {"p/%": {"type": "null"}}}, [[None]], [[1]]),
    (
        {"properties": {"c": {"$ref": "#"}, "n": {"type": "null"}}},
        [{"c": {"c": {"n": None}}}],
        [{"c": {"c": {"n": 1}}}],
    ),
    ({"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {"type": "string"}}}, ["x"], [None]),
    (
        {"properties": {"$ref": {"type": "null"}, "id": {"type": "string"}}},
        [{"$ref": None, "id": "a"}],
        [{"$ref": 1}],
    ),
]


@pytest.mark.parametrize(("schema", "fitting", "unfit"), CASES)
def test_values_fit_or_do_not(schema: dict[str, Any], fitting: list[Any], unfit: list[Any]) -> None:
    assert [value for value in fitting if problems(schema, value)] == []
    assert [value for value in unfit if not problems(schema, value)] == []
    if "multipleOf" not in schema:
        oracle = VALIDATOR(schema, registry=Registry())
        assert [oracle.is_valid(value) for value in fitting + unfit] == [True] * len(fitting) + [False] * len(
            unfit
        )


def test_each_keyword_has_a_case() -> None:
    seen = {keyword for schema, _, _ in CASES for keyword in schema}
    assert set(KEYWORDS) - seen == {"format"}


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.sampled_from([0.5, 1.0]),
        st.sampled_from(["", "a", "ab", "b"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
SMALL = st.integers(0, 3)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(st.sampled_from("abc"), inner)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "minimum": SMALL,
            "exclusiveMinimum": st.booleans(),
            "maximum": SMALL,
            "exclusiveMaximum": st.booleans(),
            "minLength": SMALL,
            "maxLength": SMALL,
            "minItems": SMALL,
            "maxItems": SMALL,
            "minProperties": SMALL,
            "maxProperties": SMALL,
            "pattern": st.sampled_from(["a", "^b$", "a|b"]),
            "uniqueItems": st.booleans(),
            "required": st.lists(st.sampled_from("abc"), min_size=1, unique=True),
            "properties": named,
            "patternProperties": named,
            "additionalProperties": st.booleans() | inner,
            "items": inner | several,
            "additionalItems": st.booleans() | inner,
            "dependencies": st.dictionaries(st.sampled_from("abc"), inner | st.just(["a"])),
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
        },
    )


@given(st.recursive(st.just({}), _schemas, max_leaves=6), VALUES)
def test_any_schema_means_what_the_library_says(schema: dict[str, Any], value: Any) -> None:
    found = problems(schema, value)
    assert (not found) == VALIDATOR(schema, registry=Registry()).is_valid(value)


WRONG: list[tuple[Any, str]] = [
    ([], "the schema is of the type array; a schema is an object."),
    ({"type": "text"}, "type is to be one of array, boolean"),
    ({"minimum": "1"}, "minimum is of the type string, not a number."),
    ({"minLength": 1.5}, "minLength is not a whole number from 0."),
    ({"multipleOf": 0}, "multipleOf is not above 0."),
    ({"required": "a"}, "required is not a list of texts."),
    ({"enum": []}, "enum is not a list of values."),
    ({"anyOf": []}, "anyOf is not a list of schemas."),
    ({"properties": {"a": 1}}, "properties.a is of the type number; a schema is an object."),
    ({"pattern": "a**"}, "pattern 'a**' is not a valid regular expression"),
    ({"patternProperties": {"(": {}}}, "patternProperties '(' is not a valid regular expression"),
    ({"pattern": "a" * 1_025}, "pattern is not a text of at most 1024 characters."),
    ({"allOf": [{"pattern": f"a{n}"} for n in range(101)]}, "more than 100 regular expressions"),
    (
        {"$ref": "http://localhost/schema"},
        "$ref 'http://localhost/schema' does not lead to a place within the schema",
    ),
    ({"$ref": "http://json-schema.org/draft-04/schema#"}, "does not lead to a place within the schema"),
    ({"$ref": "file:///etc/passwd"}, "does not lead to a place within the schema"),
    (
        {"items": {"$ref": "#/definitions/x"}},
        "$ref '#/definitions/x' leads to nothing: 'definitions' is missing.",
    ),
    ({"$ref": "#name"}, "leads to nothing: no id is like it."),
    ({"$ref": 5}, "does not lead"),
    ({"enum": [1] * 10_000}, "the schema has more than 10000 values."),
]


@pytest.mark.parametrize(("schema", "sentence"), WRONG)
def test_wrong_schemas_are_refused(schema: Any, sentence: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        compile_schema(schema)
    assert sentence in str(refusal.value)


def test_an_id_can_be_referred_to() -> None:
    schema = {"items": {"$ref": "http://a/b"}, "definitions": {"c": {"id": "http://a/b", "type": "null"}}}
    assert problems(schema, [None, 1]) == [((1,), "is not of the type null")]


def test_problems_name_their_place_and_are_few() -> None:
    schema = {"properties": {"a": {"items": {"required": ["b"]}}}, "additionalProperties": False}
    assert problems(schema, {"a": [{"b": 1}, {}], "x": 1}) == [
        (("a", 1, "b"), "is required"),
        (("x",), "is not described, so it is not allowed"),
    ]
    assert len(problems({"items": {"type": "null"}}, [1] * 1_000)) == PROBLEMS_MAX


def test_a_problem_before_does_not_hide_what_fits_nothing() -> None:
    schema = {"allOf": [{"type": "null"}, {"anyOf": [{"type": "string"}]}, {"not": {"type": "number"}}]}
    assert [message for _, message in problems(schema, 1)] == [
        "is not of the type null",
        "fits none of the schemas of anyOf",
        "fits the schema of not",
    ]


def test_work_is_bounded() -> None:
    with pytest.raises(TooMuchWork, match="leads into itself"):
        problems({"$ref": "#"}, 1)
    doubling: dict[str, Any] = {"d0": {}}
    for n in range(60):
        doubling[f"d{n + 1}"] = {"allOf": [{"$ref": f"#/definitions/d{n}"}] * 2}
    with pytest.raises(TooMuchWork, match="too many steps"):
        problems({"$ref": "#/definitions/d60", "definitions": doubling}, 1)
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(TooMuchWork, match="levels deep"):
        problems({"items": {"anyOf": [{"$ref": "#"}]}}, deep)
    assert problems({"enum": [1], "uniqueItems": True}, deep)
    with pytest.raises(TooMuchWork, match="too many steps"):
        problems({"pattern": "(a|b)*c.{0,200}d"}, "ab" * 500_000)
    schemas: tuple[Any, ...] = (
        {"items": {}},
        {"uniqueItems": True},
        {"additionalItems": False, "items": [{}], "enum": [[1]]},
    )
    for schema in schemas:
        with pytest.raises(TooMuchWork, match="too many steps"):
            problems(schema, list(range(10_000)), 5_000)


@pytest.mark.parametrize(
    ("name", "fitting", "unfit"),
    [
        (
            "date-time",
            ["2026-02-28T23:59:60.123456789Z", "2026-02-28t01:02:03+05:30"],
            ["2026-02-30T00:00:00Z", "2026-02-28", "2026-02-28T00:00:00"],
        ),
        ("date", ["2024-02-29"], ["2023-02-29", "x"]),
        ("email", ["a@b.c"], ["a", "a@", "a b@c"]),
        ("hostname", ["a-b.example"], ["-a", "a..b", "a" * 64]),
        ("ipv4", ["1.2.3.4"], ["1.2.3", "1.2.3.256"]),
        ("ipv6", ["::1"], ["1.2.3.4", ":"]),
        ("uri", ["https://a/b?c#d", "urn:x"], ["/a", "a b:c", "https:" + "a" * 3_000]),
        ("color", ["anything"], []),
    ],
)
def test_formats(name: str, fitting: list[str], unfit: list[str]) -> None:
    assert [text for text in fitting if problems({"format": name}, text)] == []
    assert [text for text in unfit if not problems({"format": name}, text)] == []
    assert problems({"format": name}, 5) == []
    assert name in FORMATS or not unfit
