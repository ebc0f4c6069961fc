"""Machines that own the data in turn, under load: whichever is killed, stopped or ended, each call has one effect.

`FAILOVERS=40 pytest -m load -s tests/e2e/test_standby_kills.py` does so at random, with the log's server as well, and
prints how long nothing was acknowledged.
"""

from __future__ import annotations

import os
import re
import signal
import statistics
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.machines import Machines, machines_in, send
from tests.e2e.server_process import ServerProcess, processes
from tests.e2e.stubborn import Stubborn, calls, patience, prepared, read_back, sent_marks
from tests.faults.proxy import Network, network
from tests.patience import PATIENCE_S
from tests.ports import reserved_port

pytestmark = [pytest.mark.slow, pytest.mark.load]

FAILOVERS = int(os.environ.get("FAILOVERS", "20"))
KINDS = ("killed", "process killed", "stopped", "ended", "cut off", "log killed")
CALLS = 40
"""Of each client, for each time that another machine owns the data."""
OWNS = re.compile(r"this node owns the data now +epoch=(\d+)")


class Lives:
    """Two machines, of which one owns the data. Each is started again whenever it has ended."""

    def __init__(self, machines: Machines, networks: dict[str, Network]) -> None:
        self.machines = machines
        self.networks = networks
        """Between each machine and the log."""
        self.fronts = {name: Front(name) for name in networks}
        self._running: dict[str, ServerProcess] = {}

    async def keep(self, name: str, task_status: trio.TaskStatus[None]) -> None:
        """Run a machine, and start it again whenever it ends."""
        while True:
            async with self.machines.started(name) as server:
                self._running[name] = server
                await server.prints(r"Standby|Trunkline serves")
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
                await server.ended()

    @property
    def owned(self) -> tuple[int, str]:
        """The epoch, and the machine that owns the data in it."""
        return max(
            (int(found[1]), name)
            for name in self._running
            for found in OWNS.finditer((self.machines.folder / f"{name}.log").read_text())
        )

    async def lose(self, kind: str, nursery: trio.Nursery) -> None:
        """Let the owner be gone, and return when the data have another one; or the log, for a while."""
        before, name = self.owned
        server = self._running[name]
        match kind:
            case "log killed":
                await self.machines.nats.kill()
                await self.machines.nats.start(nursery)
                return
            case "killed":
                send(server, signal.SIGKILL)
            case "process killed":
                os.kill(processes(server)["owner"], signal.SIGKILL)
            case "stopped":
                send(server, signal.SIGSTOP)
            case "ended":
                server.send_signal(signal.SIGTERM)
            case "cut off":
                self.networks[name].cut()
        with trio.fail_after(PATIENCE_S):
            while self.owned[0] == before:
                await trio.lowlevel.checkpoint()
        self.networks[name].mend()
        if kind == "stopped":
            send(server, signal.SIGCONT)


class Front(Server):
    """The server as its clients know it, at the address of one machine."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process = SimpleNamespace(returncode=None)
        self.url = self.token = ""


@asynccontextmanager
async def lives(folder: Path) -> AsyncIterator[Lives]:
    """Two machines, of which one owns the data."""
    async with machines_in(folder, silence_ms=1500) as machines, AsyncExitStack() as stack:
        networks = {}
        for name in ("a", "b"):
            networks[name] = await stack.enter_async_context(
                network(f"http://127.0.0.1:{machines.nats.port}")
            )
            machines.nats_of[name] = networks[name].url.replace("http", "nats")
            machines.ports[name] = stack.enter_context(reserved_port())
        found = Lives(machines, networks)
        async with trio.open_nursery() as nursery:
            await nursery.start(found.keep, "a")
            machines.copy_secrets("a", "b")
            await nursery.start(found.keep, "b")
            for front in found.fronts.values():
                front.url = f"http://127.0.0.1:{machines.ports[front.name]}"
                front.token = await front.log_in()
            yield found
            nursery.cancel_scope.cancel()


async def lose_again_and_again(folder: Path, kinds: list[str], clients: int) -> dict[str, list[float]]:
    """Lose the owner in these ways under load; by way, the seconds in which nothing was acknowledged."""
    count, pauses = CALLS * (len(kinds) + 1), defaultdict[str, list[float]](list)
    async with trio.open_nursery() as nursery, lives(folder) as found:
        fronts = [*found.fronts.values()]
        paths = await prepared(fronts[0])
        stubborn = [Stubborn(str(n), calls(paths, n, count), Random(n)) for n in range(clients)]
        for each in stubborn:
            # The call was done, but its entry in the audit log was not stored: with its key it has its answer again.
            each.again = each.again | {500}
        with patience(stubborn):
            async with trio.open_nursery() as load:
                for number, each in enumerate(stubborn):
                    front: Any = fronts[number % 2]
                    load.start_soon(each.run, front)
                for number, kind in enumerate(kinds, 1):
                    await answered(stubborn, clients * CALLS * number)
                    began_s = trio.current_time()
                    await found.lose(kind, nursery)
                    await answered(stubborn, sum(len(each.answers) for each in stubborn) + 1)
                    pauses[kind].append(trio.current_time() - began_s)
        stored, counted = await read_back(fronts[0], paths)
        wanted = sent_marks(clients, count)
        assert (wanted - stored, stored - wanted) == ({}, {}), (
            f"lost {wanted - stored}, doubled {stored - wanted}"
        )
        assert counted == clients * sum(number % 7 < 2 for number in range(count))
        nursery.cancel_scope.cancel()
    return pauses


async def answered(stubborn: list[Stubborn], target: int) -> None:
    """Wait until so many calls are answered."""
    while sum(len(each.answers) for each in stubborn) < target:
        await trio.lowlevel.checkpoint()


async def test_every_call_has_one_effect_whichever_machine_is_gone(tmp_path: Path) -> None:
    await lose_again_and_again(tmp_path, [*KINDS], clients=2)


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
