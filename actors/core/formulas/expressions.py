"""Expressions of workflows: `{{data.temperature}} > 30 && {{data.on}} == true`, compiled to one function.

The operators have the precedence and the meaning that they have in JavaScript, but that `+` only adds, never joins
texts; `^` is exponentiation and binds as `**`. `{{path}}` is a variable with the type of its value. Operators,
functions and constants are those that the public documentation of the format names
(docs/workflows/accessing-payload-data.md of losant-docs), and `>>` and `<<`.

What stands between two parentheses is read into a flat list of operands and operators. Then one level of precedence
after the other, the tightest first, joins each chain of its operators into one function with a loop in it. So neither
a long chain nor a row of signs nests functions; only parentheses do.

Long texts and arrays come into an expression by its variables only, so their number bounds the work of one evaluation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas import operators
from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.expression_terms import (
    OPERATORS,
    SIGNS,
    Evaluate,
    Signed,
    Term,
    calls_of,
    constant_term,
    joined,
)
from trunkline.actors.core.formulas.expression_tokens import END, Token, text_literal, tokens_of
from trunkline.actors.core.formulas.paths import Path, compile_path
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.formulas.values import UNDEFINED, to_number, whole_as_int

EXPRESSION_CHARS_MAX: Final = 32_767
NESTING_MAX: Final = 64
"""Parentheses within parentheses, those of functions included."""
CALLS_MAX: Final = 200
"""Functions that call each other: several for each parenthesis. Python allows 1,000 calls, the caller's included."""
VARIABLES_MAX: Final = 100


def compile_expression(text: str, variable: Callable[[str], Evaluate] | None = None) -> Evaluate:
    """Compile an expression to a function of the payload. A whole number of its own making is an int.

    `variable` compiles what stands in braces, which it is given with the braces. `templates.compile_variable` allows
    helpers there, as workflows do; without it, only payload paths are allowed.
    Raises `FormulaError`, which names the position; the function raises `EvaluationError`.
    """
    if len(text) > EXPRESSION_CHARS_MAX:
        raise FormulaError(
            f"An expression has at most {EXPRESSION_CHARS_MAX} characters; this one has {len(text)}."
        )
    term = _Reader(tokens_of(text), variable or _path_variable).whole()
    evaluate = _with_whole_numbers(term.evaluate) if term.computes else term.evaluate
    return lambda payload: computed(evaluate, payload)


def _with_whole_numbers(evaluate: Evaluate) -> Evaluate:
    def run(payload: Any) -> Any:
        value = evaluate(payload)
        if type(value) is float:
            return whole_as_int(value) if value else 0
        return value

    return run


def path_of_variable(text: str) -> Path:
    """The path that stands in braces. Raises `FormulaError` if it is none."""
    braces = 3 if text.startswith("{{{") else 2
    path = text[braces:-braces].strip()
    if _NO_PATH.search(_BRACKETS.sub("", path)) is not None:
        raise FormulaError(f"{text} is not a payload path.")
    return compile_path(path)


def _path_variable(text: str) -> Evaluate:
    return path_of_variable(text).get


_BRACKETS: Final = re.compile(r"\[[^\]]*\]")
_NO_PATH: Final = re.compile(r"[\s\"'#&()~@^>!/|={}]")


_CONSTANTS: Final = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNDEFINED,
    "E": math.e,
    "PI": math.pi,
}


class _Reader:
    """Reads the tokens of one expression from left to right."""

    def __init__(self, tokens: list[Token], variable: Callable[[str], Evaluate]) -> None:
        self._tokens = tokens
        self._at = 0
        self._variable = variable
        self._variables = 0

    def whole(self) -> Term:
        term = self._between(nesting=0)
        token = self._next()
        if token.kind != END:
            raise token.error(f"expected an operator, found {token.text}")
        return term

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _taken(self, text: str) -> bool:
        token = self._tokens[self._at]
        taken = token.kind == "operator" and token.text == text
        self._at += taken
        return taken

    def _between(self, nesting: int) -> Term:
        """Read operands and operators up to a closing parenthesis, a comma or the end."""
        if nesting > NESTING_MAX:
            raise self._tokens[self._at].error(f"parentheses nest deeper than {NESTING_MAX}")
        operands: list[Signed] = []
        between: list[str] = []
        while True:
            signs: list[str] = []
            while (token := self._next()).kind == "operator" and token.text in SIGNS:
                signs.append(token.text)
            operands.append(Signed(signs, self._operand(token, nesting)))
            token = self._tokens[self._at]
            if token.kind != "operator" or token.text not in OPERATORS:
                break
            between.append(token.text)
            self._at += 1
        term = joined(operands, between)
        if term.calls > CALLS_MAX:
            raise token.error("the expression before it nests too deeply")
        return term

    def _operand(self, token: Token, nesting: int) -> Term:
        if token.kind == "number":
            return constant_term(to_number(token.text))
        if token.kind == "text":
            return constant_term(text_literal(token))
        if token.kind == "variable":
            return self._variable_term(token)
        if token.kind == "name":
            return self._named(token, nesting)
        if token.text == "(":
            term = self._between(nesting + 1)
            self._close()
            return term
        raise token.error(f"expected a value, found {token.text or 'the end'}")

    def _close(self) -> None:
        if not self._taken(")"):
            token = self._tokens[self._at]
            raise token.error(f"expected a closing parenthesis, found {token.text or 'the end'}")

    def _variable_term(self, token: Token) -> Term:
        self._variables += 1
        if self._variables > VARIABLES_MAX:
            raise token.error(f"there are more than {VARIABLES_MAX} variables")
        try:
            return Term(self._variable(token.text), calls=1)
        except FormulaError as error:
            raise FormulaError(f"Expression, position {token.position}: {error}") from None

    def _named(self, token: Token, nesting: int) -> Term:
        if not self._taken("("):
            if token.text in _CONSTANTS:
                return constant_term(_CONSTANTS[token.text])
            raise token.error(
                f"{token.text} is unknown; a value of the payload is written {{{{{token.text}}}}}"
            )
        function = operators.FUNCTIONS.get(token.text)
        if function is None:
            raise token.error(f"there is no function {token.text}")
        arguments: list[Term] = []
        if not self._taken(")"):
            arguments.append(self._between(nesting + 1))
            while self._taken(","):
                arguments.append(self._between(nesting + 1))
            self._close()
        return Term(
            _call(function, [term.evaluate for term in arguments]), 1 + calls_of(arguments), computes=True
        )


def _call(function: Callable[..., Any], arguments: list[Evaluate]) -> Evaluate:
    if len(arguments) == 1:
        (only,) = arguments
        return lambda payload: function(only(payload))
    return lambda payload: function(*[argument(payload) for argument in arguments])
