"""Start time and memory of a server with a given number of registered devices, of which few are active.

Run in the checkout it prints the figures, which no test asserts because machines differ:

    python -m tests.e2e.scale --registered 0 10000 100000 --active 1000
    python -m tests.e2e.scale --registered 100000 --active 1000 10000 100000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil
import trio

from tests.e2e.server_process import serving, started
from trunkline.actors import boot, server_users
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.messages import CreateDevice, DevicePost
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.bench.client import Connection
from trunkline.bench.session import Session
from trunkline.limits.settings import Settings

MIB = 2**20
PER_APPLICATION = 10_000
TASKS = 200
CONNECTIONS = 16


class Figures(NamedTuple):
    """Seconds from the start of the process to the first answer "ready"; bytes of resident memory."""

    ready_s: float
    idle: Resident
    active: Resident
    pause_s: float
    """The longest pause of the server by the garbage collector."""

    def own_for_each(self, active: int) -> float:
        """Bytes of memory per active device."""
        return (self.active.own - self.idle.own) / active


class Resident(NamedTuple):
    """The resident memory of a process, and the part of it that is private and not mapped from a file."""

    all: int
    own: int

    @classmethod
    def of(cls, pid: int) -> Resident:
        """The current values from the operating system."""
        info = psutil.Process(pid).memory_full_info()
        return cls(info.rss, info.uss)


async def register(data_dir: Path, count: int) -> None:
    """Create a user and `registered` devices in a new data directory through the actors: the API would take minutes."""
    settings = Settings(
        data_dir=str(data_dir), admin_email="owner@example.com", admin_password="Correct-horse-7"
    )
    with boot.opened(settings) as system:
        async with boot.running(system):
            await server_users.ensure_first_user(system, settings)
            owner = bytes.fromhex(server_users.users(system)[0].id)
            for start in range(0, count, PER_APPLICATION):
                application = Ref("application", ROOT, system.ids.new(system.clock.wall_ms()))
                name = ApplicationPost(name=f"fleet {start}")
                await system.ask(application, CreateApplication(body=name, user=owner))
                numbers = iter(range(start, min(start + PER_APPLICATION, count)))
                async with trio.open_nursery() as nursery:
                    for _ in range(TASKS):
                        nursery.start_soon(_create, system, application.id, numbers)
            await boot.flush_reports(system)  # what is not flushed is in memory


async def _create(system: System, application: bytes, numbers: Iterator[int]) -> None:
    attributes = [{"name": "temp", "dataType": "number"}, {"name": "on", "dataType": "boolean"}]
    for number in numbers:
        ref = Ref("device", application, system.ids.new(system.clock.wall_ms()))
        body = msgspec.convert({"name": f"device {number}", "attributes": attributes}, DevicePost)
        await system.ask(ref, CreateDevice(body=body))


async def measure(data_dir: Path, active: int) -> Figures:
    """Start a server on the directory, then let so many devices report."""
    began_s = time.perf_counter()
    async with started(data_dir, env={}, cold=True) as server:
        assert await server.listens()
        await server.call("GET", "/readyz", token="")
        ready_s = time.perf_counter() - began_s
        assert await server.terminate() == 0
    async with serving(data_dir, "--limits", "off", cold=True) as server:
        idle = Resident.of(server.process.pid)
        session = Session(server.url, token=server.token)
        devices = await _devices(session, active)
        waiting = iter(devices * 3)

        async def report() -> None:
            async with Connection(session.origin, token=server.token) as connection:
                for device in waiting:
                    answer = await connection.request("POST", f"{device}/state", b'{"data": {"temp": 21.5}}')
                    assert answer.status == 200, answer.body

        async with trio.open_nursery() as nursery:
            for _ in range(CONNECTIONS):
                nursery.start_soon(report)
        session.close()
        figures = Figures(ready_s, idle, Resident.of(server.process.pid), await _longest_pause_s(session))
        assert await server.terminate() == 0
    return figures


async def _longest_pause_s(session: Session) -> float:
    """From the server's metrics."""
    async with Connection(session.origin) as connection:
        text = (await connection.request("GET", "/metrics")).body.decode()
    name = "trunkline_gc_pause_longest_seconds "
    return float(next(line for line in text.splitlines() if line.startswith(name)).removeprefix(name))


async def _devices(session: Session, count: int) -> list[str]:
    """The paths of so many devices; where there are fewer, some are made."""
    found: list[str] = []
    async for application in session.items("/applications"):
        place = f"/applications/{application['id']}/devices"
        async for device in session.items(place, query={"sortField": "id"}):
            found.append(f"{place}/{device['id']}")
            if len(found) == count:
                return found
    application_id = await session.create_application("active")
    attributes = [{"name": "temp", "dataType": "number"}]
    wanted = [{"name": f"active {n}", "attributes": attributes} for n in range(count - len(found))]
    place = f"/applications/{application_id}/devices"
    return [*found, *(f"{place}/{id}" for id in await session.create_devices(application_id, wanted))]


async def print_figures(registered: list[int], active: list[int]) -> None:
    """A line for each number of registered and of active devices. Memory is resident, in brackets its own."""
    columns = ("registered", "file MB", "start s", "idle MB", "active", "with them MB", "bytes each", "gc ms")
    sys.stdout.write("".join(f"{column:>16}" for column in columns) + "\n")
    for count in registered:
        with tempfile.TemporaryDirectory() as directory:
            data_dir = Path(directory) / "data"
            await register(data_dir, count)
            for some in active:
                figures = await measure(data_dir, some)
                file = (data_dir / "store" / "data.mdb").stat().st_size
                cells = (
                    f"{count:,}",
                    f"{file / 1e6:.1f}",
                    f"{figures.ready_s:.2f}",
                    _shown(figures.idle),
                    f"{some:,}",
                    _shown(figures.active),
                    f"{figures.own_for_each(some):,.0f}",
                    f"{figures.pause_s * 1e3:.1f}",
                )
                sys.stdout.write("".join(f"{cell:>16}" for cell in cells) + "\n")
                sys.stdout.flush()


def _shown(resident: Resident) -> str:
    return f"{resident.all / 1e6:.1f} ({resident.own / 1e6:.1f})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Start to ready, resident memory and pauses, by registered and active devices."
    )
    parser.add_argument("--registered", type=int, nargs="+", default=[0, 10_000, 100_000])
    parser.add_argument("--active", type=int, nargs="+", default=[1000])
    given = parser.parse_args()
    trio.run(print_figures, given.registered, given.active)
