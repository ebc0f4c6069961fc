"""The published schemas take what the compiler takes, and nothing else but what a schema cannot tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.actors.query_strategies import HEX_IDS, PLAIN, Json
from tests.rounds import examples
from trunkline.actors.catalogue import QUERY_FIELDS
from trunkline.actors.core.query import schema as query_schema
from trunkline.actors.core.query.compile import QueryError, compile_query
from trunkline.actors.core.query.fields import Field
from trunkline.actors.data.tables.messages import ROW_FIELDS
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS

DRAWN = {
    "v": "name",
    "w": "deviceClass",
    "list": "attributeName",
    "id": "gatewayId",
    "ids": "ancestorId",
    "ref": "connectionStatus",
    "at": "creationDate",
    "tags": "tags",
}
"""For each field of drawn queries one of devices that is of its kind."""


TABLES = {fields.resource: fields for fields in QUERY_FIELDS}


def validator(resource: str) -> Draft202012Validator:
    schemas = query_schema.components(QUERY_FIELDS)
    document = {
        "$ref": f"#/components/schemas/{query_schema.component(resource)}",
        "components": {"schemas": schemas},
    }
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


DEVICE = validator("device")


def over_devices(query: Json) -> Json:
    return {
        DRAWN.get(key, key): [over_devices(part) for part in inner]
        if key in ("$and", "$or", "$nor")
        else inner
        for key, inner in query.items()
    }


@given(PLAIN.queries.map(over_devices))
def test_a_query_that_compiles_is_valid(query: Json) -> None:
    compile_query(query, DEVICE_FIELDS)
    assert DEVICE.is_valid(query), query


words = [
    *("name", "gatewayId", "ancestorId", "creationDate", "tags", "floor", "colour"),
    *("$and", "$or", "$tagKey"),
]
operators = ["$eq", "$ne", "$gt", "$lte", "$in", "$nin", "$ci", "$contains", "$date", "$tagValue", "$regex"]
json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "a", "2024-05-01", *HEX_IDS])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from([*words, *operators]), inner, max_size=2)
    ),
    max_leaves=6,
)
a_condition = st.one_of(json_values, st.dictionaries(st.sampled_from(operators), json_values, max_size=2))


@settings(max_examples=examples(350))
@given(st.dictionaries(st.sampled_from(words), a_condition, max_size=2))
@example({"tags": {}})
@example({"name": {"$ci": True}})
@example({"name": {"$in": [None]}})
@example({"name": {"$contains": ""}})
@example({"gatewayId": {"$gt": HEX_IDS[0], "$lt": HEX_IDS[1]}})
@example({"gatewayId": {"$contains": "0a"}})
@example({"creationDate": True})
@example({"creationDate": {"$eq": {"$date": "2024-05-01"}}})
@example({"tags": {"$ne": {"$eq": None}}})
@example({"tags": {"$tagKey": {"$in": [], "$nin": []}}})
@example({"$and": []})
def test_whatever_is_refused_is_not_valid(query: Json) -> None:
    refused = refusal(query)
    # No schema tells which texts are moments.
    if "is not an ISO 8601 time" not in refused and "not a valid date and time" not in refused:
        assert DEVICE.is_valid(query) == (not refused), refused


def refusal(query: Json) -> str:
    try:
        compile_query(query, DEVICE_FIELDS)
    except QueryError as error:
        return error.problem
    return ""


@pytest.mark.parametrize("resource", TABLES)
def test_each_resource_has_a_schema_of_its_fields(resource: str) -> None:
    known = validator(resource)
    assert known.is_valid({"$or": [{name: None} for name in TABLES[resource]]})
    assert known.is_valid({"colour": "red"}) == (resource == "row")
    assert not known.is_valid({"$not": []})


def test_a_row_has_columns_of_any_name_beside_its_fields() -> None:
    known = validator("row")
    fields = {**ROW_FIELDS, "0": Field("value"), "idle": Field("value")}
    queries: list[tuple[Any, bool]] = [
        ({"0": {"$gt": 5}, "idle": True}, True),
        ({"id": {"$gt": HEX_IDS[0], "$lt": HEX_IDS[1]}}, True),
        ({"createdAt": {"$gt": {"$date": "2024-05-01"}}}, True),
        ({"createdAt": True}, False),
        ({"idle": []}, False),
        ({"no column": 1}, False),
    ]
    for query, valid in queries:
        assert known.is_valid(query) == valid
        if valid:
            compile_query(query, fields)
        else:
            with pytest.raises(QueryError):
                compile_query(query, fields)
