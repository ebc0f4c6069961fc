"""A real server on a disk whose syncs take long: acknowledgements wait for them, and nothing is lost.

While the disk syncs the event loop waits, so everything else waits as well (docs/decisions.md).
"""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.e2e.server_process import ServerProcess
from tests.faults.ledger import Unanswered
from tests.faults.plan import COMPILER, SYNC, Fault
from tests.faults.sweep import Disk
from tests.patience import PATIENCE_S

SYNC_MS: Final = 150
HANG_MS: Final = 600_000
CLIENTS: Final = 20
WATCHDOG_S: Final = 1.0
TEN_AN_HOUR: Final = """
actor_idle_s = 3600
send_state = { calls = 10, window_s = 3600 }
"""


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


async def test_calls_that_wait_for_a_slow_sync_share_the_next_one(disk: Disk) -> None:
    async with disk.server() as server:
        disk.plan.set(Fault(SYNC, name="data.mdb", delay_ms=SYNC_MS))
        async with trio.open_nursery() as nursery:
            for work in ("a state", "a command", "a device", "a file"):
                for _ in range(CLIENTS // 4):
                    nursery.start_soon(disk.ledger.works[work], server)
        syncs = disk.plan.struck()
        disk.plan.lift()
        assert len(disk.ledger.kept["states"]) == CLIENTS // 4
        assert syncs < CLIENTS, "a sync for each"
        assert disk.ledger.refused == 0
        await disk.ledger.audit(server)


async def test_a_throttle_is_exact_while_syncs_are_slow(disk: Disk) -> None:
    limits = disk.data.with_name("ten.toml")
    limits.write_text(TEN_AN_HOUR)
    disk.arguments = ("--limits", str(limits))
    codes: list[int] = []

    async def send(server: ServerProcess, number: int) -> None:
        async with server.client() as client:
            answer = await client.post(f"{disk.ledger.device}/state", json={"data": {"temp": number}})
            codes.append(answer.status_code)

    async with disk.server() as server:
        with disk.plan.failing(Fault(SYNC, name="data.mdb", delay_ms=SYNC_MS)):
            async with trio.open_nursery() as nursery:
                for number in range(CLIENTS):
                    nursery.start_soon(send, server, number)
        assert (codes.count(200), codes.count(429)) == (10, CLIENTS - 10), codes


async def test_a_sync_that_hangs_is_ended_by_the_watchdog_of_the_manager(disk: Disk) -> None:
    """The manager hears nothing for its interval and kills the server, as systemd does; the next one has everything."""
    address = str(disk.data.with_name("manager"))
    disk.env |= {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": str(round(WATCHDOG_S * 1e6))}
    with trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        await manager.bind(address)
        async with disk.server() as server:
            assert await disk.ledger.send_state(server)
            disk.plan.set(Fault(SYNC, name="data.mdb", delay_ms=HANG_MS))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_unanswered, disk, server)
                with trio.fail_after(PATIENCE_S):
                    while not disk.plan.struck():  # noqa: ASYNC110 - another process is struck
                        await trio.sleep(0.01)
                    await _silence(manager)
                server.send_signal(signal.SIGABRT)
                assert await server.ended() == -signal.SIGABRT
        await disk.audit()


async def _unanswered(disk: Disk, server: ServerProcess) -> None:
    with pytest.raises(Unanswered):
        await disk.ledger.send_state(server)


async def _silence(manager: trio.socket.SocketType) -> None:
    """Wait until nothing was said for the interval of the watchdog."""
    heard = True
    while heard:
        heard = False
        with trio.move_on_after(WATCHDOG_S):
            await manager.recv(4096)
            heard = True
