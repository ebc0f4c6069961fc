"""Measures states that workflows are run for, beside the same states without workflows. Run it from the checkout:

    .venv/bin/python -m tests.bench.flows rate --work DIR [--rate 10000] [--seconds 10]
    .venv/bin/python -m tests.bench.flows isolation --work DIR [--seconds 20]

`rate` sends single durable posts at a rate, in open loop, to one server: without workflows, with a workflow whose first
node rejects 99 of 100 states, and with one of four nodes that is run for each state. For each it prints the rate of
acknowledged states with their latency, the CPU time of the server for each of them and what it triggered, the longest
queue of the workflow and the lag of its oldest trigger while the load went on, and the seconds until the queue was
empty after it.

`isolation` runs a good workflow by a button each 50 ms, first alone, and then beside workflows with an endless loop of
nodes, an endless script, an error in each run, and a slow HTTP target. It prints the time from the press to the end of
the good runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.bench.timeline import loaded, running, tell
from trunkline.bench.cores import Cores
from trunkline.bench.fleet import Fleet
from trunkline.bench.history import to_ms
from trunkline.bench.progress import ProgressBar
from trunkline.bench.server_monitor import ServerMonitor
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan

TAG = {"key": "bench", "value": "flows"}
CONNECTIONS = 64

Json = dict[str, Any]


def node(id: str, type: str, config: Json, *outputs: list[str]) -> Json:
    """A node, with the ids that each output leads to."""
    return {"id": id, "type": type, "config": config, "meta": {"label": id}, "outputIds": [*outputs]}


def by_state(to: str) -> list[Json]:
    """The trigger of all devices of the load."""
    return [{"type": "deviceTag", "key": f"{TAG['key']}/{TAG['value']}", "config": {}, "outputIds": [[to]]}]


FILTER: Json = {
    "name": "filter",
    "triggers": by_state("if"),
    "nodes": [
        node("if", "ConditionalNode", {"expression": "{{data.temperature}} > 99"}, [], ["tell"]),
        node("tell", "DebugNode", {"message": "hot"}),
    ],
}
FOUR_NODES: Json = {
    "name": "four nodes",
    "triggers": by_state("if"),
    "nodes": [
        node("if", "ConditionalNode", {"expression": "{{data.temperature}} > -1"}, [], ["math"]),
        node(
            "math",
            "MathNode",
            {
                "statements": [
                    {"expression": "{{data.temperature}} * 1.8 + 32", "resultPath": "data.fahrenheit"}
                ]
            },
            ["set"],
        ),
        node(
            "set",
            "MutateNode",
            {
                "rules": [
                    {"type": "set", "valueTemplate": "{{data.fahrenheit}} F", "destination": "data.text"}
                ]
            },
            ["tell"],
        ),
        node("tell", "DebugNode", {"message": "{{data.text}}"}),
    ],
}


class Watched:
    """The longest queue and the oldest trigger that were seen."""

    def __init__(self, session: Session, path: str) -> None:
        self.longest = 0
        self.lag_ms = 0.0
        self._session = session
        self._path = path

    async def queue(self) -> Json:
        """The queue of the workflow now."""
        found: Json = (await self._session.call("GET", f"{self._path}/runs", query={"perPage": 1}))["queue"]
        return found

    async def is_empty(self) -> None:
        """Wait until nothing waits for the workflow."""
        while True:
            if not (await self.queue())["waiting"]:
                return
            await trio.sleep(0.05)

    async def look(self) -> None:
        """Look at the queue again and again."""
        while True:
            queue = await self.queue()
            self.longest = max(self.longest, queue["waiting"])
            if "oldest" in queue:
                self.lag_ms = max(self.lag_ms, time.time() * 1000 - to_ms(queue["oldest"]))
            await trio.sleep(0.2)


async def rate(options: argparse.Namespace, data_dir: Path, cores: Cores) -> None:
    """A line for each workflow."""
    tell(
        f"{'':12}{'states/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}"
        f"{'runs':>10}{'queue':>9}{'lag ms':>9}{'empty s':>9}"
    )
    warmup = Plan(connections=CONNECTIONS, duration_s=1.0, warmup_s=0.0, rate=options.rate)
    plan = Plan(connections=CONNECTIONS, duration_s=options.seconds, warmup_s=0.0, rate=options.rate)
    async with running(data_dir, cores) as (server, session):
        monitor = ServerMonitor([server.process.pid])
        for name, body in (("none", None), ("filter", FILTER), ("four nodes", FOUR_NODES), ("none", None)):
            fleet = await Fleet.create(session, ProgressBar(), "flows", options.devices)
            for device in fleet.device_ids:
                await session.call("PATCH", fleet.path(device), {"tags": [TAG]})
            flows = f"/applications/{fleet.application_id}/flows"
            if body is None:
                await trio.to_thread.run_sync(loaded, fleet, session, cores, warmup)
                before_s = monitor.usage().cpu_s
                calls = await trio.to_thread.run_sync(loaded, fleet, session, cores, plan)
                tell(
                    f"{name:12}{calls.unit_rate:10,.0f}{calls.latency.p50_ms:9.2f}{calls.latency.p99_ms:9.2f}"
                    f"{(monitor.usage().cpu_s - before_s) * 1e6 / calls.acknowledged:9.1f}"
                )
                continue
            flow = await session.call("POST", flows, body)
            path = f"{flows}/{flow['id']}"
            watched = Watched(session, path)
            await trio.to_thread.run_sync(loaded, fleet, session, cores, warmup)
            await watched.is_empty()
            before_s = monitor.usage().cpu_s
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watched.look)
                calls = await trio.to_thread.run_sync(loaded, fleet, session, cores, plan)
                nursery.cancel_scope.cancel()
            began_s = time.perf_counter()
            await watched.is_empty()
            empty_s = time.perf_counter() - began_s
            cpu_us = (monitor.usage().cpu_s - before_s) * 1e6 / calls.acknowledged
            await trio.sleep(6)  # what the filter rejected is counted each few seconds
            stats = await session.call("GET", f"{path}/stats", query={"duration": 3_600_000})
            runs = sum(each["runCount"] for each in stats["metrics"])
            latency = calls.latency
            tell(
                f"{name:12}{calls.unit_rate:10,.0f}{latency.p50_ms:9.2f}{latency.p99_ms:9.2f}{cpu_us:9.1f}{runs:10,}"
                f"{watched.longest:9,}{watched.lag_ms:9,.0f}{empty_s:9.2f}"
            )


PRIVATE = {"TRUNKLINE_CALLBACK_PRIVATE_NETWORKS": "true"}
"""The slow target is on this machine."""
BUTTON = [{"type": "virtualButton", "key": "b", "meta": {"id": "b"}, "outputIds": [["a"]]}]
GOOD: Json = {
    "name": "good",
    "triggers": BUTTON,
    "nodes": [
        node("a", "MathNode", {"statements": [{"expression": "1 + 1", "resultPath": "data.two"}]}, ["b"]),
        node("b", "StoreValueNode", {"keyName": "n", "valueType": "incr", "value": "1"}),
    ],
}


def bad_flows(url: str) -> list[Json]:
    """Workflows that would disturb others."""
    function = {"script": "while (true) {}"}
    http = {"method": "GET", "uriTemplate": url, "responsePath": "data.answer", "timeoutTemplate": "20"}
    return [
        {
            "name": "endless nodes",
            "triggers": BUTTON,
            "nodes": [
                node("a", "MutateNode", {"rules": []}, ["b"]),
                node("b", "MutateNode", {"rules": []}, ["a"]),
            ],
        },
        {"name": "endless script", "triggers": BUTTON, "nodes": [node("a", "RawFunctionNode", function)]},
        {
            "name": "throws",
            "triggers": BUTTON,
            "nodes": [node("a", "ThrowErrorNode", {"messageTemplate": "no"})],
        },
        {"name": "slow target", "triggers": BUTTON, "nodes": [node("a", "HttpNode", http)]},
    ]


@asynccontextmanager
async def slow_target() -> Any:
    """A server that accepts and never answers."""
    async with trio.open_nursery() as nursery:

        async def hold(stream: trio.SocketStream) -> None:
            async with stream:
                while await stream.receive_some():
                    pass

        (listener, *_) = await nursery.start(trio.serve_tcp, hold, 0)
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}/"
        nursery.cancel_scope.cancel()


async def press(session: Session, button: str) -> None:
    """Press a button again and again."""
    while True:
        await session.call("POST", button, {"key": "b"})
        await trio.sleep(0.05)


async def isolation(options: argparse.Namespace, data_dir: Path, cores: Cores) -> None:
    """Two lines: the good workflow alone, and beside bad ones."""
    tell(f"{'':16}{'runs':>8}{'p50 ms':>9}{'p99 ms':>9}{'longest ms':>12}")
    async with slow_target() as url, running(data_dir, cores, env=PRIVATE) as (_, session):
        for name, bad in (("alone", []), ("beside bad ones", bad_flows(url))):
            application = await session.create_application(name)
            flows = f"/applications/{application}/flows"
            good = await session.call("POST", flows, GOOD)
            others = [await session.call("POST", flows, each) for each in bad]
            with trio.move_on_after(options.seconds):
                async with trio.open_nursery() as nursery:
                    for each in (good, *others):
                        nursery.start_soon(press, session, f"{flows}/{each['id']}/virtualButton")
            await trio.sleep(2)
            page = await session.call("GET", f"{flows}/{good['id']}/runs", query={"perPage": 1000})
            times = sorted(to_ms(each["time"]) - to_ms(each["queued"]) for each in page["items"])
            p99 = times[int(len(times) * 0.99)]
            tell(f"{name:16}{len(times):8}{statistics.median(times):9.1f}{p99:9.1f}{times[-1]:12.1f}")


def main(arguments: Sequence[str]) -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description="States and workflows.")
    commands = parser.add_subparsers(required=True)
    for name, run in (("rate", rate), ("isolation", isolation)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--work", type=Path, help="a directory on the disk to be measured")
        command.add_argument("--seconds", type=float, default=10.0)
        command.add_argument("--rate", type=float, default=10_000)
        command.add_argument("--devices", type=int, default=200)
    options = parser.parse_args(arguments)
    work = (options.work or Path(tempfile.gettempdir())) / f"flows-{time.time_ns()}"
    work.mkdir(parents=True)
    trio.run(options.run, options, work / "data", Cores.split(1))


if __name__ == "__main__":
    main(sys.argv[1:])
