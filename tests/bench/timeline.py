"""Measures what stored states cost: with more and more of them, at rest, and while they are flushed.

    .venv/bin/python -m tests.bench.timeline growth --work DIR [--states 1000000 10000000 100000000] [--seconds 5]
    .venv/bin/python -m tests.bench.timeline at-rest --work DIR [--states 1000000] [--devices 100] [--values walk]
    .venv/bin/python -m tests.bench.timeline flushing --work DIR [--rounds 3] [--seconds 10] [--rate 5000]

- `growth` fills a store to each number of states by arrays of 1,000, flushes, and prints single posts a second over 64
  connections, the median time of a page of 1,000 states (the newest, and in the middle) of 30 devices, the time of a
  start until "ready", and the bytes of the file in use for each state. Each page is compared with what was sent.
- `at-rest` sends states of three numbers with two decimals, about a second apart, flushes, and prints the bytes of the
  pages in use for each state. `uniform` values are random between 0 and 100, values of a `walk` change slowly.
- `flushing` posts single states at the same rate to two servers in turn: one has a window so small that it flushes all
  the time, the other one so large that it never flushes.

It is in the tests because it starts servers, reads their files and uses the bench, which no room may do.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import lmdb
import msgspec
import trio

from tests.e2e.server_process import OWNER, ServerProcess, serving, started
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.fleet import Fleet, StatePost, with_body
from trunkline.bench.flushed import flush
from trunkline.bench.history import to_ms
from trunkline.bench.ledger import same_data
from trunkline.bench.load import Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Calls
from trunkline.bench.session import Session, device_path
from trunkline.bench.stage import Plan, measure
from trunkline.store.keys import ARRIVALS_END

DEVICES = 1000
CONNECTIONS = 64
PER_CALL = 1000
FILL_CONNECTIONS = 16
FILL_S = 2.0
"""Seconds: after so long it is looked at how much is stored."""

PAGE = 1000
PAGES = 30
STEP_MS = 1000
SMALL_WINDOW_BYTES = 2**18
LARGE_WINDOW_BYTES = 2**30
PAGE_BYTES = 4096
DATABASES_MAX = 64


class Running(NamedTuple):
    """A server process, and a session of its owner."""

    process: ServerProcess
    session: Session


@asynccontextmanager
async def running(
    data_dir: Path, cores: Cores, *, env: Mapping[str, str] | None = None, **limits: int
) -> AsyncIterator[Running]:
    """A server without throttles, on its cores; stopped at the end. `env` has more settings of it."""
    file = data_dir.with_suffix(".toml")
    file.write_text("".join(f"{name} = {value}\n" for name, value in limits.items()))
    variables = {**OWNER, "TRUNKLINE_THROTTLES": "off", **(env or {})}
    with on_cores(cores.server):
        server = serving(data_dir, "--limits", str(file), env=variables, cold=True)
        process = await server.__aenter__()
    try:
        session = Session(process.url, token=process.token)
        yield Running(process, session)
        session.close()
        assert await process.terminate() == 0
    finally:
        await server.__aexit__(None, None, None)


def random_state(number: int) -> dict[str, Any]:
    """The data of the state with this number: random, unlike that of other loads, which a compressor would know."""
    bits = number * 0x9E3779B97F4A7C15 % 2**64
    return {
        "sequence": (bits >> 20) % 10_000 / 100,
        "temperature": (bits >> 40) % 10_000 / 100,
        "running": bits >> 63 == 1,
    }


@lru_cache(maxsize=256)
def random_body(number: int, count: int, first_ms: int) -> bytes:
    """The body of a call with so many states, which is the same for all devices."""
    states = [{"time": first_ms + n, "data": random_state(n)} for n in range(number, number + count)]
    return msgspec.json.encode(states if count > 1 else states[0])


class RandomPost(StatePost):
    """Posts the next random states of a device."""

    __slots__ = ()

    def request(self) -> bytes:
        self._number = self._ledger.begin(self._count)
        return with_body(self._head, random_body(self._number, self._count, self._ledger.first_ms))


def loaded(fleet: Fleet, session: Session, cores: Cores, plan: Plan, per_call: int = 1) -> Calls:
    """The result of posts of states; runs in the calling thread."""
    tally = Tally("posts", "states")
    callers = [
        RandomPost(tally, ledger, fleet.post(fleet.path(ledger.device_id, "/state")), per_call)
        for ledger in fleet.ledgers
    ]
    with on_cores(cores.generator):
        (calls,) = measure("posts", callers, session.origin, plan, bar=ProgressBar()).calls
    return calls


def live_bytes(data_dir: Path) -> int:
    """The bytes of the pages in use, without freed ones, of a store."""
    with (
        lmdb.open(str(data_dir / "store"), readonly=True, max_dbs=DATABASES_MAX) as env,
        env.begin() as reading,
    ):
        names = [bytes(key) for key, _ in reading.cursor() if bytes(key) > ARRIVALS_END]
        counts = [env.stat(), *(reading.stat(env.open_db(name, reading, create=False)) for name in names)]
    pages = sum(one["branch_pages"] + one["leaf_pages"] + one["overflow_pages"] for one in counts)
    return pages * PAGE_BYTES


def is_flushed(data_dir: Path) -> bool:
    """Whether something has been written into sorted runs."""
    with (
        lmdb.open(str(data_dir / "store"), readonly=True, max_dbs=DATABASES_MAX) as env,
        env.begin() as reading,
    ):
        return bool(reading.stat(env.open_db(b"runs", reading, create=False))["entries"])


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# Growth.


async def growth(options: argparse.Namespace, data_dir: Path, cores: Cores) -> None:
    """A line for each number of states."""
    columns = (
        "states",
        "filled/s",
        "posts/s",
        "p99 ms",
        "newest ms",
        "middle ms",
        "start s",
        "bytes a state",
    )
    tell("".join(f"{column:>15}" for column in columns))
    fleet: Fleet | None = None
    for states in options.states:
        async with running(data_dir, cores) as (_, session):
            if fleet is None:
                fleet = await Fleet.create(session, ProgressBar(), "growth", options.devices)
            else:
                fleet = _continued(fleet, session)
            filled = await trio.to_thread.run_sync(_fill, fleet, session, cores, states)
            await flush(data_dir)
            plan = Plan(
                connections=CONNECTIONS, duration_s=options.seconds, warmup_s=min(1.0, options.seconds)
            )
            calls = await trio.to_thread.run_sync(loaded, fleet, session, cores, plan)
            newest = await _page_ms(fleet, session, at=1.0)
            middle = await _page_ms(fleet, session, at=0.5)
            await flush(data_dir)
        stored, start_s = _stored(fleet), await _start_s(data_dir, cores)
        tell(
            f"{stored:15,}{filled:15,.0f}{calls.unit_rate:15,.0f}{calls.latency.p99_ms:15.1f}{newest:15.1f}{middle:15.1f}"
            f"{start_s:15.2f}{live_bytes(data_dir) / stored:15.1f}"
        )


def _continued(fleet: Fleet, session: Session) -> Fleet:
    """The same devices at a server that was started again."""
    found = Fleet(session, fleet.application_id, fleet.device_ids)
    found.first_ms, found.ledgers = fleet.first_ms, fleet.ledgers
    return found


def _stored(fleet: Fleet) -> int:
    return sum(len(ledger.outcomes) for ledger in fleet.ledgers)


def _fill(fleet: Fleet, session: Session, cores: Cores, states: int) -> float:
    """Fill up to so many states; return those stored a second."""
    before = _stored(fleet)
    took_s = 0.0
    while (stored := _stored(fleet)) < states:
        rest_s = (states - stored) * took_s / (stored - before) if took_s else FILL_S / 4
        plan = Plan(connections=FILL_CONNECTIONS, duration_s=min(FILL_S, rest_s), warmup_s=0)
        began_s = time.perf_counter()
        calls = loaded(fleet, session, cores, plan, PER_CALL)
        took_s += time.perf_counter() - began_s
        assert calls.acknowledged == calls.sent, calls.first_refusal
    return (_stored(fleet) - before) / took_s if took_s else 0.0


async def _page_ms(fleet: Fleet, session: Session, *, at: float) -> float:
    """The median time of a page of states that ends at a share of the history, in milliseconds."""
    times = []
    for ledger in fleet.ledgers[:PAGES]:
        last = int((len(ledger.outcomes) - 1) * at)
        query = {"end": fleet.first_ms + last, "limit": PAGE}
        began_s = time.perf_counter()
        answer = await session.fetch("GET", fleet.path(ledger.device_id, "/state"), query=query)
        times.append(time.perf_counter() - began_s)
        entries = msgspec.json.decode(answer.body)
        assert len(entries) == min(PAGE, last + 1)
        for number in (0, len(entries) - 1):
            assert to_ms(entries[number]["time"]) == fleet.first_ms + last - number
            assert same_data(random_state(last - number), entries[number]["data"])
    return statistics.median(times) * 1000


async def _start_s(data_dir: Path, cores: Cores) -> float:
    """Seconds from the start of a process to its first answer "ready"."""
    with on_cores(cores.server):
        began_s = time.perf_counter()
        async with started(data_dir, env={}, cold=True) as server:
            assert await server.listens()
            await server.call("GET", "/readyz", token="")
            took_s = time.perf_counter() - began_s
            assert await server.terminate() == 0
    return took_s


# At rest.


def values_of(kind: str, random: Random, count: int) -> list[list[float]]:
    """So many values of three attributes, with two decimals."""
    if kind == "uniform":
        return [[round(random.uniform(0, 100), 2) for _ in range(3)] for _ in range(count)]
    now, found = [random.randint(2000, 8000) for _ in range(3)], []
    for _ in range(count):
        now = [value + random.randint(-10, 10) for value in now]
        found.append([value / 100 for value in now])
    return found


async def at_rest(options: argparse.Namespace, data_dir: Path, cores: Cores) -> None:
    """The bytes of a state."""
    names = ("temperature", "humidity", "pressure")
    attributes = [{"name": name, "dataType": "number"} for name in names]
    async with running(data_dir, cores) as (_, session):
        application = await session.create_application("at rest")
        wanted = [{"name": f"device-{number}", "attributes": attributes} for number in range(options.devices)]
        ids = await session.create_devices(application, wanted)
        before = live_bytes(data_dir)
        each = options.states // options.devices
        first_ms = time.time_ns() // 1_000_000 - each * STEP_MS
        waiting = iter(enumerate(ids))

        async def send() -> None:
            for number, device in waiting:
                random = Random(number)
                states = [
                    {
                        "time": first_ms + n * STEP_MS + random.randint(-50, 50),
                        "data": dict(zip(names, values, strict=True)),
                    }
                    for n, values in enumerate(values_of(options.values, random, each))
                ]
                path = device_path(application, device, "/state")
                for first in range(0, each, PER_CALL):
                    await session.call("POST", path, states[first : first + PER_CALL])

        async with trio.open_nursery() as nursery:
            for _ in range(min(FILL_CONNECTIONS, options.devices)):
                nursery.start_soon(send)
        await flush(data_dir)
    count, size = each * options.devices, live_bytes(data_dir) - before
    file = (data_dir / "store" / "data.mdb").stat().st_size
    tell(
        f"{count:,} states of three {options.values} numbers, {options.devices:,} devices: {size / count:.1f} bytes a "
        f"state in pages in use ({size / 1e6:.1f} MB); the file has {file / 1e6:.1f} MB"
    )


# While flushing goes on.


async def flushing(options: argparse.Namespace, data_dir: Path, cores: Cores) -> None:
    """A line for each server and round, and the ratio of the medians of p99."""
    tell(f"{'':20}{'states/s':>12}{'p50 ms':>10}{'p99 ms':>10}{'p99.9 ms':>10}")
    kinds = {"without flushing": LARGE_WINDOW_BYTES, "with flushing": options.window_bytes}
    p99: dict[str, list[float]] = {kind: [] for kind in kinds}
    plan = Plan(
        connections=CONNECTIONS,
        duration_s=options.seconds,
        warmup_s=min(1.0, options.seconds),
        rate=options.rate,
    )
    for number in range(options.rounds):
        for kind, window_bytes in kinds.items():
            place = data_dir.with_name(f"{kind.partition(' ')[0]}-{number}")
            limits = {"arrival_window_bytes": window_bytes, "arrivals_bytes_max": 6 * LARGE_WINDOW_BYTES}
            async with running(place, cores, **limits) as (_, session):
                fleet = await Fleet.create(session, ProgressBar(), "flushing", options.devices)
                calls = await trio.to_thread.run_sync(loaded, fleet, session, cores, plan)
                assert is_flushed(place) is (kind == "with flushing")
            latency = calls.latency
            p99[kind].append(latency.p99_ms)
            tell(
                f"{kind:20}{calls.unit_rate:12,.0f}{latency.p50_ms:10.2f}{latency.p99_ms:10.2f}{latency.p999_ms:10.2f}"
            )
    without, with_flushing = (statistics.median(values) for values in p99.values())
    tell(f"p99 with flushing : without (medians): {with_flushing / without:.2f}")


def main(arguments: Sequence[str]) -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description="What stored states cost.")
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Any, devices: int) -> argparse.ArgumentParser:
        made = commands.add_parser(name)
        made.set_defaults(run=run)
        made.add_argument("--work", type=Path, required=True, help="a directory on the disk to be measured")
        made.add_argument("--devices", type=int, default=devices)
        made.add_argument("--server-cores", type=int, default=1)
        return made

    growing = command("growth", growth, DEVICES)
    growing.add_argument("--states", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    growing.add_argument("--seconds", type=float, default=5.0)
    resting = command("at-rest", at_rest, 100)
    resting.add_argument("--states", type=int, default=10**6)
    resting.add_argument("--values", choices=("uniform", "walk"), default="uniform")
    both = command("flushing", flushing, DEVICES)
    both.add_argument("--seconds", type=float, default=10.0)
    both.add_argument("--rounds", type=int, default=3)
    both.add_argument("--rate", type=float, help="posts a second; without it as fast as answers come")
    both.add_argument("--window-bytes", type=int, default=SMALL_WINDOW_BYTES)
    options = parser.parse_args(arguments)
    work = options.work.absolute() / f"timeline-{time.time_ns()}"
    work.mkdir(parents=True)
    try:
        trio.run(partial(options.run, options, work / "data", Cores.split(options.server_cores)))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main(sys.argv[1:])
