"""The worst query strings of each operation within the bounds, and the worst advanced queries, from the API document.

Nothing here knows an operation or a field: what is blown up are the parameters that the document names, with what
their schemas allow, and an advanced query is made of the conditions that its schema has. So a parameter, a field or an
operator that is added later is covered too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any, NamedTuple
from urllib.parse import quote

from trunkline.actors.core.query.problems import ITEMS_MAX
from trunkline.http.calls.query_string import DEPTH_MAX, FIELDS_MAX

Json = Any

SPARE_BYTES = 6144
"""What the rest of the head of a request may need."""
_TEXTS = ("a", "1", "*", "(", ",", "a,", "ä", "[", ".", "%", "{{a}}", "2026-01-01T")


class WorstQuery(NamedTuple):
    """A query string: which parameter is blown up and how, and the text behind the question mark."""

    label: str
    text: str


def worst_queries(api: Json, parameters: list[Json], head_bytes_max: int) -> Iterator[WorstQuery]:
    """All of the query strings of an operation, the rest of whose parameters are the shortest that are right."""
    budget = head_bytes_max - SPARE_BYTES
    given = [each for each in (resolved(api, each) for each in parameters) if each["in"] == "query"]
    needed = {each["name"]: quote(str(each.get("example", "a"))) for each in given if each.get("required")}
    for each in given:
        name = each["name"]
        schema = each.get("schema") or each["content"]["application/json"]["schema"]
        others = "".join(f"{other}={value}&" for other, value in needed.items() if other != name)
        for how, text in _of_parameter(api, name, schema, budget - len(others)):
            yield WorstQuery(f"?{name} as {how}", others + text)
    yield WorstQuery("?unknown names", "&".join(f"n{number}=1" for number in range(FIELDS_MAX)))


def _of_parameter(api: Json, name: str, schema: Json, budget: int) -> Iterator[tuple[str, str]]:
    if "enum" in schema or schema.get("type") == "boolean":
        return
    budget -= len(name) + 1
    most = min(budget, schema.get("maxLength", budget))
    for text in _TEXTS if most > ITEMS_MAX else _TEXTS[:2]:
        size = len(quote(text))
        yield (
            f"{most} of {text!r}",
            f"{name}={quote((text * (most // size + 1))[: min(most, budget // size)])}",
        )
    yield "given often", "&".join([f"{name}=1"] * min(FIELDS_MAX, budget // (len(name) + 3)))
    if schema.get("type") in ("string", "integer", "number"):
        return
    yield (
        "a list in brackets",
        "&".join(f"{name}[{number}][key]=1" for number in range(min(FIELDS_MAX, budget // (len(name) + 14)))),
    )
    deep = name + "[$or][0]" * (DEPTH_MAX // 2 - 1)
    yield "deep brackets", "&".join([f"{deep}[n{number}]=1" for number in range(budget // (len(deep) + 8))])
    yield "[0, ...]", f"{name}={'[' + '0,' * ((budget - 4) // 2) + '0]'}"
    for how, value in worst_conditions(api, schema, budget // 2):
        yield how, f"{name}={quote(json.dumps(value, separators=(',', ':')), safe=_PLAIN)}"


_PLAIN = '{}[]":,$'


def worst_conditions(api: Json, schema: Json, budget: int) -> Iterator[tuple[str, Json]]:
    """The worst advanced queries whose JSON has so many bytes; none if the schema is not that of one."""
    schema = resolved(api, schema)
    if not is_advanced(schema):
        return
    seen: set[str] = set()
    for field, condition in schema["properties"].items():
        kind = json.dumps(condition)
        if field.startswith("$") or kind in seen:
            continue
        seen.add(kind)
        each = [{field: value} for value in _conditions(api, condition)]
        yield f"conditions on {field}", _wide(each, budget)
        lists = [one for one in each if len(json.dumps(one)) > 10 * ITEMS_MAX]
        if lists:
            yield f"lists for {field}", _wide(lists, budget)
        yield f"a long text for {field}", {field: {"$contains": "a" * (budget - 100)}}
        deep = each[0]
        for operator in islice(cycle(("$and", "$or", "$nor")), DEPTH_MAX // 2 - 1):
            deep = {operator: [deep, each[-1]]}
        yield f"deep conditions on {field}", deep


def resolved(api: Json, schema: Json) -> Json:
    """A schema without a reference."""
    while "$ref" in schema:
        place = api
        for name in schema["$ref"].removeprefix("#/").split("/"):
            place = place[name]
        schema = place
    return schema


def is_advanced(schema: Json) -> bool:
    """Whether a schema is that of an advanced query."""
    return "$and" in schema.get("properties", {})


def _wide(conditions: list[Json], budget: int) -> Json:
    """As many of the conditions in turn as fit, in groups of the longest that a group may be."""
    size = sum(len(json.dumps(each, separators=(",", ":"))) + 1 for each in conditions) / len(conditions)
    count = max(1, int(budget * 0.95 / size))
    endless = cycle(conditions)
    groups: list[Json] = []
    while count > 0 and len(groups) < ITEMS_MAX:
        groups.append({"$or": list(islice(endless, min(ITEMS_MAX, count)))})
        count -= ITEMS_MAX
    return {"$and": groups}


def _conditions(api: Json, schema: Json) -> Iterator[Json]:
    """A value for each choice of a condition, and for each of its operators."""
    schema = resolved(api, schema)
    for choice in schema.get("anyOf") or [schema]:
        properties = choice.get("properties", {})
        for name, operand in properties.items():
            if name.startswith("$"):
                yield {name: _operand(operand)}
        if not properties:
            yield _operand(choice)


def _operand(schema: Json) -> Json:
    choices = schema.get("anyOf")
    schema = choices[0] if choices else schema
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array":
        item = _operand(schema.get("items", {}))
        return [f"{item}{number}" for number in range(ITEMS_MAX)] if len(item) < 24 else [item] * ITEMS_MAX
    if kind in ("null", "object", "boolean"):
        return {"null": None, "object": {"a": "b"}, "boolean": True}[kind]
    if kind in ("number", "integer"):
        return 1
    return "6920c0de0000000000000001" if "24" in schema.get("pattern", "") else "a"
