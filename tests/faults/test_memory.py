"""A real server whose memory the kernel limits: it is killed, or stopped until there is some, and nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.e2e.server_process import ServerProcess
from tests.faults.ledger import Unanswered
from tests.faults.memory_group import MemoryGroup, memory_group
from tests.faults.plan import COMPILER
from tests.faults.sweep import Disk
from tests.patience import PATIENCE_S

ROOM_BYTES: Final = 8 << 20
"""Less than what the server needs to answer for long."""
CLIENTS: Final = 4


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    with memory_group() as made:
        if made is None:
            pytest.skip("this machine lets us make no memory cgroup of version 1")
        yield made


@pytest.fixture
def disk(tmp_path: Path, group: MemoryGroup) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


async def work_on(disk: Disk, server: ServerProcess, enough: trio.Event) -> None:
    """Call until it is enough, or the server has gone."""
    with trio.fail_after(PATIENCE_S):
        try:
            while not enough.is_set():
                await disk.ledger.send_states(server)
                await disk.ledger.upload_large(server)
        except Unanswered:
            pass


async def test_a_server_that_the_kernel_kills_for_its_memory_loses_nothing(
    disk: Disk, group: MemoryGroup
) -> None:
    enough = trio.Event()
    async with disk.server() as server:
        group.limit(ROOM_BYTES)
        group.take(server.process.pid)
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(work_on, disk, server, enough)
        assert await server.ended() == -signal.SIGKILL
        assert group.killed == 1
    await disk.audit()


@pytest.mark.load
async def test_a_server_that_waits_for_memory_answers_when_there_is_some(
    disk: Disk, group: MemoryGroup
) -> None:
    enough = trio.Event()
    async with disk.server() as server:
        group.limit(ROOM_BYTES)
        group.hold()
        group.take(server.process.pid)
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(work_on, disk, server, enough)
            with trio.fail_after(PATIENCE_S):
                while not group.is_out_of_memory:  # noqa: ASYNC110 - the kernel says so
                    await trio.sleep(0.01)
            group.limit(ROOM_BYTES * 100)
            stored = len(disk.ledger.kept["states"])
            with trio.fail_after(PATIENCE_S):
                while len(disk.ledger.kept["states"]) <= stored:  # noqa: ASYNC110 - another process answers
                    await trio.sleep(0.01)
            enough.set()
        assert group.killed == 0
        await disk.ledger.audit(server)
    await disk.audit()
