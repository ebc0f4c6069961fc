"""Measures which share of the rate in cleartext the server reaches over TLS. Run it from the checkout:

    .venv/bin/python -m tests.bench.tls_share --work DIR [--seconds 5] [--rounds 3] [--connections 64]

Two servers, one of them with a certificate, are pinned to the same core and loaded in turn from the other cores, with
single durable posts over keep-alive connections. A server that is not loaded takes no processor time. Each round
measures both, one directly after the other, because the speed of a shared machine changes; the share is the median
of the rounds. Beside the rate it prints the processor time of the server for one state, which does not depend on
whether the load keeps up.

It is in the tests because it makes a certificate with a library that only the tests need.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import trio
import trustme

from tests.bench.peers.peer import Started
from tests.bench.peers.trunkline import Trunkline
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.load import Tally
from trunkline.bench.programs import Workspace
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Stage
from trunkline.bench.server_monitor import ServerMonitor
from trunkline.bench.stage import Plan, measure

DEVICES = 1000


def rate_of(stage: Stage) -> float:
    """States a second that were acknowledged."""
    return stage.calls[0].unit_rate


def server_us(stage: Stage) -> float:
    """Microseconds of the server's processor time for one state."""
    return (stage.server_cpu or 0) / rate_of(stage) * 1e6


def told(what: str, stage: Stage) -> str:
    """A line of figures."""
    latency = stage.calls[0].latency
    used = f"{stage.server_cpu or 0:8.0%}{stage.generator_cpu:10.0%}"
    return f"{what:12}{rate_of(stage):10,.0f}{latency.p50_ms:9.2f}{latency.p99_ms:9.2f}{server_us(stage):12.1f}{used}"


def make_certificate(directory: Path) -> dict[str, str]:
    """Write a certificate for 127.0.0.1; returns the settings of a server with it. This process trusts it."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key, trusted = (directory / name for name in ("chain.pem", "key.pem", "authority.pem"))
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    trusted.write_bytes(authority.cert_pem.bytes())
    os.environ["SSL_CERT_FILE"] = str(trusted)
    return {"TRUNKLINE_CERTFILE": str(chain), "TRUNKLINE_KEYFILE": str(key)}


async def loaded(started: Started, pid: int, cores: Cores, options: argparse.Namespace) -> Stage:
    """Load a server."""
    plan = Plan(connections=options.connections, duration_s=options.seconds)

    def load() -> Stage:
        with on_cores(cores.generator):
            callers = started.callers(Tally("posts", "states"), 1)
            monitor = ServerMonitor([pid])
            return measure("posts", callers, started.origin, plan, bar=ProgressBar(), monitor=monitor)

    return await trio.to_thread.run_sync(load)


async def run(options: argparse.Namespace, workspaces: Sequence[Workspace], cores: Cores) -> None:
    """All rounds."""
    certificate = make_certificate(workspaces[1].directory)
    tell(f"{'':12}{'states/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'us a state':>12}{'server':>8}{'generator':>10}")
    async with AsyncExitStack() as running:
        servers = []
        for workspace, settings in zip(workspaces, ({}, certificate), strict=True):
            peer = Trunkline()
            peer.settings = settings  # type: ignore[misc]
            block = peer.run(workspace.directory, workspace, options.devices, ProgressBar())
            servers.append((await running.enter_async_context(block), workspace.pids[0]))
        shares, work = [], []
        for _ in range(options.rounds):
            clear, tls = [await loaded(*server, cores, options) for server in servers]
            tell(told("cleartext", clear))
            tell(told("TLS", tls))
            shares.append(rate_of(tls) / rate_of(clear))
            work.append(server_us(clear) / server_us(tls))
        tell(
            f"share of the rate in cleartext: {statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        )
        tell(f"processor time, cleartext / TLS: {statistics.median(work):.2f}")
        for started, _ in servers:
            kept = await started.kept()
            tell(str(kept))
            assert not kept.lost


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def compare(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    connections: int,
    names: Sequence[str],
    run: Callable[[argparse.Namespace, Sequence[Workspace], Cores], Awaitable[None]],
) -> None:
    """Run a comparison of servers, each of which has a directory of its own, named by `names`.

    `parser` has the options of this comparison; those that all have are added, with the default `connections`.
    """
    parser.add_argument("--work", type=Path, help="a directory on the disk to be measured")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=connections)
    parser.add_argument("--devices", type=int, default=DEVICES)
    options = parser.parse_args(arguments)
    work = (options.work or Path(tempfile.gettempdir())).absolute() / f"{names[0]}-{time.time_ns()}"
    cores = Cores.split(1)
    workspaces = [Workspace(work / name, [], cores.server) for name in names]
    try:
        trio.run(partial(run, options, workspaces, cores))
    finally:
        for workspace in workspaces:
            workspace.close()
        shutil.rmtree(work, ignore_errors=True)


def main(arguments: list[str]) -> None:
    """Print a line for each load, and the share."""
    parser = argparse.ArgumentParser(description="The share of the rate in cleartext that TLS reaches.")
    compare(parser, arguments, 64, ("cleartext", "tls"), run)


if __name__ == "__main__":
    main(sys.argv[1:])
