"""How deep a free value of a caller (`meta`, `payload`) may nest.

The JSON parser goes deeper than the store's format can be read back, so a value in between would be
acknowledged and lost. The bound lies far below both and above what anybody sends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trunkline.actors.values.errors import Invalid

NESTING_MAX = 100
"""Levels of arrays and objects."""


def check_nesting(value: Any, field: str) -> None:
    """Raise `Invalid` where `value` nests too deeply. Goes level by level, since recursion would fail as well."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(NESTING_MAX):
        if not level:
            return
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, list | dict)]
    if level:
        raise Invalid(f"{field}: nests deeper than {NESTING_MAX} levels; make it flatter.")


def _inside(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
