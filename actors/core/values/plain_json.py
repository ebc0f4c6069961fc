"""What JSON can say: null, true, false, finite numbers, texts, arrays, and objects whose names are texts.

Free values of callers (`meta`) are stored as they are and shown as JSON, but CBOR and workflows can bring more. So they
are checked before they are stored. What was stored before that is shown as far as JSON can say it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trunkline.actors.core.values.cbor import Tag
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.nesting import NESTING_MAX, too_deep

FORM: Final = "null, true, false, a finite number, text, an array or an object whose names are texts"

_JSON: Final = frozenset({type(None), bool, int, float, str, list, dict})
_PATH_CHARS_MAX: Final = 300
_LEVELS_MAX: Final = 2 * NESTING_MAX
"""Levels that are shown: more than any value has that was stored."""


def check_json(value: Any, field: str = "", levels_max: int = NESTING_MAX) -> None:
    """Raise `Invalid`, which names the place, unless JSON can say `value`, in at most so many levels.

    `field` is what it is in; without it the value is a body. Works level by level, as `check_nesting`.
    """
    level = [value]
    for _ in range(levels_max + 1):
        types = set(map(type, level))
        following: list[Any] = []
        names: list[Any] = []
        has_inner = dict in types or list in types
        if has_inner:
            for outer in level:
                if type(outer) is dict:
                    names += outer
                    following += outer.values()
                elif type(outer) is list:
                    following += outer
        if (
            not types <= _JSON
            or (float in types and not _are_finite(level))
            or (str in types and not _are_texts(level))
            or not _are_names(names)
        ):
            raise _refusal(value, field)
        if not has_inner:
            return
        level = following
    raise too_deep(field or "The body")


def json_bytes(value: Any) -> bytes:
    """The JSON of a value; of a stored one that JSON cannot say, that of `as_json`."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return msgspec.json.encode(as_json(value))


def as_json(value: Any) -> Any:
    """A stored value as far as JSON can say it, with null for the rest, and without what has a name that is no text."""
    return _shown(value, _LEVELS_MAX)


def _shown(value: Any, levels: int) -> Any:
    if not levels:
        return None
    match value:
        case dict():
            return {
                str(name): _shown(inner, levels - 1)
                for name, inner in value.items()
                if type(name) in (str, int) and _is_json(str(name))
            }
        case list() | tuple():
            return [_shown(inner, levels - 1) for inner in value]
    if type(value) in _JSON:
        return value if _is_json(value) else None
    try:
        return msgspec.to_builtins(value)  # dates and such have a text, bytes too
    except (TypeError, ValueError, RecursionError):
        return None


def _are_finite(level: list[Any]) -> bool:
    # The difference of a number and itself is 0.0, of infinities and NaN it is NaN.
    return not any(each - each for each in level if type(each) is float)


def _are_texts(level: list[Any]) -> bool:
    return _is_unicode("".join([each for each in level if type(each) is str]))


def _are_names(names: list[Any]) -> bool:
    return not names or (set(map(type, names)) == {str} and _is_unicode("".join(names)))


def _is_unicode(text: str) -> bool:
    """Whether a text has no surrogates."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _is_json(value: Any) -> bool:
    """Whether JSON can say a value, whatever is in it."""
    return type(value) in _JSON and _are_finite([value]) and _are_texts([value])


def _refusal(value: Any, field: str) -> Invalid:
    """What is wrong with a value, at the first place of the highest level at which something is."""
    level = [(field, value)]
    while level:
        following: list[tuple[str, Any]] = []
        for place, each in level:
            if not _is_json(each):
                return Invalid(f"{place or 'The body'}: {_told(each)}; give {FORM}.")
            if type(each) is dict:
                if not _are_names(list(each)):
                    return Invalid(f"{place or 'The body'}: has a name that is not text; give {FORM}.")
                following += [
                    (f"{place}.{name}".removeprefix(".")[:_PATH_CHARS_MAX], inner)
                    for name, inner in each.items()
                ]
            elif type(each) is list:
                following += [(f"{place}[{at}]"[:_PATH_CHARS_MAX], inner) for at, inner in enumerate(each)]
        level = following
    raise AssertionError("JSON can say the value")


def _told(value: Any) -> str:
    if type(value) is float:
        return "is not a finite number"
    if type(value) is str:
        return "is text with half of a surrogate pair"
    if type(value) is bytes:
        return "is bytes"
    if type(value) is Tag:
        return f"has the tag {value.tag} of CBOR"
    return f"is {repr(value)[:60]}, which JSON does not have"
