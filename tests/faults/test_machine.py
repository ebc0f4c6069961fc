"""A real server on a machine whose clock is set, that stops it for a while, or has no memory left."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest
import trio
import trio.testing

from tests.faults.memory_sweep import sweep_memory
from tests.faults.plan import COMPILER
from tests.faults.sweep import Disk
from tests.patience import PATIENCE_S

HOUR_S = 3600


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


async def test_every_call_works_while_the_clock_is_set_forward_and_back(disk: Disk) -> None:
    """By less than a token lives: with the old one and with a new one, and after a start in the past."""
    async with disk.server() as server:
        for ahead_s in (6 * HOUR_S, -6 * HOUR_S, 0):
            disk.plan.set_clock(ahead_s)
            await disk.ledger.renew_link(server)
            for work in disk.ledger.works.values():
                assert await work(server)
            server.token = await server.log_in()
            assert await disk.ledger.send_state(server)
        await disk.ledger.audit(server)
    disk.plan.set_clock(-6 * HOUR_S)
    await disk.audit()


async def test_calls_to_a_stopped_server_are_answered_when_it_goes_on(disk: Disk) -> None:
    async with disk.server() as server:
        process = psutil.Process(server.process.pid)
        server.send_signal(signal.SIGSTOP)
        with trio.fail_after(PATIENCE_S):
            while process.status() != psutil.STATUS_STOPPED:
                await trio.lowlevel.checkpoint()
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(disk.ledger.send_state, server)
                await trio.testing.wait_all_tasks_blocked()
                server.send_signal(signal.SIGCONT)
        assert len(disk.ledger.kept["states"]) == 3
        for work in disk.ledger.works.values():
            assert await work(server)
        await disk.ledger.audit(server)


async def test_calls_without_memory_are_refused_and_the_next_ones_work(disk: Disk) -> None:
    """Or the server ends, in a native library or with a sentence, and the next one has everything."""
    await sweep_memory(disk, range(0, 8, 2))
    for number in range(8, 40, 2):
        if disk.outcomes["the server went on"]:
            break
        await sweep_memory(disk, [number])
    assert disk.outcomes["the server went on"]
