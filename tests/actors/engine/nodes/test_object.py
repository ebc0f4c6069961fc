"""ObjectNode: what each operation makes of a source, where the results go, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import Json, failure, flow, node, run_dry, run_node
from trunkline.actors.engine.nodes.object import _KINDS, _merged
from trunkline.actors.engine.visit import Bounds

SOURCE = {"a": 1, "b": {"c": [1], "d": 2}}

CHANGES: list[tuple[Any, str, str, Any]] = [
    (SOURCE, "assign", '{"b": 4, "e": "{{data.k}}"}', {"a": 1, "b": 4, "e": "a"}),
    (SOURCE, "assign", "{{data.more}}", {"a": 1, "b": {"c": [2]}}),
    (SOURCE, "mergeDeep", "{{data.more}}", {"a": 1, "b": {"c": [2], "d": 2}}),
    (SOURCE, "mergeDeep", '{"a": {"x": 1}, "b": {"d": null}}', {"a": {"x": 1}, "b": {"c": [1], "d": None}}),
    (SOURCE, "omit", '["{{data.k}}", "x"]', {"b": SOURCE["b"]}),
    (SOURCE, "pick", '["b", "{{data.k}}", "x"]', {"b": SOURCE["b"], "a": 1}),
    ({"1": "x", "2": "y"}, "pick", "[2]", {"2": "y"}),
    (["x", [1]], "zipObject", '["k", "l", "m"]', {"k": "x", "l": [1]}),
    (["x", "y"], "zipObject", '["k"]', {"k": "x"}),
    (None, "assign", '{"a": 1}', {"a": 1}),
]


@pytest.mark.parametrize(("source", "type", "template", "expected"), CHANGES)
async def test_operations_that_change_the_source(
    source: Any, type: str, template: str, expected: Any
) -> None:
    data = {"s": source, "k": "a", "more": {"b": {"c": [2]}}}
    config = {"sourcePath": "data.s", "operations": [{"type": type, "inputTemplate": template}]}
    found = (await run_node("ObjectNode", {**config, "destPath": "data.out"}, data))["data"]
    assert found == {**data, "out": expected}
    assert list(found["out"]) == list(expected)
    assert (await run_node("ObjectNode", config, data))["data"] == data


RESULTS: list[tuple[Any, str, Any]] = [
    (SOURCE, "keys", ["a", "b"]),
    (SOURCE, "values", [1, {"c": [1], "d": 2}]),
    (SOURCE, "entries", [["a", 1], ["b", {"c": [1], "d": 2}]]),
    ([["a", 1], [2, []], ["a", 3]], "fromPairs", {"a": 3, "2": []}),
    (None, "keys", []),
]


@pytest.mark.parametrize(("source", "type", "expected"), RESULTS)
async def test_operations_with_a_result_pass_the_source_on(source: Any, type: str, expected: Any) -> None:
    config = {"sourcePath": "data.s", "operations": [{"type": type, "outputPath": "data.out"}]}
    found = (await run_node("ObjectNode", {**config, "destPath": "data.d"}, {"s": source}))["data"]
    assert found == {"s": source, "out": expected, "d": source or {}}
    assert (await run_node("ObjectNode", {"operations": [{"type": "keys"}]}, {}))["data"] == {}


def test_each_operation_has_a_case() -> None:
    assert {case[1] for case in CHANGES} | {case[1] for case in RESULTS} == set(_KINDS)


async def test_operations_follow_each_other() -> None:
    operations = [
        {"type": "pick", "inputTemplate": '["id", "name"]'},
        {"type": "keys", "outputPath": "data.keys"},
        {"type": "assign", "inputTemplate": '{"source": "{{data.keys.[1]}}"}'},
    ]
    config = {"sourcePath": "data.device", "destPath": "data.device", "operations": operations}
    found = (await run_node("ObjectNode", config, {"device": {"id": 1, "name": "n", "tags": []}}))["data"]
    assert found == {"device": {"id": 1, "name": "n", "source": "name"}, "keys": ["id", "name"]}


WRONG: list[tuple[Any, Json, str, str]] = [
    (
        {},
        {"type": "invert"},
        "ValidationError",
        "config.operations[0].type: is 'invert'; give one of assign",
    ),
    ({}, {"type": "pick"}, "ValidationError", "config.operations[0].inputTemplate: is not set"),
    (
        {},
        {"type": "pick", "inputTemplate": "{}"},
        "ValidationError",
        "is to become an array; it becomes of the type",
    ),
    (
        {},
        {"type": "pick", "inputTemplate": "[x]"},
        "InvalidJsonTemplate",
        "config.operations[0].inputTemplate: becomes no JSON",
    ),
    ({}, {"type": "assign", "inputTemplate": "{{data.x}}"}, "ValidationError", "of the type undefined"),
    ([], {"type": "keys"}, "ValidationError", "keys needs an object; the source is of the type array"),
    ("x", {"type": "keys"}, "ValidationError", "the source is of the type string"),
    (
        {},
        {"type": "fromPairs"},
        "ValidationError",
        "fromPairs needs an array; the source is of the type object",
    ),
    ([["a"]], {"type": "fromPairs"}, "ValidationError", "item 0 of the source is not a pair"),
]


@pytest.mark.parametrize(("source", "operation", "name", "sentence"), WRONG)
async def test_wrong_operations_are_refused(source: Any, operation: Json, name: str, sentence: str) -> None:
    config = {"sourcePath": "data.s", "operations": [operation]}
    found, message = await failure("ObjectNode", config, {"s": source})
    assert (found, sentence in message) == (name, True), message


async def test_what_a_node_makes_is_bounded() -> None:
    bounds = Bounds(steps=10, loop_items=100, payload_bytes=150_000)
    config = {"sourcePath": "data", "destPath": "data.copy", "operations": []}
    definition = flow(node("1", "DebugNode", {"property": "time"}, ["2"]), node("2", "ObjectNode", config))
    error = (await run_dry(definition, bounds, data={"x": "x" * 100_000}))["error"]
    assert (error["nodeId"], error["name"]) == ("2", "PayloadTooLarge")
    shown = await run_node("ObjectNode", config, {"x": "x" * 70_000}, bounds=bounds)
    assert shown["data"]["copy"] == {"x": "x" * 70_000}
    _, message = await failure("ObjectNode", {"operations": [{"type": "keys"}] * 11})
    assert message.startswith("config.operations: 11 operations")


def test_deep_objects_are_merged() -> None:
    deep: Any = {}
    other: Any = {"x": 1}
    for _ in range(3_000):
        deep, other = {"a": deep}, {"a": other}
    found = _merged(deep, other)
    for _ in range(3_000):
        found = found["a"]
    assert found == {"x": 1}
