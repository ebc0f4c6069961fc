"""What the keywords of JSON schemas of draft 4 mean.

Regular expressions are compiled by `schema_patterns`. Unknown keywords and formats are ignored, as the draft says.
Whole numbers such as 1.0 are integers, and values are equal as JSON is: 1 and 1.0, objects with their keys in any
order.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas.values import double, to_text, type_of
from trunkline.actors.engine.json_equality import equality_key
from trunkline.actors.engine.json_formats import FORMATS
from trunkline.actors.engine.json_schema import Check, Compile, Compiler, Place, Rule, Schema, SchemaError
from trunkline.actors.engine.schema_patterns import compiled_pattern


def compile_schema(source: Any) -> Schema:
    """Compile a schema. Raises `SchemaError`."""
    return Compiler(source, KEYWORDS).whole()


def _number(value: Any, name: str) -> float:
    if type_of(value) != "number":
        raise SchemaError(f"{name} is of the type {type_of(value)}, not a number.")
    return double(value)


def _limit(name: str, exclusive_name: str, sign: int) -> Compile:
    def compile(_: Compiler, value: Any, source: dict[str, Any]) -> Rule:
        limit, is_exclusive = _number(value, name), source.get(exclusive_name) is True
        words = ("less", "at most") if sign < 0 else ("more", "at least")
        message = (
            f"is not {words[0]} than {to_text(limit)}"
            if is_exclusive
            else f"is not {words[1]} {to_text(limit)}"
        )

        def rule(check: Check, value: Any, place: Place) -> None:
            if type_of(value) == "number":
                above = sign * (double(value) - limit) if value != limit else 0
                if above < 0 or (is_exclusive and above == 0):
                    check.tell(place, message)

        return rule

    return compile


def _multiple_of(_: Compiler, value: Any, __: dict[str, Any]) -> Rule:
    factor = _number(value, "multipleOf")
    if factor <= 0:
        raise SchemaError("multipleOf is not above 0.")

    def rule(check: Check, value: Any, place: Place) -> None:
        if type_of(value) != "number":
            return
        times = double(value) / factor
        # 0.3 is three times 0.1, though not in binary.
        if abs(times) < _WHOLE_FROM and abs(times - round(times)) > _NEAR * max(1.0, abs(times)):
            check.tell(place, f"is not a multiple of {to_text(factor)}")

    return rule


_WHOLE_FROM: Final = 2.0**53
_NEAR: Final = 1e-12


def _size(name: str, kind: type[list[Any] | dict[str, Any] | str], sign: int, unit: str) -> Compile:
    def compile(_: Compiler, value: Any, __: dict[str, Any]) -> Rule:
        limit = _number(value, name)
        if limit < 0 or limit != int(limit):
            raise SchemaError(f"{name} is not a whole number from 0.")
        message = f"has {'fewer' if sign > 0 else 'more'} than {to_text(limit)} {unit}"

        def rule(check: Check, value: Any, place: Place) -> None:
            if isinstance(value, kind) and sign * (len(value) - limit) < 0:
                check.tell(place, message)

        return rule

    return compile


def _type(_: Compiler, value: Any, __: dict[str, Any]) -> Rule:
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(each, str) and each in _TYPES for each in names):
        raise SchemaError(f"type is to be one of {', '.join(_TYPES)}, or a list of them.")
    wanted, message = frozenset(names), f"is not of the type {' or '.join(names)}"

    def rule(check: Check, value: Any, place: Place) -> None:
        name = type_of(value)
        if name in wanted:
            return
        if name == "number" and "integer" in wanted and (isinstance(value, int) or value.is_integer()):
            return
        check.tell(place, message)

    return rule


_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def _enum(_: Compiler, value: Any, __: dict[str, Any]) -> Rule:
    if not isinstance(value, list) or not value:
        raise SchemaError("enum is not a list of values.")
    keys = {equality_key(each) for each in value}

    def rule(check: Check, value: Any, place: Place) -> None:
        if equality_key(value, check.spend) not in keys:
            check.tell(place, "is none of the allowed values")

    return rule


def _unique_items(_: Compiler, value: Any, __: dict[str, Any]) -> Rule:
    def rule(check: Check, items: Any, place: Place) -> None:
        if (
            value is True
            and isinstance(items, list)
            and len({equality_key(each, check.spend) for each in items}) < len(items)
        ):
            check.tell(place, "has equal items")

    return rule


def _pattern(compiler: Compiler, value: Any, __: dict[str, Any]) -> Rule:
    matches = compiled_pattern(compiler, value, "pattern")

    def rule(check: Check, subject: Any, place: Place) -> None:
        if isinstance(subject, str) and not matches(check, subject):
            check.tell(place, f"does not match the pattern {value}")

    return rule


def _format(_: Compiler, value: Any, __: dict[str, Any]) -> Rule:
    is_one = FORMATS.get(value) if isinstance(value, str) else None

    def rule(check: Check, subject: Any, place: Place) -> None:
        if is_one is not None and isinstance(subject, str) and not is_one(subject):
            check.tell(place, f"is not a valid {value}")

    return rule


def _required(_: Compiler, value: Any, __: dict[str, Any]) -> Rule:
    names = _texts(value, "required")

    def rule(check: Check, subject: Any, place: Place) -> None:
        if isinstance(subject, dict):
            check.spend(len(names))
            for name in names:
                if name not in subject:
                    check.tell((place, name), "is required")

    return rule


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SchemaError(f"{name} is not a list of texts.")
    return value


def _properties(compiler: Compiler, value: Any, _: dict[str, Any]) -> Rule:
    schemas = compiler.named(value, "properties")

    def rule(check: Check, subject: Any, place: Place) -> None:
        if isinstance(subject, dict):
            check.spend(len(schemas))
            for name, schema in schemas.items():
                if name in subject:
                    check.run(schema, subject[name], (place, name))

    return rule


def _pattern_properties(compiler: Compiler, value: Any, _: dict[str, Any]) -> Rule:
    schemas = compiler.named(value, "patternProperties")
    patterns = [
        (compiled_pattern(compiler, text, "patternProperties"), schema) for text, schema in schemas.items()
    ]

    def rule(check: Check, subject: Any, place: Place) -> None:
        if isinstance(subject, dict):
            for name, each in subject.items():
                for matches, schema in patterns:
                    if matches(check, name):
                        check.run(schema, each, (place, name))

    return rule


def _additional_properties(compiler: Compiler, value: Any, source: dict[str, Any]) -> Rule:
    known = frozenset(compiler.named(source.get("properties", {}), "properties"))
    patterns = [
        compiled_pattern(compiler, text, "patternProperties")
        for text in compiler.named(source.get("patternProperties", {}), "patternProperties")
    ]
    schema = _schema_or_boolean(compiler, value, "additionalProperties")

    def rule(check: Check, subject: Any, place: Place) -> None:
        if not isinstance(subject, dict) or schema is True:
            return
        for name, each in subject.items():
            check.spend(1)
            if name in known or any(matches(check, name) for matches in patterns):
                continue
            if isinstance(schema, Schema):
                check.run(schema, each, (place, name))
            else:
                check.tell((place, name), "is not described, so it is not allowed")

    return rule


def _schema_or_boolean(compiler: Compiler, value: Any, name: str) -> Schema | bool:
    return value if isinstance(value, bool) else compiler.schema(value, name)


def _items(compiler: Compiler, value: Any, source: dict[str, Any]) -> Rule:
    first = compiler.schemas(value, "items") if isinstance(value, list) and value else []
    rest: Schema | bool = True
    if not isinstance(value, list):
        rest = compiler.schema(value, "items")
    elif "additionalItems" in source:
        rest = _schema_or_boolean(compiler, source["additionalItems"], "additionalItems")

    def rule(check: Check, subject: Any, place: Place) -> None:
        if not isinstance(subject, list):
            return
        for at, (schema, each) in enumerate(zip(first, subject, strict=False)):
            check.run(schema, each, (place, at))
        if isinstance(rest, Schema):
            for at in range(len(first), len(subject)):
                check.spend(1)
                check.run(rest, subject[at], (place, at))
        elif rest is False and len(subject) > len(first):
            check.tell(place, f"has more than the {len(first)} items that are described")

    return rule


def _dependencies(compiler: Compiler, value: Any, _: dict[str, Any]) -> Rule:
    if not isinstance(value, dict):
        raise SchemaError("dependencies is not an object.")
    names = {
        key: _texts(each, f"dependencies.{key}") for key, each in value.items() if isinstance(each, list)
    }
    schemas = {
        key: compiler.schema(each, f"dependencies.{key}") for key, each in value.items() if key not in names
    }

    def rule(check: Check, subject: Any, place: Place) -> None:
        if not isinstance(subject, dict):
            return
        for key, needed in names.items():
            check.spend(1 + len(needed))
            if key in subject:
                for name in needed:
                    if name not in subject:
                        check.tell((place, name), f"is required beside {key}")
        for key, schema in schemas.items():
            if key in subject:
                check.run(schema, subject, place)

    return rule


def _all_of(compiler: Compiler, value: Any, _: dict[str, Any]) -> Rule:
    schemas = compiler.schemas(value, "allOf")

    def rule(check: Check, subject: Any, place: Place) -> None:
        for schema in schemas:
            check.run(schema, subject, place)

    return rule


def _any_of(compiler: Compiler, value: Any, _: dict[str, Any]) -> Rule:
    schemas = compiler.schemas(value, "anyOf")

    def rule(check: Check, subject: Any, place: Place) -> None:
        if not any(check.fits(schema, subject) for schema in schemas):
            check.tell(place, "fits none of the schemas of anyOf")

    return rule


def _one_of(compiler: Compiler, value: Any, _: dict[str, Any]) -> Rule:
    schemas = compiler.schemas(value, "oneOf")

    def rule(check: Check, subject: Any, place: Place) -> None:
        fitting = sum(check.fits(schema, subject) for schema in schemas)
        if fitting != 1:
            check.tell(place, f"fits {fitting or 'none'} of the schemas of oneOf, not exactly one")

    return rule


def _not(compiler: Compiler, value: Any, _: dict[str, Any]) -> Rule:
    schema = compiler.schema(value, "not")

    def rule(check: Check, subject: Any, place: Place) -> None:
        if check.fits(schema, subject):
            check.tell(place, "fits the schema of not")

    return rule


KEYWORDS: Final[dict[str, Compile]] = {
    "additionalProperties": _additional_properties,
    "allOf": _all_of,
    "anyOf": _any_of,
    "dependencies": _dependencies,
    "enum": _enum,
    "format": _format,
    "items": _items,
    "maxItems": _size("maxItems", list, -1, "items"),
    "maxLength": _size("maxLength", str, -1, "characters"),
    "maxProperties": _size("maxProperties", dict, -1, "properties"),
    "maximum": _limit("maximum", "exclusiveMaximum", -1),
    "minItems": _size("minItems", list, 1, "items"),
    "minLength": _size("minLength", str, 1, "characters"),
    "minProperties": _size("minProperties", dict, 1, "properties"),
    "minimum": _limit("minimum", "exclusiveMinimum", 1),
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "properties": _properties,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique_items,
}
