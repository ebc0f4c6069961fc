"""The whole of the tests, several times in a row, while other processes keep every core busy:

    .venv/bin/python -m tests.under_load --runs 5

What depends on the speed of the machine fails here sooner or later. Each run is written to a file of its own;
the first line of the output says where. Arguments that it does not know go to pytest. Ends with 1 where a run failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
"""Never done, but over when its parent is gone."""


@contextmanager
def busy() -> Iterator[None]:
    """A process that takes all the time it gets."""
    process = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> int:
    """Run pytest again and again under load; the exit code."""
    parser = argparse.ArgumentParser(description="Run the tests again and again on a busy machine.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--busy", type=int, default=len(os.sched_getaffinity(0)), help="processes beside them"
    )
    given, more = parser.parse_known_args()
    logs = Path(tempfile.mkdtemp(prefix="tests-under-load-"))
    sys.stdout.write(f"{logs}\n")
    failed = 0
    with ExitStack() as held:
        for _ in range(given.busy):
            held.enter_context(busy())
        for number in range(1, given.runs + 1):
            log, began_s = logs / f"run-{number}.txt", time.monotonic()
            with log.open("wb") as output:
                command = [sys.executable, "-m", "pytest", "-q", *more]
                failed += (
                    subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
                    != 0
                )
            said = log.read_text(encoding="utf-8", errors="replace").splitlines()
            sys.stdout.write(
                f"run {number}, {time.monotonic() - began_s:.0f} s: {said[-1] if said else ''}\n"
            )
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
