"""The command line with an injected fault, for the crash tests: run as a program, not imported.

CRASH_STEP=N       dies at the Nth step of the file system that concerns the data directory (from 0)
CRASH_SIGNAL=NAME  the signal that it sends itself at that step, instead of SIGKILL
CRASH_STEPS=N      starts again and again, each time in a process of its own, and dies N steps of the file system
                   later than before, until a start has no such step; "dies at step M" is printed before each
CRASH_GROWTH=N:S   dies S seconds after the Nth growth of the memory map began (from 0)
CRASH_SYNC_S=S     the disk takes S seconds longer for each commit, so that most of the time a commit runs
CRASH_HELD_PARTS=N the creation of what a bundle describes gets no further than N parts, and prints that it is held
CRASH_HELD_JOB=N   each job gets no further than N lines of its file, N messages to the actor it works on or notes
                   of its position, N parts of a creation, or N files of its archive, and none to its end;
                   "held OPERATION ID" is printed when it waits there. "N OPERATION=M ...": some kinds no
                   further than M

It dies by a signal that no handler sees, as with kill -9.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextvars import ContextVar
from typing import Any, cast

import trio

from trunkline.actors.core.runtime.system import System
from trunkline.actors.platform.jobs.job import Job
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.platform.jobs.runner import Jobs
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
PR_SET_PDEATHSIG = 1


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


def die_at_steps(width: int) -> None:
    """Returns in each process that starts. They share what is imported, which takes longer than the start."""
    import trunkline.http.serve  # noqa: F401

    step = 1
    while True:
        sys.stdout.write(f"dies at step {step}\n")
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            die_at_step(step, signal.SIGKILL)
            return
        _, status = os.waitpid(child, 0)
        if (code := os.waitstatus_to_exitcode(status)) != -signal.SIGKILL:
            sys.exit(code)
        step += width


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


class Held:
    """Counts the steps of each job, and says on standard output which job is held.

    The job that a task or a thread works for is in its context.
    """

    def __init__(self, chosen: str) -> None:
        default, *others = chosen.split()
        self._default = int(default)
        self._steps = {name: int(steps) for name, _, steps in (each.partition("=") for each in others)}
        self._left: dict[bytes, int] = {}
        self._job: ContextVar[Job | None] = ContextVar("job", default=None)
        self._names: dict[bytes, str] = {}

    def begin(self, job: Job, operation: str) -> None:
        """This task begins to work for a job."""
        self._job.set(job)
        self._names[job.id] = operation
        self._left[job.id] = self._steps.get(operation, self._default)

    async def step(self) -> None:
        """Take a step of the job of this task, or wait until the job is cancelled."""
        if self._is_held():
            await trio.sleep_forever()

    def step_in_thread(self) -> None:
        """The same in a thread."""
        if self._is_held():
            while True:
                trio.from_thread.check_cancelled()
                time.sleep(0.01)

    async def end(self, job: Job) -> None:
        """No job comes to its end."""
        self._say(job)
        await trio.sleep_forever()

    def _is_held(self) -> bool:
        job = self._job.get()
        if job is None:
            return False
        self._left[job.id] -= 1
        if self._left[job.id] >= 0:
            return False
        self._say(job)
        return True

    def _say(self, job: Job) -> None:
        sys.stdout.write(f"held {self._names[job.id]} {job.id.hex()}\n")
        sys.stdout.flush()


def hold_jobs(chosen: str) -> None:
    """Who kills the server then finds each job in its middle, however fast either of them is.

    A held job can be cancelled, like one that takes long.
    """
    held = Held(chosen)
    run_kind, ask, save, do_part = Jobs._run_kind, Job.ask, Job.save, Job.do_part
    write, put = cast("Any", Results.write), Directory.put
    ask_in_order = System.ask_in_order

    async def run(jobs: Jobs, job: Job, kind: Any) -> Any:
        held.begin(job, kind.operation)
        return await run_kind(jobs, job, kind)

    async def end(_jobs: Jobs, job: Job, _outcome: Any) -> None:
        await held.end(job)

    async def asked(job: Job, ref: Any, message: Any) -> Any:
        if ref != job.owner:
            await held.step()
        return await ask(job, ref, message)

    async def saved(job: Job, note: Any) -> None:
        await held.step()
        await save(job, note)

    async def asked_in_order(system: System, asks: Any, **options: Any) -> Any:
        await held.step()
        return await ask_in_order(system, asks, **options)

    async def part_done(job: Job, asks: Any, note: Any) -> Any:
        await held.step()
        return await do_part(job, asks, note)

    async def written(results: Results, *arguments: Any) -> Any:
        *about, fill = arguments

        def fill_some(snapshot: Any, write_line: Any) -> None:
            def line(text: Any) -> None:
                held.step_in_thread()
                write_line(text)

            fill(snapshot, line)

        return await write(results, *about, fill_some)

    def file_put(directory: Directory, *arguments: Any) -> None:
        held.step_in_thread()
        put(directory, *arguments)

    for owner, name, changed in (
        (Jobs, "_run_kind", run),
        (Jobs, "_end", end),
        (Job, "ask", asked),
        (Job, "save", saved),
        (System, "ask_in_order", asked_in_order),
        (Job, "do_part", part_done),
        (Results, "write", written),
        (Directory, "put", file_put),
    ):
        setattr(owner, name, changed)


def hold_creations(parts: int) -> None:
    """Whoever kills the server then finds a clone or a template in its middle."""
    ask: Any = System.ask_in_order
    left = parts

    async def asked(system: System, asks: Any, **options: Any) -> Any:
        nonlocal left
        if left == 0:
            sys.stdout.write("the creation is held\n")
            sys.stdout.flush()
            await trio.sleep_forever()
        left -= 1
        return await ask(system, asks, **options)

    setattr(System, "ask_in_order", asked)  # noqa: B010


if __name__ == "__main__":
    fault = os.environ
    if "CRASH_STEP" in fault:
        die_at_step(int(fault["CRASH_STEP"]), signal.Signals[fault.get("CRASH_SIGNAL", "SIGKILL")])
    if "CRASH_STEPS" in fault:
        die_at_steps(int(fault["CRASH_STEPS"]))
    if "CRASH_GROWTH" in fault:
        count, _, delay = fault["CRASH_GROWTH"].partition(":")
        die_at_growth(int(count), float(delay))
    if "CRASH_SYNC_S" in fault:
        slow_disk(float(fault["CRASH_SYNC_S"]))
    if "CRASH_HELD_PARTS" in fault:
        hold_creations(int(fault["CRASH_HELD_PARTS"]))
    if "CRASH_HELD_JOB" in fault:
        hold_jobs(fault["CRASH_HELD_JOB"])
    main()
