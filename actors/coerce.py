"""Values of device attributes: what each data type takes, and what is turned into it without a loss.

The rules: a number takes numbers, and text that reads as one; a boolean takes true and false, 1 and 0, and
the words; text, gps and blob take text, and plain text also takes numbers and booleans in their JSON
spelling. Everything else is refused with the attribute's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trunkline.actors.errors import Invalid
from trunkline.actors.messages.terms import Scalar

_TRUE = frozenset({"true", "1"})
_FALSE = frozenset({"false", "0"})


def _number(name: str, value: Scalar) -> Scalar:
    if type(value) is int:
        return value
    if type(value) is float:
        if math.isfinite(value):
            return value
    elif value is True or value is False:
        return int(value)
    elif isinstance(value, str):
        number = _read_number(value)
        if number is not None:
            return number
    raise Invalid(f"data.{name}: {_show(value)} is not a number; the attribute {name} takes numbers.")


def _read_number(text: str) -> int | float | None:
    """The number that `text` spells in full, None where it does not."""
    stripped = text.strip()
    if len(stripped) > 400 or not stripped.isascii() or "_" in stripped:
        return None
    try:
        return int(stripped)
    except ValueError:
        pass
    try:
        number = float(stripped)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _boolean(name: str, value: Scalar) -> Scalar:
    if value is True or value is False:
        return value
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
        f"data.{name}: {_show(value)} is not a boolean; the attribute {name} takes true and false (or 1 and 0)."
    )


def _string(name: str, value: Scalar) -> Scalar:
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    raise Invalid(f"data.{name}: {_show(value)} can not be kept as text.")


def _text_only(kind: str) -> Callable[[str, Scalar], Scalar]:
    def take(name: str, value: Scalar) -> Scalar:
        if isinstance(value, str):
            return value
        raise Invalid(
            f"data.{name}: {_show(value)} is not text; the attribute {name} is {kind} and takes text."
        )

    return take


COERCE: dict[str, Callable[[str, Scalar], Scalar]] = {
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "gps": _text_only("gps"),
    "blob": _text_only("blob"),
}
"""For each data type the function `(attribute name, value) -> value as it is stored`; raises `Invalid`."""


def _show(value: Scalar) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
