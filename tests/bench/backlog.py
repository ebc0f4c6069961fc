"""Measures live states while many devices bring a backlog. Run it from the checkout:

    .venv/bin/python -m tests.bench.backlog --work DIR [--devices 1000] [--states 3600] [--per-call 300] [--rate 1000]

All in one run, on one core for the server, with its own limits: 1,000 devices send live states at a rate, in open loop,
first alone. Then as many other devices come back at once, each on a connection of its own, and bring their states in
arrays of `--per-call`, one after the other, as backlogs, while live states go on; what is refused is sent again after
`Retry-After`. Then live states are alone again, and at last other devices bring as many states as plain arrays. For
each the live rate and latency is printed, measured from the intended start of a call, and for storms the states a
second, the time of their calls and the refused ones. In the end all states are read back.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import trio

from tests.bench.timeline import tell
from tests.e2e.server_process import OWNER, serving
from trunkline.bench.client import Connection
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.fleet import Fleet, StatePost
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Calls
from trunkline.bench.session import Session, retry_after_s
from trunkline.bench.stage import Plan, measure

CONNECTIONS = 64


class Storm:
    """Devices that come back at the same time. `tail` is the end of the path that they post to."""

    def __init__(self, fleet: Fleet, session: Session, tail: str, options: argparse.Namespace) -> None:
        self.began_s = time.perf_counter()
        self.took_s = 0.0
        self.tally = Tally("backlog", "states")
        self.refused = 0
        self.latency = LatencyRecorder()
        self._fleet = fleet
        self._session = session
        self._tail = tail
        self._states = options.states
        self._per_call = options.per_call

    async def run(self) -> None:
        """Bring all states."""
        self.began_s = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for ledger in self._fleet.ledgers:
                head = self._fleet.post(self._fleet.path(ledger.device_id, self._tail))
                nursery.start_soon(self._bring, StatePost(self.tally, ledger, head, self._per_call))
        self.took_s = time.perf_counter() - self.began_s

    async def _bring(self, caller: StatePost) -> None:
        left = self._states
        async with Connection(self._session.origin, token=self._session.token) as connection:
            while left > 0:
                sent_s = time.perf_counter()
                response = await connection.exchange(caller.request())
                if response.status == 200:
                    self.latency.record(time.perf_counter() - sent_s)
                    left -= caller.acknowledged(response)
                    continue
                assert response.status in (429, 503), response.body
                caller.refused()
                self.refused += 1
                await trio.sleep(retry_after_s(response) or 1.0)

    def told(self) -> str:
        """A line of figures."""
        devices, took_s = len(self._fleet.ledgers), self.took_s
        count = devices * self._states
        p50, p99 = (self.latency.percentile(percent) for percent in (50, 99))
        return (
            f"  {count:,} states of {devices:,} devices in {took_s:.1f} s, {count / took_s:,.0f} states/s; "
            f"calls: p50 {p50:.1f} s, p99 {p99:.1f} s, {self.refused:,} refused"
        )


async def run(options: argparse.Namespace, data_dir: Path, cores: Cores) -> None:
    """A line for each stage."""
    with on_cores(cores.server):
        file = data_dir.with_suffix(".toml")
        file.write_text(f"backlog_states = {{calls = {options.budget}, window_s = 1}}\n")
        server = serving(data_dir, "--limits", str(file), env=OWNER, cold=True)
        process = await server.__aenter__()
    try:
        session = Session(process.url, token=process.token)
        live = await Fleet.create(session, ProgressBar(), "live", options.devices)
        returned = await Fleet.create(session, ProgressBar(), "backlog", options.devices)
        plain = await Fleet.create(session, ProgressBar(), "plain", options.devices)
        tell(f"{'live states':34}{'states/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>10}{'refused':>9}")

        async def stage(name: str, seconds: float) -> None:
            calls = await trio.to_thread.run_sync(_live, live, session, cores, options.rate, seconds)
            latency, refused = calls.latency, sum(calls.refused.values())
            tell(
                f"{name:34}{calls.unit_rate:10,.0f}{latency.p50_ms:9.2f}{latency.p99_ms:9.2f}{latency.p999_ms:10.2f}"
                f"{refused:9,}"
            )

        async def with_storm(name: str, fleet: Fleet, tail: str) -> None:
            storm = Storm(fleet, session, tail, options)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(storm.run)
                number = 0
                while not number or not storm.took_s:
                    number += 1
                    await stage(f"{name}, {number}", options.seconds)
            tell(storm.told())

        await stage("alone", options.seconds)
        await with_storm("beside backlogs", returned, "/state?backlog=true")
        await stage("alone again", options.seconds)
        if not options.no_plain:
            await with_storm("beside plain arrays", plain, "/state")
        found = Audit()
        for fleet in (live, returned, plain):
            await fleet.audit(session, found, ProgressBar())
        tell(f"{found.acknowledged:,} states acknowledged, {found.read:,} read back: {found}")
        assert found.clean
        session.close()
        assert await process.terminate() == 0
    finally:
        await server.__aexit__(None, None, None)


def _live(fleet: Fleet, session: Session, cores: Cores, rate: float, seconds: float) -> Calls:
    callers = fleet.state_posts(Tally("live", "states"), rehearsal=False)
    plan = Plan(connections=CONNECTIONS, duration_s=seconds, warmup_s=0.2, rate=rate)
    with on_cores(cores.generator):
        (calls,) = measure("live", callers, session.origin, plan, bar=ProgressBar()).calls
    return calls


def main(arguments: Sequence[str]) -> None:
    """Print a line for each stage."""
    parser = argparse.ArgumentParser(description="Live states beside backlogs.")
    parser.add_argument("--work", type=Path, required=True, help="a directory on the disk to be measured")
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--states", type=int, default=3600, help="that each device brings")
    parser.add_argument("--per-call", type=int, default=300, help="states of an array")
    parser.add_argument("--budget", type=int, default=50_000, help="states a second of the bucket")
    parser.add_argument("--rate", type=float, default=1000.0, help="live states a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each stage")
    parser.add_argument("--no-plain", action="store_true", help="leave out the storm of plain arrays")
    parser.add_argument("--server-cores", type=int, default=1)
    options = parser.parse_args(arguments)
    work = options.work.absolute() / f"backlog-{time.time_ns()}"
    work.mkdir(parents=True)
    try:
        trio.run(partial(run, options, work / "data", Cores.split(options.server_cores)))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main(sys.argv[1:])
