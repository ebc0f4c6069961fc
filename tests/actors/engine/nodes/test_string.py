"""StringNode: what each method makes of a text, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node
from trunkline.actors.engine.nodes.string import _METHODS
from trunkline.actors.engine.visit import Bounds

CASES: list[tuple[Any, str, list[Any], Any]] = [
    ("a,b,,c", "split", [","], ["a", "b", "", "c"]),
    ("abc", "split", [""], ["a", "b", "c"]),
    ("", "split", [","], [""]),
    ("a&b", "split", ["{{data.and}}"], ["a", "b"]),
    ("aXbX", "replaceFirst", ["X", "$&"], "a$&bX"),
    ("aXbX", "replaceAll", ["X", ""], "ab"),
    ("aXbX", "replaceAll", ["X"], "ab"),
    ("a.b.", "replaceAll", [".", "{{data.and}}"], "a&b&"),
    ("abc", "replaceAll", ["", "-"], "abc"),
    ("abcabc", "indexOf", ["c", 0], 2),
    ("abcabc", "indexOf", ["c", "3"], 5),
    ("abcabc", "indexOf", ["c"], 2),
    ("abc", "indexOf", ["x", 0], -1),
    ("abc", "indexOf", ["", 9], 3),
    ("\U0001f600\u0441\u0442x", "indexOf", ["x", 0], 4),
    ("\U0001f600\u0441\u0442x", "indexOf", ["\u0441", 3], -1),
    ("\u0101\u0100\u0001", "indexOf", ["\u0101\u0100", 0], 0),
    ("\u0201\u0102x", "indexOf", ["\u0101", 0], -1),
    ("Stra\u00dfe", "toUpper", [], "STRASSE"),
    ("\u00c4B", "toLower", [], "\u00e4b"),
    ("\ufeff\t a b \n", "trim", [], "a b"),
    (" a ", "trimStart", [], "a "),
    (" a ", "trimEnd", [], " a"),
    ("12.50", "toNumber", [], 12.5),
    (" 0x10 ", "toNumber", [], 16),
    ("1e999", "toNumber", [], None),
    ("12 V", "toNumber", [], None),
    ("a", "concat", ["b{{data.and}}"], "ab&amp;"),
    ("a", "concat", ["b", 1, "{{data.and}}"], "ab1&"),
    ("abc", "pad", [8, "_-"], "_-abc_-_"),
    ("abc", "pad", [2], "abc"),
    ("7", "padStart", ["{{data.three}}", "0"], "007"),
    ("7", "padStart", [3], "  7"),
    ("7", "padEnd", [4, "ab"], "7aba"),
    ("abcdef", "truncate", [4], "abcd"),
    ("abcdef", "truncate", [4, "..."], "a..."),
    ("abcdef", "truncate", [2, "..."], ".."),
    ("abcd", "truncate", [4, "..."], "abcd"),
    (5, "padStart", [3, "0"], "005"),
    (None, "concat", ["x"], "x"),
    ([1, 2], "concat", [""], "1,2"),
    ([1, 2], "noop", [], [1, 2]),
    ("x", "", [], "x"),
]


@pytest.mark.parametrize(("source", "method", "arguments", "expected"), CASES)
async def test_methods(source: Any, method: str, arguments: list[Any], expected: Any) -> None:
    config = {"sourceData": "{{data.s}}", "method": method, "methodArgs": arguments, "resultPath": "data.out"}
    shown = await run_node("StringNode", config, {"s": source, "and": "&", "three": 3})
    assert shown["data"]["out"] == expected
    assert type(shown["data"]["out"]) is type(expected)


def test_each_method_has_a_case() -> None:
    assert {method for _, method, _, _ in CASES} == {*_METHODS, "noop", ""}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"method": "shout"}, "config.method: is 'shout'; give one of concat, indexOf"),
    ({"method": "noop", "resultPath": ""}, "config.resultPath: is not set"),
    ({"method": "split"}, "config.methodArgs: has 0 arguments; split takes a separator."),
    ({"method": "split", "methodArgs": "x"}, "config.methodArgs: give a list"),
    ({"method": "split", "methodArgs": [{}]}, "config.methodArgs[0]: is dict, not a text."),
    ({"method": "split", "methodArgs": ["{{"]}, "config.methodArgs[0]: "),
    (
        {"method": "pad", "methodArgs": [1001]},
        "config.methodArgs[0]: gives '1001', not a whole number from 0 to 1000",
    ),
    (
        {"method": "pad", "methodArgs": ["{{data.gone}}"]},
        "config.methodArgs[0]: gives '', not a whole number",
    ),
    ({"method": "truncate", "methodArgs": [-1]}, "config.methodArgs[0]: gives '-1'"),
    ({"method": "truncate", "methodArgs": ["Infinity"]}, "config.methodArgs[0]: gives 'Infinity'"),
    ({"method": "indexOf", "methodArgs": ["a", 1.5]}, "config.methodArgs[1]: gives '1.5'"),
]


@pytest.mark.parametrize(("config", "sentence"), WRONG)
async def test_wrong_configs_are_refused(config: dict[str, Any], sentence: str) -> None:
    config = {"sourceData": "{{data.s}}", "resultPath": "data.out", **config}
    name, message = await failure("StringNode", config, {"s": "abc"})
    assert (name, sentence in message) == ("ValidationError", True), message


async def test_what_a_method_makes_is_bounded() -> None:
    bounds = Bounds(steps=10, loop_items=100, payload_bytes=100_000_000)
    config = {"sourceData": "{{data.s}}", "resultPath": "data.out"}
    data = {"s": "a" * 3_000}
    replace = {**config, "method": "replaceAll", "methodArgs": ["a", "{{data.s}}"]}
    assert (await failure("StringNode", replace, data, bounds=bounds))[0] == "PayloadTooLarge"
    split = {**config, "method": "split", "methodArgs": [""]}
    assert (await failure("StringNode", split, data, bounds=bounds))[0] == "TooManyItems"
