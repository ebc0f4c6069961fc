"""What a command costs before it does anything, and what a server takes until it is ready on an empty directory.

    .venv/bin/python -m tests.bench.start [--runs 5]

For each command: processor time and time on the clock as ratios to `python -c pass`, the least of some runs each, and
the modules that are imported, those of the project among them. For `serve` also the time to ready and the private
memory three seconds later, before the first device. The interpreter reads compiled modules, as after an installation
by pip, whatever the environment says. The tests use `imported_modules` to hold the list of libraries.
"""

from __future__ import annotations

import argparse
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAM = ("-m", "trunkline.http.cli.main")
READY = "Trunkline serves"
SETTLED_S = 3.0
READY_S_MAX = 120.0
_LISTED = """
import atexit, runpy, sys
file = sys.argv.pop(1)
def list_them():
    names = [name for name, module in sys.modules.items() if getattr(module, "__spec__", None)]
    open(file, "w").write("\\n".join(names))
atexit.register(list_them)
runpy.run_module("trunkline.http.cli.main", run_name="__main__")
"""
"""A program that runs a command and leaves the names of all modules in a file, without those that are put off."""


class Cost(NamedTuple):
    """Of a run: seconds of the processor and on the clock, and private bytes where they were measured."""

    cpu_s: float
    clock_s: float
    private_bytes: int = 0


def environment(compiled: Path) -> dict[str, str]:
    """The variables for a measured process: compiled modules are kept, and nothing configures a server."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("TRUNKLINE_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**kept, "PYTHONPYCACHEPREFIX": str(compiled), "PYTHONUNBUFFERED": "1"}


def run(arguments: Sequence[str], variables: dict[str, str]) -> Cost:
    """Run Python with these arguments until it ends."""
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=variables, check=True, stdout=subprocess.DEVNULL)
    clock_s = time.perf_counter() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock_s)


def serve(
    data: Path, variables: dict[str, str], program: Sequence[str] = PROGRAM, *, settled_s: float = 0
) -> Cost:
    """Start a server, wait until it says that it is ready, and stop it; its cost until then."""
    began_s = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *program, "serve", "--data", str(data), "--port", "0"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_until_ready(process)
            clock_s, cpu_s = time.perf_counter() - began_s, _cpu_s(process.pid)
            if settled_s:
                time.sleep(settled_s)
            return Cost(cpu_s, clock_s, private_bytes(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(READY_S_MAX)


def _wait_until_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    printed, until_s = b"", time.monotonic() + READY_S_MAX
    while READY.encode() not in printed:
        left_s = until_s - time.monotonic()
        if not select.select([process.stdout], [], [], max(0.0, left_s))[0]:
            raise TimeoutError(f"the server was not ready after {READY_S_MAX:.0f} s")
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            raise RuntimeError(f"the server ended before it was ready: {printed.decode()}")
        printed += piece


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def private_bytes(pid: int) -> int:
    """The memory of a process that no other process has, and no file."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def imported_modules(arguments: Sequence[str], variables: dict[str, str]) -> frozenset[str]:
    """The modules that a command has imported when it ends."""
    with tempfile.NamedTemporaryFile("r") as listed:
        run(["-c", _LISTED, listed.name, *arguments], variables)
        return frozenset(listed.read().split())


def modules_of_serve(data: Path, variables: dict[str, str]) -> frozenset[str]:
    """The modules that a server has imported when it was ready and then stopped."""
    with tempfile.NamedTemporaryFile("r") as listed:
        serve(data, variables, ["-c", _LISTED, listed.name])
        return frozenset(listed.read().split())


def libraries(modules: frozenset[str]) -> frozenset[str]:
    """The names at the top of those modules that are neither Python's own nor the project's."""
    tops = {name.partition(".")[0] for name in modules}
    ours = {name for name in tops if name == "trunkline" or name.startswith("__editable__")}
    python = {name for name in tops if name.startswith(_OF_PYTHON)}
    return frozenset(tops - ours - python - sys.stdlib_module_names)


_OF_PYTHON = (
    "__main__",
    "__mp_main__",
    "_cython_",
    "_distutils_hack",
    "_sysconfigdata",
    "cython_runtime",
    "sitecustomize",
    "usercustomize",
)
"""The beginnings of names that stand for no library: of the interpreter, and of what compiled modules share."""


def _least(costs: Sequence[Cost]) -> Cost:
    return Cost(*(min(column) for column in zip(*costs, strict=True)))


def _counts(modules: frozenset[str]) -> str:
    ours = sum(name.startswith("trunkline.") for name in modules)
    return f"{len(modules)} modules, {ours} of the project"


def measure(
    arguments: Sequence[str], runs: int, directory: Path, variables: dict[str, str]
) -> tuple[Cost, str]:
    """The least cost of some runs of a command, and how many modules it imports."""
    numbered = [[*arguments] for _ in range(runs + 2)]
    if arguments[0] == "backup":
        # A backup is written into a directory that does not exist.
        numbered = [
            ["backup", str(directory / f"copy{number}"), *arguments[1:]] for number in range(runs + 2)
        ]
    costs = [run([*PROGRAM, *each], variables) for each in numbered[:-1]]
    # The first run compiles what it imports.
    return _least(costs[1:]), _counts(imported_modules(numbered[-1], variables))


def main() -> None:
    """Measure and print a line for each command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as work:
        directory = Path(work)
        data, variables = directory / "data", environment(directory / "compiled")
        serve(data, variables)
        base = _least([run(["-c", "pass"], variables) for _ in range(2 * runs)])
        say(
            f"python -c pass: {base.cpu_s * 1000:.0f} ms of the processor, {base.clock_s * 1000:.0f} ms on the clock"
        )
        there = ("--data", str(data))
        for name, arguments in {
            "--version": ["--version"],
            "--help": ["--help"],
            "user list": ["user", "list", *there],
            "check": ["check", *there],
            "backup": ["backup", *there],
        }.items():
            least, counts = measure(arguments, runs, directory, variables)
            say(f"{name}: {_ratios(least, base)}, {counts}")
        costs = [serve(directory / f"s{number}", variables, settled_s=SETTLED_S) for number in range(runs)]
        least = _least(costs)
        modules = modules_of_serve(directory / "modules", variables)
        say(
            f"serve, until ready: {_ratios(least, base)}, {_counts(modules)}, "
            f"{least.private_bytes / 1e6:.1f} MB private after {SETTLED_S:.0f} s"
        )


def _ratios(cost: Cost, base: Cost) -> str:
    return (
        f"{cost.cpu_s / base.cpu_s:.1f} times the processor time ({cost.cpu_s * 1000:.0f} ms), "
        f"{cost.clock_s / base.clock_s:.1f} times the clock ({cost.clock_s * 1000:.0f} ms)"
    )


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
