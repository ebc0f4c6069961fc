"""Measures what a log costs a store: three NATS servers on this machine, and states of some clients through them.

    .venv/bin/python -m tests.bench.log [--states 200] [--dir DIR]

Prints for 64 and for 512 clients, each of which sends the next state when the one before is stored, the processor time
of this process for a state, the time until a state is stored, and the bytes of the log for a state: without a log and
with it. The servers sync before they acknowledge, all on one disk here. `--dir` is where everything lies.
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import trio

from tests.nats_servers import nats_servers
from trunkline.store import codec
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import LogUnreachable
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import Chain
from trunkline.store.log_owner import LogOwner
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.replicated_journal import ReplicatedJournal

CLIENTS: Final = (64, 512)
SERVERS: Final = 3
STATE: Final = {0: 21.5, 1: 48, 2: True}


class Cost(NamedTuple):
    """Of a state: processor time of this process, the time until it is stored, and bytes of the log."""

    cpu_us: float
    stored_ms: float
    log_bytes: float


async def measure(store: Store, clients: int, states: int) -> tuple[float, float]:
    """Let clients send so many states each, the next when the one before is stored.

    Returns the processor time of a state in us, and the time until one is stored in ms, on average.
    """
    began_s, began_cpu_s = time.perf_counter(), time.process_time()

    async def send(device: bytes) -> None:
        for number in range(states):
            batch = Batch()
            batch.report(device, 1_700_000_000_000 + number, codec.encode_numbered(STATE))
            await store.journal.submit(batch).wait()

    async with trio.open_nursery() as nursery:
        for number in range(clients):
            nursery.start_soon(send, number.to_bytes(12, "big"))
    took_s, took_cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    return took_cpu_s / clients / states * 1e6, took_s / states * 1e3


@asynccontextmanager
async def running(directory: Path, **options: object) -> AsyncIterator[Store]:
    """A store whose journal runs."""
    with Store.open(directory, **options) as store:  # type: ignore[arg-type]
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            yield store
            nursery.cancel_scope.cancel()


async def with_log(connection: NatsConnection, directory: Path, clients: int, states: int) -> Cost:
    """What a state costs with a log."""
    log = JetStreamLog(connection, f"tl-bench-{clients}", f"tl.bench.{clients}")
    while True:
        try:
            await log.create(SERVERS)
            break
        except LogUnreachable:
            continue
    owner = LogOwner(log, Chain(0), "bench")
    assert await owner.claim()
    async with running(directory, journal=partial(ReplicatedJournal, owner=owner)) as store:
        await measure(store, clients, states // 10)
        before = (await log.state()).size_bytes
        cpu_us, stored_ms = await measure(store, clients, states)
        size_bytes = (await log.state()).size_bytes - before
    return Cost(cpu_us, stored_ms, size_bytes / clients / states)


def tell(clients: int, what: str, cost: Cost) -> None:
    """Print a line."""
    print(f"{clients:7} | {what:8} | {cost.cpu_us:13.2f} | {cost.stored_ms:15.2f} | {cost.log_bytes:17.1f}")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=200, help="of each client")
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    print("clients | log      | us of a state | ms until stored | bytes of the log")
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        folder = Path(name)
        async with nats_servers(folder, SERVERS) as servers, trio.open_nursery() as nursery:
            connection = NatsConnection([each.address for each in servers])
            await nursery.start(connection.run)
            for clients in CLIENTS:
                async with running(folder / f"{clients} alone") as store:
                    await measure(store, clients, given.states // 10)
                    tell(clients, "none", Cost(*await measure(store, clients, given.states), 0))
                cost = await with_log(connection, folder / f"{clients} with log", clients, given.states)
                tell(clients, "3 copies", cost)
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
