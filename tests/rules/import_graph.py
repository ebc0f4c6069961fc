"""The import graph of a checkout: how many floors its files stand on, and which of them form circles.

    python -m tests.rules.import_graph [CHECKOUT]

Prints for each room its files, floors and circles, and for each package the packages that it imports. Imports under
TYPE_CHECKING and inside functions count like any other. A floor is a step of the longest chain of imports; the files of
a circle stand on one floor.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
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
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
            names += [module] if any(name.removeprefix("trunkline.") not in known for name in names) else []
        else:
            continue
        yield from (short for name in names if (short := name.removeprefix("trunkline.")) in known)


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
    """The package of a module, two names at most: `actors.devices`, or `actors` for a file at the top of its room."""
    room, *rest = module.split(".")
    return f"{room}.{rest[0]}" if len(rest) > 1 else room


def report(checkout: Path) -> Iterator[str]:
    """The figures of a checkout, line by line."""
    graph = import_graph(checkout)
    for room in ROOMS:
        inside = {
            name: {other for other in imported if other.split(".")[0] == room}
            for name, imported in graph.items()
            if name.split(".")[0] == room
        }
        packages = {package_of(name) for name in inside}
        found = circles(inside)
        yield (
            f"{room}: {len(inside)} files, {len(packages)} packages, {floors(inside)} floors, {len(found)} circles"
        )
        yield from (f"    circle of {len(group)}: {', '.join(group)}" for group in found)
    for package in sorted({package_of(name) for name in graph}):
        used = {
            package_of(other)
            for name, others in graph.items()
            if package_of(name) == package
            for other in others
        }
        yield f"{package}: {', '.join(sorted(used - {package})) or 'imports no other package'}"


if __name__ == "__main__":
    sys.stdout.writelines(
        f"{line}\n" for line in report(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    )
