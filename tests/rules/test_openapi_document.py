"""The OpenAPI document explains itself: each field and parameter is described, each body has an example of its type."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.values.changes import changes_of
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Id, Name, RecordView
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


Depth = Annotated[float, Meta(ge=0, description="How deep it was probed, in metres")]


class ProbePost(Body, frozen=True):
    """A new probe."""

    name: Name
    depth: Depth | UnsetType = UNSET


@changes_of(ProbePost)
class ProbePatch(Body, frozen=True):
    """Changes of a probe."""


class ProbeView(RecordView, frozen=True, kw_only=True):
    """A probe."""

    soil_probe_id: Id
    application_id: Id
    name: str
    depth: Depth | None = None


PROBES = Resource(
    name="soilProbe",
    kind=Kind(name="soilProbe", noun="soil probe", counted_as=None, audited_as="SoilProbe"),
    post=ProbePost,
    patch=ProbePatch,
    page=Page,
    view=ProbeView,
)


def test_a_new_resource_is_documented_by_itself_and_its_row() -> None:
    """No table of this package has a line about it: `docs/guides/extending.md` says what somebody who adds one does."""
    bodies = {"name": "a"}, {"depth": 2}
    path = APP_PATH + "/soil-probes"
    group = Group("Soil probes", "What lies in the ground.")
    api = document(RouteTable(resource_routes(path, PROBES, group=group, examples=bodies)), "test")
    tags = [tag["name"] for tag in api["tags"]]
    assert tags.index("Application templates") < tags.index("Soil probes") < tags.index("Current user")
    assert [owner for owner, _, schema in descriptions.fields(api) if "description" not in schema] == []
    properties = api["components"]["schemas"]["ProbeView"]["properties"]
    assert properties["depth"]["description"] == "How deep it was probed, in metres"
    assert properties["soilProbeId"]["description"].startswith("The id of the soil probe")
    one = api["paths"][path + "/{soilProbeId}"]
    for operation, body in ((api["paths"][path]["post"], bodies[0]), (one["patch"], bodies[1])):
        assert operation["tags"] == ["Soil probes"]
        assert operation["requestBody"]["content"]["application/json"]["example"] == body
    (parameter,) = [each for each in one["get"]["parameters"] if each.get("name") == "soilProbeId"]
    assert parameter["description"] == "The id of the soil probe"
    assert re.fullmatch("[0-9a-f]{24}", parameter["example"])


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
