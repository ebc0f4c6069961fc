"""A division that is killed at a system call, as by kill -9: nothing is lost, and the same command completes it.

`python -m tests.faults --sweep division` does so at every call; these are some of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.division_sweep import sweep_divisions
from tests.faults.plan import COMPILER, RENAME
from tests.faults.sweep import WAYS, Way

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler on this machine")


async def test_a_division_that_was_killed_before_the_switch_has_changed_nothing(tmp_path: Path) -> None:
    outcomes = await sweep_divisions(tmp_path, WAYS["kill"], (25,))
    assert outcomes == {"the division was killed": 1}


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3)])
async def test_a_division_that_was_killed_within_the_switch_is_completed(
    tmp_path: Path, before: int, after: int
) -> None:
    """At each of its renames: of the note of the switch, of stores, of results, of the count."""
    outcomes = await sweep_divisions(tmp_path, Way("kill", RENAME, kills=True), range(40), before, after)
    assert outcomes["the division was killed within the switch"] >= 3, outcomes
