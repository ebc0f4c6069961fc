"""Texts as parts of a URI, as the helpers of templates encode and decode them; and query strings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, unquote

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.long_texts import in_pieces, joined
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.values import to_text

QUOTED_CHARS: Final = 4_096
"""Characters of a text that are encoded for a URI at once."""

ENCODED_CHARS_MAX: Final = 262_144
"""Characters of a text from which `decodeURI` and `decodeURIComponent` take the encoding."""

COMPONENT: Final = "-_.!~*'()"
WHOLE_URI: Final = COMPONENT + ";,/?:@&=+$#"
_BROKEN_CODE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def encode_uri(safe: str) -> Callable[[Any], str]:
    return lambda value: in_pieces(_quoted(safe), to_text(value), QUOTED_CHARS)


def _quoted(safe: str) -> Callable[[str], str]:
    def quoted(piece: str) -> str:
        spend(len(piece) // 8)
        return quote(piece, safe=safe, errors="replace")

    return quoted


def decode_uri_component(value: Any) -> str:
    return _unquoted(_encoded(value, "decodeURIComponent"), "decodeURIComponent")


def _encoded(value: Any, name: str) -> str:
    text = to_text(value)
    if len(text) > ENCODED_CHARS_MAX:
        raise EvaluationError(
            f"{name}: the text has {len(text)} characters; at most {ENCODED_CHARS_MAX} are allowed."
        )
    spend(len(text) // 8)
    return text


def decode_uri(value: Any) -> str:
    """Decode all but what stands for a reserved character: `%2F` stays."""
    text = _encoded(value, "decodeURI")
    for mark in ";/?:@&=+$,#":
        code = f"%{ord(mark):02X}"
        text = text.replace(code, f"%25{code[1:]}").replace(code.lower(), f"%25{code[1:].lower()}")
    return _unquoted(text, "decodeURI")


def _unquoted(text: str, name: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise EvaluationError(f"{name}: the text is not encoded as a URI.") from None
    if _BROKEN_CODE.search(text) is not None:
        raise EvaluationError(f"{name}: the text is not encoded as a URI.")
    return decoded


def query_string_encode(value: Any) -> str:
    """A query string as of Node's `querystring`: an item of an array is a field of its own, an object is empty."""
    if not isinstance(value, dict):
        return ""
    encode = encode_uri(COMPONENT)
    fields = []
    for key, item in value.items():
        for each in item if isinstance(item, list) else [item]:
            spend(4)
            plain = isinstance(each, str | int | float) and not (
                isinstance(each, float) and not math.isfinite(each)
            )
            fields.append(f"{encode(key)}={encode(each) if plain else ''}")
    return joined(fields, "&")
