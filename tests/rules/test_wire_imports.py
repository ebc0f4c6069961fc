"""Who may import whom in `http/wire`, the part of the edge that speaks HTTP and knows nothing of the application.

Imports inside functions or under TYPE_CHECKING count like any other, here too.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.rules.test_imports import imported_modules

PACKAGE = "trunkline.http.wire"
MAY_IMPORT = (f"{PACKAGE}.", "trunkline.limits.")


def imports_of(checkout: Path) -> dict[str, set[str]]:
    """By module of the package: all names of ours that it imports."""
    found: dict[str, set[str]] = {}
    for file in sorted((checkout / "http" / "wire").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found[f"{PACKAGE}.{file.stem}"] = {
            name for _, name in imported_modules(tree) if name.startswith("trunkline")
        }
    assert len(found) > 10
    return found


def cycle_of(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; [] where there is none."""
    done: set[str] = set()

    def search(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module not in done:
            for other in sorted(graph[module]):
                if circle := search(other, [*path, module]):
                    return circle
            done.add(module)
        return []

    for module in sorted(graph):
        if circle := search(module, []):
            return circle
    return []


def test_the_wire_imports_only_itself_and_the_limits(checkout: Path) -> None:
    wrong = {
        f"{module} imports {name}"
        for module, names in imports_of(checkout).items()
        for name in names
        if not name.startswith(MAY_IMPORT)
    }
    assert not wrong


def test_the_modules_of_the_wire_import_each_other_in_one_direction(checkout: Path) -> None:
    imports = imports_of(checkout)
    # `from a import b` gives `a.b`: the module is what it begins with.
    graph = {
        module: {other for other in imports for name in names if f"{name}.".startswith(f"{other}.")}
        for module, names in imports.items()
    }
    assert any(graph.values())
    assert cycle_of(graph) == []


def test_a_circle_is_found() -> None:
    assert cycle_of({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
