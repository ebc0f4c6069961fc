"""Measures what doors take off the process that owns the data. Run it from the checkout:

    .venv/bin/python -m tests.bench.door_share --work DIR [--doors 1] [--tls] [--seconds 5] [--rounds 3]

Two servers, one of a single process and one with doors, are loaded in turn with single durable posts over keep-alive
connections. The single process and the owner are pinned to the same core; the doors and the load share the others. Each
round measures both, one directly after the other, because the speed of a shared machine changes.

It prints the processor time of the owner, and of all processes together, for one state: the rate that an owner can
reach is its inverse, where the machine has enough other cores. The rates themselves are bounded by the few cores that
the doors and the load share here.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

import psutil

from tests.bench.peers.peer import Started
from tests.bench.peers.trunkline import Trunkline
from tests.bench.tls_share import compare, loaded, make_certificate, rate_of, server_us, tell
from trunkline.bench.cores import Cores
from trunkline.bench.programs import Workspace
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Stage


def processor_s(ids: Sequence[int]) -> float:
    """The processor time that processes have used."""
    times = [psutil.Process(id).cpu_times() for id in ids]
    return sum(each.user + each.system for each in times)


class Loaded:
    """A server, the process of it that owns the data, and all of its processes."""

    def __init__(self, name: str, started: Started, supervisor: int, cores: Cores) -> None:
        children = [child.pid for child in psutil.Process(supervisor).children()]
        self.name = name
        self.started = started
        self.owner = children[0] if children else supervisor
        self.all = [supervisor, *children]
        for door in children[1:]:
            os.sched_setaffinity(door, cores.generator or cores.server or ())

    async def load(self, cores: Cores, options: argparse.Namespace) -> tuple[Stage, float, float]:
        """Load it; returns what was measured, and microseconds of its owner and of all its processes for one state."""
        before = processor_s([self.owner]), processor_s(self.all)
        stage = await loaded(self.started, self.owner, cores, options)
        after = processor_s([self.owner]), processor_s(self.all)
        owner_us = server_us(stage)
        return stage, owner_us, owner_us * (after[1] - before[1]) / (after[0] - before[0])


async def run(options: argparse.Namespace, workspaces: Sequence[Workspace], cores: Cores) -> None:
    """All rounds."""
    certificate = make_certificate(workspaces[0].directory) if options.tls else {}
    tell(f"{'':14}{'states/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'owner us':>10}{'all us':>9}")
    async with AsyncExitStack() as running:
        servers = []
        for workspace, count in zip(workspaces, (1, 1 + options.doors), strict=True):
            peer = Trunkline()
            peer.settings = {**certificate, "TRUNKLINE_PROCESSES": str(count)}  # type: ignore[misc]
            block = peer.run(workspace.directory, workspace, options.devices, ProgressBar())
            name = "one process" if count == 1 else f"{options.doors} door(s)"
            started = await running.enter_async_context(block)
            servers.append(Loaded(name, started, workspace.pids[0], cores))
        gains = []
        for _ in range(options.rounds):
            used = []
            for server in servers:
                stage, owner_us, all_us = await server.load(cores, options)
                latency = stage.calls[0].latency
                figures = f"{latency.p50_ms:9.2f}{latency.p99_ms:9.2f}{owner_us:10.1f}{all_us:9.1f}"
                tell(f"{server.name:14}{rate_of(stage):10,.0f}{figures}")
                used.append(owner_us)
            gains.append(used[0] / used[1])
        tell(
            f"processor time of one process / of an owner: {statistics.median(gains):.2f} "
            f"({min(gains):.2f} to {max(gains):.2f})"
        )
        for server in servers:
            kept = await server.started.kept()
            tell(str(kept))
            assert not kept.lost


def main(arguments: list[str]) -> None:
    """Print a line for each load, and the ratio."""
    parser = argparse.ArgumentParser(description="What doors take off the process that owns the data.")
    parser.add_argument("--doors", type=int, default=1)
    parser.add_argument("--tls", action="store_true")
    compare(parser, arguments, 256, ("one", "several"), run)


if __name__ == "__main__":
    main(sys.argv[1:])
