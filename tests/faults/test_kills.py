"""A server that is killed at a system call, as by kill -9: the next one starts, and nothing acknowledged is lost.

`python -m tests.faults --way kill` does so at every call; these are some of them. `kill-torn` writes a part first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.plan import COMPILER
from tests.faults.sweep import (
    WAYS,
    Disk,
    sweep_first_starts,
    sweep_migrations,
    sweep_work,
)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


async def test_nothing_is_lost_by_a_kill_within_a_commit(disk: Disk) -> None:
    await sweep_work(disk, "a file", WAYS["kill-torn"], (3,))
    assert disk.outcomes == {"the server ended": 1}


async def test_a_start_after_a_killed_first_one_makes_what_is_missing(disk: Disk, tmp_path: Path) -> None:
    """At the third write, the first one of the store, only a part of it is on the disk."""
    outcomes = await sweep_first_starts(tmp_path / "first", WAYS["kill-torn"], (2,))
    assert outcomes == {"the start was killed": 1}


async def test_a_migration_that_was_killed_is_made_by_the_next_start(disk: Disk) -> None:
    """It leaves no half copy of the store behind."""
    await sweep_migrations(disk, WAYS["kill"], (40,))
    assert disk.outcomes == {"the start was killed": 1}
