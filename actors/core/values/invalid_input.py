"""Input that does not fit its type, as sentences: where it is, what it is, and what would be right.

msgspec reports where a value does not fit, in the words of Python. This module looks up the type at that place, and
describes it in the words of JSON. It is called for refused calls only, in the event loop: so only what the sentence
needs is looked up, which is a few fields of the hundreds that a body may have. Does not own what types are
(`shapes.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.names import did_you_mean, either, listed
from trunkline.actors.core.values.shapes import (
    Shape,
    names_of,
    required_of,
    shapes_of,
    shapes_of_field,
    tag_of,
)
from trunkline.actors.core.values.structs import FORM

UNKNOWN: Final = object()
"""The given value is not known."""

_AT = re.compile(r"^(?P<problem>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_NAMED = re.compile(
    r"Object (?P<problem>contains unknown|missing required) field `(?P<field>.*)`$", re.DOTALL
)
_ANY: Final = inspect.AnyType()
_OUT_OF_RANGE: Final = "Number out of range"
_RANGE: Final = "a number from -1.7e308 to 1.7e308"

_Shapes = Sequence[Shape]
"""The shapes that a value may have."""


def invalid(error: msgspec.ValidationError, where: str, expected: Any, given: Any = UNKNOWN) -> Invalid:
    """A validation error as a sentence that begins with the field.

    `where` is "body" or "query", `expected` its type, `given` the value that was checked.
    """
    found = _AT.match(str(error))
    problem = found["problem"] if found else str(error)
    path = (found["path"] or "") if found else ""
    field, shapes, given = _follow(path, shapes_of(expected), given)
    if named := _NAMED.match(problem):
        name = f"{field}.{named['field']}" if field else named["field"]
        structs = _structs(_chosen(shapes, given))
        missing = named["problem"] == "missing required"
        sentence = (
            _missing(named["field"], structs, where) if missing else _unknown(named["field"], structs, where)
        )
        return Invalid(f"{name[:300]}: {sentence}.")
    place = field[:300] or f"The {where}"
    keys = [each.keys for each in shapes if each.keys is not None]
    if found and found["key"]:
        if keys:
            key = _first_wrong(given, keys[0], is_key=True)
            what = "a key" if key is None else f"the key {_shown(key)}"
            return Invalid(
                f"{place}: {what} does not fit; give {_right(shapes_of(keys[0]), with_null=False)}."
            )
        given = UNKNOWN
    if any(problem == each.hint for each in _structs(shapes) if hasattr(each, "hint")):
        return Invalid(f"{place}: {_got(given, shapes)}; {problem}.")
    right = _right(shapes, with_null=where == "body") if problem != _OUT_OF_RANGE else _RANGE
    return Invalid(f"{place}: {_got(given, shapes)}; give {right}.")


def empty(expected: Any) -> Invalid:
    """The error of a call without a body, where its operation needs one of this type."""
    words: dict[str, None] = {}
    for each in shapes_of(expected):
        optional = ""
        if each.struct is not None and not required_of(each.struct):
            optional = f" with any of {listed(names_of(each.struct))}"
        words[_in_words(each) + optional] = None
    return Invalid(
        f"The body is missing; this call needs JSON: {either(list(words))} (Content-Type: application/json)."
    )


# Types.


def _follow(path: str, shapes: _Shapes, given: Any) -> tuple[str, _Shapes, Any]:
    """The field, the shapes and the value at a path of msgspec such as `.tags[0].key`.

    The field ends where types within are not known, as in one that says in words what it is.
    """
    field = ""
    for step in _STEP.finditer(path):
        inner: list[Shape] = []
        values: Any = Any
        for each in _chosen(shapes, given):
            holds = isinstance(each.info, inspect.ListType) if step["index"] else each.keys is not None
            if step["field"]:
                inner += shapes_of_field(each.struct, step["field"]) if each.struct else ()
            elif each.info == _ANY and each.struct is None:
                inner += [each]
            elif holds:
                values = each.inner
                inner += shapes_of(values)
        if not inner:
            return field.removeprefix("."), shapes, UNKNOWN
        shapes = inner
        name: Any = step["field"] or (int(step["index"]) if step["index"] else _first_wrong(given, values))
        field += step[0] if name is None or step["index"] else f".{name}"
        given = _value_at(given, name)
    return field.removeprefix("."), shapes, given


def _first_wrong(given: Any, type: Any, *, is_key: bool = False) -> str | None:
    """The first name in an object whose value, or which itself, does not fit a type; msgspec does not tell it."""
    if not isinstance(given, Mapping):
        return None
    try:
        msgspec.convert(list(given if is_key else given.values()), list[type])
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        step = _STEP.match((found and found["path"]) or "")
        return list(given)[int(step["index"])] if step else None
    return next((name for name, value in given.items() if _is_out_of_range(value)), None)


def _is_out_of_range(value: Any) -> bool:
    """Whether a number in it is an infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return True
    return False


def _value_at(given: Any, name: str | int | None) -> Any:
    try:
        return given[name]
    except (TypeError, LookupError):
        return UNKNOWN


def _chosen(shapes: _Shapes, given: Any) -> _Shapes:
    """The shapes without the structs of a tagged union that the given value does not choose."""
    if not isinstance(given, Mapping):
        return shapes
    tagged = [each for each in shapes if each.struct is not None and tag_of(each.struct)[0]]
    chosen = [each for each in tagged if _is_chosen(given, *tag_of(each.struct))]
    return [each for each in shapes if each not in tagged or each in chosen] if chosen else shapes


def _is_chosen(given: Mapping[str, Any], tag_field: str | None, tag: Any) -> bool:
    return tag_field is not None and given.get(tag_field) == tag


def _structs(shapes: _Shapes) -> list[Any]:
    return [each.struct for each in shapes if each.struct is not None]


# What is wrong.


def _unknown(name: str, structs: list[Any], where: str) -> str:
    """A name that none of the structs has."""
    names: dict[str, None] = {}
    for struct in structs:
        tag_field, _ = tag_of(struct)
        names |= dict.fromkeys([tag_field] if tag_field else [])
        names |= dict.fromkeys(names_of(struct))
    if not names:
        return f"there is no such field in this {where}; leave it out"
    meant = did_you_mean(name, names)
    return f"there is no such field in this {where}{meant}{_hint(structs)}; it takes {listed(names)}"


def _missing(name: str, structs: list[Any], where: str) -> str:
    """A field that is missing, and what it would have to be."""
    shapes = [each for struct in structs for each in shapes_of_field(struct, name)]
    right = f", {_right(shapes, with_null=False)}" if shapes else ""
    return f"is missing; this {where} needs it{right}{_hint(structs)}"


def _hint(structs: list[Any]) -> str:
    hints = dict.fromkeys(getattr(struct, "hint", "") for struct in structs)
    return "".join(f"; {hint}" for hint in hints if hint)


def _got(given: Any, shapes: _Shapes) -> str:
    """What the value is. Texts are shown only where a word or a number is expected: others may be secrets."""
    types = [each.info for each in shapes]
    if isinstance(given, str):
        if any(isinstance(each, _WORDS_AND_NUMBERS) for each in types):
            return f"is {_shown(given)}"
        texts = [each for each in types if isinstance(each, inspect.StrType | inspect.Metadata)]
        if any(_is_out(len(given), each) for each in texts):
            return f"has {len(given)} character{'' if len(given) == 1 else 's'}"
        return "does not fit" if texts else "is a string"
    if given is None or isinstance(given, bool):
        return f"is {_WORDS[given]}"
    if isinstance(given, int | float):
        return f"is {given}" if abs(given) < _SHOWN_BELOW else "is out of range"
    if isinstance(given, list):
        wanted = any(isinstance(each, inspect.ListType) for each in types)
        return f"has {len(given)} items" if wanted else "is an array"
    if isinstance(given, dict):
        if any(each.keys is not None for each in shapes):
            return f"has {len(given)} keys"
        return "does not fit" if _structs(shapes) else "is an object"
    return "does not fit"


def _shown(text: str) -> str:
    return f"{text[:60]!r}" + ("..." if len(text) > 60 else "")


_WORDS_AND_NUMBERS: Final = (
    inspect.LiteralType,
    inspect.IntType,
    inspect.FloatType,
    inspect.BoolType,
)
_WORDS: Final = {None: "null", True: "true", False: "false"}
_SHOWN_BELOW: Final = 10**30


def _is_out(length: int, type: inspect.Type) -> bool:
    if isinstance(type, inspect.Metadata):
        type = type.type
    return isinstance(type, inspect.StrType) and not (
        (type.min_length or 0) <= length <= (length if type.max_length is None else type.max_length)
    )


# What would be right.


def _right(shapes: _Shapes, *, with_null: bool) -> str:
    """The types in words, such as "a string of 1 to 255 characters or null"."""
    words: dict[str, None] = {}
    literals: list[Any] = []
    for each in shapes:
        if isinstance(each.info, inspect.LiteralType):
            literals += [value for value in each.info.values if value not in literals]
        elif not isinstance(each.info, inspect.NoneType) or with_null:
            words[_in_words(each)] = None
    for integer in [word for word in words if word.startswith("an integer")]:
        if integer.replace("an integer", "a number") in words:
            del words[integer]
    if any(isinstance(each.info, inspect.Metadata) for each in shapes):
        words.pop("null", None)  # the form of such a type ends with words of its own
    if literals:
        one_of = "one of " if len(literals) > 1 else ""
        words = {one_of + listed(map(str, literals)): None, **words}
    return either(list(words) or ["another value"])


def _in_words(shape: Shape) -> str:
    if shape.struct is not None:
        required = required_of(shape.struct)
        return f"an object with {listed(required)}" if required else "an object"
    type = shape.info
    match type:
        case inspect.Metadata(extra=extra):
            return str((extra or {})[FORM])
        case inspect.StrType(pattern=pattern):
            matching = f" that matches {pattern}" if pattern else ""
            return "a string" + _of_length(type.min_length, type.max_length, "character") + matching
        case inspect.IntType() | inspect.FloatType():
            return ("an integer" if isinstance(type, inspect.IntType) else "a number") + _in_range(type)
        case inspect.BoolType():
            return "true or false"
        case inspect.NoneType():
            return "null"
        case inspect.ListType():
            return "an array" + _of_length(type.min_length, type.max_length, "item")
        case inspect.DictType():
            return "an object" + _of_length(type.min_length, type.max_length, "key")
        case _:
            return "another value"


def _of_length(least: int | None, most: int | None, unit: str) -> str:
    if least and most is not None:
        return f" of {least} to {most} {unit}s"
    if most is not None:
        return f" of at most {most} {unit}s"
    return f" of at least {least} {unit}{'s' if least > 1 else ''}" if least else ""


def _in_range(type: inspect.IntType | inspect.FloatType) -> str:
    if type.ge is not None and type.le is not None:
        return f" from {type.ge:g} to {type.le:g}" if type.le < 1e6 else f" from {type.ge} to {type.le}"
    if type.ge is not None:
        return f" of at least {type.ge:g}"
    return f" of at most {type.le}" if type.le is not None else ""
