"""A process in which the result of a thread is lost ends with a sentence, and no other process does."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading, time, trio
from collections import deque
from trio import _threads
from trunkline.actors.core.runtime import lost_work

LOSES = sys.argv[1]
lost_work.CHECK_S = 0.01
lost_work.CHECKS = 3

class NoMemory(threading.Thread):
    def run(self):
        del self._target
        raise MemoryError

def undelivered(*_arguments, **_options):
    raise MemoryError

class Unread(deque):
    def __len__(self):
        raise MemoryError

async def main():
    with lost_work.end_for_lost_work():
        for number in range(50):
            assert await trio.to_thread.run_sync(lambda: number) == number
        with trio.move_on_after(0.01):
            await trio.to_thread.run_sync(time.sleep, 0.3, abandon_on_cancel=True)
        if LOSES == "before":
            trio._core._thread_cache.Thread = NoMemory
            trio._core._thread_cache.THREAD_CACHE._idle_workers.clear()
        elif LOSES == "after":
            type(trio.lowlevel.current_trio_token()).run_sync_soon = undelivered
        elif LOSES == "all":
            trio._core._run.GLOBAL_RUN_CONTEXT.runner.entry_queue.queue = Unread()
        await trio.to_thread.run_sync(time.sleep, 0.3)
        await trio.sleep(0.3)
    assert not lost_work._under_way
    print("went on")

trio.run(main)
"""


def ended(loses: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, loses], capture_output=True, text=True)


LOST = "trunkline: No memory was left for a thread, whose result is lost."
ENDED = "trunkline: The event loop has ended, as it does without memory, and waits for a thread."


@pytest.mark.parametrize(("loses", "said"), [("before", LOST), ("after", LOST), ("all", ENDED)])
def test_a_process_that_has_lost_a_result_ends(loses: str, said: str) -> None:
    done = ended(loses)
    assert done.stdout == ""
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == said


def test_work_that_takes_long_and_work_that_nobody_waits_for_are_not_lost() -> None:
    done = ended("nothing")
    assert (done.stdout, done.returncode) == ("went on\n", 0), done.stderr
