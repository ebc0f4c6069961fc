"""The two errors of the languages of workflows: one when a text is compiled, one when it is evaluated."""

from __future__ import annotations


class FormulaError(ValueError):
    """A path, an expression or a template cannot be compiled. The sentence names the place and the problem."""


class EvaluationError(Exception):
    """A compiled text cannot be evaluated for this payload: a bound is exceeded, or a value does not fit."""
