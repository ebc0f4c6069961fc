"""The OpenAPI document explains itself: each field and parameter is described, each body has an example of its type."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trunkline.http.calls.route import Route
from trunkline.http.openapi import descriptions, examples
from trunkline.http.openapi.document import document
from trunkline.http.routes import TABLE

WHERE = "add a sentence to http/openapi/descriptions.py"


@pytest.fixture(scope="module")
def api() -> dict[str, Any]:
    return document(TABLE, "test")


def own_parameters(api: dict[str, Any], route: Route) -> list[dict[str, Any]]:
    """The parameters of an operation without those that every operation takes."""
    operation = api["paths"][route.path][route.method.lower()]
    return [each for each in operation["parameters"] if "$ref" not in each]


def test_every_field_and_parameter_is_described(api: dict[str, Any]) -> None:
    bare = [
        f"{owner}.{name}" for owner, name, schema in descriptions.fields(api) if "description" not in schema
    ]
    assert bare == [], WHERE
    for route in TABLE.routes:
        for parameter in own_parameters(api, route):
            assert parameter.get("description"), (route.operation, parameter["name"], WHERE)


def test_every_description_is_used(api: dict[str, Any]) -> None:
    named = [(owner, name) for owner, name, _ in descriptions.fields(api)]
    for route in TABLE.routes:
        named += [(route.query.__name__, name) for name in route.query.__struct_encode_fields__]
        named += [("path", part.placeholder) for part in route.path_parameters]
    used = {f"{owner}.{name}" if f"{owner}.{name}" in descriptions.FIELDS else name for owner, name in named}
    assert descriptions.FIELDS.keys() - used == set()


def test_every_body_has_an_example_of_its_type() -> None:
    routes = {route.operation: route for route in TABLE.routes}
    forms = {operation: form for operation, route in routes.items() if (form := route.form) is not None}
    with_body = {operation for operation, route in routes.items() if route.decoder is not None}
    assert examples.BODIES.keys() - forms.keys() == with_body
    for operation, example in examples.BODIES.items():
        decoder = routes[operation].decoder
        if decoder is None:
            msgspec.convert(example, forms[operation], strict=False)
        else:
            decoder.decode(msgspec.json.encode(example))


def test_exactly_the_required_parameters_have_examples(api: dict[str, Any]) -> None:
    """The page fills in what has an example, and a filter that nobody asked for hides what one looks for."""
    for route in TABLE.routes:
        for parameter in own_parameters(api, route):
            assert ("example" in parameter) == parameter["required"], (route.operation, parameter["name"])


def test_every_operation_has_a_group_that_is_described(api: dict[str, Any]) -> None:
    described = {tag["name"]: tag["description"] for tag in api["tags"]}
    used = {tag for item in api["paths"].values() for operation in item.values() for tag in operation["tags"]}
    assert used == described.keys()
    assert next(iter(described)) == "Log in"


def test_a_list_shows_the_fields_that_it_has_and_no_others(api: dict[str, Any]) -> None:
    """Its page and what was asked for, the ids of its path, and what its row or its resource says beside that."""
    found: dict[str, set[str]] = {}
    for route in TABLE.routes:
        if isinstance(route.reply, tuple):
            operation = api["paths"][route.path]["get"]
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            assert schema["additionalProperties"] is False
            common = {
                "items",
                "count",
                "totalCount",
                "page",
                "perPage",
                "sortField",
                "sortDirection",
                "filter",
            }
            found[route.operation] = set(schema["properties"]) - common - {"filterField", "_type", "_links"}
    assert found["experienceEndpoints.get"] == {"applicationId", "experienceGroupId", "notFoundRequestCount"}
    assert found["devices.get"] == {"applicationId", "query", "deviceClass", "tagFilter", "parentId"}
    assert found["flowVersions.get"] == {"applicationId", "flowId", "query"}
    assert found["userApiTokens.get"] == {"ownerId", "ownerType"}
    assert found["dataTables.get"] == {"applicationId"}
    assert found["orgs.get"] == set()
