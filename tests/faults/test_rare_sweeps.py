"""System calls that fail in what happens seldom: restore, downloads, exports by jobs.

`python -m tests.faults` lets every call fail in every way; these are some of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.plan import COMPILER
from tests.faults.rare_sweeps import sweep_restores
from tests.faults.sweep import WAYS, Disk


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


@pytest.mark.usefixtures("disk")
async def test_a_backup_whose_first_start_failed_can_be_started(tmp_path: Path) -> None:
    outcomes = await sweep_restores(tmp_path / "restores", WAYS["EIO"], (12,))
    assert outcomes == {"the start was refused": 1}


async def test_downloads_are_cut_or_told_and_exports_end_with_a_whole_file(disk: Disk) -> None:
    async with disk.server() as server:
        for number in (0, 4):
            way = WAYS["EIO"]
            assert await disk.fail_work(server, disk.ledger.download, way.at(number), way)
        way = WAYS["kill"]
        assert await disk.fail_work(server, disk.ledger.export, way.at(9), way)
    await disk.audit()
    assert disk.outcomes["the call was refused"] == 2
