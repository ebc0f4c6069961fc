"""The import graph of a checkout: how many floors its files stand on, and which of them form circles.

    python -m tests.rules.import_graph [CHECKOUT]

Prints for each room its files, packages, wings, floors and circles, then the files and packages that import most, the
lines of each wing, and for each package the packages that it imports. Imports under TYPE_CHECKING and inside functions
count like any other. A floor is a step of the longest chain of imports; the files of a circle stand on one floor. A
wing is a folder directly in a room.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOMS = ("limits", "store", "actors", "http", "bench")

Graph = dict[str, set[str]]
"""Each module, without `trunkline.`, and the modules that it imports."""


def import_graph(checkout: Path, rooms: Iterable[str] = ROOMS) -> Graph:
    """All modules of these rooms of a checkout."""
    files = {
        module_name(path.relative_to(checkout)): path
        for room in rooms
        for path in (checkout / room).rglob("*.py")
    }
    return {name: set(_imported(path, files)) - {name} for name, path in files.items()}


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for module, named in _statements(path):
        names = named
        if module is not None and any(name.removeprefix("trunkline.") not in known for name in named):
            names = [*named, module]
        yield from (short for name in names if (short := name.removeprefix("trunkline.")) in known)


@cache
def _statements(path: Path) -> list[tuple[str | None, list[str]]]:
    """The imports of a file: the module that they are from, if there is one, and their names."""
    found: list[tuple[str | None, list[str]]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.append((None, [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found.append((module, [f"{module}.{alias.name}" for alias in node.names]))
    return found


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules that import one another, directly or by way of others; the largest first."""
    reached = {name: _reach(graph, name) for name in graph}
    groups = {
        frozenset({name, *(other for other in reached[name] if name in reached[other])})
        for name in graph
        if name in reached[name]
    }
    return sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))


def _reach(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


def floors(graph: Graph) -> int:
    """The length of the longest chain of imports."""
    of = {name: name for name in graph}
    for number, group in enumerate(circles(graph)):
        of.update(dict.fromkeys(group, f"circle {number}"))
    merged: Graph = {of[name]: set() for name in graph}
    for name, imported in graph.items():
        merged[of[name]] |= {of[other] for other in imported if other in of} - {of[name]}
    height: dict[str, int] = {}
    for name in TopologicalSorter(merged).static_order():
        height[name] = 1 + max((height[other] for other in merged[name]), default=0)
    return max(height.values(), default=0)


def package_of(module: str) -> str:
    """The package that a module is in: `actors.fleet.recipes`, or `actors` for a file at the top of its room."""
    return module.rpartition(".")[0] or module


def wing_of(module: str) -> str:
    """The wing that a module is in: `actors.fleet`. A file at the top of its room is one by itself."""
    return ".".join(module.split(".")[:2])


def wings_of(graph: Graph, room: str) -> Graph:
    """The imports between the wings of a room, without the files at its top."""
    folders = {wing_of(name) for name in graph if name.startswith(f"{room}.")} - {
        name
        for name in graph
        if package_of(name) == room and all(package_of(other) != name for other in graph)
    }
    inside = {name: others for name, others in graph.items() if wing_of(name) in folders}
    return {name: others & folders for name, others in quotient(inside, wing_of).items()}


def quotient(graph: Graph, part_of: Callable[[str], str]) -> Graph:
    """The imports between the packages, or the wings, of a graph."""
    merged: Graph = {part_of(name): set() for name in graph}
    for name, imported in graph.items():
        merged[part_of(name)] |= {part_of(other) for other in imported if other in graph} - {part_of(name)}
    return merged


def report(checkout: Path) -> Iterator[str]:
    """The figures of a checkout, line by line."""
    whole = import_graph(checkout)
    inner = {package_of(name) for name in whole}
    graph = {name: imported - inner for name, imported in whole.items() if name not in inner}
    lines = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for room in ROOMS
        for path in (checkout / room).rglob("*.py")
        if (name := module_name(path.relative_to(checkout))) in graph
    }
    for room in ROOMS:
        names = {name for name in graph if name.startswith(f"{room}.")}
        inside = {name: graph[name] & names for name in names}
        wings = wings_of(graph, room)
        packages = quotient(inside, package_of)
        yield f"{room}: {len(inside)} files on {floors(inside)} floors, {len(circles(inside))} circles"
        yield from (f"    circle of {len(group)}: {', '.join(group)}" for group in circles(inside))
        yield (
            f"    {len(packages) - 1} packages on {floors(packages)} floors; {len(wings)} wings on {floors(wings)} "
            f"floors; {sum(package_of(name) == room for name in names)} files at the top"
        )
        found = circles({name: others - {room} for name, others in packages.items() if name != room})
        yield from (f"    circle of packages: {', '.join(group)}" for group in found)
    for each, parts in (("file", graph), ("package", quotient(graph, package_of))):
        widest = sorted(parts, key=lambda name: -len(parts[name]))[:8]
        yield f"most imports of a {each}: " + ", ".join(f"{name} {len(parts[name])}" for name in widest)
    yield "lines by wing:"
    of_wings: Counter[str] = Counter()
    for name, count in lines.items():
        of_wings[wing_of(name) if wing_of(name) in inner else f"{name.split('.')[0]}/*.py"] += count
    yield from (f"    {name}: {count}" for name, count in of_wings.most_common())
    yield "packages and what they import:"
    for package, used in sorted(quotient(graph, package_of).items()):
        yield f"    {package}: {', '.join(sorted(used)) or 'imports no other package'}"


if __name__ == "__main__":
    sys.stdout.writelines(
        f"{line}\n" for line in report(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    )
