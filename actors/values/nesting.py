"""The limit on the nesting of free values of callers (`meta`, `payload`).

The JSON parser accepts deeper nesting than the decoder of the store, so a value in between would be
acknowledged but could not be read back. The limit is far below both and above what anybody sends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trunkline.actors.values.errors import Invalid

NESTING_MAX = 100
"""Levels of arrays and objects."""


def check_nesting(value: Any, field: str) -> None:
    """Raise `Invalid` if `value` nests too deeply. Works level by level, since recursion could overflow the stack."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(NESTING_MAX):
        if not level:
            return
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, list | dict)]
    if level:
        raise Invalid(f"{field}: nests deeper than {NESTING_MAX} levels; make it flatter.")


def _inside(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
