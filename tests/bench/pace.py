"""Measures the server at given rates: the engine alone, half of the maximum, twice as much, many connections.

    .venv/bin/python tests/bench/pace.py --work DIR [--seconds 10] [--connections 64 512] [--sync-delay-ms 5]
        [--disk-writes-per-s 3000]

All in one run, on one core for the server, with single durable posts of states:

- the ceiling: the same requests against a handler that does nothing, on the same engine (`--null-handler`
  is how that process is started);
- as fast as answers come, over some numbers of connections; the last columns are bytes and writes of the block device
  for each state, the warm-up and flushing included;
- at half of that rate: latency from the intended start of each call;
- at twice that rate, over so many connections that more calls are in flight than may wait: the number of refused
  calls, the latency of the others, and whether memory grows;
- many connections that are mostly idle: the memory of one.

It is in the tests because it starts the engine and uses the bench, which no room may do.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio
from hypercorn.config import Config

from tests.bench.peers.peer import Posts
from tests.bench.peers.trunkline import Trunkline
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.disk_meter import DiskMeter
from trunkline.bench.errors import BenchError
from trunkline.bench.formatting import disk_bytes, disk_writes
from trunkline.bench.load import Caller, Tally
from trunkline.bench.programs import Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Stage
from trunkline.bench.server_monitor import ServerMonitor
from trunkline.bench.stage import Plan, measure
from trunkline.bench.transport import Origin
from trunkline.http.calls.errors import JSON, protocol_error
from trunkline.http.wire.engine import Engine
from trunkline.limits.table import Limits

DEVICES = 8_000
CROWD = 4_000
"""Connections of the overload: more calls in flight than `waiting_writes_max`."""

IDLE = 10_000
THIS_FILE = str(Path(__file__).resolve())
CHECKOUT = str(Path(__file__).resolve().parents[2])
MIB = 2**20


# The handler that does nothing.


async def nothing(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer what a state is answered, without looking at the request."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [JSON]})
    await send({"type": "http.response.body", "body": b'{"success":true}'})


async def serve_nothing(port: int) -> None:
    """Serve it on the engine until this process is ended."""
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    await Engine(nothing, config, Limits(), protocol_error, fast_path=None).serve(trio.sleep_forever)


async def ceiling(workspace: Workspace, cores: Cores, connections: int, seconds: float) -> float:
    """Requests a second of the engine with the handler that does nothing."""
    port = free_port()
    workspace.start(
        [sys.executable, THIS_FILE, "--null-handler", str(port)], env={**os.environ, "PYTHONPATH": CHECKOUT}
    )
    await workspace.listens(port)
    path = f"/applications/{'0' * 24}/devices/%s/state"

    def build(device_id: str, body: bytes, _count: int) -> bytes:
        head = f"POST {path % device_id} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {'x' * 300}\r\n"
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + length).encode() + body

    callers = Posts(1000, build).callers(Tally("null", "states"), 1)
    origin = Origin("127.0.0.1", port, tls=False, prefix="")
    stage = await loaded(callers, origin, cores, plan_of(connections, seconds), workspace.pids)
    return stage.calls[0].unit_rate


# The loads.


def plan_of(connections: int, seconds: float, rate: float | None = None) -> Plan:
    """A plan with a second of warming up."""
    return Plan(connections=connections, duration_s=seconds, warmup_s=min(1.0, seconds), rate=rate)


async def loaded(
    callers: Sequence[Caller], origin: Origin, cores: Cores, plan: Plan, pids: Sequence[int]
) -> Stage:
    """What came of a load."""

    def load() -> Stage:
        with on_cores(cores.generator):
            return measure("posts", callers, origin, plan, bar=ProgressBar(), monitor=ServerMonitor(pids))

    return await trio.to_thread.run_sync(load)


def told(what: str, stage: Stage) -> str:
    """A line of figures: those of the calls that were acknowledged."""
    (calls,) = stage.calls
    latency = calls.latency
    refused = sum(calls.refused.values()) / max(1, calls.answered)
    times = f"{latency.p50_ms:9.1f}{latency.p99_ms:9.1f}{latency.p999_ms:9.1f}{latency.max_ms:9.1f}"
    if calls.service is not None:
        times += f"{calls.service.p50_ms:11.1f}{calls.service.p99_ms:9.1f}"
    else:
        times += f"{'':20}"
    used = f"{stage.server_cpu or 0:8.0%}{stage.generator_cpu:10.0%}"
    if stage.disk is not None:
        used += f"{disk_bytes(stage.disk):>10}{disk_writes(stage.disk):>10}"
    return f"{what:38}{calls.unit_rate:10,.0f}{refused:9.1%}{times}{used}"


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def run(options: argparse.Namespace, workspace: Workspace, cores: Cores) -> None:
    """All loads, one after the other."""
    seconds = options.seconds
    tell(
        f"{'':38}{'states/s':>10}{'refused':>9}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max ms':>9}"
        f"{'sent: p50':>11}{'p99':>9}{'server':>8}{'generator':>10}{'bytes':>10}{'writes':>10}"
    )
    most = await ceiling(workspace, cores, options.connections[0], seconds)
    tell(f"{'a handler that does nothing':38}{most:10,.0f}")
    peer = Trunkline()
    peer.settings = {  # type: ignore[misc]
        "TRUNKLINE_SYNC_DELAY_MS": str(options.sync_delay_ms),
        "TRUNKLINE_DISK_WRITES_PER_S": str(options.disk_writes_per_s),
    }
    async with peer.run(workspace.directory, workspace, options.devices, ProgressBar()) as started:
        pids = workspace.pids[-1:]
        meter: DiskMeter | None = None
        with suppress(BenchError):  # a file system without a block device
            monitor = ServerMonitor(pids)
            meter = DiskMeter(workspace.directory, monitor, started.finish, idle_s=0)

        async def load(what: str, connections: int, rate: float | None = None) -> Stage:
            callers = started.callers(Tally("posts", "states"), 1)
            begun = await meter.begin() if meter else None
            stage = await loaded(callers, started.origin, cores, plan_of(connections, seconds, rate), pids)
            if meter and begun:
                disk = await meter.end(begun, "states", stage.calls[0].units_in_all)
                stage = msgspec.structs.replace(stage, disk=disk)
            tell(told(what, stage))
            return stage

        rates = []
        for connections in options.connections:
            stage = await load(f"as fast as they come, {connections} connections", connections)
            rates.append(stage.calls[0].unit_rate)
        rate = rates[0]
        tell(f"{'share of what the engine reaches':38}{rate / most:10.0%}")
        await load(f"half of that, {options.connections[0]} connections", options.connections[0], rate / 2)
        resident = [ServerMonitor(pids).usage().bytes]
        for _ in range(2):
            stage = await load(f"twice that, {options.crowd} connections", options.crowd, rate * 2)
            resident.append(ServerMonitor(pids).usage().bytes)
        tell(
            "resident MB before, after, and after once more: " + ", ".join(f"{n / MIB:.1f}" for n in resident)
        )
        stage = await load(f"{options.idle} connections, 100 posts/s", options.idle, 100)
        for figure in stage.figures:
            tell(f"{figure.name}: {figure.value:,.0f} {figure.unit}")
        kept = await started.kept()
    tell(str(kept))
    assert not kept.lost


def main(arguments: list[str]) -> None:
    """Print a line for each load."""
    parser = argparse.ArgumentParser(description="How the server bears a rate.")
    parser.add_argument("--work", type=Path, help="a directory on the disk to be measured")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--crowd", type=int, default=CROWD)
    parser.add_argument("--idle", type=int, default=IDLE)
    parser.add_argument("--sync-delay-ms", type=int, default=0)
    parser.add_argument("--disk-writes-per-s", type=int, default=0)
    parser.add_argument("--null-handler", type=int, metavar="PORT")
    options = parser.parse_args(arguments)
    if options.null_handler is not None:
        trio.run(serve_nothing, options.null_handler)
        return
    cores = Cores.split(1)
    workspace = Workspace(options.work.absolute() / f"pace-{time.time_ns()}", [], cores.server)
    try:
        trio.run(partial(run, options, workspace, cores))
    finally:
        workspace.close()


if __name__ == "__main__":
    main(sys.argv[1:])
