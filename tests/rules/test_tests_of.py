"""A changed file has tests that can be run alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tests_of import files_of_tests, importers, nearest_tests, whole_graph


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("limits/errors.py", "tests/limits/test_settings.py"),
        ("http/cli/serve.py", "tests/rules/test_start.py"),
        ("tests/rules/tests_of.py", "tests/rules/test_tests_of.py"),
        ("tests/rules/test_tests_of.py", "tests/rules/test_tests_of.py"),
    ],
)
def test_a_file_has_the_tests_that_import_it(checkout: Path, file: str, test: str) -> None:
    assert test in files_of_tests(checkout, [file])


def test_a_file_that_no_test_imports_has_those_of_its_nearest_importers() -> None:
    """A conftest names none."""
    graph = {
        "actors.deep": set(),
        "actors.low": {"actors.deep"},
        "actors.high": {"actors.low"},
        "tests.house": {"actors.low"},
        "tests.test_low": {"tests.house"},
        "tests.test_far": {"tests.test_low"},
        "tests.test_high": {"actors.high"},
        "tests.conftest": {"actors.deep"},
        "tests.test_all": {"tests.conftest"},
    }
    imported_by = importers(graph)
    assert nearest_tests(imported_by, "actors.deep") == {"tests.test_low", "tests.test_high"}
    assert nearest_tests(imported_by, "actors.high") == {"tests.test_high"}
    assert nearest_tests(imported_by, "tests.conftest") == {"tests.test_all"}


def test_every_module_of_the_rooms_has_tests(checkout: Path) -> None:
    """A package that only says what is in it needs none."""
    graph = whole_graph(checkout)
    imported_by = importers(graph)
    lacking = {
        name for name in graph if not name.startswith("tests.") and not nearest_tests(imported_by, name)
    }
    packages = {name for name in lacking if (checkout / name.replace(".", "/") / "__init__.py").is_file()}
    assert lacking - packages == set()
    assert [name for name in packages if graph[name]] == []


def test_a_document_has_none(checkout: Path) -> None:
    assert files_of_tests(checkout, ["README.md", "gone.py"]) == []
