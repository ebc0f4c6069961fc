"""The operands of a query: each is validated by its field, and brought into the form of documents.

Templates and editors give texts, so the text of a number, a boolean or a time is read as such where the field holds
nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from trunkline.actors.core.query.fields import Field
from trunkline.actors.core.query.problems import Budget, QueryError, shown
from trunkline.actors.core.values.timestamps import TimestampError, parse_iso

_HEX_24 = re.compile(r"[0-9A-Fa-f]{24}")
_NUMBER = re.compile(r"(?=.{1,40}$)[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MILLISECONDS = re.compile(r"-?[0-9]{1,15}")


def _read_value(operand: object, path: str) -> Any:
    if operand is None or isinstance(operand, str | int | float):
        return operand
    raise QueryError(path, f"{shown(operand)} cannot be compared; give a string, number, boolean or null")


def _read_id(operand: object, path: str) -> Any:
    if operand is None:
        return None
    if isinstance(operand, str) and _HEX_24.fullmatch(operand):
        return operand.lower()
    raise QueryError(path, f"{shown(operand)} is not an identifier; give 24 hex digits or null")


def _read_time(operand: object, path: str) -> Any:
    text = operand
    if isinstance(operand, dict) and operand.keys() == {"$date"}:
        text, path = operand["$date"], f"{path}.$date"
    elif operand is None or (isinstance(operand, int | float) and not isinstance(operand, bool)):
        return operand
    if isinstance(text, str):
        if _MILLISECONDS.fullmatch(text):
            return int(text)
        try:
            return parse_iso(text)
        except TimestampError as error:
            raise QueryError(path, error.problem) from None
    raise QueryError(
        path,
        f"{shown(text)} is not a time; give an ISO 8601 text such as 2024-05-01T12:00:00.000Z, "
        "milliseconds since 1970, or null",
    )


def _read_value_or_id(operand: object, path: str) -> Any:
    value = _read_value(operand, path)
    return value.lower() if isinstance(value, str) else value


def _read_number(operand: object, path: str) -> Any:
    """A text that is a number compares as one: templates give texts. Every other text is equal to no number."""
    value = _read_value(operand, path)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        number = float(value) if set(".eE").intersection(value) else int(value)
        return number if math.isfinite(number) else value
    return value


def _read_boolean(operand: object, path: str) -> Any:
    value = _read_value(operand, path)
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def reader_of(field: Field) -> Callable[[object, str], Any]:
    """Return the function that validates an operand of this field; it takes the operand and its path."""
    if field.kind in ("id", "ids"):
        return _read_id
    if field.kind == "time":
        return _read_time
    return _READERS.get(field.holds, _read_value)


_READERS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "id": _read_value_or_id,
    "number": _read_number,
    "boolean": _read_boolean,
}


def read_items(operand: object, read: Callable[[object, str], Any], path: str, budget: Budget) -> list[Any]:
    """Validate the array of `$in` or `$nin`, each item with `read`, which takes the item and its path."""
    if not isinstance(operand, list):
        raise QueryError(
            path, f"{shown(operand)} is not an array; give an array of at most {budget.items_max}"
        )
    if len(operand) > budget.items_max:
        raise QueryError(path, f"these are {len(operand)} items; give at most {budget.items_max}")
    for index, item in enumerate(operand):
        if item is None:
            raise QueryError(f"{path}[{index}]", 'null cannot be listed; ask for it with {"$eq": null}')
    return [read(item, f"{path}[{index}]") for index, item in enumerate(operand)]
