"""What a run of tests costs is told by kind of test, by file, by test and by what was started."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.costs import COLLECTION, kind_of_process, tables


def row(test: str, own_s: float, children_s: float = 0, **started: int) -> dict[str, Any]:
    return {
        "test": test,
        "own_s": own_s,
        "children_s": children_s,
        "started": started,
        "fixtures": {"db": own_s},
    }


def test_the_most_costly_is_told_first() -> None:
    rows = [
        {"test": COLLECTION, "own_s": 9, "children_s": 0},
        row("tests/store/test_keys.py::test_one", 1),
        row("tests/e2e/test_cli.py::test_two", 2, 3, servers=1),
        row("tests/e2e/test_cli.py::test_three[x::y]", 4, 0, servers=2),
    ]
    lines = [line.split() for line in tables(rows)]
    assert lines[1:5] == [
        ["9.0", "9.0", "0.0", "1", "(collection):", "-"],
        ["9.0", "6.0", "3.0", "2", "tests/e2e:", "3", "servers"],
        ["1.0", "1.0", "0.0", "1", "tests/store:", "-"],
        ["19.0", "16.0", "3.0", "4", "all:", "3", "servers"],
    ]
    assert ["9.0", "tests/e2e/test_cli.py"] in lines
    assert lines.index(["5.0", "tests/e2e/test_cli.py::test_two"]) < lines.index(
        ["4.0", "tests/e2e/test_cli.py::test_three[x::y]"]
    )
    assert lines[-1] == ["7.0", "db"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ([sys.executable, "-m", "trunkline.http.cli.main", "serve", "--demo"], "trunkline serve"),
        ([sys.executable, "-m", "trunkline.http.cli.main", "user", "list"], "other trunkline commands"),
        (["/usr/bin/trunkline", "serve"], "trunkline serve"),
        ([sys.executable, "/tests/e2e/crash_program.py", "serve"], "trunkline serve"),
        ([sys.executable, "-c", "pass"], "Python programs"),
        (["/usr/bin/chromium", "--headless"], "chromium processes"),
        ("git status", "git processes"),
    ],
)
def test_processes_are_counted_by_kind(command: Any, kind: str) -> None:
    assert kind_of_process(command) == kind
