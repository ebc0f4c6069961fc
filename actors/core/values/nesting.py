"""The limit on the nesting of free values of callers (`meta`, `payload`).

The JSON parser accepts deeper nesting than the decoder of the store, so a value in between would be
acknowledged but could not be read back. The limit is far below both and above what anybody sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trunkline.actors.core.values.errors import Invalid

NESTING_MAX = 100
"""Levels of arrays and objects."""
_CONTAINERS = frozenset((dict, list))


def check_nesting(value: Any, field: str) -> None:
    """Raise `Invalid` if `value` nests too deeply. Works level by level, since recursion could overflow the stack."""
    if _nests_deeper([value]):
        raise too_deep(field)


def too_deep(field: str) -> Invalid:
    """What is told of a value that nests too deeply."""
    return Invalid(f"{field}: nests deeper than {NESTING_MAX} levels; make it flatter.")


def check_each(values: Sequence[Any], field: Callable[[int], str]) -> None:
    """Check many values at once, which costs less. `field` gives the name of the one at a position."""
    if _nests_deeper(values):
        for position, value in enumerate(values):
            check_nesting(value, field(position))


def _nests_deeper(values: Sequence[Any]) -> bool:
    level = [value for value in values if type(value) in _CONTAINERS]
    for _ in range(NESTING_MAX):
        if not level:
            return False
        level = [inner for outer in level for inner in _inside(outer) if type(inner) in _CONTAINERS]
    return bool(level)


def _inside(container: Any) -> Iterable[Any]:
    return container.values() if type(container) is dict else container
