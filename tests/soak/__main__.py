"""Keeps a server busy with everything it has, and says whether anything grows: `python -m tests.soak --minutes 60`.

Prints a line each minute, and at the end how each figure has changed from `--from-minute` on. The exit code is 1 if
something has grown by more than it may (`verdict.py`), if anything acknowledged is lost or stands otherwise, if a call
was refused or failed, if the server has logged an error, or if `trunkline check` finds something.
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from tests.soak.soak import Soak
from tests.soak.tables import line_of, row_of, tables, words
from tests.soak.traces import Traces
from tests.soak.verdict import growths


def main() -> int:
    """Read the command line, soak, print what came of it, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--from-minute", type=float, default=10.0)
    parser.add_argument("--seed", default="1")
    parser.add_argument(
        "--pace", type=float, default=1.0, help="pauses are divided by it; above 1 without throttles"
    )
    parser.add_argument(
        "--trace", action="store_true", help="tell which places of the server hold more memory"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        traces = Traces(Path(folder)) if given.trace else None
        soak = Soak(Path(folder), given.minutes, seed=given.seed, pace=given.pace, traces=traces)
        trio.run(soak.run, lambda minute: print(line_of(minute), flush=True))
        for line in traces.growth() if traces else ():
            print(line)
    return _conclude(soak, given.from_minute)


def _conclude(soak: Soak, from_minute: float) -> int:
    for line in tables(soak.minutes):
        print(line)
    grown = growths(soak.minutes, from_minute)
    for each in grown:
        print(row_of(each))
    calls = soak.calls
    for (kind, status), count in sorted(calls.answers.items()):
        if status != 200:
            print(f"{count} x {status}: {kind}")
    for (level, event), count in soak.logged.most_common():
        print(f"{count} x {level} in the log: {event}")
    for fault in calls.faults:
        print(fault)
    print(f"before the first client: {words(soak.first)}")
    print(f"after the last client: {words(soak.last)}")
    print(
        f"{sum(calls.answers.values())} calls, {calls.acknowledged} writes acknowledged, "
        f"{calls.read_back} facts read back, {calls.fault_count} faults; check: {soak.check or 'nothing found'}"
    )
    return int(bool(calls.fault_count or soak.check or any(each.is_too_much for each in grown)))


if __name__ == "__main__":
    sys.exit(main())
