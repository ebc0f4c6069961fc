"""One direction of imports between the packages of a room, and no circles of files anywhere.

The order stands here, the lowest package first: a package imports those before it, never those behind it. The files
at the top of a room come last. Imports under TYPE_CHECKING count as well; a protocol, or a type in a file of its own,
breaks a circle.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.import_graph import Graph, circles, floors, import_graph, package_of

ORDER = {
    "actors": (
        "values",
        "formulas",
        "query",
        "runtime",
        "records",
        "contents",
        "outgoing",
        "scripts",
        "accounts",
        "organizations",
        "audit",
        "jobs",
        "applications",
        "flows",
        "triggers",
        "devices",
        "tables",
        "events",
        "topics",
        "overview",
        "webhooks",
        "deployments",
        "plain",
        "integrations",
        "recipes",
        "experience",
        "dashboards",
        "files",
        "notebooks",
        "engine",
        "bundles",
        "archives",
        "templates",
    ),
    "http": ("wire", "calls", "streams", "link", "experiences", "pages", "resources", "cli"),
}
TOP_FILES_FOR = {"http.cli"}
"""Packages that stand above the files at the top of their room: the command line starts the server."""


@pytest.fixture(scope="module")
def graph(checkout: Path) -> Graph:
    return import_graph(checkout)


def rank(module: str) -> int:
    """How high the package of a module stands in its room."""
    room, _, package = package_of(module).partition(".")
    if package_of(module) in TOP_FILES_FOR:
        return len(ORDER[room]) + 1
    return ORDER[room].index(package) if package else len(ORDER[room])


def test_every_package_has_a_place(graph: Graph) -> None:
    for room, packages in ORDER.items():
        found = {package_of(name).partition(".")[2] for name in graph if name.split(".")[0] == room}
        assert found - {""} == set(packages), room


def test_imports_go_one_way_between_packages(graph: Graph) -> None:
    wrong = [
        f"{name} imports {other}"
        for name, imported in graph.items()
        for other in imported
        if name.split(".")[0] in ORDER
        and other.split(".")[0] == name.split(".")[0]
        and name not in ORDER
        and other not in ORDER
        and rank(other) > rank(name)
    ]
    assert not wrong, "\n".join(sorted(wrong))


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
