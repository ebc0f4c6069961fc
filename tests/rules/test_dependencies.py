"""The libraries: those that pyproject.toml names, those that the code imports, and those that the document explains."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from trunkline.limits.extras import LIBRARIES, PROGRAMS

NOT_IMPORTED = {"tzdata"}
"""The standard library reads it."""

COMES_WITH = {"botocore": "boto3", "httpcore": "httpx"}
"""Imported beside the library that brings it and holds its version."""


@pytest.fixture(scope="module")
def project(checkout: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))["project"]
    return found


@pytest.fixture(scope="module")
def text(checkout: Path) -> str:
    return (checkout / "docs/reference/dependencies.md").read_text("utf-8")


def names(requirements: list[str]) -> list[str]:
    """The libraries of requirements, without versions, extras and markers."""
    return [re.match(r"[\w-]+", each)[0] for each in requirements]  # type: ignore[index]


def first_cells(text: str, section: str, column: int = 0) -> list[str]:
    """The cells of a column of the table in a section."""
    rows = re.findall(r"^\| `.*\|$", text.partition(f"\n## {section}\n")[2].partition("\n## ")[0], re.M)
    return [row.strip("| ").split(" | ")[column].strip("`") for row in rows]


def test_the_main_job_is_explained(project: dict[str, Any], text: str) -> None:
    assert first_cells(text, "The main job") == sorted(names(project["dependencies"]))


def test_the_extras_are_explained(project: dict[str, Any], text: str) -> None:
    extras = {
        extra: names(given) for extra, given in project["optional-dependencies"].items() if extra != "dev"
    }
    assert extras == {extra: [library] for extra, library in (PROGRAMS | LIBRARIES).items()}
    shown = zip(first_cells(text, "Extras"), first_cells(text, "Extras", 1), strict=True)
    assert dict(shown) == PROGRAMS | LIBRARIES


def test_development_is_explained_and_has_all_extras(project: dict[str, Any], text: str) -> None:
    extras, *others = project["optional-dependencies"]["dev"]
    assert extras == f"trunkline[{','.join(sorted(PROGRAMS | LIBRARIES))}]"
    assert first_cells(text, "Development") == sorted(names(others))


def test_each_library_is_imported_and_each_import_is_a_library(
    checkout: Path, project: dict[str, Any], project_files: list[PurePosixPath], rooms: tuple[str, ...]
) -> None:
    imported = set()
    for file in project_files:
        if file.suffix == ".py" and file.parts[0] in rooms:
            imported |= modules_of(checkout / file)
    of = packages_distributions()
    used = {of.get(module, [module])[0].lower().replace("_", "-") for module in imported}
    named = {*names(project["dependencies"]), *LIBRARIES.values()}
    assert {COMES_WITH.get(library, library) for library in used} == named - NOT_IMPORTED


def modules_of(file: Path) -> set[str]:
    """The modules of other projects that a file imports, by the first part of their names."""
    code = re.sub(r'""".*?"""', "", file.read_text("utf-8"), flags=re.S)
    found = set(re.findall(r"^ *(?:import (\w+)[\w., ]*|from (\w+)[\w.]* import .*)$", code, re.M))
    return {plain or other for plain, other in found} - sys.stdlib_module_names - {"trunkline"}
