"""Coercion of reported values to the data types of attributes, without loss.

The types accept: `number` numbers in the range of a double, text that is a number, and true and false as 1 and 0;
`boolean` true and false, 1 and 0, and the same as text; `string`, `gps` and `blob` text, and `string` also numbers
and booleans, in their JSON form. Any other value is refused with the attribute's name.

Whole numbers are kept exactly, also beyond 2**53; those beyond the largest double are refused, because hardly any
JSON parser could read them back.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from trunkline.actors.core.query.problems import shown
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.terms import Scalar

_TRUE = frozenset({"true", "1"})
_FALSE = frozenset({"false", "0"})
_LARGEST = int(sys.float_info.max)
_NUMBER_CHARS_MAX = 400


def _number(name: str, value: Any) -> Scalar:
    if type(value) is float and math.isfinite(value):
        return value
    number = value
    if value is True or value is False:
        return int(value)
    if isinstance(value, str):
        number = _read_number(value)
    if isinstance(number, int) and not -_LARGEST <= number <= _LARGEST:
        raise _too_large(name, f"correct it, or declare {name} as a string")
    if isinstance(number, int | float) and math.isfinite(number):
        return number
    raise Invalid(f"data.{name}: {shown(value)} is not a number; the attribute {name} takes numbers.")


def _read_number(text: str) -> int | float | None:
    """Return the number that the whole `text` represents, else None."""
    stripped = text.strip()
    if len(stripped) > _NUMBER_CHARS_MAX or not stripped.isascii() or "_" in stripped:
        return None
    try:
        return int(stripped)
    except ValueError:
        pass
    try:
        return float(stripped)
    except ValueError:
        return None


def _boolean(name: str, value: Any) -> Scalar:
    if value is True or value is False:
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
    elif value == 1:
        return True
    elif value == 0:
        return False
    raise Invalid(
        f"data.{name}: {shown(value)} is not a boolean; the attribute {name} takes true and false (or 1 and 0)."
    )


def _string(name: str, value: Any) -> Scalar:
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
        raise _too_large(name, "send it as text, in quotes")
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    raise Invalid(f"data.{name}: {shown(value)} is not text; the attribute {name} takes text.")


def _too_large(name: str, remedy: str) -> Invalid:
    return Invalid(f"data.{name}: the number is larger than a double can hold ({_LARGEST:.1e}); {remedy}.")


def _text_only(kind: str) -> Callable[[str, Any], Scalar]:
    def take(name: str, value: Any) -> Scalar:
        if isinstance(value, str):
            return value
        raise Invalid(
            f"data.{name}: {shown(value)} is not text; the attribute {name} is {kind} and takes text."
        )

    return take


COERCE: dict[str, Callable[[str, Any], Scalar]] = {
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "gps": _text_only("gps"),
    "blob": _text_only("blob"),
}
"""For each data type the function `(attribute name, value) -> stored value`. Raises `Invalid`."""
