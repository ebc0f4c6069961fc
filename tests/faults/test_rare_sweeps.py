"""System calls that fail in what happens seldom: growth of the map, restore, large files, downloads, exports by jobs.

`python -m tests.faults` lets every call fail in every way; these are some of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.plan import COMPILER
from tests.faults.rare_sweeps import sweep_growths, sweep_restores
from tests.faults.sweep import WAYS, Disk, sweep_work


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


@pytest.mark.usefixtures("disk")
async def test_a_call_for_which_the_map_grows_is_refused_or_done(tmp_path: Path) -> None:
    outcomes = await sweep_growths(tmp_path / "growths", WAYS["EIO"], (2,))
    assert outcomes.total() == 1


@pytest.mark.usefixtures("disk")
async def test_a_backup_whose_first_start_failed_can_be_started(tmp_path: Path) -> None:
    outcomes = await sweep_restores(tmp_path / "restores", WAYS["EIO"], (12,))
    assert outcomes == {"the start was refused": 1}


async def test_a_download_that_fails_is_cut_or_told_and_never_wrong(disk: Disk) -> None:
    await sweep_work(disk, "a download", WAYS["EIO"], (0, 4))
    assert disk.outcomes == {"the call was refused": 2}


async def test_an_export_that_is_killed_ends_with_a_whole_file(disk: Disk) -> None:
    await sweep_work(disk, "an export", WAYS["kill"], (9,))
    assert disk.outcomes.total() == 1
