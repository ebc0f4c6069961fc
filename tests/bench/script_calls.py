"""Measures calls of a short script of a workflow, with one and with two processes. Run it from the checkout:

    .venv/bin/python tests/bench/script_calls.py [--calls 4000]

Beside calls per second it prints CPU, which depends less on what else the machine does: that of the server, of a
process, and of the same script without a process, with and without the new context that each call gets.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import msgspec
import psutil
import trio

from trunkline.actors.core.scripts.child import Sandbox
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.core.scripts.protocol import Bounds, Call
from trunkline.limits.table import Limits

SCRIPT = "payload.data.fahrenheit = payload.data.celsius * 9 / 5 + 32"
PAYLOAD = {"time": "2026-11-22T00:00:00.000Z", "data": {"celsius": 21.5}, "globals": {}}
CALLERS = 8


def cpu_us(work: Callable[[], object], calls: int) -> float:
    """The CPU of a call, in microseconds."""
    began_s = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - began_s) / calls * 1e6


def without_a_process(calls: int) -> None:
    """Print what a call costs where nothing is sent."""
    bounds = Bounds(5, 64 * 2**20, 256 * 2**20, 5 * 2**20, 100, 65_536)
    call = msgspec.json.encode(Call(SCRIPT, PAYLOAD)).decode()
    prepared = [Sandbox(bounds) for _ in range(200)]
    script_us = cpu_us(lambda: prepared.pop().run(call), 200)
    both_us = cpu_us(lambda: Sandbox(bounds).run(call), calls // 4)
    sys.stdout.write(f"a script in a prepared context, and its release: {script_us:.0f} us of CPU\n")
    sys.stdout.write(f"a new context and a script: {both_us:.0f} us of CPU\n")


async def with_processes(count: int, calls: int) -> None:
    """Print what calls cost with so many processes: one caller at a time, then several."""
    pool = ScriptPool(Limits(script_processes_max=count))

    async def call(times: int, durations_us: list[float]) -> None:
        for _ in range(times):
            began_s = time.perf_counter()
            await pool.call(SCRIPT, PAYLOAD, owner=b"application")
            durations_us.append((time.perf_counter() - began_s) * 1e6)

    async with trio.open_nursery() as nursery:
        await nursery.start(pool.run)
        alone_us: list[float] = []
        await call(calls // 8, alone_us)
        async with trio.open_nursery() as callers:
            for _ in range(CALLERS):
                callers.start_soon(call, 20, [])
        processes = [psutil.Process(pid) for pid in pool.pids]
        before_s = [sum(process.cpu_times()[:2]) for process in processes]
        began_s, server_s = time.perf_counter(), time.process_time()
        async with trio.open_nursery() as callers:
            for _ in range(CALLERS):
                callers.start_soon(call, calls // CALLERS, [])
        rate = calls / (time.perf_counter() - began_s)
        server_us = (time.process_time() - server_s) / calls * 1e6
        after_s = [sum(process.cpu_times()[:2]) for process in processes]
        child_us = (sum(after_s) - sum(before_s)) / calls * 1e6
        sys.stdout.write(
            f"{count} processes: {rate:.0f} calls/s, CPU of a call {server_us:.0f} us in the server and "
            f"{child_us:.0f} us in a process; {statistics.median(alone_us):.0f} us for one caller (median)\n"
        )
        nursery.cancel_scope.cancel()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=4000)
    calls = parser.parse_args().calls
    without_a_process(calls)
    for count in (1, 2):
        trio.run(with_processes, count, calls)
    return 0


if __name__ == "__main__":
    sys.exit(main())
