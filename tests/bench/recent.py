"""Measures what people look at most: a chart of recent points, the newest state, and arrays beside rows of the link.

Run it in the checkout:

    .venv/bin/python -m tests.bench.recent [--points 10000] [--calls 2000] [--states 200000] [--rounds 5]

- A chart: the mean by minute of one attribute of one device over its last hour, and all its points downsampled to 500,
  read from points that have just arrived, and again after they were flushed. In ms for a query.
- The newest state of a device (`GET .../state` without parameters), as it arrived and flushed, beside its composite
  state. In microseconds for a call, without HTTP.
- Arrays of 1,000 states as REST brings them, beside rows of 1,000 of the link: decoding, the turn of the device and the
  commit, in microseconds for a state.

All times are those of the processor, the lowest of the rounds, in one process and one run, so that the ratios hold also
on a machine with other work. The answers of both states of the store are compared before anything is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import msgspec
import trio
import trio.lowlevel

from tests.actors.house import START_MS, House, running_house
from tests.bench import frames
from trunkline.actors import readers
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.queries.measurement_messages import (
    Downsampling,
    QueryTimeSeries,
    TimeSeriesQuery,
)
from trunkline.actors.fleet.devices.record.messages import CompositeRange, History, SendState, StateReport
from trunkline.actors.fleet.devices.record.read_messages import GetCompositeState, GetState
from trunkline.http.wire.garbage_collection import collecting

HOUR_MS: Final = 3_600_000
ATTRIBUTES: Final = {"temperature": "number", "pressure": "number", "count": "number", "running": "boolean"}


class Reads(NamedTuple):
    """Seconds of the processor for one answer of each kind, in the order of `asked`, and the answers."""

    took: list[float]
    answers: list[bytes]


async def report(house: House, device: bytes, points: int) -> None:
    """Let a device report so many single states within the last hour, one in each commit."""
    chance, ref = Random(7), house.ref(device)
    for number in range(points):
        now_ms = START_MS + number * HOUR_MS // points
        house.clock.set_wall(now_ms)
        data = {
            "temperature": round(20 + chance.gauss(0, 1), 2),
            "pressure": 1000 + chance.random(),
            "count": number,
            "running": number % 7 == 0,
        }
        house.system.begin(ref, SendState(body=StateReport(data=data, time=now_ms)))
        house.system.journal.flush()
        if number % 64 == 0:
            await trio.lowlevel.checkpoint()
    house.clock.set_wall(START_MS + HOUR_MS)


def asked(house: House, device: bytes) -> list[Message]:
    """A chart of means, one of downsampled points, the newest state and the composite state."""
    now_ms, names = house.clock.wall_ms(), ["temperature"]
    common = {"duration": HOUR_MS, "deviceIds": [device.hex()], "attributes": names}
    means = msgspec.convert({**common, "resolution": 60_000, "aggregation": "MEAN"}, TimeSeriesQuery)
    raw = msgspec.convert(common, TimeSeriesQuery)
    at: dict[str, Any] = {"application": house.application, "now_ms": now_ms}
    return [
        QueryTimeSeries(**at, body=means, reach=None),
        QueryTimeSeries(**at, body=raw, reach=None, query=Downsampling(downsample=500)),
        GetState(**at, device=device, query=History()),
        GetCompositeState(**at, device=device, query=CompositeRange()),
    ]


def answer(house: House, message: Message) -> Any:
    """The answer to a read, with a snapshot of its own as every call has one."""
    with house.system.store.snapshot() as snapshot:
        reading = Reading(snapshot, house.system.limits, in_loop=False, system=house.system)
        return readers.READERS[type(message)](reading, message)


def lowest(call: Callable[[], Any], times: int, rounds: int) -> float:
    """Seconds of the processor for one call: the lowest of the rounds."""
    found = []
    for _ in range(rounds):
        began_s = time.process_time()
        for _ in range(times):
            call()
        found.append((time.process_time() - began_s) / times)
    return min(found)


def reads(house: House, device: bytes, calls: int, rounds: int) -> Reads:
    """Time all four reads."""
    messages = asked(house, device)
    took = [
        lowest(lambda message=message: answer(house, message), times, rounds)  # type: ignore[misc]
        for message, times in zip(messages, (3, 3, calls, calls), strict=True)
    ]
    return Reads(took, answers=[msgspec.json.encode(answer(house, message)) for message in messages])


async def recent_points(points: int, calls: int, rounds: int) -> tuple[Reads, Reads]:
    """The reads while everything waits in the arrivals, and after it is flushed."""
    with tempfile.TemporaryDirectory() as directory, collecting():
        async with running_house(Path(directory)) as house:
            device = await house.device(ATTRIBUTES)
            await report(house, device, points)
            arrived = reads(house, device, calls, rounds)
            await house.flush()
            flushed = reads(house, device, calls, rounds)
    assert arrived.answers == flushed.answers
    return arrived, flushed


def main(arguments: list[str]) -> None:
    """Measure, and print a table of each part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--states", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    arrived, flushed = trio.run(recent_points, given.points, given.calls, given.rounds)
    write = sys.stdout.write
    write(f"{given.points:,} points of one device      just arrived      flushed   arrived : flushed\n")
    for name, unit, scale, at in (
        ("mean by minute", "ms", 1e3, 0),
        ("downsampled to 500", "ms", 1e3, 1),
        ("the newest state", "us", 1e6, 2),
        ("composite state", "us", 1e6, 3),
    ):
        recent, old = arrived.took[at] * scale, flushed.took[at] * scale
        write(f"{name:28}{recent:12,.2f} {unit}{old:12,.2f} {unit}{recent / old:12.2f}\n")
    write(f"newest state, flushed : composite state {flushed.took[2] / flushed.took[3]:.2f}\n\n")
    write(
        "states of three numbers     decode   apply  commit   us a state; states/s, and its ratio to rows\n"
    )
    rates: dict[str, float] = {}
    for form in ("rows", "array"):
        found = [trio.run(frames.measure, form, 1000, given.states, 8, 16) for _ in range(2)]
        rate = min(found, key=lambda each: each.stored)
        rates[form] = 1 / rate.stored
        write(
            f"{form} of 1,000".ljust(28) + f"{rate.decode:6.2f}{rate.apply:8.2f}{rate.commit:8.2f}"
            f"{1e6 / rate.stored:24,.0f}{rates[form] / rates['rows']:8.2f}\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
