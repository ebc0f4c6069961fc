"""The simulated disk: commits wait until the writes before them are done, and unused time is not kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.store.simulated_disk import WRITES_OF_A_SYNC, SimulatedDisk, write_calls


class World:
    """A clock and a counter of write calls, and a disk of 1,000 writes a second."""

    def __init__(self, sync_delay_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.calls = 5000
        self.disk = SimulatedDisk(sync_delay_s, 1000, lambda: self.calls, lambda: self.now_s)

    def commit(self, writes: int) -> float:
        """Wait as long as the disk says, then write."""
        delay_s = self.disk.delay_s()
        self.now_s += delay_s
        self.calls += writes - WRITES_OF_A_SYNC
        return delay_s


def test_a_commit_waits_for_the_writes_before_it_and_time_between_counts() -> None:
    world = World()
    world.calls += 9000
    assert world.commit(30) == 0
    assert world.commit(10) == pytest.approx(0.030)
    world.now_s += 0.004
    assert world.commit(10) == pytest.approx(0.006)


def test_a_thousand_commits_take_as_long_as_their_writes_and_idle_time_is_not_kept() -> None:
    world = World()
    world.commit(7)
    world.now_s += 3600
    began_s = world.now_s
    for _ in range(1001):
        world.commit(7)
        world.now_s += 0.001
    assert world.now_s - began_s == pytest.approx(7.001)


def test_each_commit_is_longer_by_the_delay_of_a_sync() -> None:
    world = World(sync_delay_s=0.002)
    assert world.commit(30) == 0.002
    assert world.commit(3) == pytest.approx(0.032)
    world.now_s += 1
    assert world.commit(3) == 0.002


def test_calls_that_write_to_files_are_counted(tmp_path: Path) -> None:
    calls = write_calls()
    before = calls()
    with (tmp_path / "file").open("wb", buffering=0) as file:
        for _ in range(3):
            file.write(b"x" * 10_000)
    assert calls() >= before + 3
