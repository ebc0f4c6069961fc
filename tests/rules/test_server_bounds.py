"""The table of server-wide bounds: each place of the source that makes one has a row, and no row names what is gone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from trunkline.actors.server_bounds import BOUNDS
from trunkline.limits.table import Limits

ROOMS: Final = ("actors", "http", "store")
MAKERS: Final = frozenset(
    {"CapacityLimiter", "Semaphore", "OwnerShares", "Slots", "open_memory_channel", "JobQueue"}
)
EXCEPT: Final = {
    "actors/runtime/owner_shares.py": "the mechanism itself",
    "actors/boot.py": "makes the queue of jobs, whose row names the queue",
}


def makes_a_bound(tree: ast.AST) -> bool:
    """Whether a module makes a limiter, places or a queue, or uses the threads of the process."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        called = ast.unparse(call.func)
        if called.rpartition(".")[2] in MAKERS:
            return True
        has_limiter = any(each.arg == "limiter" for each in call.keywords)
        if called.endswith("to_thread.run_sync") and not has_limiter:
            return True
    return False


def modules() -> dict[str, str]:
    """The source of every module, by its path."""
    home = Path(__file__).parents[2]
    return {
        path.relative_to(home).as_posix(): path.read_text()
        for room in ROOMS
        for path in (home / room).rglob("*.py")
    }


def test_each_server_wide_bound_has_a_row() -> None:
    listed = {place for bound in BOUNDS for place in bound.where}
    made = {path for path, source in modules().items() if makes_a_bound(ast.parse(source))}
    assert len(made) > 20
    assert sorted(made - listed - set(EXCEPT)) == [], "say in actors/server_bounds.py whose share they take"


def test_each_row_names_what_there_is() -> None:
    sources = modules()
    for bound in BOUNDS:
        for limit in bound.limits:
            assert hasattr(Limits(), limit), limit
        for place in bound.where:
            source = sources[place]
            named = any(limit in source for limit in bound.limits)
            assert named or place == "actors/jobs/queue.py" or makes_a_bound(ast.parse(source)), place


def test_a_row_says_whose_share_is_taken_or_why_nobody_s() -> None:
    for bound in BOUNDS:
        assert bound.whose.startswith(("Owner", "Application", "The address", "None: ", "None yet: ")), (
            bound.what
        )
