"""When JSON values are equal: 1 and 1.0 are, true and 1 are not, and the keys of objects have no order."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

from trunkline.actors.core.formulas.json_text import json_text
from trunkline.actors.core.formulas.values import double

CHARACTERS_A_STEP: Final = 256


def equality_key(value: Any, spend: Callable[[int], None] | None = None) -> Hashable:
    """What equal values have in common: for an array or an object its JSON text, with the keys in order.

    `spend` counts the steps, and may end the work by an exception.
    """
    if spend is not None:
        spend(1)
    if isinstance(value, str):
        # JSON texts of arrays and objects do not begin with a quotation mark.
        return f'"{value}'
    if isinstance(value, bool) or value is None:
        return (value,)
    if not isinstance(value, dict | list):
        return double(value)
    root: list[Any] = [None]
    waiting: list[tuple[Any, Any, Any]] = [(root, 0, value)]
    while waiting:
        into, key, each = waiting.pop()
        if spend is not None:
            spend(1 + (len(each) // CHARACTERS_A_STEP if isinstance(each, str) else 0))
        if isinstance(each, dict):
            into[key] = made = dict.fromkeys(sorted(each))
            waiting.extend((made, name, part) for name, part in each.items())
        elif isinstance(each, list):
            into[key] = items = list(each)
            waiting.extend((items, at, part) for at, part in enumerate(each))
        else:
            into[key] = each
    return json_text(root[0])  # type: ignore[no-any-return]
