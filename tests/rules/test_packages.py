"""One direction of imports between the packages of a room, and no circles of files anywhere.

The order is in `package_order.py`. Imports under TYPE_CHECKING count as well; a protocol, or a type in a file of its
own, breaks a circle.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.import_graph import (
    Graph,
    circles,
    floors,
    import_graph,
    package_of,
    quotient,
    wings_of,
)
from tests.rules.package_order import ABOVE_ALL, ONE_WITH, ORDER, place, rank

FLOORS_OF_WINGS_MAX = 10


@pytest.fixture(scope="module")
def graph(checkout: Path) -> Graph:
    return import_graph(checkout)


def packages(graph: Graph) -> set[str]:
    """The names of all packages, which are the modules that others are in."""
    return {package_of(name) for name in graph} & set(graph)


def test_every_package_has_a_place(graph: Graph) -> None:
    """A file of a room stands directly in a package of the order, or at the top of the room."""
    wrong = [
        name
        for name in graph.keys() - packages(graph)
        if name.split(".")[0] in ORDER
        and (package := ONE_WITH.get(package_of(name), package_of(name))) != name.split(".")[0]
        and ".".join(place(name)) != package
    ]
    assert not wrong, f"give their package a place in tests/rules/package_order.py: {sorted(wrong)}"


def test_every_place_has_a_package(graph: Graph) -> None:
    listed = {
        f"{room}.{name}" for room, names in ORDER.items() for name in (*names, *ABOVE_ALL.get(room, ()))
    }
    assert sorted((listed | ONE_WITH.keys()) - set(graph)) == []
    bare = {name for name in listed & packages(graph) if all(package_of(other) != name for other in graph)}
    assert bare == set()


def test_imports_go_one_way_between_packages(graph: Graph) -> None:
    inner = packages(graph)
    wrong = [
        f"{name} imports {other}"
        for name, imported in graph.items()
        for other in imported
        if name.split(".")[0] in ORDER
        and other.split(".")[0] == name.split(".")[0]
        and name not in inner
        and other not in inner
        and rank(other) > rank(name)
    ]
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("room", ORDER)
def test_wings_form_no_circle_and_stand_on_few_floors(graph: Graph, room: str) -> None:
    """The packages of a wing stand together: none of another wing is between them in the order."""
    wings = wings_of(graph, room)
    assert circles(wings) == []
    assert floors(wings) <= FLOORS_OF_WINGS_MAX
    order = [name.split(".")[0] for name in ORDER[room]]
    assert order == sorted(order, key=order.index), "a wing stands at two places of the order"


def test_no_files_form_a_circle(graph: Graph) -> None:
    assert circles(graph) == []


def test_the_wire_knows_no_actor_and_no_other_package_of_the_edge(graph: Graph) -> None:
    allowed = {"http.wire", "limits"}
    wrong = [
        f"{name} imports {other}"
        for name, imported in graph.items()
        if package_of(name) == "http.wire"
        for other in imported
        if package_of(other) not in allowed and other not in ("http", "http.wire")
    ]
    assert not wrong, "\n".join(wrong)


def test_a_circle_is_found_also_by_way_of_others() -> None:
    graph: Graph = {"a.b": {"a.c"}, "a.c": {"a.d"}, "a.d": {"a.b"}, "a.e": {"a.b"}, "a.f": set()}
    assert circles(graph) == [["a.b", "a.c", "a.d"]]
    assert floors(graph) == 2


def test_a_circle_of_packages_is_found_although_no_files_form_one() -> None:
    graph: Graph = {"a.b.one": {"a.c.one"}, "a.c.two": {"a.b.two"}, "a.b.two": set(), "a.c.one": set()}
    assert circles(graph) == []
    assert circles(quotient(graph, package_of)) == [["a.b", "a.c"]]
