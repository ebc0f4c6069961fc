"""The grammar of the advanced query as JSON Schema, for the OpenAPI document.

Owns the schemas: one for each table of fields, and those of the conditions that they share. Does not own the
grammar; the compiler does, and a test compares the two. What a schema cannot express (that a text is a time,
how deep and how large a query may be) only the compiler checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Meta

from trunkline.actors.core.query.conditions import ID_OPERATORS, OPERATORS, TEXT_OPERATORS
from trunkline.actors.core.query.fields import Fields
from trunkline.actors.core.query.parts import CONFIG_CHARS_MAX, PART_CHARS_MAX
from trunkline.actors.core.query.problems import ITEMS_MAX, TAG_CHARS_MAX

Schema = dict[str, Any]

_REF: Final = "#/components/schemas/{}"


def component(resource: str) -> str:
    """The name of the schema of queries over a resource: `DeviceQuery` for `device`."""
    return "".join(word.capitalize() for word in resource.split()) + "Query"


def reference(fields: Fields) -> Schema:
    """A reference to the schema of the queries over these fields."""
    return {"$ref": _REF.format(component(fields.resource))}


def components(tables: Iterable[Fields]) -> dict[str, Schema]:
    """The schemas of the queries over these fields, and those that they share, by name."""
    shared = {
        "QueryValue": _value(),
        "QueryId": _id(),
        "QueryTime": _time(),
        "QueryTags": _tags(),
        "QueryParts": _parts(),
    }
    return shared | {component(fields.resource): _query(fields) for fields in tables}


def _query(fields: Fields) -> Schema:
    inner = {"type": "array", "items": reference(fields), "minItems": 1, "maxItems": ITEMS_MAX}
    known = {name: {"$ref": _REF.format(_CONDITIONS[field.kind])} for name, field in fields.items()}
    schema: Schema = {
        "type": "object",
        "description": f"An advanced query over the fields of a {fields.resource}",
        "properties": {"$and": inner, "$or": inner, "$nor": inner, **known},
        "additionalProperties": False,
    }
    if fields.open:
        # A column of any name; the pattern must exclude the names of the known fields.
        names = "|".join(known)
        schema["patternProperties"] = {
            f"^(?!(?:{names})$)[0-9a-zA-Z_-]{{1,255}}$": {"$ref": _REF.format("QueryValue")}
        }
    return schema


_CONDITIONS: Final = {
    "value": "QueryValue",
    "values": "QueryValue",
    "id": "QueryId",
    "ids": "QueryId",
    "time": "QueryTime",
    "tags": "QueryTags",
    "parts": "QueryParts",
}


def _value() -> Schema:
    literal = {"type": ["string", "number", "boolean", "null"]}
    item = {"type": ["string", "number", "boolean"]}
    return {"description": "A condition on a value", "anyOf": [literal, _operators(literal, item)]}


def _time() -> Schema:
    date = {
        "type": "object",
        "properties": {"$date": {"type": "string"}},
        "required": ["$date"],
        "additionalProperties": False,
    }
    literal = {"anyOf": [{"type": ["string", "number", "null"]}, date]}
    item = {"anyOf": [{"type": ["string", "number"]}, date]}
    return {
        "description": "A condition on a time: ISO 8601 text or milliseconds since 1970",
        "anyOf": [*literal["anyOf"], _operators(literal, item)],
    }


def _id() -> Schema:
    item = {"type": "string", "pattern": "^[A-Fa-f0-9]{24}$"}
    literal = {**item, "type": ["string", "null"]}
    operators = {name: _operand(name, literal, item) for name in ID_OPERATORS}
    one = {"type": "object", "properties": operators, "additionalProperties": False}
    return {
        "description": "A condition on an identifier",
        "anyOf": [literal, {**one, "minProperties": 1, "maxProperties": 1}],
    }


def _operators(literal: Schema, item: Schema) -> Schema:
    """Any number of operators, at least one of which compares."""
    operators = {name: _operand(name, literal, item) for name in OPERATORS}
    return {
        "type": "object",
        "properties": {**operators, "$ci": {"type": "boolean"}},
        "additionalProperties": False,
        "anyOf": [{"required": [name]} for name in operators],
    }


def _operand(name: str, literal: Schema, item: Schema) -> Schema:
    if name in ("$in", "$nin"):
        return {"type": "array", "items": item, "maxItems": ITEMS_MAX}
    if name in TEXT_OPERATORS:
        return {"type": "string", "minLength": 1}
    return literal


def _tags() -> Schema:
    text = {"type": "string", "maxLength": TAG_CHARS_MAX}
    texts = {"type": "array", "items": text, "maxItems": ITEMS_MAX}
    side = {"anyOf": [{**text, "type": ["string", "null"]}, _only("$in", texts), _only("$nin", texts)]}
    pair = {
        "type": "object",
        "properties": {"$tagKey": side, "$tagValue": side},
        "minProperties": 1,
        "additionalProperties": False,
    }
    by_key = {
        "type": "object",
        "patternProperties": {r"^[0-9a-zA-Z_-]{1,255}$": side},
        "minProperties": 1,
        "additionalProperties": False,
    }
    forms = [{"type": "null"}, pair, by_key]
    either = {"anyOf": forms}
    return {
        "description": "A condition on tags",
        "anyOf": [*forms, _only("$eq", either), _only("$ne", either)],
    }


def _parts() -> Schema:
    value = {"type": ["string", "number", "boolean", "null"], "maxLength": CONFIG_CHARS_MAX}
    part = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "maxLength": PART_CHARS_MAX},
            "key": {"type": "string", "maxLength": CONFIG_CHARS_MAX},
            "config": {
                "type": "object",
                "patternProperties": {r"^[0-9a-zA-Z_-]{1,255}$": value},
                "additionalProperties": False,
            },
        },
        "required": ["type"],
        "additionalProperties": False,
    }
    forms = [{"type": "null"}, part]
    either = {"anyOf": forms}
    return {
        "description": "A condition on triggers or nodes",
        "anyOf": [*forms, _only("$eq", either), _only("$ne", either)],
    }


def _only(name: str, schema: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


QUERY_FIELDS = "queryFields"
"""The name in the `extra` of a `Meta` under which an advanced query has the table of its fields."""


def query_over(fields: Fields) -> Meta:
    """The annotation that marks a JSON object as an advanced query over these fields."""
    return Meta(extra={QUERY_FIELDS: fields}, extra_json_schema=reference(fields))
