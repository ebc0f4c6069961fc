"""The longest turns of the event loop while one command is sent to many devices:

    .venv/bin/python -m tests.e2e.commands_to_many [--devices 1000] [--values 500]

Each of four calls selects all devices by a tag, first with a small payload, then with one of many values. Prints, for
each call, milliseconds of processor time: the longest turn of the call, and that of the commit, which writes a command
for each device.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import Server, running_server
from tests.e2e.loop_meter import LoopMeter, pace
from tests.e2e.worst_flows import SETTINGS, resting_collector

CREATED_AT_ONCE = 25
"""Calls that create devices at one time; they share commits."""


async def create(server: Server, application: str, count: int) -> None:
    """Devices with a tag in common."""

    async def work(first: int) -> None:
        for number in range(first, count, CREATED_AT_ONCE):
            tags = [{"key": "all", "value": "yes"}, {"key": "number", "value": str(number)}]
            await server.call("POST", f"{application}/devices", {"name": f"d{number}", "tags": tags})

    async with trio.open_nursery() as nursery:
        for first in range(CREATED_AT_ONCE):
            nursery.start_soon(work, first)


async def measure(server: Server, meter: LoopMeter, application: str, payload: Any) -> tuple[float, float]:
    """The longest turn of the call, and that of its commit."""
    body = {"name": "go", "payload": payload, "deviceTags": [{"key": "all", "value": "yes"}]}
    meter.take()
    await server.call("POST", f"{application}/devices/command", body)
    turns = meter.noted()
    commits = [ms for kind, ms in turns if kind == "commit"]
    return max((ms for kind, ms in turns if kind == "call"), default=0.0), max(commits, default=0.0)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--values", type=int, default=500)
    given = parser.parse_args()
    sys.stdout.write(f"this machine is slower by {pace():.2f}\n")
    meter = LoopMeter()
    with tempfile.TemporaryDirectory() as directory, resting_collector():
        async with running_server(Path(directory) / "data", **SETTINGS) as server:
            application = await server.application()
            await create(server, application, given.devices)
            with meter.running():
                for payload in (1, {"list": [1] * given.values}):
                    for _ in range(4):
                        call, commit = await measure(server, meter, application, payload)
                        sys.stdout.write(f"call {call:.1f}, commit {commit:.1f} ms\n")


if __name__ == "__main__":
    trio.run(main)
