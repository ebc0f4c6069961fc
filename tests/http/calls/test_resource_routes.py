"""The five routes of a plain resource: what they take from the resource, and what a call of `resource_routes` adds."""

from __future__ import annotations

from dataclasses import replace

from trunkline.actors.catalogue import RESOURCES
from trunkline.actors.core.records.messages import GetRecord, ListRecords
from trunkline.actors.fleet.recipes.resource import RECIPES, RecipeShape
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH, NoQuery, Route
from trunkline.http.routes import TABLE

PATH = APP_PATH + "/device-recipes"


def by_method(routes: tuple[Route, ...]) -> dict[str, Route]:
    """The list under LIST, the others under their methods."""
    return {"LIST" if each.message is ListRecords else each.method: each for each in routes}


def test_a_choice_is_also_one_of_changes_unless_only_a_get_chooses() -> None:
    rows = by_method(resource_routes(PATH, RECIPES))
    assert {name: rows[name].query for name in ("GET", "POST", "PATCH")} == dict.fromkeys(
        ("GET", "POST", "PATCH"), RecipeShape
    )
    rows = by_method(resource_routes(PATH, replace(RECIPES, only_get_chooses=True)))
    assert rows["GET"].query is RecipeShape
    assert rows["POST"].query is rows["PATCH"].query is NoQuery


def test_a_resource_says_what_stands_for_a_record_in_paths() -> None:
    named = replace(RECIPES, kind=replace(RECIPES.kind, name="experienceVersion"))
    rows = by_method(resource_routes(PATH, replace(named, path_parameter="experienceVersionIdOrName")))
    assert (
        rows["GET"].path == rows["PATCH"].path == rows["DELETE"].path == PATH + "/{experienceVersionIdOrName}"
    )
    assert rows["GET"].links is not None
    assert rows["GET"].links.own["self"] == PATH + "/{experienceVersionId}"  # a link names the id


def test_the_status_of_a_change_can_be_another_one() -> None:
    assert by_method(resource_routes(PATH, RECIPES, changed=201))["PATCH"].ok == 201
    assert by_method(resource_routes(PATH, RECIPES))["PATCH"].ok == 200


def test_every_resource_is_read_by_the_same_messages() -> None:
    """No resource has a list or a get of its own: what is special about its reads are its hooks."""
    for resource in RESOURCES.values():
        routes = [route for route in TABLE.routes if route.resource is resource]
        assert {route.then for route in routes} <= {None, GetRecord}
        reads = [route for route in routes if route.message in (GetRecord, ListRecords)]
        assert len(reads) == len({route.message for route in reads})
        assert all(route.handler is None for route in reads)
