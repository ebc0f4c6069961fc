"""Measures what a state costs a server with alarm rules and without. Run it from the checkout:

    .venv/bin/python -m tests.bench.alarm_rules [--devices 10000] [--rules 10000] [--states 20000]

Each rule names one device. The states are asked of the actors in this process, 256 at a time, on a real store, so what
is measured is the turn and the commit, without HTTP. Printed is the processor time of a state, the median of three
rounds: without a rule in the application; with rules that do not hold; and while every alarm is open, where each state
counts. The looks that devices take at their rules, at their first state after a change, are in none of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import msgspec
import trio

from tests.actors.fleet.alarms.alarm_house import Alarms
from tests.actors.house import House, running_house
from trunkline.actors.fleet.devices.record.messages import SendState, StateOrStates

AT_ONCE = 256
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


async def main() -> None:
    """Make the devices and the rules, and print the costs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--states", type=int, default=20_000)
    chosen = parser.parse_args()
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
                sys.stdout.write(f"{name:32} {us:7.1f} us a state, {us / first:5.2f} times that of no rule\n")


if __name__ == "__main__":
    trio.run(main)
