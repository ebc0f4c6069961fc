"""Machines and the servers of their log, of which any may be gone for a while, in several ways.

Owns the faults, and when all are back. Does not own the load, nor what is counted.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import httpx
import trio

from tests.e2e.conftest import Server
from tests.e2e.machines import Machines, machines_in, send
from tests.e2e.server_process import ServerProcess, processes
from tests.faults.proxy import Network
from tests.partitions import make_partitions
from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.store.errors import LogUnreachable
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import LogServer
from trunkline.store.nats_connection import NatsConnection

NAMES: Final = ("one", "two", "three")
"""Those of the machines; the servers of the log are a, b and c."""
WAYS: Final = ("killed", "stopped", "cut off")
WHO: Final = ("owner", "standby", "log leader", "log follower", "owner and log server")
OTHER_KINDS: Final = ("owner process killed", "owner ended", "all log servers killed")
KINDS: Final = (*(f"{who} {way}" for who, way in product(WHO, WAYS)), *OTHER_KINDS)
KINDS_OF_PARTITIONS: Final = (
    *KINDS,
    "partition process killed",
    "root process stopped",
    "partition given",
    "partition given",
)
SILENCE_MS: Final = 1500
OWNS: Final = re.compile(r"this node owns the data now +epoch=(\d+)(?: node=\S+ partition=(\d+))?")
IS_UP: Final = re.compile(r"trunkline_machine_up\{[^}]*\} 1\.0")
BEHIND: Final = re.compile(r"trunkline_machine_behind_entries\{[^}]*\} (\S+)")
BEHIND_MAX: Final = 500
"""A machine that lacks fewer entries follows."""
LOOK_S: Final = 0.05


class Wires:
    """The connections of machines to the servers of the log, and of these to each other."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._networks: dict[tuple[str, str], Network] = {}

    async def between(self, source: str, target: str, port: int) -> int:
        """The port at which one reaches the other, whose port this is."""
        self._networks[source, target] = made = Network("127.0.0.1", port)
        return await made.listen(self._nursery)

    def of(self, name: str) -> Iterator[Network]:
        """All that lead to one, or from it."""
        return (each for ends, each in self._networks.items() if name in ends)


class _Down:
    """The end of a machine: its exit code, when it has ended, and when it may be started again."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.ended = trio.Event()
        self.may_start = trio.Event()


class Front(Server):
    """The server as its clients know it, at the addresses of one machine."""

    def __init__(self, name: str, url: str, mqtt_port: int) -> None:
        self.name = name
        self.process = SimpleNamespace(returncode=None)
        self.url = url
        self.mqtt_ports = [mqtt_port]
        self.token = ""

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Make a call, again while a machine does not hear another one: it is refused with 503, and nothing is done."""
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    return await super().call(method, path, body, **more)
                except AssertionError as refusal:
                    if ", 503, " not in str(refusal):
                        raise
                await trio.sleep(LOOK_S)


class Lives:
    """Three machines, each of which owns some partitions or none, and three servers of their log. `keep` runs a
    machine."""

    def __init__(
        self, machines: Machines, wires: Wires, nursery: trio.Nursery, random: Random, partitions: int
    ) -> None:
        self.machines = machines
        self.partitions = partitions
        self.fronts = {
            name: Front(name, f"http://127.0.0.1:{machines.ports[name]}", machines.mqtt_ports[name])
            for name in NAMES
        }
        self.unreached: set[str] = set()
        """The machines whose clients may get no answer at the moment."""
        self._servers = {each.name: each for each in machines.servers}
        self._wires = wires
        self._nursery = nursery
        self._random = random
        self._running: dict[str, ServerProcess] = {}
        self._down: dict[str, _Down] = {}
        """The machines that have to end."""
        self._ends: list[_Down] = []
        """The machines that have to be started again."""
        self._stopped: list[int] = []
        """Processes that have to go on."""
        self._mends: list[tuple[str, str]] = []
        """What has to be mended: a machine or a server, and the way in which it is gone."""
        connection = NatsConnection([each.address for each in machines.servers], name="rounds")
        self._log = JetStreamLog(connection, "tl-trunkline-0", "tl.trunkline.0.entries")
        nursery.start_soon(connection.run)

    async def keep(self, name: str, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run a machine, and start it again when it has ended and may."""
        while True:
            async with self.machines.started(name) as server:
                self._running[name] = server
                await server.prints(r"Standby|Trunkline serves")
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
                code = await server.process.wait()
            down = self._down.pop(name, None)
            assert down is not None, f"{name} ended by itself, with {code}:\n{server.log[-5000:]}"
            assert code == down.code, f"{name} ended with {code}:\n{server.log[-5000:]}"
            down.ended.set()
            await down.may_start.wait()

    @property
    def owner(self) -> str:
        """The machine that owns the root, or owned it last."""
        return self.owner_of(0)

    def owner_of(self, partition: int) -> str:
        """The machine that owns a partition, or owned it last."""
        return max(
            (int(found[1]), name)
            for name, server in self._running.items()
            for found in OWNS.finditer(server.log)
            if int(found[2] or 0) == partition
        )[1]

    async def spread(self) -> None:
        """Let each machine own a partition, as far as there are so many."""
        for number in range(self.partitions):
            await self.give(number, NAMES[number % len(NAMES)])
            await self.mend()

    async def give(self, partition: int, name: str) -> str:
        """Let another machine own a partition, as soon as it may."""
        before = self.owner_of(partition)
        with trio.fail_after(PATIENCE_S):
            while (owner := self.owner_of(partition)) != name:
                await self.machines.command(owner, "cluster", "give", name, "--partition", str(partition))
        return f"partition {partition} of {before} given to {name}"

    async def strike(self, kind: str) -> str:
        """Let a fault happen; what it was. All but the first one of `OTHER_KINDS` have to be mended."""
        chosen_partition = self._random.randrange(self.partitions)
        owner = self.owner_of(chosen_partition)
        if kind == "partition given":
            return await self.give(
                chosen_partition, self._random.choice([name for name in NAMES if name != owner])
            )
        if kind == "all log servers killed":
            for server in self._servers.values():
                await server.kill()
            for server in self._servers.values():
                await server.start(self._nursery)
            return kind
        if "process" in kind:
            number = int(kind.startswith("partition"))
            owner = self.owner_of(number)
            self.unreached = {owner}
            name = f"partition-{number}" if self.partitions > 1 else "owner"
            process = processes(self._running[owner])[name]
            os.kill(process, signal.SIGKILL if kind.endswith("killed") else signal.SIGSTOP)
            if kind.endswith("stopped"):
                self._stopped = [process]
            return f"{name} of {owner}"
        who, way = next((who, kind[len(who) + 1 :]) for who in reversed(WHO) if kind.startswith(f"{who} "))
        chosen: list[str] = []
        if who.startswith("owner"):
            chosen.append(owner)
        if who == "standby":
            chosen.append(self._random.choice([name for name in NAMES if name != owner]))
        if who.startswith("log"):
            servers = await self._log_servers()
            chosen.append(
                self._random.choice([each.name for each in servers if each.leads is (who == "log leader")])
            )
        if who == "owner and log server":
            chosen.append(self._random.choice([*self._servers]))
        self.unreached = {*chosen} & {*NAMES}
        self._mends = [(each, way) for each in chosen]
        async with trio.open_nursery() as nursery:
            for each in chosen:
                nursery.start_soon(self._lose, each, way)
        return f"{' and '.join(chosen)} {way}"

    async def _lose(self, name: str, way: str) -> None:
        if way == "cut off":
            for wire in self._wires.of(name):
                wire.cut()
            return
        if name in self._servers:
            await (self._servers[name].kill() if way == "killed" else self._servers[name].stand_still())
            return
        machine = self._running[name]
        if way != "stopped":
            down = self._down[name] = _Down(0 if way == "ended" else -signal.SIGKILL)
            self._ends.append(down)
        send(machine, {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "ended": signal.SIGTERM}[way])

    async def upgrade(self, name: str) -> None:
        """Let a machine end, and start again with the program under test; return when all are back."""
        self.machines.pythons.pop(name, None)
        down = self._down[name] = _Down(0)
        self._ends.append(down)
        self._running[name].send_signal(signal.SIGTERM)
        await self.mend()

    async def mend(self) -> str:
        """Let all that is gone come again, and return when it has: what was missing last."""
        for name, way in self._mends:
            if way == "cut off":
                for wire in self._wires.of(name):
                    wire.mend()
            elif name in self._servers:
                server = self._servers[name]
                await (server.start(self._nursery) if way == "killed" else server.go_on())
            elif way == "stopped":
                send(self._running[name], signal.SIGCONT)
        for process in self._stopped:
            with suppress(ProcessLookupError):  # it was killed meanwhile, as it hung
                os.kill(process, signal.SIGCONT)
        for down in self._ends:
            with trio.fail_after(PATIENCE_S):
                await down.ended.wait()
            down.may_start.set()
        self._mends, self._ends, self._stopped, self.unreached = [], [], [], set()
        last = ""
        with trio.move_on_after(PATIENCE_S) as scope:
            while missing := await self._missing():
                last = missing
                await trio.sleep(LOOK_S)
        assert not scope.cancelled_caught, f"after {PATIENCE_S} s: {last}"
        return last

    async def _missing(self) -> str:
        """What is not back yet."""
        if not all(each.is_current for each in await self._log_servers()):
            return "a server of the log is not current"
        for front in self.fronts.values():
            try:
                async with httpx.AsyncClient(
                    base_url=front.url, timeout=PATIENCE_S, trust_env=False
                ) as client:
                    answer = await client.get("/metrics")
            except httpx.HTTPError as problem:
                return f"{front.name} does not answer: {problem!r}"
            if answer.status_code != 200:
                return f"{front.name} answers with {answer.status_code}: {answer.text}"
            behind = [float(each) for each in BEHIND.findall(answer.text)]
            if len(IS_UP.findall(answer.text)) < len(NAMES) or max(behind) > BEHIND_MAX:
                return f"not all machines follow: {IS_UP.findall(answer.text)}, behind {behind}"
        return ""

    async def _log_servers(self) -> list[LogServer]:
        """All servers of the log, one of which leads it."""
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    servers = await self._log.servers()
                except LogUnreachable:
                    servers = []
                if len(servers) == len(self._servers) and servers[0].leads:
                    return servers
                await trio.sleep(LOOK_S)

    def problems(self) -> list[str]:
        """The tracebacks in the logs of the machines."""
        logs = [(self.machines.folder / f"{name}.log").read_text() for name in NAMES]
        return [
            found for log in logs for found in re.findall(r"Traceback \(most recent.*(?:\n.+){0,40}", log)
        ]


@asynccontextmanager
async def lives(
    folder: Path, random: Random, python: str | None = None, partitions: int = 1
) -> AsyncIterator[Lives]:
    """Three machines and three servers of their log. `python` has another version of the program, with which they
    begin."""
    async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
        wires = Wires(nursery)
        machines = await stack.enter_async_context(machines_in(folder, SILENCE_MS, len(NAMES), wires.between))
        for name in NAMES:
            ports = [await wires.between(name, each.name, each.port) for each in machines.servers]
            machines.nats_of[name] = " ".join(f"nats://127.0.0.1:{port}" for port in ports)
            machines.ports[name] = stack.enter_context(reserved_port())
            machines.mqtt_ports[name] = stack.enter_context(reserved_port())
            if python is not None:
                machines.pythons[name] = python
        found = Lives(machines, wires, nursery, random, partitions)
        if partitions > 1:
            make_partitions(folder / NAMES[0], partitions)
        for name in NAMES:
            if name != NAMES[0]:
                machines.copy_secrets(NAMES[0], name)
            await nursery.start(found.keep, name)
        for front in found.fronts.values():
            front.token = await front.log_in()
        yield found
        nursery.cancel_scope.cancel()
