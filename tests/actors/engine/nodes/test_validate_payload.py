"""ValidatePayloadNode: which output is taken, what stands at the path for errors, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.actors.engine.flow_cases import Json, failure, run_node
from trunkline.actors.engine.visit import Bounds

TYPE = "ValidatePayloadNode"
SCHEMA = {
    "type": "object",
    "properties": {"voltage": {"type": "number", "minimum": 0}, "a b": {"items": {"type": "null"}}},
    "required": ["voltage"],
}
CONFIG = {"schema": json.dumps(SCHEMA), "toValidatePath": "data.body", "errorsPath": "data.errors"}
BOUNDS = Bounds(steps=10, loop_items=10_000, payload_bytes=1_000_000)


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({"voltage": 5}, []),
        ({"voltage": "x"}, [("data.body.voltage", "is not of the type number")]),
        ({"voltage": -1}, [("data.body.voltage", "is not at least 0")]),
        ({}, [("data.body.voltage", "is required")]),
        ({"voltage": 1, "a b": [None, 2]}, [("data.body.[a b].[1]", "is not of the type null")]),
        (None, [("data.body", "is not of the type object")]),
    ],
)
async def test_the_output_and_the_errors(body: Any, errors: list[tuple[str, str]]) -> None:
    for config in (
        CONFIG,
        {**CONFIG, "schemaType": "path", "schema": "data.schema"},
        {**CONFIG, "schema": SCHEMA},
    ):
        shown = await run_node(TYPE, config, {"body": body, "schema": SCHEMA})
        assert shown["output"] == (0 if errors else 1)
        assert shown["data"]["errors"] == [{"field": field, "message": message} for field, message in errors]


async def test_the_whole_payload_is_validated_and_errors_may_be_left_out() -> None:
    config = {"schema": '{"properties": {"data": {"maxProperties": 0}}}'}
    assert await run_node(TYPE, config, {}) == {"output": 1, "data": {}, "problems": []}
    assert (await run_node(TYPE, config, {"a": 1}))["output"] == 0
    config["errorsPath"] = "data.e"
    shown = await run_node(TYPE, config, {"a": 1})
    assert shown["data"]["e"] == [{"field": "data", "message": "has more than 0 properties"}]
    shown = await run_node(TYPE, {"schema": '{"type": "null"}', "errorsPath": "data.e"}, {})
    assert shown["data"]["e"][0]["field"] == "."


async def test_templates_may_stand_in_a_schema() -> None:
    config = {**CONFIG, "schema": '{"maximum": {{data.most}}}'}
    assert (await run_node(TYPE, config, {"body": 5, "most": 5}))["output"] == 1
    assert (await run_node(TYPE, config, {"body": 6, "most": 5}))["output"] == 0
    assert (await failure(TYPE, config, {"body": 6}))[0] == "InvalidJsonTemplate"


async def test_long_checks_and_large_schemas_have_the_same_result() -> None:
    config = {"schema": '{"items": {"type": "number"}}', "toValidatePath": "data.a", "errorsPath": "data.e"}
    assert (await run_node(TYPE, config, {"a": [1] * 9_000}, bounds=BOUNDS))["output"] == 1
    shown = await run_node(TYPE, config, {"a": [1] * 9_000 + [""]}, bounds=BOUNDS)
    assert (shown["output"], shown["data"]["e"][0]["field"]) == (0, "data.a.[9000]")
    large = {"enum": ["x" * 100] * 100}
    config = {**CONFIG, "schemaType": "path", "schema": "data.s"}
    assert (await run_node(TYPE, config, {"body": 1, "s": large}))["output"] == 0


WRONG: list[tuple[Json, str, str]] = [
    ({"schema": ""}, "ValidationError", "config.schema: is not set"),
    ({"schema": "{"}, "ValidationError", "config.schema: is not valid JSON"),
    (
        {"schema": '{"$ref": "https://x/y"}'},
        "ValidationError",
        "config.schema: $ref 'https://x/y' does not lead",
    ),
    (
        {"schema": '{"pattern": "(a"}'},
        "ValidationError",
        "config.schema: pattern '(a' is not a valid regular expression",
    ),
    ({"schemaType": "file"}, "ValidationError", "config.schemaType: is 'file'"),
    (
        {"schemaType": "path", "schema": "data.gone"},
        "ValidationError",
        "config.schema: the schema is of the type undefined",
    ),
    ({"schemaType": "path", "schema": "data.s"}, "ValidationError", "config.schema: type is to be one of"),
    ({"schema": '{"$ref": "#"}'}, "TooMuchWork", "config.schema: The schema leads into itself"),
]


@pytest.mark.parametrize(("config", "name", "sentence"), WRONG)
async def test_wrong_configs_are_refused(config: Json, name: str, sentence: str) -> None:
    found, message = await failure(TYPE, {**CONFIG, **config}, {"body": {}, "s": {"type": "text"}})
    assert (found, sentence in message) == (name, True), message


PASSWORD = r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,}$"


@pytest.mark.parametrize(
    ("schema", "fitting", "unfitting"),
    [
        ({"pattern": PASSWORD}, ["Greenhouse9", 5], ["greenhouse9", "Short9", ""]),
        ({"items": {"pattern": PASSWORD}}, [["Greenhouse9"] * 3, []], [["Greenhouse9", "x"]]),
        ({"pattern": r"^(?!admin$)\w+$"}, ["bob", "admins"], ["admin"]),
        ({"pattern": r"(?<=\$)\d+"}, ["a $5"], ["a 5", "$"]),
        ({"pattern": r"^(['\"]).*\1$"}, ["'a'", '"a"'], ["'a\""]),
        ({"not": {"pattern": "^(?!a)"}}, ["abc"], ["xbc"]),
        ({"patternProperties": {"^(?!x)": {"type": "number"}}}, [{"a": 1, "x": "b"}], [{"a": "b"}]),
        # Which pattern is asked follows from another one.
        ({"oneOf": [{"pattern": "^(?=a)"}, {"pattern": "^(?=.b)"}]}, ["ax", "xb"], ["ab", "xx"]),
    ],
)
async def test_patterns_with_lookaround_are_those_of_javascript(
    schema: Json, fitting: list[Any], unfitting: list[Any]
) -> None:
    config = {"schema": json.dumps(schema), "toValidatePath": "data.v", "errorsPath": "data.e"}
    for output, values in ((1, fitting), (0, unfitting)):
        for value in values:
            shown = await run_node(TYPE, config, {"v": value})
            assert shown.get("output") == output, (value, shown)
            assert bool(shown["data"]["e"]) is (output == 0)


async def test_a_pattern_that_tries_without_end_ends_the_run_only() -> None:
    config = {"schema": json.dumps({"pattern": r"^(?=(a+)+$)(?=b)"}), "toValidatePath": "data.v"}
    name, message = await failure(TYPE, config, {"v": "a" * 40 + "!"}, limits={"script_cpu_s": 0.1})
    assert (name, "config.schema: a pattern: " in message) == ("ScriptTimeout", True), message


async def test_patterns_with_lookaround_are_bounded() -> None:
    config = {"schema": json.dumps({"items": {"pattern": "(?!a)b"}}), "toValidatePath": "data.v"}
    name, message = await failure(TYPE, config, {"v": [str(number) for number in range(1_001)]})
    assert (name, "at most 1000 texts" in message) == ("TooMuchWork", True), message
    name, message = await failure(TYPE, {**config, "schema": r'{"pattern": "(?=("}'}, {"v": "a"})
    assert (name, "'(?=(' is not a valid regular expression" in message) == ("ValidationError", True), message


async def test_a_wrong_schema_is_told_before_it_is_reached() -> None:
    shown = await run_node(TYPE, {**CONFIG, "schema": '{"type": "text"}'})
    (problem,) = shown["problems"]
    assert "config.schema: type is to be one of" in problem["message"]
