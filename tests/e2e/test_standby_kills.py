"""Machines that own the data in turn, under load: whichever is killed, stopped or ended, each call has one effect.

`FAILOVERS=40 pytest -m load -s tests/e2e/test_standby_kills.py` does so at random, with the log's server as well, and
prints how long nothing was acknowledged.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import ServerProcess
from tests.e2e.stubborn import Stubborn, calls, patience, prepared, read_back, sent_marks
from tests.e2e.test_standby import Machines
from tests.nats_servers import nats_servers
from tests.patience import PATIENCE_S
from tests.s3_service import s3_service

pytestmark = [pytest.mark.slow, pytest.mark.load]

FAILOVERS = int(os.environ.get("FAILOVERS", "20"))
KINDS = ("killed", "stopped", "ended", "log killed")
CALLS = 40
"""Of each client, for each time that another machine owns the data."""


class Front(Server):
    """The server as its clients know it: its address is that of the machine that owns the data."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.process = SimpleNamespace(returncode=None)
        self.url = self.token = self.owner = ""
        self.moved = trio.Event()
        self._running: dict[str, ServerProcess] = {}

    async def keep(self, name: str) -> None:
        """Run a machine, and start it again whenever it ends."""
        while True:
            async with self.machines.started(name) as server:
                self._running[name] = server
                if await server.listens():
                    self.token = self.token or await server.log_in()
                    self.url, self.owner = server.url, name
                    moved, self.moved = self.moved, trio.Event()
                    moved.set()
                    await server.ended()

    async def lose(self, kind: str, nursery: trio.Nursery) -> None:
        """Let the owner be gone, and return when another machine owns the data; or the log, for a while."""
        before, server, moved = self.owner, self._running[self.owner], self.moved
        if kind == "log killed":
            await self.machines.nats.kill()
            await self.machines.nats.start(nursery)
            return
        numbers = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "ended": signal.SIGTERM}
        server.send_signal(numbers[kind])
        with trio.fail_after(PATIENCE_S):
            while self.owner == before:
                await moved.wait()
                moved = self.moved
        server.send_signal(signal.SIGCONT)


@asynccontextmanager
async def front(folder: Path, nursery: trio.Nursery) -> AsyncIterator[Front]:
    """Two machines, of which one owns the data."""
    (folder / "nats").mkdir()
    with s3_service() as service:
        async with nats_servers(folder / "nats") as (nats,):
            found = Front(Machines(folder, nats, service))
            async with trio.open_nursery() as lives:
                moved = found.moved
                lives.start_soon(found.keep, "a")
                await moved.wait()
                found.machines.copy_secrets("a", "b")
                lives.start_soon(found.keep, "b")
                yield found
                lives.cancel_scope.cancel()


async def lose_again_and_again(folder: Path, kinds: list[str], clients: int) -> dict[str, list[float]]:
    """Lose the owner in these ways under load; by way, the seconds in which nothing was acknowledged."""
    count, pauses = CALLS * (len(kinds) + 1), defaultdict[str, list[float]](list)
    async with trio.open_nursery() as nursery, front(folder, nursery) as server:
        paths = await prepared(server)
        stubborn = [Stubborn(str(n), calls(paths, n, count), Random(n)) for n in range(clients)]
        for each in stubborn:
            # The call was done, but its entry in the audit log was not stored: with its key it has its answer again.
            each.again = each.again | {500}
        with patience(stubborn):
            async with trio.open_nursery() as load:
                process: Any = server
                for each in stubborn:
                    load.start_soon(each.run, process)
                for number, kind in enumerate(kinds, 1):
                    await answered(stubborn, clients * CALLS * number)
                    began_s = trio.current_time()
                    await server.lose(kind, nursery)
                    await answered(stubborn, sum(len(each.answers) for each in stubborn) + 1)
                    pauses[kind].append(trio.current_time() - began_s)
        found, counted = await read_back(server, paths)
        wanted = sent_marks(clients, count)
        assert (wanted - found, found - wanted) == ({}, {}), (
            f"lost {wanted - found}, doubled {found - wanted}"
        )
        assert counted == clients * sum(number % 7 < 2 for number in range(count))
        nursery.cancel_scope.cancel()
    return pauses


async def answered(stubborn: list[Stubborn], target: int) -> None:
    """Wait until so many calls are answered."""
    while sum(len(each.answers) for each in stubborn) < target:
        await trio.lowlevel.checkpoint()


async def test_every_call_has_one_effect_whichever_machine_is_gone(tmp_path: Path) -> None:
    await lose_again_and_again(tmp_path, ["killed", "stopped"], clients=2)


@pytest.mark.load
@pytest.mark.timeout(FAILOVERS * 60 + 600)
async def test_every_call_has_one_effect_again_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(3)
    kinds = [random.choice(KINDS) for _ in range(min(FAILOVERS, 20))]
    pauses = await lose_again_and_again(tmp_path, kinds, clients=2)
    with capsys.disabled():
        for kind, found in sorted(pauses.items()):
            sys.stdout.write(
                f"\n{kind}: {len(found)} times; nothing was acknowledged for {statistics.median(found):.1f} s "
                f"(median), {max(found):.1f} s (longest)"
            )
        sys.stdout.write("\nlost 0, doubled 0\n")
