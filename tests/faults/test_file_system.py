"""A real server on a file system that fails: told, alive or ended with a sentence, and nothing acknowledged is lost.

`python -m tests.faults` lets every system call fail in every way; these are some of them.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.e2e.conftest import Server
from tests.faults.ledger import Unanswered
from tests.faults.plan import COMPILER, MAP, RENAME, UNLINK, WRITE, Fault
from tests.faults.sweep import (
    WAYS,
    Disk,
    Way,
    ended_with_a_sentence,
    sweep_backups,
    sweep_first_starts,
    sweep_migrations,
    sweep_starts,
    sweep_work,
)

GROWTH_CALLS_MAX = 50
WRITES_OF_A_COMMIT_MAX = 6


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


async def send_until_refused(disk: Disk, server: Server) -> None:
    """Send many states again and again: the map has to grow soon."""
    for _ in range(GROWTH_CALLS_MAX):
        if not await disk.ledger.send_states(server):
            return
    raise AssertionError("the map never grew")


@pytest.mark.parametrize("way", ["EIO", "EIO-but-done", "ENOSPC", "short"])
async def test_a_commit_that_fails_at_any_call_is_refused_and_the_next_one_works(
    disk: Disk, way: str
) -> None:
    """Also at the page that makes it valid, after which LMDB refuses everything until the file is opened again."""
    await sweep_work(disk, "a state", WAYS[way], range(9))
    assert disk.outcomes["the call was refused"] >= 3
    assert disk.outcomes.keys() == {"the call was refused"}


async def test_a_map_that_cannot_grow_is_told_and_the_next_call_works(disk: Disk) -> None:
    async with disk.server() as server:
        with disk.plan.failing(Fault(MAP, errno.ENOMEM, "data.mdb", times=1)):
            await send_until_refused(disk, server)
            assert disk.plan.struck() == 1
        await disk.ledger.until_it_works(server, disk.ledger.send_states)
        assert await disk.ledger.audit(server) > 100


async def test_a_server_that_cannot_open_its_file_again_says_so_and_ends(disk: Disk) -> None:
    async with disk.server() as server:
        size = len(server.log)
        disk.plan.set(Fault(MAP, errno.ENOMEM, "data.mdb"))
        with pytest.raises(Unanswered):
            await send_until_refused(disk, server)
        await ended_with_a_sentence(server, size)
    await disk.audit()


async def send_with_late_errors(disk: Disk, server: Server) -> None:
    """Send states: one write, each time the next one, fails although it is done, and the write after it fails."""
    for number in range(WRITES_OF_A_COMMIT_MAX):
        disk.plan.set(
            Fault(WRITE, errno.EIO, "data.mdb", after=number, times=1, done=True),
            Fault(WRITE, errno.EIO, "data.mdb", after=number + 1, times=1),
        )
        await disk.ledger.send_state(server)


async def test_nobody_is_told_that_a_commit_was_refused_that_is_on_the_disk(disk: Disk) -> None:
    """The page that makes it valid is written, but said to have failed, and LMDB cannot write the old one back."""
    async with disk.server() as server:
        size = len(server.log)
        with pytest.raises(Unanswered):
            await send_with_late_errors(disk, server)
        await ended_with_a_sentence(server, size)
        assert "has refused a commit and yet has it" in server.log[size:]
    (unknown,) = disk.ledger.unknown["states"]
    await disk.audit()
    assert unknown in disk.ledger.kept["states"]


async def test_a_file_is_stored_though_its_draft_cannot_be_removed(disk: Disk) -> None:
    async with disk.server() as server:
        with disk.plan.failing(Fault(UNLINK, errno.EIO, "drafts")):
            assert await disk.ledger.upload(server)
            assert disk.plan.struck() == 1
        await disk.ledger.audit(server)


async def test_a_file_whose_writing_fails_is_refused(disk: Disk) -> None:
    await sweep_work(disk, "a file", WAYS["EIO"], range(20, 36, 3))
    assert disk.outcomes["the call was refused"] >= 2


async def test_a_start_that_fails_is_told_and_the_next_one_works(disk: Disk, tmp_path: Path) -> None:
    outcomes = await sweep_first_starts(tmp_path / "first", WAYS["EIO"], (11, 60))
    await sweep_starts(disk, WAYS["EIO-stays"], (9, 21))
    outcomes += disk.outcomes
    assert outcomes["the start was refused"] >= 2


async def test_nothing_is_lost_while_a_flush_fails(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "flushing").mkdir()
    flushing = Disk(tmp_path / "flushing", flush_s=0.02)
    await sweep_work(flushing, "states one by one", WAYS["EIO"], range(2, 48, 9))
    assert flushing.outcomes.total() >= 3


async def test_a_migration_that_fails_is_told_and_the_next_start_makes_it(disk: Disk) -> None:
    await sweep_migrations(disk, WAYS["EIO"], (30, 75))
    assert disk.outcomes["the start was refused"] >= 1


async def test_a_backup_that_fails_is_told_and_does_not_exist(disk: Disk) -> None:
    """The last calls are the renaming of the whole copy, and the sync of the directory that it is in."""
    await sweep_backups(disk, WAYS["ENOSPC"], (3, 26, 27))
    assert disk.outcomes["the backup was refused"] >= 2


async def test_a_backup_whose_renaming_failed_although_it_was_done_does_not_exist(
    disk: Disk,
) -> None:
    async with disk.server():
        renaming = Way("EIO-but-done", RENAME, errno.EIO, done=True)
        for number in range(4):
            assert await disk.fail_backup(number, renaming, disk.data / f"copy {number}")
    assert disk.outcomes.keys() == {"the backup was refused"}
