"""Measures decoding, applying, committing and flushing frames of the link, without sockets. Run it from the checkout:

    .venv/bin/python -m tests.bench.frames [--per-frame 1 10 100 1000] [--states 200000] [--devices 8] [--group 16]

Frames of three numbers are made before: a whole one, and two with fractions (`floats`: three with fractions, so that
all rows have the same length), and beside them the same as arrays in JSON (`array`), which REST brings. Then each of
them is decoded, the actor of its device takes its turn, and after every so many frames (`--group`) there is a commit
with one sync. Then all of it is flushed into sorted runs. The seconds are those of the processor, and for the first
three the median of all groups, so a machine with other work disturbs less. At the end everything is read back and
counted.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import cbor2
import msgspec
import numpy as np
import trio
import trio.lowlevel

from tests.actors.house import START_MS, House, running_house
from trunkline.actors.fleet.devices.record.messages import SendState, StateOrStates
from trunkline.actors.fleet.devices.state.link_messages import ReportFrame
from trunkline.http.link.frames import States, decode_frame
from trunkline.http.wire.garbage_collection import collecting

ATTRIBUTES: Final = {"count": "number", "temp": "number", "load": "number"}
INTERVAL_MS: Final = 1000
ARRAY: Final = msgspec.json.Decoder(StateOrStates)


class Rate(NamedTuple):
    """What some states took: microseconds of processor time each."""

    decode: float
    apply: float
    commit: float
    flush: float
    bytes: float

    @property
    def stored(self) -> float:
        """All but flushing."""
        return self.decode + self.apply + self.commit


def frame(form: str, n: int, first_ms: int, count: int, chance: random.Random) -> bytes:
    """A frame of so many states, one each second."""
    counts = [chance.randrange(1000) for _ in range(count)]
    temps = [round(chance.uniform(15, 30), 2) for _ in range(count)]
    loads = [chance.random() for _ in range(count)]
    if form == "one":
        return cbor2.dumps([1, n, first_ms, {"count": counts[0], "temp": temps[0], "load": loads[0]}])
    distances = [INTERVAL_MS * at for at in range(count)]
    if form == "array":
        states = zip(distances, counts, temps, loads, strict=True)
        return msgspec.json.encode(
            [
                {"time": first_ms + distance, "data": dict(zip(ATTRIBUTES, values, strict=True))}
                for distance, *values in states
            ]
        )
    if form in ("rows", "floats"):
        times = [first_ms + distance for distance in distances]
        first = counts if form == "rows" else map(float, counts)
        rows = [list(row) for row in zip(times, first, temps, loads, strict=True)]
        return cbor2.dumps([2, n, list(ATTRIBUTES), rows])
    columns = {
        "count": cbor2.CBORTag(69, np.array(counts, "<u2").tobytes()),
        "temp": cbor2.CBORTag(86, np.array(temps, "<f8").tobytes()),
        "load": cbor2.CBORTag(86, np.array(loads, "<f8").tobytes()),
    }
    deltas = cbor2.CBORTag(70, np.array(distances, "<u4").tobytes())
    return cbor2.dumps([3, n, first_ms, deltas, columns])


def message_of(form: str, data: bytes) -> ReportFrame | SendState:
    """The message to the device that a frame, or the body of a call, becomes."""
    if form == "array":
        return SendState(body=ARRAY.decode(data))
    found = decode_frame(data, text=False)
    assert isinstance(found, States)
    return ReportFrame(session=1, n=found.n, body=found.body)


async def measure(form: str, per_frame: int, states: int, devices: int, group: int) -> Rate:
    """Bring so many states through a server that is new."""
    chance = random.Random(7)
    frames = max(1, states // per_frame)
    first_ms = START_MS - INTERVAL_MS * per_frame * (frames // devices + 1)
    raw = [
        frame(
            form,
            number // devices + 1,
            first_ms + INTERVAL_MS * per_frame * (number // devices),
            per_frame,
            chance,
        )
        for number in range(frames)
    ]
    with tempfile.TemporaryDirectory() as directory, collecting():
        async with running_house(Path(directory)) as house:
            house.system.check_batch = None
            refs = [house.ref(await house.device(ATTRIBUTES)) for _ in range(devices)]
            took: dict[str, list[float]] = {"decode": [], "apply": [], "commit": []}

            def stop(name: str, began_s: float) -> float:
                now_s = time.thread_time()
                took[name].append(now_s - began_s)
                return now_s

            for begin in range(0, frames, group):
                at_s = time.thread_time()
                messages = [message_of(form, data) for data in raw[begin : begin + group]]
                at_s = stop("decode", at_s)
                for number, message in enumerate(messages, begin):
                    house.system.begin(refs[number % devices], message)
                at_s = stop("apply", at_s)
                house.system.journal.flush()
                stop("commit", at_s)
                await trio.lowlevel.checkpoint()
            began_s = time.process_time()
            await house.flush()
            flush_s = time.process_time() - began_s
            stored = await _stored(house, [ref.id for ref in refs])
            assert stored == frames * per_frame, stored
    us = {name: 1e6 * median(seconds) / (min(group, frames) * per_frame) for name, seconds in took.items()}
    return Rate(
        **us, flush=1e6 * flush_s / (frames * per_frame), bytes=sum(map(len, raw)) / (frames * per_frame)
    )


async def _stored(house: House, devices: list[bytes]) -> int:
    with house.system.store.snapshot() as snapshot:
        return sum(len(part) for device in devices for part in snapshot.points(device))


def main() -> None:
    """Measure all forms and sizes, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--per-frame", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--states", type=int, default=200_000)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--group", type=int, default=16)
    given = parser.parse_args()
    write = sys.stdout.write
    write(
        "form     states  bytes  decode   apply  commit  flush   us a state; states/s before flushing, and with it\n"
    )
    for form in ("array", "rows", "floats", "columns"):
        for per_frame in given.per_frame:
            kind = "one" if per_frame == 1 else form
            if kind == "one" and form != "rows":
                continue
            states = min(given.states, 10_000 * per_frame)
            rate = trio.run(measure, kind, per_frame, states, given.devices, given.group)
            stored = rate.stored
            write(
                f"{kind:8}{per_frame:7}{rate.bytes:7.1f}{rate.decode:8.2f}{rate.apply:8.2f}{rate.commit:8.2f}"
                f"{rate.flush:8.2f}   {1e6 / stored:10,.0f} {1e6 / (stored + rate.flush):10,.0f}\n"
            )


if __name__ == "__main__":
    main()
