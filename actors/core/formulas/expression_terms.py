"""The functions that an expression is compiled to: each joins a chain of operands by the operators of one level.

A chain is evaluated in a loop. Comparisons with a constant compare directly where Python and JavaScript agree.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from trunkline.actors.core.formulas import operators
from trunkline.actors.core.formulas.values import (
    EXACT_INTEGER_MAX,
    loose_equal,
    strict_equal,
    to_number,
    truth,
)

Evaluate = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]


class Term(NamedTuple):
    """A part of an expression: its function, how deep calls go in it, and what is known about its value."""

    evaluate: Evaluate
    calls: int = 0
    computes: bool = False
    """Whether a number may be a result of arithmetic, which are floats."""
    constant: Any = ...
    """Its value if it has no variables; else the ellipsis, which is no value of an expression."""


class Signed(NamedTuple):
    """An operand with the signs before it, the outermost first."""

    signs: list[str]
    term: Term


def constant_term(value: Any) -> Term:
    return Term(lambda _: value, 1, computes=False, constant=value)


def calls_of(terms: Sequence[Term]) -> int:
    return max((term.calls for term in terms), default=0)


SIGNS: Final[dict[str, Callable[[Any], Any]]] = {
    "!": operators.invert,
    "-": operators.negate,
    "+": lambda value: float(to_number(value)),
}


def joined(operands: list[Signed], between: list[str]) -> Term:
    """Join operands by the operators between them."""
    terms, between = _raised(operands, between)
    for level, join in _LEVELS:
        if not between:
            break
        joined: list[Term] = []
        kept: list[str] = []
        chain, links = [terms[0]], list[str]()
        for name, term in zip(between, terms[1:], strict=True):
            if name in level:
                links.append(name)
                chain.append(term)
                continue
            joined.append(join(chain, links) if links else chain[0])
            kept.append(name)
            chain, links = [term], []
        joined.append(join(chain, links) if links else chain[0])
        terms, between = joined, kept
    return terms[0]


def _raised(operands: list[Signed], between: list[str]) -> tuple[list[Term], list[str]]:
    """Join the chains of `^`, from the right, and apply the signs: those before a base apply to the power."""
    terms: list[Term] = []
    kept: list[str] = []
    chain = [operands[0]]
    for name, operand in zip(between, operands[1:], strict=True):
        if name == "^":
            chain.append(operand)
            continue
        terms.append(_power(chain))
        kept.append(name)
        chain = [operand]
    terms.append(_power(chain))
    return terms, kept


def _power(chain: list[Signed]) -> Term:
    if len(chain) == 1:
        return _with_signs(*chain[0])
    steps = [([SIGNS[sign] for sign in reversed(signs)], term.evaluate) for signs, term in reversed(chain)]
    calls = 1 + calls_of([operand.term for operand in chain])

    def run(payload: Any) -> Any:
        power: Any = ...
        for signs, evaluate in steps:
            value = evaluate(payload)
            power = value if power is ... else operators.power(value, power)
            for sign in signs:
                power = sign(power)
        return power

    return Term(run, calls, computes=True)


def _with_signs(signs: list[str], term: Term) -> Term:
    if not signs:
        return term
    functions = [SIGNS[sign] for sign in reversed(signs)]
    evaluate = term.evaluate

    def run(payload: Any) -> Any:
        value = evaluate(payload)
        for function in functions:
            value = function(value)
        return value

    if term.constant is not ...:
        return constant_term(run(None))._replace(computes=True)
    return Term(run, term.calls + 1, computes=signs[0] != "!")


def _chained(chain: list[Term], links: list[str]) -> Term:
    """Operators from left to right."""
    computes = links[-1] in _ARITHMETIC
    calls = 1 + calls_of(chain)
    if len(links) == 1:
        return Term(_single(chain[0], links[0], chain[1]), calls, computes)
    first = chain[0].evaluate
    steps = [(_BINARY[name], term.evaluate) for name, term in zip(links, chain[1:], strict=True)]

    def run(payload: Any) -> Any:
        value = first(payload)
        for function, evaluate in steps:
            value = function(value, evaluate(payload))
        return value

    return Term(run, calls, computes)


def _single(left: Term, name: str, right: Term) -> Evaluate:
    """One operator between two operands."""
    if left.constant is not ... and name in _MIRRORED:
        left, name, right = right, _MIRRORED[name], left
    function, one, other = _BINARY[name], left.evaluate, right.evaluate
    kinds = _kinds_like(right.constant) if name in _DIRECT else frozenset()
    if kinds and (name in _EQUALITIES or int in kinds):
        direct, constant = _DIRECT[name], right.constant

        def compare(payload: Any) -> Any:
            value = one(payload)
            return direct(value, constant) if type(value) in kinds else function(value, constant)

        return compare
    if int in _kinds_like(right.constant) and name in _ARITHMETIC_OF_FLOATS:
        compute, number = _ARITHMETIC_OF_FLOATS[name], float(right.constant)

        def of_float(payload: Any) -> Any:
            value = one(payload)
            return compute(value, number) if type(value) is float else function(value, number)

        return of_float
    return lambda payload: function(one(payload), other(payload))


def _kinds_like(constant: Any) -> frozenset[type]:
    """The types of values that Python compares with a constant as JavaScript does; none for an inexact int."""
    if type(constant) in (int, float):
        return frozenset((int, float)) if abs(constant) < EXACT_INTEGER_MAX else frozenset()
    return frozenset() if constant is ... else frozenset((type(constant),))


def _all(chain: list[Term], _: list[str]) -> Term:
    """`&&`: the first value that counts as false, else the last."""
    *before, last = [term.evaluate for term in chain]

    def run(payload: Any) -> Any:
        for evaluate in before:
            value = evaluate(payload)
            if value is not True and not truth(value):
                return value
        return last(payload)

    return Term(run, 1 + calls_of(chain), computes=any(term.computes for term in chain))


def _any(chain: list[Term], _: list[str]) -> Term:
    """`||`: the first value that counts as true, else the last."""
    *before, last = [term.evaluate for term in chain]

    def run(payload: Any) -> Any:
        for evaluate in before:
            value = evaluate(payload)
            if value is not False and truth(value):
                return value
        return last(payload)

    return Term(run, 1 + calls_of(chain), computes=any(term.computes for term in chain))


_BINARY: Final[dict[str, Binary]] = {
    "^": operators.power,
    "*": operators.multiply,
    "/": operators.divide,
    "%": operators.remainder,
    "+": operators.add,
    "-": operators.subtract,
    "<<": operators.shift_left,
    ">>": operators.shift_right,
    "<": operators.less,
    "<=": operators.less_or_equal,
    ">": operators.greater,
    ">=": operators.greater_or_equal,
    "==": loose_equal,
    "!=": operators.unequal,
    "===": strict_equal,
    "!==": operators.strictly_unequal,
}
OPERATORS: Final = frozenset((*_BINARY, "&&", "||"))
_LEVELS: Final[tuple[tuple[frozenset[str], Callable[[list[Term], list[str]], Term]], ...]] = (
    (frozenset("*/%"), _chained),
    (frozenset("+-"), _chained),
    (frozenset(("<<", ">>")), _chained),
    (frozenset(("<", "<=", ">", ">=")), _chained),
    (frozenset(("==", "!=", "===", "!==")), _chained),
    (frozenset(("&&",)), _all),
    (frozenset(("||",)), _any),
)
_ARITHMETIC: Final = frozenset(("*", "/", "%", "+", "-", "<<", ">>"))
_EQUALITIES: Final = frozenset(("==", "!=", "===", "!=="))
_DIRECT: Final[dict[str, Binary]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "===": operator.eq,
    "!==": operator.ne,
}
_ARITHMETIC_OF_FLOATS: Final[dict[str, Binary]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="} | {name: name for name in _EQUALITIES}
