"""Measures what a second process gives to a server, each with a partition. Run it from the checkout:

    .venv/bin/python -m tests.bench.partition_scale --work DIR [--seconds 1.5] [--rounds 3]

Two servers, one with one partition and one with two, are loaded in turn with the same durable states, of devices of two
applications: one in each partition, where there are two. Each client is connected to the process that has its
application; "passed on" are posts of which each comes to the other process. Each round measures both servers, one
directly after the other, because the speed of a shared machine changes. A round in which something else used more than
0.15 of a core is printed in brackets, and tried again; where all were disturbed, all count.

The summary has the ratio of the rates, and "by work": twice the processor time that one process needs for a state by
what two need. That ratio can be reached by two processes which have a core each, and a disk that keeps up.

Nothing is pinned. The load runs on the same cores, so the table says which share of a core it takes: with two
processes on two cores it takes that from them. What was acknowledged is read back at the end, or counted and summed.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
import trio

from tests.bench.placed_loads import Place, PlacedLinks, PlacedMqtt, PlacedPosts, SpreadFleet
from tests.bench.tls_share import tell
from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import Fleet
from trunkline.bench.link_states import Form
from trunkline.bench.programs import Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor
from trunkline.bench.scenarios.mqtt import AccessKey
from trunkline.bench.session import Session
from trunkline.bench.stage import AnyLoad, load_reactor
from trunkline.bench.transport import Origin

EMAIL = "bench@localhost"
MAIN = (sys.executable, "-c", "from trunkline.http.cli.main import main; main()")
WARMUP_S = 0.5
PLACES = 2
OTHERS_MAX = 0.15
"""Cores that something else may use beside a measurement that counts."""
TRIES_MAX = 3
"""How often a round is tried until it counts."""
QUIET, QUIET_S, QUIET_MAX_S = 0.04, 0.25, 20.0
"""A load begins when the server uses less than so much of a core for so long: it still orders what came before."""


class Running(NamedTuple):
    """A server that runs, and the devices of its load."""

    name: str
    session: Session
    mqtt: Origin
    fleet: SpreadFleet
    pids: tuple[int, ...]
    """Its processes that serve, by their partitions."""


class Figures(NamedTuple):
    """What was measured of a load."""

    rate: float
    """States a second that were acknowledged."""
    used: tuple[float, ...]
    """The processor time of each process, in cores."""
    generator: float
    """That of the load."""
    others: float
    """That of whatever else runs on the machine."""
    idle: float
    """Cores that nobody used, as while a disk is waited for."""

    @property
    def us(self) -> float:
        """Microseconds of all processes for a state."""
        return sum(self.used) / self.rate * 1e6


MakeLoad = Callable[[Running, Reactor], AnyLoad]


def posts(options: argparse.Namespace, count: int = 1, *, crossed: bool = False) -> MakeLoad:
    """States over keep-alive connections, so many in a call."""
    return lambda server, reactor: PlacedPosts(
        reactor, server.session.origin, server.fleet, options.connections, count, crossed=crossed
    )


def links(options: argparse.Namespace, form: Form, size: int) -> MakeLoad:
    """States in frames of this size."""
    return lambda server, reactor: PlacedLinks(
        reactor, server.session.origin, server.fleet, options.links, form, size
    )


def loads(options: argparse.Namespace) -> dict[str, MakeLoad]:
    """The loads by their names."""
    return {
        "single posts": posts(options),
        "arrays of 100": posts(options, 100),
        "link, 100 by rows": links(options, "rows", 100),
        "link, 1000 by columns": links(options, "columns", 1000),
        "MQTT QoS 1": lambda server, reactor: PlacedMqtt(
            reactor, server.mqtt, server.fleet, options.connections
        ),
    }


@asynccontextmanager
async def running(workspace: Workspace, partitions: int, devices: int) -> AsyncIterator[Running]:
    """Make a data directory with so many partitions, serve it, and prepare the load."""
    password, port, mqtt_port = f"Bench-{secrets.token_hex(12)}", free_port(), free_port()
    data = ("--data", str(workspace.directory / "store"))
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("TRUNKLINE_")}
    await workspace.run([*MAIN, "user", "add", EMAIL, "--password", password, *data], env=inherited)
    if partitions > 1:
        await workspace.run([*MAIN, "partition", "--count", str(partitions), *data], env=inherited)
    options = ("--port", str(port), "--mqtt-port", str(mqtt_port), "--limits", "off")
    workspace.start([*MAIN, "serve", *options, *data], env=inherited)
    await workspace.listens(port)
    session = Session(f"http://127.0.0.1:{port}")
    try:
        await session.login(EMAIL, password)
        supervisor = psutil.Process(workspace.pids[-1])
        owners = {child.cmdline()[-1]: child.pid for child in supervisor.children()}
        pids = tuple(owners[name] for name in sorted(owners)) or (supervisor.pid,)
        made = [await Fleet.create(session, ProgressBar(), "scale", devices) for _ in range(PLACES)]
        listed = await workspace.run([*MAIN, "partition", *data], env=inherited)
        places = [await placed(session, each, pids[partition_of(listed, each)]) for each in made]
        if len({place.pid for place in places}) < partitions:
            raise BenchError("The applications are not in different partitions.")
        mqtt = replace(session.origin, port=mqtt_port, prefix="")
        name = "one process" if partitions == 1 else f"{partitions} processes"
        yield Running(name, session, mqtt, SpreadFleet(session, places), pids)
    finally:
        session.close()


def partition_of(listed: str, fleet: Fleet) -> int:
    """In which partition the application of a fleet is, as the command says that lists them."""
    before = listed.partition(fleet.application_id)[0]
    return int(before.rpartition("Partition ")[2].partition(":")[0])


async def placed(session: Session, fleet: Fleet, pid: int) -> Place:
    """Log in all devices of a fleet."""
    key = await session.call("POST", f"/applications/{fleet.application_id}/keys", {})
    tokens = {}
    for id in fleet.device_ids:
        credentials = {"deviceId": id, "key": key["key"], "secret": key["secret"]}
        tokens[id] = (await session.call("POST", "/auth/device", credentials))["token"]
    return Place(fleet.application_id, tokens, AccessKey(key["key"], key["secret"]), pid)


async def measured(server: Running, make: MakeLoad, seconds: float) -> Figures:
    """Load a server."""
    processes = [psutil.Process(pid) for pid in server.pids]

    def used_s() -> list[float]:
        times = [process.cpu_times() for process in processes]
        every = psutil.cpu_times()
        idle = every.idle + every.iowait
        busy = sum(every[: every._fields.index("guest")]) - idle
        return [idle, busy, time.process_time(), *(each.user + each.system for each in times)]

    def load() -> Figures:
        wait_until_quiet(processes)
        with load_reactor() as reactor:
            running = make(server, reactor)
            try:
                running.open()
                running.run(WARMUP_S)
                running.reset()
                before = used_s()
                took_s = running.run(seconds)
                cores = [(now - then) / took_s for now, then in zip(used_s(), before, strict=True)]
            finally:
                running.close()
        (tally,) = running.tallies
        if tally.refused or tally.breaks:
            raise BenchError(f"Calls were refused: {tally.first_refusal or tally.breaks}")
        idle, busy, generator, *used = cores
        return Figures(tally.units / took_s, tuple(used), generator, busy - generator - sum(used), idle)

    return await trio.to_thread.run_sync(load)


async def compared(
    name: str, sides: Sequence[tuple[Running, MakeLoad]], options: argparse.Namespace
) -> list[tuple[Figures, Figures]]:
    """Measure both sides in all rounds. A round that something else has disturbed is tried again, if it may be."""
    found: list[tuple[Figures, Figures]] = []
    disturbed: list[tuple[Figures, Figures]] = []
    while len(found) < options.rounds and len(found) + len(disturbed) < options.rounds * TRIES_MAX:
        one, two = [await measured(server, make, options.seconds) for server, make in sides]
        counts = max(one.others, two.others) <= OTHERS_MAX
        (found if counts else disturbed).append((one, two))
        for (server, _), figures in zip(sides, (one, two), strict=True):
            show(name if counts else f"({name})", server, figures)
    if not found:
        tell(f"{name}: something else used more than {OTHERS_MAX} cores in each round")
    return found or disturbed


def wait_until_quiet(processes: Sequence[psutil.Process]) -> None:
    """Wait until a server does nothing any more, in the thread of the load."""
    end_s = time.monotonic() + QUIET_MAX_S
    while time.monotonic() < end_s:
        before = sum(sum(process.cpu_times()[:2]) for process in processes)
        time.sleep(QUIET_S)
        if sum(sum(process.cpu_times()[:2]) for process in processes) - before < QUIET * QUIET_S:
            return


def show(what: str, server: Running, found: Figures) -> None:
    """Print a line of figures."""
    used = " + ".join(f"{each:.2f}" for each in found.used)
    tell(
        f"{what:26}{server.name:14}{found.rate:12,.0f}{found.us:10.2f}   {used:14}{found.generator:10.2f}"
        f"{found.others:8.2f}{found.idle:7.2f}"
    )


def ratios(found: Sequence[tuple[float, float]]) -> str:
    """The median of second / first, and the range."""
    each = [second / first for first, second in found]
    return f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"


async def run(options: argparse.Namespace, workspaces: Sequence[Workspace]) -> None:
    """All loads, each in all rounds."""
    async with AsyncExitStack() as held:
        servers = [
            await held.enter_async_context(running(workspace, count, options.devices))
            for count, workspace in enumerate(workspaces, 1)
        ]
        tell(
            f"{'':40}{'states/s':>12}{'us each':>10}   {'cores used':14}{'generator':>10}{'others':>8}{'idle':>7}"
        )
        summary = []
        for name, make in loads(options).items():
            if options.only not in name:
                continue
            pairs = await compared(name, [(server, make) for server in servers], options)
            rates = [(one.rate, two.rate) for one, two in pairs]
            work = [(two.us, len(two.used) * one.us) for one, two in pairs]
            summary.append(
                f"{name}: states a second, two processes / one: {ratios(rates)}; by work {ratios(work)}"
            )
        local, passed_on = posts(options), posts(options, crossed=True)
        pairs = await compared(
            "posts, passed on second", [(servers[1], local), (servers[1], passed_on)], options
        )
        work, rates = [(one.us, two.us) for one, two in pairs], [(one.rate, two.rate) for one, two in pairs]
        summary += [
            f"processor time of a state that is passed on / of one that is not: {ratios(work)}",
            f"states a second, passed on / not: {ratios(rates)}",
        ]
        tell("\n".join(summary))
        for server in servers:
            audit = await server.fleet.audit_all(server.session, ProgressBar())
            lost = audit.missing + audit.different + audit.unexpected
            tell(f"{server.name}: acknowledged {audit.acknowledged:,}, missing or different {lost}")
            if not audit.clean:
                raise BenchError("; ".join(audit.examples))


def main(arguments: list[str]) -> None:
    """Print a line for each load, and the ratios."""
    parser = argparse.ArgumentParser(description="What a second process with its own partition gives.")
    parser.add_argument("--work", type=Path, help="a directory on the disk to be measured")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--links", type=int, default=16)
    parser.add_argument("--devices", type=int, default=128, help="in each of the two applications")
    parser.add_argument("--only", default="", help="the loads whose names have this in them")
    options = parser.parse_args(arguments)
    work = (options.work or Path(tempfile.gettempdir())).absolute() / f"scale-{time.time_ns()}"
    workspaces = [Workspace(work / name, [], None) for name in ("one", "two")]
    try:
        trio.run(partial(run, options, workspaces))
    finally:
        for workspace in workspaces:
            workspace.close()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
