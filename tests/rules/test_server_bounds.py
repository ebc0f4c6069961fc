"""The table of server-wide bounds: each place of the source that makes one has a row, and no row names what is gone."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from trunkline.actors.server_bounds import BOUNDS, UNSHARED
from trunkline.limits.table import Limits

ROOMS: Final = ("actors", "http", "store")
MAKERS: Final = frozenset(
    {"CapacityLimiter", "Semaphore", "OwnerShares", "Slots", "open_memory_channel", "JobQueue", "CallTurns"}
)
EXCEPT: Final = {
    "actors/core/runtime/owner_shares.py": "the mechanism itself",
    "actors/core/runtime/late_imports.py": "imports each module once",
    "http/calls/parsing.py": "makes the decoder of each operation once",
    "actors/boot.py": "makes the queue of jobs, whose row names the queue",
}
SEVERAL_IN_A_ROW: Final = {
    "actors/core/contents/slots.py": "the same slots by owner and by address",
}
"""Modules that make more bounds than they have rows, and why."""
BOUNDS_OF_THEIR_OWN: Final = ("actors/platform/jobs/queue.py", "http/processes/door.py")
"""Modules that count what they have, without a limiter and without a limit of the table."""
SERVER_WIDE: Final = ("", "server")
"""`per` of the limits that are not those of a call, an application or another part."""


def bounds_made(tree: ast.AST) -> int:
    """How many limiters, places and queues a module makes; using the threads of the process counts as one."""
    made, uses_threads = 0, False
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        called = ast.unparse(call.func)
        made += called.rpartition(".")[2] in MAKERS
        has_limiter = any(each.arg == "limiter" for each in call.keywords)
        uses_threads |= called.endswith("to_thread.run_sync") and not has_limiter
    return made + uses_threads


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The source of every module, by its path."""
    home = Path(__file__).parents[2]
    return {
        path.relative_to(home).as_posix(): path.read_text()
        for room in ROOMS
        for path in (home / room).rglob("*.py")
    }


@pytest.fixture(scope="module")
def made(sources: dict[str, str]) -> dict[str, int]:
    """How many bounds each module makes; all modules are parsed once for it."""
    return {path: bounds_made(ast.parse(source)) for path, source in sources.items()}


def server_wide_limits() -> set[str]:
    """The names of the numbers that bound something of the whole server."""
    return {
        each.name
        for each in dataclasses.fields(Limits)
        if each.name.endswith("_max") and each.metadata["per"] in SERVER_WIDE
    }


def test_each_server_wide_bound_has_a_row(made: dict[str, int]) -> None:
    listed = {place for bound in BOUNDS for place in bound.where}
    makers = {path for path, count in made.items() if count}
    assert len(makers) > 20
    assert sorted(makers - listed - set(EXCEPT)) == [], "say in actors/server_bounds.py whose share they take"


def test_each_row_names_what_there_is(sources: dict[str, str], made: dict[str, int]) -> None:
    for bound in BOUNDS:
        for limit in bound.limits:
            assert hasattr(Limits(), limit), limit
        for place in bound.where:
            source = sources[place]
            named = any(limit in source for limit in bound.limits)
            assert named or place in BOUNDS_OF_THEIR_OWN or made[place] > 0, place


def test_a_row_says_whose_share_is_taken_or_why_nobody_s() -> None:
    for bound in BOUNDS:
        assert bound.whose.startswith(("Owner", "Application", "The address", "None: ", "None yet: ")), (
            bound.what
        )


def test_each_server_wide_number_has_a_row_or_a_reason() -> None:
    """So that a bound which is a counter in plain code is not forgotten, as the table of limits has its number."""
    in_rows = {limit for bound in BOUNDS for limit in bound.limits}
    wide = server_wide_limits()
    assert len(wide) > 30
    assert sorted(wide - in_rows - set(UNSHARED)) == [], (
        "say in actors/server_bounds.py whose share they take"
    )
    assert sorted(set(UNSHARED) - wide) == []
    assert sorted(set(UNSHARED) & in_rows) == []


def test_a_module_with_a_second_bound_has_a_second_row(made: dict[str, int]) -> None:
    rows = Counter(place for bound in BOUNDS for place in bound.where)
    more = {path for path, count in made.items() if count > max(1, rows[path])}
    assert sorted(more - set(EXCEPT)) == sorted(SEVERAL_IN_A_ROW)
