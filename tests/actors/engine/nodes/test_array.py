"""ArrayNode: what each operation makes of an array, where the results go, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.engine.flow_cases import Json, flow, node, run_dry, run_node
from trunkline.actors.engine.nodes.array import _OPERATIONS
from trunkline.actors.engine.sorting import rank
from trunkline.actors.engine.visit import Bounds

BOUNDS = Bounds(steps=100, loop_items=10_000, payload_bytes=100_000)


async def after(data: Json, *rules: Json, bounds: Bounds | None = None, **config: Any) -> Any:
    """`data` after the node, or the error."""
    config = {"sourceArrayPath": "data.a", "rules": [*rules], **config}
    shown = await run_node("ArrayNode", config, data, bounds=bounds or BOUNDS)
    return shown["error"] if "error" in shown else shown["data"]


def rule(type: str, input: Any = None, index: Any = None, output: str = "", **more: Any) -> Json:
    given = {"type": type, "inputTemplate": input, "indexTemplate": index, "outputPath": output, **more}
    return {name: value for name, value in given.items() if value is not None}


CHANGES: list[tuple[Any, Json, Any]] = [
    ([0, 1, False, 2, "", 3, None, [], {}], rule("compact"), [1, 2, 3, [], {}]),
    ([1, 2], rule("concat", "[4]"), [1, 2, 4]),
    ([1, 2], rule("concat", "{{data.more}}"), [1, 2, [3], 4]),
    ([1, 2], rule("concat", "[{{data.n}}, 8]"), [1, 2, 7, 8]),
    ([1, 2], rule("concat", "{{data.gone}}"), [1, 2]),
    ([1, 2], rule("concat", "x"), [1, 2, "x"]),
    ([0, 1, 1.0, True, "1", None, None, [1], [1]], rule("deduplicate"), [0, 1, True, "1", None, [1], [1]]),
    ([1, [2, [3], 4], [[[5]]], []], rule("flatten"), [1, 2, 3, 4, 5]),
    ([1, 2], rule("insertAt", "{{data.n}}", 1), [1, 7, 2]),
    ([1, 2], rule("insertAt", "x", "-1"), [1, "x", 2]),
    ([1, 2], rule("insertAt", "x", "{{data.n}}"), [1, 2, "x"]),
    ([1, 2], rule("pop"), [1]),
    ([], rule("pop"), []),
    ([1, 2], rule("push", "42"), [1, 2, 42]),
    ([1, 2], rule("push", '"42"'), [1, 2, "42"]),
    ([1, 2], rule("push", "{{data.more}}"), [1, 2, [[3], 4]]),
    ([1, 2], rule("push", "{{data.text}}"), [1, 2, "[1]"]),
    ([1, 2], rule("push", '{"n": {{data.n}}}'), [1, 2, {"n": 7}]),
    ([1, 2], rule("push", "n{{data.n}}"), [1, 2, "n7"]),
    ([1, 2], rule("push", "{{data.gone}}"), [1, 2, None]),
    ([1, 2], rule("push", ""), [1, 2, ""]),
    ([1, 2, 3], rule("removeAt", index=1), [1, 3]),
    ([1, 2, 3], rule("removeAt", index=-1), [1, 2]),
    ([1, 2, 3], rule("removeAt", index=-4), [1, 2, 3]),
    ([1, 2], rule("replaceAt", "x", 0), ["x", 2]),
    ([1, 2], rule("replaceAt", "x", -1), [1, "x"]),
    ([1], rule("replaceAt", "x", 3), [1, None, None, "x"]),
    ([1, 2, 3], rule("reverse"), [3, 2, 1]),
    ([1, 2], rule("shift"), [2]),
    ([1, 2, 3, 4], rule("slice", "1", "3"), [2, 3]),
    ([1, 2, 3, 4], rule("slice", "-2"), [3, 4]),
    ([1, 2, 3, 4], rule("slice", index=-1), [1, 2, 3]),
    ([1, 2, 3, 4], rule("slice"), [1, 2, 3, 4]),
    ([1, 2], rule("unshift", "{{data.n}}"), [7, 1, 2]),
    (None, rule("push", "x"), ["x"]),
    (5, rule("push", "x"), ["x"]),
]


@pytest.mark.parametrize(("array", "change", "expected"), CHANGES)
async def test_operations_that_change_the_array(array: Any, change: Json, expected: Any) -> None:
    more = {"more": [[3], 4], "n": 7, "text": "[1]"}
    found = await after({"a": array, **more}, change)
    assert found == {"a": expected, **more}
    assert list(map(type, found["a"])) == list(map(type, expected))
    elsewhere = await after({"a": array, **more}, change, destArrayPath="data.b")
    kept = array if isinstance(array, list) else []
    assert elsewhere == {"a": kept, **more, "b": expected}


PEOPLE = [{"n": "b", "age": 3}, {"n": "a", "age": 10}, {"n": "b", "age": 1}, {"age": 2}]

RESULTS: list[tuple[Any, Json, Any]] = [
    (PEOPLE, rule("deduplicateBy", "n"), [PEOPLE[0], PEOPLE[1], PEOPLE[3]]),
    ([1, 20, 30], rule("filter", "{{value}} > 10"), [20, 30]),
    (PEOPLE, rule("filter", "{{value.n}} === 'b' && {{index}} > 0"), [PEOPLE[2]]),
    ([1, 2, 3], rule("filter", "{{value}} < {{payload.data.limit}} + length({{array}})"), [1, 2, 3]),
    (PEOPLE, rule("groupBy", "n"), {"b": [PEOPLE[0], PEOPLE[2]], "a": [PEOPLE[1]], "undefined": [PEOPLE[3]]}),
    (["x", 2, 2], rule("indexOf", "2"), 1),
    (["x", 2], rule("indexOf", "{{data.limit}}"), -1),
    (["x", [2]], rule("indexOf", "[2]"), -1),
    (PEOPLE, rule("keyBy", "n"), {"b": PEOPLE[2], "a": PEOPLE[1], "undefined": PEOPLE[3]}),
    ([1, 2], rule("length"), 2),
    ("abc", rule("length"), 3),
    ([1, 2], rule("lookupAt", index=1), 2),
    ([1, 2], rule("lookupAt", index="-2"), 1),
    ([3, "b", None, 10, True, "a", [1], -1], rule("sort"), [True, -1, 3, 10, "a", "b", [1], None]),
    ([3, 10, 2], rule("sort", order="descending"), [10, 3, 2]),
    (PEOPLE, rule("sortBy", "age"), [PEOPLE[2], PEOPLE[3], PEOPLE[0], PEOPLE[1]]),
    (PEOPLE, rule("sortBy", "n", order="descending"), [PEOPLE[3], PEOPLE[0], PEOPLE[2], PEOPLE[1]]),
    ([1, 2.5, "3", None, True], rule("sum"), 3.5),
    ([0.5, 0.5], rule("sum"), 1),
    ([], rule("sum"), 0),
    ([1e308, 1e308], rule("sum"), None),
]


@pytest.mark.parametrize(("array", "look", "expected"), RESULTS)
async def test_operations_with_a_result_leave_the_array(array: Any, look: Json, expected: Any) -> None:
    config = {**look, "outputPath": "data.out"}
    assert await after({"a": array, "limit": 5}, config, destArrayPath="data.b") == {
        "a": array,
        "limit": 5,
        "out": expected,
    }


@pytest.mark.parametrize(
    ("change", "removed"),
    [
        (rule("pop", output="data.out"), 3),
        (rule("shift", output="data.out"), 1),
        (rule("removeAt", index=1, output="data.out"), 2),
        (rule("replaceAt", "x", 1, "data.out"), 2),
    ],
)
async def test_what_was_removed_can_be_kept_and_nothing_leaves_nothing(change: Json, removed: Any) -> None:
    assert (await after({"a": [1, 2, 3]}, change))["out"] == removed
    assert "out" not in await after({"a": [], "out": "old"}, change)


def test_all_23_operations_are_here_and_each_has_a_case() -> None:
    assert len(_OPERATIONS) == 23
    assert {case[1]["type"] for case in CHANGES + RESULTS} == set(_OPERATIONS)


async def test_rules_follow_each_other_and_a_text_stays_one() -> None:
    rules = [
        rule("flatten"),
        rule("push", "{{data.out}}"),
        rule("length", output="data.out"),
        rule("reverse"),
    ]
    assert await after({"a": [1, [2]]}, *rules) == {"a": [None, 2, 1], "out": 3}
    assert await after({"a": "abc"}, rule("reverse")) == {"a": "abc"}
    assert await after({"a": "abc"}, rule("reverse"), destArrayPath="data.b") == {
        "a": "abc",
        "b": ["c", "b", "a"],
    }


async def last_of(first: Json, array: Json, last: Json, data: Json) -> Json:
    """What a run of three nodes shows, with an ArrayNode in the middle."""
    definition = flow(
        node("1", "MutateNode", {"rules": [first]}, ["2"]),
        node("2", "ArrayNode", {"sourceArrayPath": "data.a", **array}, ["3"]),
        node("3", "MutateNode", {"rules": [last]}),
    )
    return await run_dry(definition, BOUNDS, data=data)


SET = {"type": "set", "valueTemplate": "x"}


async def test_results_are_copies() -> None:
    rules = [rule("filter", "true", output="data.b"), rule("push", "{{data.b}}"), rule("reverse")]
    config = {"rules": rules, "destArrayPath": "data.c"}
    for path in ("b.[0]", "c.[0].[0]", "c.[1]", "a.[0]"):
        shown = await last_of(
            {**SET, "destination": "z"}, config, {**SET, "destination": f"data.{path}.[0]"}, {"a": [[1]]}
        )
        data = shown["steps"][-1]["payload"]["data"]
        assert str(data).count("x") == 1, path


async def test_what_is_put_in_is_a_copy() -> None:
    put_in = {"rules": [rule("push", "{{data.b}}")]}
    shown = await last_of(
        {**SET, "destination": "z"}, put_in, {**SET, "destination": "data.a.[0].[0]"}, {"a": [], "b": [1]}
    )
    assert shown["steps"][-1]["payload"]["data"] == {"a": [["x"]], "b": [1]}


async def test_each_node_checks_what_grows_much() -> None:
    large = ["x" * 1_000] * 70
    grow = {"rules": [rule("concat", "{{data.a}}")]}
    shown = await last_of({**SET, "destination": "z"}, grow, {**SET, "destination": "z"}, {"a": large})
    assert (shown["error"]["nodeId"], shown["error"]["name"]) == ("2", "PayloadTooLarge")


WRONG: list[tuple[Json, str]] = [
    (rule("shuffle"), "config.rules[0].type: is 'shuffle'; give one of compact, concat"),
    ({}, "config.rules[0].type: is ''; give one of"),
    (rule("length"), "config.rules[0].outputPath: is not set"),
    (rule("lookupAt", output="data.o"), "config.rules[0].indexTemplate: is not set"),
    (rule("lookupAt", index="x", output="data.o"), "config.rules[0].indexTemplate: gives 'x', not a number"),
    (rule("slice", "{{data.gone}}"), "config.rules[0].inputTemplate: gives nothing, not a number"),
    (rule("slice", "Infinity"), "config.rules[0].inputTemplate: gives inf, not the index"),
    (rule("replaceAt", "x", -9), "config.indexTemplate: -9 is before the first of 3 items"),
    (rule("replaceAt", "x", 262_144), "config.indexTemplate: is 262144; an index is below 262144"),
    (rule("filter", "1 +", output="data.o"), "config.rules[0].inputTemplate: "),
    (rule("sortBy", output="data.o"), "config.rules[0].inputTemplate: is not set"),
    (rule("sort", output="data.o", order="random"), "config.rules[0].order: is 'random'"),
    (rule("concat"), "config.rules[0].inputTemplate: is not set"),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG)
async def test_wrong_rules_are_refused(wrong: Json, sentence: str) -> None:
    error = await after({"a": [1, 2, 3]}, wrong)
    assert (error["name"], sentence in error["message"]) == ("ValidationError", True), error["message"]


async def test_what_a_node_does_is_bounded() -> None:
    bounds = Bounds(steps=100, loop_items=3_000, payload_bytes=100_000)
    many = [{"n": n} for n in range(3_000)]
    found = await after({"a": many}, rule("filter", "{{value.n}} >= 2998", output="data.b"), bounds=bounds)
    assert found["b"] == [{"n": 2998}, {"n": 2999}]
    error = await after({"a": many}, rule("push", "x"), bounds=bounds)
    assert (error["name"], error["message"]) == (
        "TooManyItems",
        "config.sourceArrayPath: 3001 items; an array has at most 3000 here.",
    )
    assert (await after({"a": [*many, 1]}, rule("length", output="data.o"), bounds=bounds))[
        "name"
    ] == "TooManyItems"
    large = ["x" * 1_000] * 70
    assert (await after({"a": large}, rule("concat", "{{data.a}}")))["name"] == "PayloadTooLarge"
    assert (await after({"a": large}, *[rule("length", output="data.o")] * 16))["message"].startswith(
        "config.rules: 16"
    )


async def test_an_error_in_a_thread_fails_the_run() -> None:
    error = await after({"a": [1] * 2_000}, rule("insertAt", "x", "{{data.gone}}"))
    assert error["name"] == "ValidationError"


def test_deep_arrays_are_flattened() -> None:
    deep: Any = 1
    for _ in range(3_000):
        deep = [deep]
    assert _OPERATIONS["flatten"].operation(deep, None, None)[0] == [1]


JSON_VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())


@given(st.lists(JSON_VALUES))
def test_any_values_can_be_sorted(values: list[Any]) -> None:
    ranks = [rank(value) for value in values]
    assert sorted(sorted(ranks, reverse=True)) == sorted(ranks)
