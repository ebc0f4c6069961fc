"""Expressions compute what JavaScript computes, refuse what they do not know, and stay within their bounds.

The tables follow the order of the grammar. The comparison with a real JavaScript engine is in
`test_expressions_as_in_javascript.py`.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.core.formulas.javascript import same
from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.expressions import (
    EXPRESSION_CHARS_MAX,
    NESTING_MAX,
    VARIABLES_MAX,
    compile_expression,
)
from trunkline.actors.core.formulas.operators import FUNCTIONS, INCLUDES_ITEMS_MAX
from trunkline.actors.core.formulas.templates import compile_variable
from trunkline.actors.core.formulas.values import UNDEFINED

PAYLOAD: dict[str, Any] = {
    "data": {
        "number": 42,
        "decimal": 1.5,
        "zero": 0,
        "text": "Hello world",
        "yes": True,
        "no": False,
        "none": None,
        "list": [44, "bye", None, [1]],
        "object": {"a": 1, "b": 2},
        "a key": 7,
        "it's": 8,
        "big": 2**53 + 1,
    }
}

RESULTS: list[tuple[str, Any]] = [
    # Literals and constants
    ("1", 1),
    ("1.50", 1.5),
    (".5e1", 5),
    ("0x1F", 31),
    ('"it\'s"', "it's"),
    ('"a\\n\\x41\\u0042\\u{1F600}\\ud83d\\ude00\\q"', "a\nAB\U0001f600\U0001f600q"),
    ("'\\ud800'", "\ufffd"),
    ("true", True),
    ("null", None),
    ("undefined", UNDEFINED),
    ("E", math.e),
    (" PI\n", math.pi),
    # Variables keep their type
    ("{{data.number}}", 42),
    ("{{ data.object }}", {"a": 1, "b": 2}),
    ("{{{data.text}}}", "Hello world"),
    ("{{data.[a key]}}", 7),
    ("{{data.[it's]}}", 8),
    ("{{data.missing.deeper}}", UNDEFINED),
    ("{{.}}", PAYLOAD),
    ("{{data.list.length}} > 3", True),
    ("'{{data.number}}'", "{{data.number}}"),
    # Arithmetic; whole numbers are ints
    ("{{data.number}} / 80 * 65535", 42 / 80 * 65535),
    ("1 + 2", 3),
    ("7 / 2", 3.5),
    ("8 / 2", 4),
    ("-7 % 3", -1),
    ("{{data.missing}} + 1", math.nan),
    ("{{data.none}} + 1", 1),
    # `+` only adds: what is no number gives what the other operators of arithmetic give
    ("{{data.text}} + 1", math.nan),
    ("1 + 2 + 'a' + 1 + 2", math.nan),
    ("'a' + 1 - 1", math.nan),
    ("{{data.list}} + 1", math.nan),
    ("1 + {{data.object}}", math.nan),
    ("'2' + 0.13", 2.13),
    ("'2' + '3'", 5),
    ("0 + '0x1f'", 31),
    ("'' + 1", 1),
    ("{{data.yes}} + {{data.yes}}", 2),
    ("(0 + '2') > (0 + '10')", False),
    ("'2' > '10'", True),
    ("'1' + '1' === 2 && {{data.number}} + '1' - '1' === 42", True),
    ("'5' * '4'", 20),
    ("1 / 0", math.inf),
    ("0 / 0", math.nan),
    ("0 * -1", 0),
    ("1 / (0 * -1)", -math.inf),
    ("{{data.big}} + 0", 2**53),
    # Powers bind tighter than signs and from the right
    ("2 ^ 3 ^ 2", 512),
    ("-2 ^ 2", -4),
    ("2 ^ -1", 0.5),
    ("2 * 3 ^ 2", 18),
    ("sqrt(3 ^ 2 + 4 ^ 2)", 5),
    ("!2 ^ 2", False),
    ("0 ^ -1", math.inf),
    ("1 ^ (1 / 0)", math.nan),
    ("(-8) ^ (1 / 3)", math.nan),
    ("10 ^ 400", math.inf),
    ("(-10) ^ 401", -math.inf),
    ("(0 * -1) ^ -3", -math.inf),
    # Signs
    ("- - 2", 2),
    ("-'3'", -3),
    ("+{{data.yes}}", 1),
    ("!!{{data.missing}}", False),
    ("!{{data.list}}", False),
    ("3 - -3", 6),
    # Shifts
    ("1 << 31", -(2**31)),
    ("-9 >> 1", -5),
    ("1 << 33", 2),
    ("(1 / 0) >> 1", 0),
    ("4294967295.7 >> 0", -1),
    # Order
    ("{{data.number}} > 20", True),
    ("20 < {{data.number}}", True),
    ("{{data.number}} > {{data.text}}", False),
    ("{{data.number}} < {{data.text}}", False),
    ("'b' > 'a'", True),
    ("'10' < '9'", True),
    ("'10' < 9", False),
    ("{{data.none}} >= 0", True),
    ("{{data.missing}} >= 0", False),
    ("1 < 2 < 2", True),
    ("3 > 2 > 1", False),
    ("{{data.big}} > 9007199254740992", False),
    # Equality
    ("{{data.yes}} == true", True),
    ("{{data.zero}} == false", True),
    ("{{data.zero}} === false", False),
    ("{{data.number}} == '42'", True),
    ("{{data.number}} === '42'", False),
    ("'42' != {{data.number}}", False),
    ("{{data.none}} == undefined", True),
    ("{{data.none}} === undefined", False),
    ("{{data.missing}} !== undefined", False),
    ('{{data.text}} === "Hello world"', True),
    ("{{data.list}} === {{data.list}}", True),
    ("{{data.list}} == '44,bye,,1'", True),
    ("NaN".replace("NaN", "(0/0)") + " == (0/0)", False),
    ("{{data.big}} == 9007199254740992", True),
    # Logic gives an operand
    ("{{data.missing}} || 'default'", "default"),
    ("{{data.zero}} && 1", 0),
    ("{{data.number}} && {{data.text}}", "Hello world"),
    ("0 || '' || 3 || 4", 3),
    ("1 && 2 && 0 && 4", 0),
    ("true || false && false", True),
    ("1 || 1 == 2", 1),
    ("{{data.zero}} || 1 + 1", 2),
    # Precedence
    ("1 + 2 * 3 - 4 / 2", 5),
    ("(1 + 2) * 3", 9),
    ("1 << 1 + 1", 4),
    ("1 + 1 == 2 && 2 > 1", True),
    ("2 > 1 == true", True),
    # Functions
    ("round(-2.5)", -2),
    ("round(0.49999999999999994)", 0),
    ("1 / round(-0.2)", -math.inf),
    ("round({{data.decimal}} * 10) / 10", 1.5),
    ("round(1.26, 2)", 1),
    ("round()", math.nan),
    ("floor(-1.5)", -2),
    ("ceil('1.2')", 2),
    ("trunc(-1.7)", -1),
    ("abs({{data.none}})", 0),
    ("abs({{data.missing}})", math.nan),
    ("max(1, '7', {{data.decimal}})", 7),
    ("min()", math.inf),
    ("max(1, {{data.missing}})", math.nan),
    ("pow({{data.number}}, {{data.zero}}) === 1", True),
    ("log(0)", -math.inf),
    ("log(-1)", math.nan),
    ("exp(1000)", math.inf),
    ("sinh(-1000)", -math.inf),
    ("cosh(-1000)", math.inf),
    ("sin(1 / 0)", math.nan),
    ("atanh(1)", math.inf),
    ("acosh(0)", math.nan),
    ("asin(2)", math.nan),
    ("sqrt(-1)", math.nan),
    ("atan2(1, 1) * 4 == PI", True),
    ("floor(1 / 0)", math.inf),
    ("length({{data.text}})", 11),
    ("length({{data.list}}) + length({{data.object}})", 6),
    ("length({{data.number}})", UNDEFINED),
    ("includes({{data.list}}, 'bye')", True),
    ("includes({{data.list}}, '44')", False),
    ("includes({{data.text}}, 'world')", True),
    ("includes({{data.missing}}, 1)", False),
    ("max(min(3, (2)), -1)", 2),
]


@pytest.mark.parametrize(("text", "result"), RESULTS)
def test_an_expression_has_its_result(text: str, result: Any) -> None:
    found = compile_expression(text)(PAYLOAD)
    assert same(found, result), found
    assert not (isinstance(found, float) and found.is_integer() and abs(found) < 2**53)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "position 1: expected a value, found the end"),
        ("1 +", "position 4: expected a value, found the end"),
        ("1 2", "position 3: expected an operator, found 2"),
        ("(1", "position 3: expected a closing parenthesis, found the end"),
        ("1)", "position 2: expected an operator, found [)]"),
        ("max(1,)", "position 7: expected a value, found [)]"),
        ("1 = 2", "position 3: unexpected '='; compare by == or ==="),
        ("1 & 2", "position 3: unexpected '&'; 'and' is &&"),
        ("a ? b", "position 3: unexpected '[?]'; there is no conditional operator"),
        ("'abc", "position 1: unexpected .*the text is not closed"),
        ("  3px", "position 3: unexpected '3'"),
        ("temperature > 3", "position 1: temperature is unknown; .* {{temperature}}"),
        ("sum(1)", "position 1: there is no function sum"),
        ("'\\u12'", "position 1: the escape .* is not complete"),
        ("'\\u{999999}'", "position 1: the escape .* is not a character"),
        ("1 + {{a..b}}", "position 5: Path 'a..b': a key is missing at position 3"),
        ("{{a", "position 1: unexpected '{'; braces do not form"),
        ("{{lower data.a}} == 'x'", "position 1: {{lower data.a}} is not a payload path"),
        ("{{#if a}}", "is not a payload path"),
        ("{{}}", "position 1: Path '': a key is missing"),
        ("1" * (EXPRESSION_CHARS_MAX + 1), "at most"),
        ("(" * (NESTING_MAX + 1) + "1" + ")" * (NESTING_MAX + 1), f"nest deeper than {NESTING_MAX}"),
        ("1||1&&1==1<1<<1+1*-(" * 60 + "1" + ")" * 60, "nests too deeply"),
        ("+".join(["{{a}}"] * (VARIABLES_MAX + 1)), f"more than {VARIABLES_MAX} variables"),
    ],
)
def test_a_mistake_is_named_with_its_position(text: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=problem):
        compile_expression(text)


def test_braces_are_compiled_by_another_language_where_it_is_given() -> None:
    seen: list[str] = []

    def upper(text: str) -> Any:
        seen.append(text)
        return lambda payload: payload["a"].upper()

    assert compile_expression("{{upper a '}}'}} === 'X' && {{{b}}}", upper)({"a": "x"}) == "X"
    assert seen == ["{{upper a '}}'}}", "{{{b}}}"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{lower data.text}} === 'hello world'", True),
        ("{{data.number}} > 20 && {{{data.[a key]}}} === 7", True),
        ("{{data.missing}} === undefined", True),
        ("{{data.list.length}} > 3 && {{data.list.[1]}} === 'bye'", True),
        ("{{add data.number 1}} + 1", 44),
    ],
)
def test_helpers_are_variables_too(text: str, result: Any) -> None:
    assert compile_expression(text, compile_variable)(PAYLOAD) == result


def test_blocks_are_no_variables() -> None:
    with pytest.raises(FormulaError, match="position 1"):
        compile_expression("{{#if data.yes}} == 1", compile_variable)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("+".join(["1"] * 10_000), 10_000),
        ("-".join(["1"] * 10_000), -9_998),
        ("*".join(["1"] * 10_000), 1),
        ("^".join(["1"] * 10_000), 1),
        ("&&".join(["1"] * 10_000), 1),
        ("||".join(["0"] * 10_000), 0),
        ("==".join(["1"] * 10_000), True),
        ("-" * 10_000 + "1", 1),
        ("!" * 10_001 + "1", False),
        ("+".join(["'2'"] * 8_000), 16_000),
        ("(" * NESTING_MAX + "1" + ")" * NESTING_MAX, 1),
        ("(-" * NESTING_MAX + "{{a}}" + ")" * NESTING_MAX, 1),
        ("abs(" * NESTING_MAX + "{{a}}" + ")" * NESTING_MAX, 1),
        ("+".join(["{{a}}"] * VARIABLES_MAX), VARIABLES_MAX),
    ],
    ids=str.split(
        "sum difference product power and or equal minus not texts parentheses signs calls variables"
    ),
)
def test_long_and_nested_expressions_need_no_recursion(text: str, result: Any) -> None:
    assert compile_expression(text)({"a": 1}) == result


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{a}} < 'x'", list(range(20_000))),
        ("{{a}} == 'x'", list(range(20_000))),
        ("includes({{a}}, 1)", [0] * (INCLUDES_ITEMS_MAX + 1)),
    ],
)
def test_what_would_be_too_much_is_an_evaluation_error(text: str, value: Any) -> None:
    with pytest.raises(EvaluationError):
        compile_expression(text)({"a": value})


def test_an_evaluation_does_not_change_the_payload_nor_the_expression() -> None:
    evaluate = compile_expression("{{a}} + '3' + {{a}} + 1")
    payload = {"a": "1"}
    assert [evaluate(payload), evaluate({"a": 2}), evaluate(payload)] == [6, 8, 6]
    assert payload == {"a": "1"}


PIECES = st.sampled_from(
    [
        *("1", "2.5", "0x", "'a'", '"b"', "{{data.number}}", "{{data.list}}", "{{data.text}}", "{{.}}", "{{"),
        *(
            "(",
            ")",
            ",",
            "+",
            "-",
            "*",
            "/",
            "%",
            "^",
            "!",
            "==",
            "===",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "<<",
            ">>",
        ),
        *("&&", "||", "true", "null", "undefined", "E", "PI", "length", "max", "round", "includes"),
        *("\\", "?", "=", "[", "]", "é"),
    ]
)


@given(st.lists(PIECES, max_size=12).map(" ".join) | st.text(max_size=20))
def test_any_text_gives_a_value_or_one_of_the_two_errors(text: str) -> None:
    try:
        evaluate = compile_expression(text)
    except FormulaError:
        return
    evaluate(PAYLOAD)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(FUNCTIONS)), JSON_VALUES, JSON_VALUES)
def test_every_function_takes_any_value(name: str, one: Any, other: Any) -> None:
    compile_expression(f"{name}({{{{a}}}}, {{{{b}}}})")({"a": one, "b": other})
