"""The command line with an injected fault, for the crash tests: run as a program, not imported.

CRASH_STEP=N       dies at the Nth step of the file system that concerns the data directory (from 0)
CRASH_SIGNAL=NAME  the signal that it sends itself at that step, instead of SIGKILL
CRASH_GROWTH=N:S   dies S seconds after the Nth growth of the memory map began (from 0)
CRASH_SYNC_S=S     the disk takes S seconds longer for each commit, so that most of the time a commit runs
CRASH_HELD_PARTS=N the creation of what a bundle describes gets no further than N parts, and prints that it is held
CRASH_HELD_JOB=N   a job gets no further than N lines of its file, N messages to the actor it works on, or N files

It dies by a signal that no handler sees, as with kill -9.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import trio

from trunkline.actors.jobs.job import Job
from trunkline.actors.jobs.results import Results
from trunkline.actors.runtime.system import System
from trunkline.http.cli.main import main
from trunkline.store import env
from trunkline.store.archive_folder import Directory
from trunkline.store.journal import Journal

STEPS = frozenset(
    {
        "fcntl.flock",
        "open",
        "os.chmod",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.truncate",
    }
)
GROWTH = "mmap.__new__"


def die_at_step(number: int, by: signal.Signals) -> None:
    """Count the audit events of the file system: Python raises each before the step happens."""
    left = number

    def step(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS and (isinstance(arguments[0], int) or "crash-data" in str(arguments)):
            if left == 0:
                os.kill(os.getpid(), by)
            left -= 1

    sys.addaudithook(step)


def die_at_growth(number: int, delay_s: float) -> None:
    """The journal reserves address space right before the map moves; SIGALRM terminates by default."""
    left = number

    def growth(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event == GROWTH and arguments[0] == -1:
            if left == 0:
                signal.setitimer(signal.ITIMER_REAL, max(delay_s, 1e-6))
            left -= 1

    sys.addaudithook(growth)


def slow_disk(seconds: float) -> None:
    """Through `sync_delay_s` of the journal."""

    def slow(*arguments: Any, **named: Any) -> Journal:
        return Journal(*arguments, **{**named, "sync_delay_s": lambda: seconds})

    vars(env)["Journal"] = slow


def hold_jobs(steps: int) -> None:
    """Who kills the server then finds each job in its middle, however fast either of them is."""
    ask = Job.ask
    write: Any = Results.write
    left = steps

    async def asked(job: Job, ref: Any, message: Any) -> Any:
        nonlocal left
        if ref != job.owner:
            if left == 0:
                await trio.sleep_forever()
            left -= 1
        return await ask(job, ref, message)

    async def written(results: Results, *arguments: Any) -> Any:
        *about, fill = arguments

        def held(snapshot: Any, write_line: Any) -> None:
            def line(text: Any) -> None:
                nonlocal left
                if left == 0:
                    threading.Event().wait()
                left -= 1
                write_line(text)

            fill(snapshot, line)

        return await write(results, *about, held)

    do_part = Job.do_part

    async def part_done(job: Job, asks: Any, note: Any) -> Any:
        nonlocal left
        if left == 0:
            await trio.sleep_forever()
        left -= 1
        return await do_part(job, asks, note)

    put = Directory.put

    def file_put(directory: Directory, *arguments: Any) -> None:
        nonlocal left
        if left == 0:
            threading.Event().wait()
        left -= 1
        put(directory, *arguments)

    setattr(Directory, "put", file_put)  # noqa: B010
    setattr(Job, "ask", asked)  # noqa: B010 - mypy takes no assignment to a method
    setattr(Job, "do_part", part_done)  # noqa: B010
    setattr(Results, "write", written)  # noqa: B010


def hold_creations(parts: int) -> None:
    """Whoever kills the server then finds a clone or a template in its middle."""
    ask: Any = System.ask_in_order
    left = parts

    async def asked(system: System, asks: Any) -> Any:
        nonlocal left
        if left == 0:
            sys.stdout.write("the creation is held\n")
            sys.stdout.flush()
            await trio.sleep_forever()
        left -= 1
        return await ask(system, asks)

    setattr(System, "ask_in_order", asked)  # noqa: B010


if __name__ == "__main__":
    fault = os.environ
    if "CRASH_STEP" in fault:
        die_at_step(int(fault["CRASH_STEP"]), signal.Signals[fault.get("CRASH_SIGNAL", "SIGKILL")])
    if "CRASH_GROWTH" in fault:
        count, _, delay = fault["CRASH_GROWTH"].partition(":")
        die_at_growth(int(count), float(delay))
    if "CRASH_SYNC_S" in fault:
        slow_disk(float(fault["CRASH_SYNC_S"]))
    if "CRASH_HELD_PARTS" in fault:
        hold_creations(int(fault["CRASH_HELD_PARTS"]))
    if "CRASH_HELD_JOB" in fault:
        hold_jobs(int(fault["CRASH_HELD_JOB"]))
    main()
