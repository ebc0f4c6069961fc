"""Coercion of whole columns of reported values: the same as value by value (`coercion.py`), and in most cases at once.

A column of one type that fits its attribute is checked by numpy, or not at all, and stays as it is. Every other one is
coerced value by value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.attributes import FLOW_VERSION, Attributes
from trunkline.actors.fleet.devices.state.link_messages import Columns, Values

_NONE: Final = type(None)
_NUMBERS: Final = frozenset({int, float, _NONE})
_BOOLEANS: Final = frozenset({bool, _NONE})
_TEXTS: Final = frozenset({str, _NONE})
_EXACT: Final = 2.0**63
"""Beyond this, numbers are looked at one by one."""
_CHAR_BYTES_MAX: Final = 4


def coerced(attributes: Attributes, body: Columns, string_bytes_max: int) -> dict[int, Values]:
    """The stored values of states by attribute number; without columns that have none. Raises `Invalid`."""
    columns: dict[int, Values] = {}
    is_full = False
    for name, values in zip(body.names, body.columns, strict=True):
        number, kind = attributes.declared(name)
        types = None if isinstance(values, np.ndarray) else set(map(type, values))
        if types == {_NONE}:
            continue
        found = _at_once(kind, values, types, string_bytes_max)
        columns[number] = _one_by_one(attributes, name, values, string_bytes_max) if found is None else found
        is_full = is_full or types is None or _NONE not in types
    if not is_full:
        _check_states(len(body), columns)
    if isinstance(body.flow_version, str):
        columns[FLOW_VERSION] = body.flow_version
    return columns


def _at_once(kind: str, values: Values, types: set[type] | None, string_bytes_max: int) -> Values | None:
    """The stored values where the whole column can be checked together; None if it must be looked at value by value."""
    match kind:
        case "number":
            if isinstance(values, np.ndarray):
                return values if values.dtype.kind != "f" or np.isfinite(values).all() else None
            assert types is not None
            if types <= _NUMBERS:
                try:
                    numbers = np.array([value for value in values if value is not None], np.float64)
                except OverflowError:
                    return None
                return values if (np.abs(numbers) < _EXACT).all() else None
        case "boolean":
            if isinstance(values, np.ndarray):
                return values == 1 if ((values == 0) | (values == 1)).all() else None
            assert types is not None
            if types <= _BOOLEANS:
                return values if _NONE in types else np.array(values, np.bool_)
        case _:
            if types is not None and types <= _TEXTS:
                chars_max = max([len(value) for value in values if value is not None])
                return values if chars_max * _CHAR_BYTES_MAX <= string_bytes_max else None
    return None


def _one_by_one(attributes: Attributes, name: str, values: Values, string_bytes_max: int) -> list[Any]:
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else [*values]
    for at, value in enumerate(listed):
        if value is not None:
            try:
                (listed[at],) = attributes.point({name: value}, string_bytes_max).values()
            except Invalid as refusal:
                raise Invalid(f"[{at}].{refusal.message}") from None
    return listed


def _check_states(count: int, columns: dict[int, Values]) -> None:
    """Raise `Invalid` unless each state has a value."""
    present = np.zeros(count, np.bool_)
    for values in columns.values():
        present |= [value is not None for value in values]
    if not present.all():
        raise Invalid(f"[{int(present.argmin())}].data: is empty; report at least one declared attribute.")
