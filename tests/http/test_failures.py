"""What the command line says of a failure: one sentence where an operator can do something, also of a wrapped one."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import trio
from trunkline.http.cli import main

async def fails():
    raise ERROR

async def run():
    trio.lowlevel.spawn_system_task(fails)  # as the parts of Trio fail without memory
    await trio.sleep_forever()

main.app = lambda: trio.run(run)
main.main()
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("MemoryError", "trunkline: No memory is left: "),
        ("ValueError", "trio.TrioInternalError: "),
    ],
)
def test_a_lack_of_memory_is_told_also_where_the_event_loop_fails_with_it(error: str, said: str) -> None:
    command = [sys.executable, "-c", PROGRAM.replace("ERROR", error)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(said)
