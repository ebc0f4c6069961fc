"""A machine with several partitions that is gone, whole or in part, while it serves: another one owns them.

One that is not heard for 1.5 s is replaced, so all of it is a load: other tests would hold it up.
`pytest -m load tests/e2e/test_partitioned_standby_lost.py`
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.divided import ROOT, SECOND
from tests.e2e.machines import Machines, copied, kill, machines_in, made, report, send, states
from tests.e2e.server_process import ServerProcess, processes
from tests.partitions import make_partitions
from tests.patience import PATIENCE_S
from trunkline.store.directory import STORE
from trunkline.store.partitions import partition_directory

pytestmark = [pytest.mark.slow, pytest.mark.load]


class Two:
    """Two machines, of which `one` owns the data, and a device in each partition."""

    def __init__(self, machines: Machines, one: ServerProcess, two: ServerProcess) -> None:
        self.machines = machines
        self.one = one
        self.two = two
        self.devices: list[str] = []
        self.reported = 0

    async def report(self) -> None:
        """Report to each device through each machine that is there, and look before and after whether both tell of all:
        before, as calls of a process that is gone may fail."""
        await self.look()
        there = [each for each in (self.one, self.two) if each.process.returncode is None]
        for machine in there:
            self.reported += 1
            for device in self.devices:
                await report(machine, device, self.reported)
        await self.look()

    async def look(self) -> None:
        for machine in (self.one, self.two):
            for device in self.devices if machine.process.returncode is None else ():
                assert await states(machine, device) == list(range(1, self.reported + 1))


@asynccontextmanager
async def two_machines(folder: Path) -> AsyncIterator[Two]:
    async with machines_in(folder, silence_ms=1500) as machines:
        make_partitions(folder / "a", 2)
        async with machines.serving("a") as one:
            machines.copy_secrets("a", "b")
            async with machines.standing_by("b", one) as two:
                await copied(two)
                both = Two(machines, one, two)
                both.devices = [(await made(one))[1] for _ in range(2)]
                await both.report()
                yield both


async def test_the_other_machine_has_everything_when_one_is_killed(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as both:
        await kill(both.one)
        assert await both.two.listens()
        await both.report()
        async with both.machines.standing_by("a", both.two) as again:
            both.one = again
            await both.report()
            assert await both.two.terminate() == 0
            await both.report()
            assert await again.terminate() == 0


async def test_a_process_that_is_killed_serves_its_partition_again(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as both:
        before = processes(both.one)
        os.kill(before[SECOND], signal.SIGKILL)
        await both.report()
        after = processes(both.one)
        assert after[SECOND] != before[SECOND]
        assert after[ROOT] == before[ROOT]
        assert "this node owns the data now" not in both.two.log


async def test_a_machine_ends_of_which_one_process_cannot_start(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as both:
        store = partition_directory(tmp_path / "a", 1) / STORE
        store.rename(store.with_name("aside"))
        store.mkdir(mode=0o700)
        (store / "data.mdb").write_bytes(b"damaged")
        os.kill(processes(both.one)[SECOND], signal.SIGKILL)
        assert await both.one.ended() == 1
        assert f"a process cannot serve; the server ends for another machine name={SECOND}" in both.one.log
        assert await both.two.listens()
        await both.report()


async def test_a_root_that_stands_still_loses_its_partition(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as both:
        root = processes(both.one)[ROOT]
        os.kill(root, signal.SIGSTOP)
        with trio.fail_after(PATIENCE_S):
            while "this node owns the data now" not in both.two.log:
                await trio.lowlevel.checkpoint()
        both.one, one = both.two, both.one
        await both.report()
        os.kill(root, signal.SIGCONT)
        both.one = one
        # It ends, and stands by: what it passes on is answered by the other machine.
        await both.report()
        assert "b owns partition 0 in epoch" in one.log
        assert "b owns partition 1 in epoch" not in one.log


async def test_a_machine_that_was_stopped_answers_nothing_that_is_old(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as both:
        send(both.one, signal.SIGSTOP)
        one, both.one = both.one, both.two
        assert await both.two.listens()
        await both.report()
        send(one, signal.SIGCONT)
        both.one = one
        await both.report()
