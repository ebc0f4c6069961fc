"""Measures the share of the bare work's rate that the server reaches with arrays of states. Run it from the checkout:

    .venv/bin/python tests/bench/arrays_share.py --work DIR [--per-call 10 100 1000] [--seconds 5]

The bare work is the minimum that any server must do: decode the JSON into the typed message, encode each state,
put it into the store, commit and sync once for all calls that wait. It is done with the project's own decoder,
codec and journal, in one process on one core, without HTTP, tokens, actors or checks. The server then gets the
same bodies over the network on the same core, in the same run, so that the two rates can be compared.

It is in the tests because it imports both the store and the bench, which no room may do.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from tests.bench.peers.trunkline import Trunkline
from trunkline.actors.fleet.devices.record.messages import StateOrStates
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.ledger import body_of
from trunkline.bench.load import Tally
from trunkline.bench.programs import Workspace
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import gc_paused
from trunkline.bench.stage import Plan, measure
from trunkline.store.batch import Batch
from trunkline.store.codec import encode_numbered
from trunkline.store.env import Store

DEVICES = 1000
CONNECTIONS = 64
"""Calls in flight, hence also the calls of one commit."""

FIRST_MS = 1_700_000_000_000
DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(StateOrStates)


def bare(directory: Path, per_call: int, seconds: float) -> tuple[float, float]:
    """States a second of the bare work, and of its decoding alone."""
    devices = [number.to_bytes(12, "big") for number in range(1, DEVICES + 1)]
    bodies = [body_of(n * per_call, per_call, FIRST_MS) for n in range(64)]
    store = Store.open(directory)
    decoding_s, states, turn = 0.0, 0, 0
    with gc_paused():
        began_s = time.perf_counter()
        while time.perf_counter() - began_s < seconds:
            for _ in range(CONNECTIONS):
                lap, device = divmod(turn, DEVICES)
                turn += 1
                decoding_began_s = time.perf_counter()
                body = DECODER.decode(bodies[lap % len(bodies)])
                decoding_s += time.perf_counter() - decoding_began_s
                batch = Batch()
                for number, report in enumerate(body if isinstance(body, list) else [body]):
                    point = encode_numbered(dict(enumerate(report.data.values())))
                    batch.report(devices[device], FIRST_MS + lap * per_call + number, point)
                store.journal.submit(batch)
                states += per_call
            store.journal.flush()
        elapsed_s = time.perf_counter() - began_s
    assert not store.journal.statistics.failures
    store.close()
    return states / elapsed_s, states / decoding_s


async def served(workspace: Workspace, cores: Cores, per_call: int, seconds: float) -> float:
    """States a second that the server acknowledges."""
    plan = Plan(connections=CONNECTIONS, duration_s=seconds, warmup_s=min(1.0, seconds))
    bar = ProgressBar()
    async with Trunkline().run(workspace.directory, workspace, DEVICES, bar) as started:

        def load() -> float:
            with on_cores(cores.generator):
                callers = started.callers(Tally("arrays", "states"), per_call)
                return measure("arrays", callers, started.origin, plan, bar=bar).calls[0].unit_rate

        rate = await trio.to_thread.run_sync(load)
        kept = await started.kept()
    assert not kept.lost, str(kept)
    return rate


def main(arguments: list[str]) -> None:
    """Print a line for each size of arrays."""
    parser = argparse.ArgumentParser(
        description="The share of the bare work that the server reaches with arrays."
    )
    parser.add_argument("--work", type=Path, required=True, help="a directory on the disk to be measured")
    parser.add_argument("--per-call", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--server-cores", type=int, default=1)
    options = parser.parse_args(arguments)
    cores = Cores.split(options.server_cores)
    columns = ("states a call", "decoding", "bare work", "server", "share")
    tell("".join(f"{column:>14}" for column in columns) + "   (states a second)")
    for per_call in options.per_call:
        directory = options.work.absolute() / f"share-{time.time_ns()}"
        workspace = Workspace(directory, [], cores.server)
        try:
            with on_cores(cores.server):
                most, decoding = bare(directory / "bare", per_call, options.seconds)
            shutil.rmtree(directory / "bare")
            rate = trio.run(partial(served, workspace, cores, per_call, options.seconds))
        finally:
            workspace.close()
        tell(f"{per_call:14,}{decoding:14,.0f}{most:14,.0f}{rate:14,.0f}{rate / most:14.0%}")


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
