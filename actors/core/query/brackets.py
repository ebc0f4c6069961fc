"""Queries with bracketed names: converts `query[name][$eq]=pump&query[tags][floor]=2` to the equivalent JSON form.

Texts in a URL have no type. This module owns how they are typed: by their position and by the type of the
field. Does not own splitting names at their brackets (`http/`). It refuses nothing: what it cannot convert
stays as it is, so that the compiler refuses it with its path.

1. `null` is null, except in `$in` and `$nin`, which cannot contain null, and below `$startsWith`, `$endsWith`
   and `$contains`: there it is the text "null".
2. For a field of texts or identifiers, and for keys and values of tags, everything else is the text as given.
3. For a time, a number is milliseconds; everything else is ISO text.
4. For a field of numbers or booleans, the text is their JSON spelling. For a field of any type, a text that is
   the JSON spelling of a number or a boolean is that value, and any other is a text. To query for the text
   "5" in such a field, use the JSON form of the query.
5. Where an array is expected, numeric keys give its order (`[$or][0]`, `[$in][]`), repeated names are its
   items, and a single text is its only item. Elsewhere such keys are names, as in `[tags][2]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from trunkline.actors.core.query.compile import LOGICAL
from trunkline.actors.core.query.conditions import TEXT_OPERATORS
from trunkline.actors.core.query.fields import Field

_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_SETTING: Final = Field("value")
_BOOLEANS: Final = {"true": True, "false": False}


def read_query(query: object, fields: Mapping[str, Field]) -> object:
    """Return the query in its JSON form. `query` consists of maps by the text in the brackets, lists and texts."""
    if not isinstance(query, dict):
        return query
    read: dict[str, Any] = {}
    for key, condition in query.items():
        if key in LOGICAL:
            items = array(condition)
            read[key] = [read_query(item, fields) for item in items] if isinstance(items, list) else items
        elif (field := fields.get(key)) is None:
            read[key] = condition
        elif field.kind == "tags":
            read[key] = _read_tags(condition)
        elif field.kind == "parts":
            read[key] = _read_part(condition)
        else:
            read[key] = _read_condition(condition, field)
    return read


def array(value: object) -> object:
    """Return `value` as a list if it can be converted (rule 5), else unchanged."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict) and value and all(_INDEX.fullmatch(key) for key in value):
        return [value[key] for key in sorted(value, key=int)]
    return value


def _read_condition(condition: object, field: Field) -> object:
    if not isinstance(condition, dict):
        return _read_text(condition, field)
    return {key: _read_operand(key, operand, field) for key, operand in condition.items()}


def _read_operand(key: str, operand: object, field: Field) -> object:
    if key == "$ci":
        return _BOOLEANS.get(operand, operand) if isinstance(operand, str) else operand
    if key in TEXT_OPERATORS:
        return operand
    if key in ("$in", "$nin"):
        items = array(operand)
        if not isinstance(items, list):
            return items
        return [item if item == "null" else _read_text(item, field) for item in items]
    return _read_text(operand, field)


def _read_text(text: object, field: Field) -> object:
    """Convert a single value of a field; containers, such as the `$date` of a time, stay unchanged."""
    if not isinstance(text, str):
        return text
    if text == "null":
        return None
    if field.kind in ("id", "ids") or field.holds in ("string", "id"):
        return text
    takes_boolean = field.kind != "time" and field.holds in ("any", "boolean")
    if takes_boolean and text in _BOOLEANS:
        return _BOOLEANS[text]
    if field.holds != "boolean" and _NUMBER.fullmatch(text):
        number = int(text) if _WHOLE.fullmatch(text) else float(text)
        return number if math.isfinite(number) else text
    return text


def _read_tags(condition: object) -> object:
    if not isinstance(condition, dict):
        return None if condition == "null" else condition
    return {
        key: _read_tags(inner) if key in ("$eq", "$ne") else _read_side(inner)
        for key, inner in condition.items()
    }


def _read_part(condition: object) -> object:
    """A part, whose settings may be of any type; its type and its key are texts."""
    if not isinstance(condition, dict):
        return None if condition == "null" else condition
    read: dict[str, Any] = {}
    for key, inner in condition.items():
        if key in ("$eq", "$ne"):
            read[key] = _read_part(inner)
        elif key == "config" and isinstance(inner, dict):
            read[key] = {name: _read_text(value, _SETTING) for name, value in inner.items()}
        else:
            read[key] = inner
    return read


def _read_side(side: object) -> object:
    if isinstance(side, dict):
        return {key: array(items) if key in ("$in", "$nin") else items for key, items in side.items()}
    return None if side == "null" else side
