"""Lets every system call of a server fail: `python -m tests.faults --sweep work --way EIO`.

`--sweep` is `work` (calls to a running server, `--work` for one of them), `flush` (states that are flushed at once),
`growth` (of the map), `first` (the first start), `start` (a later one), `migration` (one that finds an older format),
`backup`, `restore` (the first start on a backup), `division` (into partitions) or `memory` (rounds in which the server
gets no more of it); without it all of them. `--way` is a way to fail, without it all. `--every N` takes each N-th call
only. Prints what came of it; the exit code is 1 if something was lost, stored though refused, or not told.
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
import traceback
from pathlib import Path

import trio

from tests.faults.division_sweep import sweep_divisions
from tests.faults.ledger import Ledger
from tests.faults.memory_sweep import sweep_memory
from tests.faults.plan import COMPILER
from tests.faults.rare_sweeps import sweep_growths, sweep_restores
from tests.faults.sweep import (
    WAYS,
    Disk,
    Way,
    sweep_backups,
    sweep_first_starts,
    sweep_migrations,
    sweep_starts,
    sweep_work,
)

SWEEPS = ("work", "flush", "growth", "first", "start", "migration", "backup", "restore", "division", "memory")
FLUSH_S = 0.02
MEMORY_ROUNDS = 160


def main() -> int:
    """Read the command line, make the sweeps, and return the exit code."""
    works = list(Ledger().works)
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--sweep", choices=SWEEPS)
    parser.add_argument("--work", choices=works)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    if COMPILER is None:
        print("There is no C compiler `cc`, which builds the library that fails.")
        return 1
    failed = 0
    for sweep in [given.sweep] if given.sweep else SWEEPS:
        for work in ([given.work] if given.work else works) if sweep == "work" else [""]:
            for way in [given.way] if given.way else WAYS:
                if sweep != "memory":
                    failed += trio.run(_sweep, sweep, work, WAYS[way], given.every)
        if sweep == "memory":
            failed += trio.run(_sweep, sweep, "", Way("rounds"), given.every)
    return int(failed > 0)


async def _sweep(sweep: str, work: str, way: Way, every: int) -> int:
    """Make one sweep in a directory of its own; 1 if something is wrong."""
    numbers, began_s = itertools.count(0, every), time.monotonic()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        disk = Disk(Path(folder), flush_s=FLUSH_S if sweep == "flush" else None)
        what = f"{work or sweep}, {way.name}"
        try:
            if sweep == "work":
                await sweep_work(disk, work, way, numbers)
            elif sweep == "flush":
                await sweep_work(disk, "states one by one", way, numbers)
            elif sweep == "migration":
                await sweep_migrations(disk, way, numbers)
            elif sweep == "first":
                disk.outcomes = await sweep_first_starts(Path(folder) / "starts", way, numbers)
            elif sweep == "memory":
                await sweep_memory(disk, range(0, MEMORY_ROUNDS, every))
            elif sweep == "growth":
                disk.outcomes = await sweep_growths(Path(folder) / "growths", way, numbers)
            elif sweep == "restore":
                disk.outcomes = await sweep_restores(Path(folder) / "restores", way, numbers)
            elif sweep == "division":
                disk.outcomes = await sweep_divisions(Path(folder), way, numbers)
            elif sweep == "start":
                await sweep_starts(disk, way, numbers)
            else:
                await sweep_backups(disk, way, numbers)
        except* AssertionError as wrong:
            print(f"{what}: FAILED")
            traceback.print_exception(wrong, file=sys.stdout)
            failed = True
    counts = ", ".join(f"{count} x {outcome}" for outcome, count in disk.outcomes.items()) or "no such call"
    print(f"{what}: {counts}, {time.monotonic() - began_s:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
