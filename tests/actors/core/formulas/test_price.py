"""Everything that grows with a payload is charged: each helper, operator and function, found by their tables."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.expressions import compile_expression
from trunkline.actors.core.formulas.long_texts import (
    contains,
    escaped,
    in_pieces,
    joined,
    stripped,
    to_base64,
)
from trunkline.actors.core.formulas.operators import FUNCTIONS
from trunkline.actors.core.formulas.price import LOOK_STEPS, WHOLE_STEPS, Budget, TakesLong
from trunkline.actors.core.formulas.template_functions import CONDITIONS, HELPERS
from trunkline.actors.core.formulas.templates import compile_template, compile_variable

ITEMS = 100_000
PAYLOAD: dict[str, Any] = {
    "list": [0] * ITEMS,
    "places": ["1,1"] * ITEMS,
    "objects": [{"key": 0}] * ITEMS,
    "object": {f"key{at}": at for at in range(ITEMS)},
    "text": "é " * (20 * ITEMS),
    "json": "[" + "0," * ITEMS + "0]",
}
LONG: dict[str, str] = {
    "decodeBase64": "decodeBase64 text",
    "decodeURI": "decodeURI encoded",
    "decodeURIComponent": "decodeURIComponent encoded",
    "encodeBase64": "encodeBase64 text",
    "encodeURI": "encodeURI text",
    "encodeURIComponent": "encodeURIComponent text",
    "eq": "eq text other",
    "ne": "ne text other",
    "format": "format list",
    "gpsIsPointInside": "gpsIsPointInside '1,1' places",
    "includes": "includes object 'x'",
    "indexByKey": "indexByKey objects 'x'",
    "join": "join list",
    "jsonDecode": "jsonDecode json",
    "jsonEncode": "jsonEncode objects",
    "lower": "lower text",
    "match": "match text 'x(.*)y{50}'",
    "merge": "merge object object",
    "queryStringEncode": "queryStringEncode object",
    "titleCase": "titleCase text",
    "trim": "trim spaces",
    "upper": "upper text",
    "valueByKey": "valueByKey objects 'x'",
}
"""A call of each helper whose work grows, with a payload for which it is long."""

SHORT = {
    *(
        "add",
        "ceil",
        "divide",
        "floor",
        "gt",
        "gte",
        "lt",
        "lte",
        "max",
        "min",
        "multiply",
        "scaleLinear",
        "subtract",
    ),
    *("currentDateTime", "formatDate", "formatDateRelative", "formatGps", "gpsDistance", "substring"),
    *("array", "defaultTo", "last", "length", "lookup", "obj", "typeof"),
}
"""Helpers whose work does not grow, but for the text of an array, and for the characters that are copied."""


@pytest.mark.parametrize("name", HELPERS)
def test_each_helper_is_charged(name: str) -> None:
    if name in SHORT:
        return
    call = LONG[name]
    payload = {**PAYLOAD, "encoded": "%20" * 80_000, "spaces": " " * 20_000_000}
    if name in ("eq", "ne"):
        payload |= {"text": "a" * 5_000_000, "other": "a" * 5_000_000}
    with pytest.raises(TakesLong):
        price.inline(compile_variable(f"{{{{{call}}}}}"), payload)


@pytest.mark.parametrize("name", sorted({*SHORT} - {"currentDateTime", "obj"}))
def test_the_text_of_an_array_is_charged(name: str) -> None:
    helper = HELPERS[name]
    if helper.whole:
        return
    call = " ".join([name, *["list"] * max(1, helper.least)])
    with pytest.raises(TakesLong):
        price.inline(compile_variable(f"{{{{{call}}}}}"), PAYLOAD)


@pytest.mark.parametrize(
    "template",
    [
        "{{#each list}}{{/each}}",
        "{{#list}}{{/list}}",
        "{{#each object}}{{/each}}",
        "{{list}}",
        "{{html}}",
        "a{{html}}b",
        "{{template t}}",
        "{{evalExpression '{{list}} == {{text}}'}}",
        *(f"{{{{#{name} list list}}}}{{{{/{name}}}}}" for name in sorted(CONDITIONS - {"eq", "ne"})),
    ],
)
def test_each_block_is_charged(template: str) -> None:
    payload = {**PAYLOAD, "html": "<" * 500_000, "t": "{{#each list}}{{/each}}"}
    with pytest.raises(TakesLong):
        price.inline(compile_template(template).text, payload)


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_each_operator_is_charged(operator: str) -> None:
    payload = {**PAYLOAD, "list": [0] * 10_000}
    with pytest.raises(TakesLong):
        price.inline(compile_expression(f"{{{{list}}}} {operator} {{{{text}}}}"), payload)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_charged(name: str) -> None:
    if name == "includes":
        with pytest.raises(TakesLong):
            price.inline(compile_expression("includes({{list}}, 1)"), PAYLOAD)
    elif name == "length":
        price.inline(compile_expression("length({{list}})"), PAYLOAD)
    else:
        price.inline(compile_expression(f"{name}({{{{list}}}}, {{{{list}}}})"), PAYLOAD)


def test_a_budget_ends_in_a_thread() -> None:
    budget, looks = Budget(), []

    def work() -> None:
        while True:
            price.spend(10)

    with price.charged(budget), pytest.raises(price.TakesLong):
        price.computed(work)
    with pytest.raises(Exception, match=f"more than {WHOLE_STEPS} steps"), price.charged(budget):
        budget.in_thread(work, lambda: looks.append(1))
    assert WHOLE_STEPS // LOOK_STEPS - 10 < len(looks) <= WHOLE_STEPS // LOOK_STEPS


def test_what_is_computed_is_known_when_the_work_begins_again() -> None:
    budget, done = Budget(), []

    def compute(name: str, steps: int) -> str:
        price.spend(steps)
        done.append(name)
        return name

    def work() -> list[str]:
        return [price.computed(compute, name, 600) for name in "abcd"]

    with price.charged(budget):
        for _ in range(2):
            with pytest.raises(TakesLong) as long:
                work()
            assert long.value.work is not None
            budget.compute_in_thread(long.value.work, lambda: None)
            budget.again()
        assert work() == [*"abcd"]
    assert done == [*"abcd"]


def test_work_in_pieces_gives_what_python_gives() -> None:
    text = "  <é&'ß>\t" * 9_000
    assert in_pieces(str.upper, text) == text.upper()
    assert escaped("<a&b>" * 20_000) == "&lt;a&amp;b&gt;" * 20_000
    assert joined(["a", "b"] * 9_000, ", ") == ", ".join(["a", "b"] * 9_000)
    assert stripped(" " * 40_000 + "a b" + " " * 40_000, " ") == "a b"
    assert stripped(" " * 40_000, " ") == ""
    assert stripped("  a  ", " ", start=False) == "  a"
    assert stripped("  a  ", " ", end=False) == "a  "
    for wanted in ("x", "é&'ß>\t  <é", text, text + "a", text[5:-5]):
        assert contains(text, wanted) == (wanted in text)
        assert contains(text + "xyz", wanted + "xyz") == (wanted + "xyz" in text + "xyz")

    assert to_base64(b"abcdefg" * 30_000) == base64.b64encode(b"abcdefg" * 30_000).decode()
