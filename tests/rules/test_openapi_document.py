"""The OpenAPI document explains itself: each field and parameter is described, each body has an example of its type."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from trunkline.actors.fleet.recipes.resource import RECIPES
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH, Group, Route
from trunkline.http.calls.route_table import RouteTable
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


def test_a_sentence_may_stand_beside_its_field_and_that_of_an_id_follows_from_its_name() -> None:
    shown: dict[str, Any] = {
        "place": {"anyOf": [{"type": "string", "description": "Where it is"}, {"type": "null"}]},
        "deviceRecipeId": {"type": "string"},
    }
    schemas = {"Probe": {"type": "object", "properties": shown}}
    descriptions.describe({"components": {"schemas": schemas}, "paths": {}})
    assert shown["place"]["description"] == "Where it is"
    assert shown["deviceRecipeId"]["description"] == "The id of the device recipe"
    assert descriptions.of_parameter("path", "deviceRecipeId") == "The id of the device recipe"
    assert descriptions.of_parameter("path", "Id") is None


def test_a_row_may_name_its_group_and_its_examples() -> None:
    group, body = Group("Probes", "What is probed."), {"name": "a"}
    rows = resource_routes(
        APP_PATH + "/device-recipes", RECIPES, group=group, examples=(body, {"description": "b"})
    )
    made = document(RouteTable(rows), "test")
    tags = [tag["name"] for tag in made["tags"]]
    assert tags.index("Application templates") < tags.index("Probes") < tags.index("Current user")
    create = made["paths"][APP_PATH + "/device-recipes"]["post"]
    assert create["tags"] == ["Probes"]
    assert create["requestBody"]["content"]["application/json"]["example"] == body


def test_an_id_without_an_example_gets_one_of_its_own() -> None:
    assert examples.id_of("deviceId") == examples.IDS["deviceId"]
    ids = {examples.id_of(name) for name in ("probeId", "otherProbeId", *examples.IDS)}
    assert len(ids) == len(examples.IDS) + 2
    assert all(re.fullmatch("[0-9a-f]{24}", id) for id in ids)


def test_every_description_is_used(api: dict[str, Any]) -> None:
    named = [(owner, name) for owner, name, _ in descriptions.fields(api)]
    for route in TABLE.routes:
        named += [(route.query.__name__, name) for name in route.query.__struct_encode_fields__]
        named += [("path", part.placeholder) for part in route.path_parameters]
    used = {f"{owner}.{name}" if f"{owner}.{name}" in descriptions.FIELDS else name for owner, name in named}
    assert descriptions.FIELDS.keys() - used == set()


def test_every_body_has_an_example_of_its_type() -> None:
    routes = {route.operation: route for route in TABLE.routes}
    assert examples.BODIES.keys() <= routes.keys()
    for operation, route in routes.items():
        example = examples.of_body(route)
        assert route.example is None or operation not in examples.BODIES, operation
        if route.decoder is not None:
            assert example is not None, f"{operation}: give its row an example, or add one to BODIES"
            route.decoder.decode(msgspec.json.encode(example))
        elif route.form is not None:
            assert example is None or msgspec.convert(example, route.form, strict=False)
        else:
            assert example is None, operation


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
