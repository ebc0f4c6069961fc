"""Generated expressions have the same value here and in a JavaScript engine.

An expression is made as a tree and written twice: for us with `{{path}}` and `^`, for JavaScript with properties of
`root` and `**`. Parentheses are written only where the tree needs them, so precedence is compared as well. Operands of
sums are converted to numbers for JavaScript, which would join texts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.actors.core.formulas.javascript import JavaScript, same
from tests.actors.core.formulas.test_values import VALUES
from tests.rounds import examples
from trunkline.actors.core.formulas.expressions import compile_expression

LEVELS = [
    ["||"],
    ["&&"],
    ["==", "!=", "===", "!=="],
    ["<", "<=", ">", ">="],
    ["<<", ">>"],
    ["+", "-"],
    ["*", "/", "%"],
]
TIGHTEST = len(LEVELS)
SIGN, POWER, SINGLE = TIGHTEST, TIGHTEST + 1, TIGHTEST + 2
EXACT = ["abs", "ceil", "floor", "round", "trunc", "sqrt", "min", "max"]
TRANSCENDENTAL = [
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("log", "log10", "exp", "pow", "atan2"),
]
NAMES = ["a", "b", "c", "missing"]


class Written(NamedTuple):
    """An expression in both languages, and how tightly its outermost operator binds."""

    ours: str
    javascript: str
    level: int

    def within(self, level: int) -> Written:
        """The expression as an operand of an operator that binds at `level`."""
        return self if self.level >= level else Written(f"({self.ours})", f"({self.javascript})", SINGLE)


def binary(level: int, operators: list[str], operands: list[Written]) -> Written:
    first, *others = operands
    ours, javascript = first.within(level)[:2]
    number = "Number" if "+" in LEVELS[level] else ""
    javascript = f"{number}({javascript})" if number else javascript
    for operator, operand in zip(operators, others, strict=False):
        right = operand.within(level + 1)
        ours += f" {operator} {right.ours}"
        javascript += (
            f" {operator} {number}({right.javascript})" if number else f" {operator} {right.javascript}"
        )
    return Written(ours, javascript, level)


def signed(signs: str, operand: Written) -> Written:
    inner = operand.within(SIGN)
    # JavaScript would read two equal signs as one operator.
    return Written(signs + inner.ours, " ".join(signs) + f" ({inner.javascript})", SIGN)


def power(base: Written, exponent: Written) -> Written:
    one, other = base.within(SINGLE), exponent.within(SIGN)
    return Written(f"{one.ours}^{other.ours}", f"({one.javascript}) ** ({other.javascript})", POWER)


def call(name: str, arguments: list[Written]) -> Written:
    return Written(
        f"{name}({', '.join(argument.ours for argument in arguments)})",
        f"Math.{name}({', '.join(argument.javascript for argument in arguments)})",
        SINGLE,
    )


def single(text: str) -> Written:
    return Written(text, text, SINGLE)


LITERALS = st.sampled_from(
    [
        *(
            "0",
            "1",
            "2",
            "3",
            "0.5",
            "10",
            "1e3",
            "0x1f",
            "9007199254740993",
            "true",
            "false",
            "null",
            "undefined",
        ),
        *("''", "'0'", "'1'", "'a'", "'10'", '" 2 "', "'\\u{1F600}'", "'\\ue000'", "'[object Object]'"),
    ]
)
ATOMS = st.one_of(
    LITERALS.map(single),
    st.sampled_from(["E", "PI"]).map(lambda name: Written(name, f"Math.{name}", SINGLE)),
    st.sampled_from(NAMES).map(lambda name: Written("{{" + name + "}}", f"root.{name}", SINGLE)),
)


def larger(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    chains = [
        st.builds(
            binary,
            st.just(level),
            st.lists(st.sampled_from(names), min_size=3, max_size=3),
            st.lists(inner, min_size=2, max_size=4),
        )
        for level, names in enumerate(LEVELS)
    ]
    return st.one_of(
        *chains,
        st.builds(signed, st.text("!-+", min_size=1, max_size=3), inner),
        st.builds(power, inner, inner),
        st.builds(call, st.sampled_from(EXACT), st.lists(inner, max_size=3)),
    )


EXPRESSIONS = st.recursive(ATOMS, larger, max_leaves=12)
PAYLOADS = st.fixed_dictionaries({"a": VALUES, "b": VALUES, "c": VALUES})


@pytest.fixture(scope="module")
def javascript() -> JavaScript:
    return JavaScript()


@pytest.mark.slow
@settings(max_examples=examples(500), deadline=None)
@example(written=power(single("2"), signed("-", power(single("3"), single("2")))), payload={})
@given(written=EXPRESSIONS, payload=PAYLOADS)
def test_an_expression_has_the_value_it_has_in_javascript(
    javascript: JavaScript, written: Written, payload: dict[str, Any]
) -> None:
    ours = compile_expression(written.ours)(payload)
    theirs = javascript.evaluate(written.javascript, payload)
    assert same(ours, theirs), (written.ours, ours, theirs)


@settings(max_examples=examples(350), deadline=None)
@given(
    name=st.sampled_from(TRANSCENDENTAL),
    one=st.floats(allow_nan=False, allow_infinity=False) | VALUES,
    other=st.floats(allow_nan=False, allow_infinity=False) | VALUES,
)
def test_a_function_has_the_value_it_has_in_javascript(
    javascript: JavaScript, name: str, one: Any, other: Any
) -> None:
    """The libraries of mathematics may differ in the last digits."""
    payload = {"a": one, "b": other}
    ours = compile_expression(f"{name}({{{{a}}}}, {{{{b}}}})")(payload)
    theirs = javascript.evaluate(f"Math.{name}(root.a, root.b)", payload)
    assert same(ours, theirs) or math.isclose(ours, theirs, rel_tol=1e-13), (
        ours,
        theirs,
    )
