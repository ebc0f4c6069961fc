"""A real server on a machine whose clock is set, that stops it for a while, or has no memory left."""

from __future__ import annotations

import resource
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import trio
import trio.testing

from tests.faults.ledger import Unanswered
from tests.faults.plan import COMPILER
from tests.faults.sweep import Disk
from tests.patience import PATIENCE_S

HOUR_S = 3600
ROOM_BYTES = (0, 300_000, 1_000_000, 3_000_000)


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
    async with disk.server() as server:
        process = psutil.Process(server.process.pid)
        disk.ledger.vague.add("the fault is logged")  # of a request that could not be read, or answered
        for room_bytes in ROOM_BYTES:
            bytes_max = process.memory_info().vms + room_bytes
            resource.prlimit(process.pid, resource.RLIMIT_AS, (bytes_max, resource.RLIM_INFINITY))
            for _ in range(3):
                with suppress(Unanswered):
                    await disk.ledger.send_states(server)
            resource.prlimit(
                process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )
            for work in disk.ledger.works.values():
                await disk.ledger.until_it_works(server, work)
        await disk.ledger.audit(server)
    await disk.audit()
