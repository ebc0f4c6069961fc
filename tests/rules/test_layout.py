"""The layout of the project: the top-level directories, and the names, docstrings and lengths of files."""

from __future__ import annotations

import ast
import re
from pathlib import Path, PurePosixPath

import pytest

REQUIRED_AT_THE_TOP = {
    ".ci",
    "LICENSE",
    "README.md",
    "actors",
    "bench",
    "docs",
    "http",
    "limits",
    "pyproject.toml",
    "store",
    "tests",
}
ALLOWED_AT_THE_TOP = REQUIRED_AT_THE_TOP | {"CHANGELOG.md"}

# Words that say nothing about the contents. `data` is one only as the whole name of a file: data_table.py is about data
# tables, and the wing actors/data has what an application stores.
EMPTY_WORDS = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
EMPTY_NAMES = {"data"}

FILE_LINES_MAX = 400
REASON_FOR_LENGTH = re.compile(r"\blong\s+because\b", re.IGNORECASE)


def nameless(file: PurePosixPath) -> bool:
    """Whether the name of the file, or of one of its directories, says nothing about the contents."""
    names = [*file.parts[:-1], file.stem]
    return file.stem in EMPTY_NAMES or any(EMPTY_WORDS & set(name.lower().split("_")) for name in names)


def length_problem(source: str) -> str | None:
    """The problem with the length of a module: it is too long and its docstring does not say why.

    An import counts as one line, however many names it has.
    """
    lines = len(source.splitlines())
    if lines <= FILE_LINES_MAX:
        return None
    tree = ast.parse(source)
    lines -= sum(
        (each.end_lineno or 0) - each.lineno for each in tree.body if isinstance(each, ast.ImportFrom)
    )
    if lines <= FILE_LINES_MAX or REASON_FOR_LENGTH.search(ast.get_docstring(tree) or ""):
        return None
    return f"{lines} lines: split it, or say in its docstring that it is 'long because ...'"


def test_the_top_level_holds_exactly_the_rooms_and_the_papers(project_files: list[PurePosixPath]) -> None:
    names = {file.parts[0] for file in project_files}
    visible = {name for name in names if not name.startswith(".")}
    assert visible - ALLOWED_AT_THE_TOP == set(), "nothing else belongs at the top level"
    assert REQUIRED_AT_THE_TOP - names == set(), "these belong at the top level"


def test_http_is_no_regular_package(checkout: Path) -> None:
    """With an __init__.py, Python started in the checkout takes http/ for the standard library's http."""
    assert (checkout / "http").is_dir()
    assert not (checkout / "http" / "__init__.py").exists()


def test_every_other_package_is_a_regular_one(
    rooms: tuple[str, ...], python_files: list[PurePosixPath]
) -> None:
    """Without __init__.py it would be a namespace package, which packaging and type checking treat differently."""
    packages = {file.parent for file in python_files if file.parts[0] in rooms}
    lacking = [str(package) for package in packages if package / "__init__.py" not in python_files]
    assert set(lacking) <= {"http"}


def test_tests_are_no_packages(python_files: list[PurePosixPath]) -> None:
    assert [
        str(file) for file in python_files if file.parts[0] == "tests" and file.name == "__init__.py"
    ] == []


def test_every_module_opens_with_a_docstring(checkout: Path, python_files: list[PurePosixPath]) -> None:
    bare = [
        str(file)
        for file in python_files
        if not ast.get_docstring(ast.parse((checkout / file).read_text(encoding="utf-8")))
    ]
    assert not bare, f"a module says first what it owns, what it does not own, and why: {bare}"


def test_long_files_say_why(checkout: Path, python_files: list[PurePosixPath]) -> None:
    problems = [
        f"{file}: {problem}"
        for file in python_files
        if (problem := length_problem((checkout / file).read_text(encoding="utf-8")))
    ]
    assert not problems, "\n".join(problems)


def test_every_file_is_named_for_a_thing(python_files: list[PurePosixPath]) -> None:
    found = [str(file) for file in python_files if nameless(file)]
    assert not found, f"name these for what they hold: {found}"


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("actors/utils.py", True),
        ("actors/time_helpers.py", True),
        ("http/common/tokens.py", True),
        ("store/data.py", True),
        ("limits/gate_manager.py", True),
        ("actors/data/tables/actor.py", False),
        ("http/resources/fleet/devices.py", False),
    ],
)
def test_the_rule_of_names_tells_them_apart(name: str, refused: bool) -> None:
    assert nameless(PurePosixPath(name)) is refused


@pytest.mark.parametrize(
    ("docstring", "lines", "refused"),
    [
        ("Short.", FILE_LINES_MAX, False),
        ("Silent.", FILE_LINES_MAX + 1, True),
        ("One table.\n\nIt is long\nbecause the API has many messages.", FILE_LINES_MAX + 1, False),
    ],
)
def test_the_rule_of_length_tells_them_apart(docstring: str, lines: int, refused: bool) -> None:
    head = f'"""{docstring}"""\n'
    source = head + "\n" * (lines - len(head.splitlines()))
    assert (length_problem(source) is not None) is refused


def test_the_names_of_an_import_make_no_file_too_long() -> None:
    source = '"""Short."""\nfrom a import (\n    b,\n    c,\n)\n' + "\n" * (FILE_LINES_MAX - 2)
    assert length_problem(source) is None
    assert length_problem(source + "\n") is not None
