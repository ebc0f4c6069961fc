"""Measures what a state costs a server with alarm rules and without. Run it from the checkout:

    .venv/bin/python -m tests.bench.alarm_rules turns [--devices 10000] [--rules 10000] [--states 20000]
    .venv/bin/python -m tests.bench.alarm_rules rate [--devices 10000] [--rules 10000] [--rate 10000] [--seconds 8]
    valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file=/dev/null \\
        .venv/bin/python -m tests.bench.alarm_rules instructions none [--states 2560]

Each rule names one device. There are three applications: one without a rule; one with rules that do not hold; and one
where every alarm is open, so that each state counts. The looks that devices take at their rules, at their first state
after a change, are in none of the figures.

`turns` asks the states of the actors in this process, 256 at a time, on a real store, so what is measured is the turn
and the commit, without HTTP. Printed is the processor time of a state, the median of three rounds.

`rate` sends single durable posts at a rate, in open loop over 64 connections, to a server on one core, to the three
applications in turn, three times. Printed are the acknowledged states a second, their latency, and the processor time
of the server for each.

`instructions` lets callgrind count while states are asked as in `turns`, of 200 devices with no rule (`none`), a rule
each that does not hold (`quiet`), or an open alarm each (`open`). The difference of two runs, with 512 and with 2,560
states, is what 2,048 states take, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median

import msgspec
import trio

from tests.actors.fleet.alarms.alarm_house import Alarms
from tests.actors.house import House, running_house
from tests.bench.timeline import loaded, running, tell
from trunkline.actors.fleet.devices.record.messages import SendState, StateOrStates
from trunkline.bench.cores import Cores
from trunkline.bench.fleet import Fleet
from trunkline.bench.progress import ProgressBar
from trunkline.bench.server_monitor import ServerMonitor
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan

AT_ONCE = 256
CONNECTIONS = 64
MAP_BYTES = 2**28
"""Of the store under callgrind, which has little address space."""
ROUNDS = 3
CONDITION = {"type": "attribute", "attribute": "t", "comparison": "above", "value": 30, "hysteresis": 2}


async def many(work: Callable[[], Awaitable[None]], times: int) -> None:
    """Do something so many times, some at a time: their writes are in one commit."""
    for first in range(0, times, AT_ONCE):
        async with trio.open_nursery() as nursery:
            for _ in range(first, min(first + AT_ONCE, times)):
                nursery.start_soon(work)


async def send(house: House, devices: list[bytes], value: float) -> None:
    """Let devices report a value, so many at a time."""
    message = SendState(body=msgspec.convert({"data": {"t": value}}, StateOrStates))
    for first in range(0, len(devices), AT_ONCE):
        async with trio.open_nursery() as nursery:
            for device in devices[first : first + AT_ONCE]:
                nursery.start_soon(house.ask, device, message)


async def cost(house: House, devices: list[bytes], states: int, value: float) -> float:
    """The processor time of a state in microseconds."""
    chosen = [devices[number % len(devices)] for number in range(states)]
    await send(house, devices, value)
    rounds = []
    for _ in range(ROUNDS):
        before_s = time.process_time()
        await send(house, chosen, value)
        rounds.append((time.process_time() - before_s) / states * 1e6)
    return median(rounds)


async def turns(chosen: argparse.Namespace) -> None:
    """Print the costs of states in this process."""
    with tempfile.TemporaryDirectory() as folder:
        async with running_house(Path(folder) / "data") as house:
            alarms = Alarms(house)
            devices: list[bytes] = []

            async def create() -> None:
                devices.append(await house.device({"t": "number"}))

            await many(create, chosen.devices)
            costs = {"no rule": await cost(house, devices, chosen.states, 20)}
            numbers = iter(range(chosen.rules))

            async def rule() -> None:
                await alarms.rule(CONDITION, deviceIds=[devices[next(numbers) % len(devices)].hex()])

            await many(rule, chosen.rules)
            costs[f"{chosen.rules} rules, none holds"] = await cost(house, devices, chosen.states, 20)
            costs[f"{chosen.rules} rules, all alarms open"] = await cost(house, devices, chosen.states, 31)
            first = costs["no rule"]
            for name, us in costs.items():
                tell(f"{name:32} {us:7.1f} us a state, {us / first:5.2f} times that of no rule")


async def instructions(chosen: argparse.Namespace) -> None:
    """Let callgrind count while devices report."""
    value = 31 if chosen.alarms == "open" else 20
    with tempfile.TemporaryDirectory() as folder:
        async with running_house(Path(folder) / "data", map_size_bytes=MAP_BYTES) as house:
            alarms = Alarms(house)
            devices = [await house.device({"t": "number"}) for _ in range(200)]
            for device in devices if chosen.alarms != "none" else ():
                await alarms.rule(CONDITION, deviceIds=[device.hex()])
            for _ in range(3):
                await send(house, devices, value)
                await alarms.settled()
            await counting("on")
            await send(house, [devices[number % len(devices)] for number in range(chosen.states)], value)
            await counting("off")


async def counting(how: str) -> None:
    """Let callgrind count, or stop it."""
    await trio.run_process(["callgrind_control", "-i", how, str(os.getpid())], capture_stdout=True)


async def watched_fleet(session: Session, devices: int, rules: int, above: float | None) -> Fleet:
    """An application with devices, and rules about one of them each that hold above a value."""
    fleet = await Fleet.create(session, ProgressBar(), "alarms", devices)
    if above is None:
        return fleet
    condition = {"type": "attribute", "attribute": "temperature", "comparison": "above", "value": above}
    numbers = iter(range(rules))

    async def create() -> None:
        for number in numbers:
            rule = {"name": f"rule {number}", "condition": condition}
            rule["deviceIds"] = [fleet.device_ids[number % devices]]
            await session.call("POST", f"/applications/{fleet.application_id}/alarm-rules", rule)

    async with trio.open_nursery() as nursery:
        for _ in range(16):
            nursery.start_soon(create)
    return fleet


async def rate(chosen: argparse.Namespace) -> None:
    """Print the rates and the costs of states that are posted."""
    cores = Cores.split(1)
    plan = Plan(connections=CONNECTIONS, duration_s=chosen.seconds, warmup_s=0.0, rate=chosen.rate)
    warmup = Plan(connections=CONNECTIONS, duration_s=2.5 * chosen.devices / chosen.rate, warmup_s=0.0)
    tell(f"{'':32}{'states/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}")
    with tempfile.TemporaryDirectory(dir=chosen.work) as folder:
        async with running(Path(folder) / "data", cores) as (server, session):
            monitor = ServerMonitor([server.process.pid])
            fleets = {
                name: await watched_fleet(session, chosen.devices, chosen.rules, above)
                for name, above in (("no rule", None), ("none holds", 1000.0), ("all alarms open", -1.0))
            }
            for fleet in fleets.values():
                await trio.to_thread.run_sync(loaded, fleet, session, cores, warmup)
            for _ in range(ROUNDS):
                for name, fleet in fleets.items():
                    before_s = monitor.usage().cpu_s
                    calls = await trio.to_thread.run_sync(loaded, fleet, session, cores, plan)
                    cpu_us = (monitor.usage().cpu_s - before_s) * 1e6 / calls.acknowledged
                    tell(
                        f"{name:32}{calls.unit_rate:10,.0f}{calls.latency.p50_ms:9.2f}{calls.latency.p99_ms:9.2f}"
                        f"{cpu_us:9.1f}"
                    )


def main(arguments: Sequence[str]) -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description="States and alarm rules.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("instructions")
    command.set_defaults(run=instructions)
    command.add_argument("alarms", choices=("none", "quiet", "open"))
    command.add_argument("--states", type=int, default=2_560)
    for name, run in (("turns", turns), ("rate", rate)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--devices", type=int, default=10_000)
        command.add_argument("--rules", type=int, default=10_000)
        if run is turns:
            command.add_argument("--states", type=int, default=20_000)
        else:
            command.add_argument("--rate", type=float, default=10_000)
            command.add_argument("--seconds", type=float, default=8.0)
            command.add_argument("--work", type=Path, help="a directory on the disk to be measured")
    chosen = parser.parse_args(arguments)
    trio.run(chosen.run, chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
