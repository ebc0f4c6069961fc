"""What the blocks of templates do: `if`, `unless`, `each`, `with`, sections, and the helpers that are conditions.

Each function joins the compiled parts of a block to one function that writes it.
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.formulas.template_run import Evaluate, Frame, Scope, Write
from trunkline.actors.core.formulas.values import UNDEFINED, truth


def _is_empty(value: Any) -> bool:
    """What counts as false in a block: as in JavaScript, and an empty array."""
    return not truth(value) or (isinstance(value, list) and not value)


def write_if(subject: Evaluate, zero: Evaluate | None, main: Write, other: Write) -> Write:
    def write(scope: Scope) -> None:
        scope.run.spend(1)
        value = subject(scope)
        empty = _is_empty(value)
        if empty and zero is not None and not isinstance(value, bool) and value == 0:
            empty = not truth(zero(scope))
        (other if empty else main)(scope)

    return write


def write_on_condition(condition: Evaluate, main: Write, other: Write) -> Write:
    return lambda scope: (main if condition(scope) else other)(scope)


def write_with(subject: Evaluate, main: Write, other: Write, named: bool) -> Write:
    def write(scope: Scope) -> None:
        scope.run.spend(1)
        value = subject(scope)
        if _is_empty(value) and (isinstance(value, bool) or value != 0):
            other(scope)
            return
        inner = scope.enter(value)
        if named:
            inner.parameters = ((value, UNDEFINED), scope.parameters)
        main(inner)

    return write


def write_each(subject: Evaluate, main: Write, other: Write, named: bool) -> Write:
    def write(scope: Scope) -> None:
        value = subject(scope)
        if not isinstance(value, list | dict) or not value:
            scope.run.spend(1)
            other(scope)
            return
        _repeat(scope, value, main, named)

    return write


def _repeat(scope: Scope, items: list[Any] | dict[str, Any], main: Write, named: bool) -> None:
    """Write the body for each item of an array, or for each value of an object."""
    pairs = items.items() if isinstance(items, dict) else enumerate(items)
    end = len(items) - 1
    for index, (key, item) in enumerate(pairs):
        scope.run.spend(1)
        inner = scope.enter(item)
        inner.frame = frame = Frame(scope.frame)
        frame.key, frame.index, frame.first, frame.last = key, index, index == 0, index == end
        if named:
            inner.parameters = ((item, key), scope.parameters)
        main(inner)


def write_section(subject: Evaluate, main: Write, other: Write) -> Write:
    """A block that names no helper: an array is repeated, true and other values are entered."""

    def write(scope: Scope) -> None:
        scope.run.spend(1)
        value = subject(scope)
        if value is True:
            main(scope)
        elif value is None or value is False or value is UNDEFINED or value == []:
            other(scope)
        elif isinstance(value, list):
            _repeat(scope, value, main, named=False)
        else:
            main(scope.enter(value))

    return write
