"""Expressions and templates in blocks, as in workflows, over the values that a block shows.

Texts of blocks are shown as texts, so templates write values without escaping them for HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.expressions import compile_expression
from trunkline.actors.core.formulas.templates import Template, compile_template, compile_variable
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.presentation.dashboards.report import Status

_KEPT: Final = 256
"""Compiled texts that are kept: those of a few dashboards."""

Values = Mapping[str, Any]


def fill_row(text: str, values: Values, now_ms: int) -> Any:
    """The value of a template that is one path, the text of all others. Raises `Invalid`."""
    try:
        found = _template(text).value(values, now_ms)
    except (FormulaError, EvaluationError) as error:
        raise _refusal(text, error) from None
    return "" if found is UNDEFINED or found is None else found


def expression_of(text: str) -> Callable[[Values], Any]:
    """A function that computes an expression; it gives None where the result is undefined. Both raise `Invalid`."""
    try:
        evaluate = _expression(text)
    except FormulaError as error:
        raise _refusal(text, error) from None

    def compute(values: Values) -> Any:
        try:
            found = evaluate(values)
        except EvaluationError as error:
            raise _refusal(text, error) from None
        return None if found is UNDEFINED else found

    return compute


def status_of(config: Doc, values: Values, now_ms: int) -> Status | None:
    """What the first true condition of a block says, else its default; None if it says nothing. Raises `Invalid`."""
    for condition in config.get("conditions", ()):
        text = condition.get("condition")
        if text and expression_of(text)(values):
            return _status(condition, values, now_ms)
    return _status(config.get("defaultCondition", {}), values, now_ms)


def _status(node: Doc, values: Values, now_ms: int) -> Status | None:
    label = node.get("label") or node.get("value") or ""
    text, color = str(fill_row(label, values, now_ms)) if label else "", str(node.get("color", ""))
    return Status(text, color) if text or color else None


@lru_cache(_KEPT)
def _template(text: str) -> Template:
    return compile_template(text, escapes=False)


@lru_cache(_KEPT)
def _expression(text: str) -> Callable[[Any], Any]:
    return compile_expression(text, compile_variable)


def _refusal(text: str, error: Exception) -> Invalid:
    return Invalid(f"{text[:100]!r} cannot be computed: {error}")
