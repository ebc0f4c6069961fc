"""The JSON text of a value, as `JSON.stringify` writes it: whole numbers without a fraction, NaN as null.

A loop instead of recursion, so the nesting of a value never ends in a RecursionError; the length is bounded.
"""

from __future__ import annotations

import json.encoder
import math
from collections.abc import Iterator
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.long_texts import JOINED_PARTS, PIECE_CHARS, in_pieces
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.values import TEXT_CHARS_MAX, UNDEFINED, to_text

INDENT_MAX: Final = 10
"""Characters of a level of indentation, as in JavaScript."""

_quoted_piece: Final = json.encoder.encode_basestring


def _quoted(text: str) -> str:
    if len(text) <= PIECE_CHARS:
        return _quoted_piece(text)
    return f'"{in_pieces(lambda piece: _quoted_piece(piece)[1:-1], text)}"'


def json_text(value: Any, spacer: Any = UNDEFINED) -> Any:
    """Return the text, or UNDEFINED for UNDEFINED. `spacer` is an indentation, or its number of spaces.

    Raises `EvaluationError` over `TEXT_CHARS_MAX` characters.
    """
    if value is UNDEFINED:
        return UNDEFINED
    indent = _indentation(spacer)
    pieces: list[str] = []
    groups: list[str] = []
    left = TEXT_CHARS_MAX
    # What was opened and not closed: the items that are left, and the closing bracket.
    opened: list[tuple[Iterator[Any], str]] = []
    written, inner = _start(value)
    while True:
        spend(1)
        left -= len(written)
        if left < 0:
            raise EvaluationError(f"The JSON text is longer than {TEXT_CHARS_MAX} characters.")
        pieces.append(written)
        if len(pieces) > JOINED_PARTS:  # to free millions of pieces at the end would take long
            groups.append("".join(pieces))
            pieces.clear()
        if inner is not None:
            opened.append((inner, "}" if written == "{" else "]"))
            first = True
        else:
            first = False
        while opened:
            items, end = opened[-1]
            found: Any = next(items, UNDEFINED)
            if found is not UNDEFINED:
                break
            opened.pop()
            pieces.append(end if first else _line(indent, len(opened)) + end)
            first = False
        if not opened:
            return "".join([*groups, *pieces])
        separator = "" if first else ","
        written = separator + _line(indent, len(opened))
        if end == "}":
            key, value = found
            written += _quoted(key) + (": " if indent else ":")
        else:
            value = found
        left -= len(written)
        pieces.append(written)
        written, inner = _start(value)


def _start(value: Any) -> tuple[str, Iterator[Any] | None]:
    """The text of a scalar; of a container the opening bracket and its items."""
    if isinstance(value, dict):
        return "{", ((key, each) for key, each in value.items() if each is not UNDEFINED)
    if isinstance(value, list):
        return "[", (None if each is UNDEFINED else each for each in value)
    if isinstance(value, str):
        return _quoted(value), None
    if isinstance(value, float) and not math.isfinite(value):
        return "null", None
    return to_text(value), None


def _line(indent: str, level: int) -> str:
    return "\n" + indent * level if indent else ""


def _indentation(spacer: Any) -> str:
    if isinstance(spacer, str):
        return spacer[:INDENT_MAX]
    if isinstance(spacer, int | float) and not isinstance(spacer, bool) and spacer >= 1:
        return " " * int(min(spacer, INDENT_MAX))
    return ""
