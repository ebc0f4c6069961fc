"""Input that does not fit its type, as sentences: where it is, what it is, and what would be right.

msgspec reports where a value does not fit, in the words of Python. This module looks up the type at that place, and
describes it in the words of JSON. It is called for refused calls only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.names import did_you_mean, either, listed
from trunkline.actors.values.structs import FORM

UNKNOWN: Final = object()
"""The given value is not known."""

_AT = re.compile(r"^(?P<problem>.*?)(?: - at (?:`key` in )?`\$(?P<path>[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_NAMED = re.compile(
    r"Object (?P<problem>contains unknown|missing required) field `(?P<field>.*)`$", re.DOTALL
)

_Types = list[inspect.Type]
"""The types that a value may have, without unions and annotations."""


@cache
def type_of_body(decoder: msgspec.json.Decoder[Any]) -> inspect.Type:
    """The type that a decoder decodes."""
    return inspect.type_info(decoder.type)


@cache
def type_of_query(type: type[msgspec.Struct]) -> inspect.Type:
    """The type of a query string."""
    return inspect.type_info(type)


def invalid(
    error: msgspec.ValidationError, where: str, expected: inspect.Type, given: Any = UNKNOWN
) -> Invalid:
    """A validation error as a sentence that begins with the field.

    `where` is "body" or "query", `expected` its type, `given` the value that was checked.
    """
    found = _AT.match(str(error))
    problem = found["problem"] if found else str(error)
    path = (found["path"] or "") if found else ""
    types, given = _follow(path, _alternatives(expected), given)
    field = path.removeprefix(".")
    if named := _NAMED.match(problem):
        name = f"{field}.{named['field']}" if field else named["field"]
        structs = _structs(_chosen(types, given))
        missing = named["problem"] == "missing required"
        sentence = (
            _missing(named["field"], structs, where) if missing else _unknown(named["field"], structs, where)
        )
        return Invalid(f"{name[:300]}: {sentence}.")
    right = _right(types, with_null=where == "body")
    return Invalid(f"{field or f'The {where}'}: {_got(given, types)}; give {right}.")


def empty(expected: inspect.Type) -> Invalid:
    """The error of a call without a body, where its operation needs one of this type."""
    words: dict[str, None] = {}
    for each in _alternatives(expected):
        optional = ""
        if isinstance(each, inspect.StructType) and not _required(each):
            optional = f" with any of {listed(field.encode_name for field in each.fields)}"
        words[_in_words(each) + optional] = None
    return Invalid(
        f"The body is missing; this call needs JSON: {either(list(words))} (Content-Type: application/json)."
    )


# Types.


def _follow(path: str, types: _Types, given: Any) -> tuple[_Types, Any]:
    """The types and the value at a path of msgspec such as `.tags[0].key`."""
    for step in _STEP.finditer(path):
        inner: _Types = []
        for each in _chosen(types, given):
            if step["field"] is not None and isinstance(each, inspect.StructType):
                inner += _types_of_field(each, step["field"])
            elif step["index"] is not None and isinstance(each, inspect.ListType):
                inner += _alternatives(each.item_type)
            elif step["field"] is step["index"] is None and isinstance(each, inspect.DictType):
                inner += _alternatives(each.value_type)
        types, given = inner, _value_at(given, step)
    return types, given


def _value_at(given: Any, step: re.Match[str]) -> Any:
    try:
        if step["field"] is not None:
            return given[step["field"]]
        return given[int(step["index"])] if step["index"] is not None else UNKNOWN
    except (TypeError, LookupError):
        return UNKNOWN


def _alternatives(type: inspect.Type) -> _Types:
    """A type without unions. An annotation with a form stays, since it describes the type better."""
    if isinstance(type, inspect.UnionType):
        return [each for part in type.types for each in _alternatives(part)]
    if isinstance(type, inspect.Metadata) and not (type.extra and FORM in type.extra):
        return _alternatives(type.type)
    return [type]


def _chosen(types: _Types, given: Any) -> _Types:
    """The types without the structs of a tagged union that the given value does not choose."""
    if not isinstance(given, Mapping):
        return types
    tagged = [each for each in types if isinstance(each, inspect.StructType) and each.tag_field]
    chosen = [each for each in tagged if given.get(each.tag_field) == each.tag]
    return [each for each in types if each not in tagged or each in chosen] if chosen else types


def _types_of_field(struct: inspect.StructType, name: str) -> _Types:
    if name == struct.tag_field:
        return [inspect.LiteralType((struct.tag,))]
    return [
        each for field in struct.fields if field.encode_name == name for each in _alternatives(field.type)
    ]


def _structs(types: _Types) -> list[inspect.StructType]:
    return [each for each in types if isinstance(each, inspect.StructType)]


# What is wrong.


def _unknown(name: str, structs: list[inspect.StructType], where: str) -> str:
    """A name that none of the structs has."""
    names: dict[str, None] = {}
    for struct in structs:
        names |= dict.fromkeys([struct.tag_field] if struct.tag_field else [])
        names |= dict.fromkeys(field.encode_name for field in struct.fields)
    if not names:
        return f"there is no such field in this {where}; leave it out"
    meant = did_you_mean(name, names)
    return f"there is no such field in this {where}{meant}{_hint(structs)}; it takes {listed(names)}"


def _missing(name: str, structs: list[inspect.StructType], where: str) -> str:
    """A field that is missing, and what it would have to be."""
    types = [each for struct in structs for each in _types_of_field(struct, name)]
    right = f", {_right(types, with_null=False)}" if types else ""
    return f"is missing; this {where} needs it{right}{_hint(structs)}"


def _hint(structs: list[inspect.StructType]) -> str:
    hints = dict.fromkeys(getattr(struct.cls, "hint", "") for struct in structs)
    return "".join(f"; {hint}" for hint in hints if hint)


def _got(given: Any, types: _Types) -> str:
    """What the value is. Texts are shown only where a word or a number is expected: others may be secrets."""
    if isinstance(given, str):
        if any(isinstance(each, _WORDS_AND_NUMBERS) for each in types):
            return f"is {given[:60]!r}" + ("..." if len(given) > 60 else "")
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
        wanted = any(isinstance(each, inspect.DictType | inspect.StructType) for each in types)
        return "does not fit" if wanted else "is an object"
    return "does not fit"


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


def _right(types: _Types, *, with_null: bool) -> str:
    """The types in words, such as "a string of 1 to 255 characters or null"."""
    words: dict[str, None] = {}
    literals: list[Any] = []
    for each in types:
        if isinstance(each, inspect.LiteralType):
            literals += [value for value in each.values if value not in literals]
        elif not isinstance(each, inspect.NoneType) or with_null:
            words[_in_words(each)] = None
    for integer in [word for word in words if word.startswith("an integer")]:
        if integer.replace("an integer", "a number") in words:
            del words[integer]
    if any(isinstance(each, inspect.Metadata) for each in types):
        words.pop("null", None)  # the form of such a type ends with words of its own
    if literals:
        one_of = "one of " if len(literals) > 1 else ""
        words = {one_of + listed(map(str, literals)): None, **words}
    return either(list(words) or ["another value"])


def _in_words(type: inspect.Type) -> str:
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
        case inspect.StructType():
            required = _required(type)
            return f"an object with {listed(required)}" if required else "an object"
        case inspect.DictType():
            return "an object"
        case _:
            return "another value"


def _required(struct: inspect.StructType) -> list[str]:
    """The names that an object must have."""
    tag = [struct.tag_field] if struct.tag_field else []
    return tag + [field.encode_name for field in struct.fields if field.required]


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
