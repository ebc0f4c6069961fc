"""The command line with a monitor of its event loop: run as a program, not imported.

At SIGUSR1 it prints `stall N S`: N counts these signals, and S is the longest delay in seconds, since the previous
signal, of a task that should run every millisecond.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import trio

from trunkline.actors import boot
from trunkline.actors.core.runtime.system import System
from trunkline.actors.maintenance import sweep as purge
from trunkline.http.cli.main import main

EVERY_S = 0.001


class Watch:
    """The longest stall since the previous request."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.asked = 0

    async def run(self) -> None:
        while True:
            began_s = time.perf_counter()
            await trio.sleep(EVERY_S)
            self.longest_s = max(self.longest_s, time.perf_counter() - began_s - EVERY_S)

    def tell(self, *_: Any) -> None:
        self.asked += 1
        line, self.longest_s = f"stall {self.asked} {self.longest_s:.6f}\n", 0.0
        os.write(sys.stdout.fileno(), line.encode())


if __name__ == "__main__":
    watch = Watch()
    signal.signal(signal.SIGUSR1, watch.tell)

    async def watched(system: System) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            nursery.start_soon(purge.run_sweep, system)

    vars(boot)["run_sweep"] = watched
    main()
