"""The tests of changed files, by what imports them:

    .venv/bin/pytest $(.venv/bin/python -m tests.rules.tests_of actors/fleet/devices/actor/actor.py)

Prints the files of tests that import a file; where there is none, those that import a module that imports it, and so
on, so that each file has the tests that stand nearest to it. A `conftest.py` does not count: it would name every test
below it. Without files it takes those that git calls changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.rules.import_graph import ROOMS, Graph, import_graph, module_name


def whole_graph(checkout: Path) -> Graph:
    """All modules of the rooms and of the tests. A module that is named in a string is imported late by it."""
    graph = import_graph(checkout, (*ROOMS, "tests"))
    for name, imported in graph.items():
        path = checkout / name.replace(".", "/")
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(
            encoding="utf-8"
        )
        imported |= {*re.findall(r'"trunkline\.([\w.]+)(?::\w+)?"', text)} & graph.keys() - {name}
    return graph


def importers(graph: Graph) -> Graph:
    """Each module, and the modules that import it; its package, if there are none, because that looks for it."""
    found: Graph = {name: set() for name in graph}
    for name, imported in graph.items():
        for other in imported:
            found[other].add(name)
    for name, others in found.items():
        package = name.rpartition(".")[0]
        if not others and package in found:
            others.add(package)
    return found


def nearest_tests(imported_by: Graph, module: str) -> set[str]:
    """The modules of tests at the end of the shortest chains of imports from this one."""
    level, seen = {module}, {module}
    while level:
        if tests := {name for name in level if name.rpartition(".")[2].startswith("test_")}:
            return tests
        level = {other for name in level for other in imported_by[name]} - seen
        level = {name for name in level if not name.endswith(".conftest")}
        seen |= level
    return set()


def files_of_tests(checkout: Path, files: Iterable[str]) -> list[str]:
    """The files of the tests of these files, relative to the checkout."""
    imported_by = importers(whole_graph(checkout))
    modules = {module_name(Path(file)) for file in files if file.endswith(".py")} & set(imported_by)
    found = {test for module in modules for test in nearest_tests(imported_by, module)}
    return sorted(f"{name.replace('.', '/')}.py" for name in found)


def changed_files(checkout: Path) -> list[str]:
    """The files that differ from the last commit, and new ones."""
    command = ("git", "status", "--porcelain", "--no-renames", "--untracked-files=all")
    listing = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout
    return [line[3:] for line in listing.splitlines()]


if __name__ == "__main__":
    here = Path.cwd()
    sys.stdout.writelines(f"{file}\n" for file in files_of_tests(here, sys.argv[1:] or changed_files(here)))
