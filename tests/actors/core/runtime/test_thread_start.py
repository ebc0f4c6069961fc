"""A thread that has no memory to begin is an error for who starts it: Python alone would wait for it for ever."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.thread_start import ThreadNotStarted, start


class WithoutMemory(threading.Thread):
    """Fails where a thread fails that cannot have its first frame."""

    def _bootstrap(self) -> None:
        raise MemoryError


def test_a_thread_that_cannot_begin_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.unraisablehook", lambda _: None
    )  # that of pytest keeps what the thread was to run
    with pytest.raises(ThreadNotStarted, match="No memory is left"):
        start(WithoutMemory())


def test_a_thread_that_the_system_refuses_is_told() -> None:
    before = threading.stack_size(1 << 47)  # more than there are addresses
    try:
        with pytest.raises(ThreadNotStarted, match="The system gives no new thread"):
            start(threading.Thread(target=int))
    finally:
        threading.stack_size(before)


def test_a_thread_that_begins_does_its_work_once() -> None:
    done: list[str] = []
    thread = threading.Thread(target=done.append, args=("work",))
    start(thread)
    thread.join(PATIENCE_S)
    assert done == ["work"]
    with pytest.raises(RuntimeError, match="started once"):
        start(thread)


def test_a_thread_that_is_slow_to_begin_is_waited_for() -> None:
    go_on, done = threading.Event(), threading.Event()

    class Slow(threading.Thread):
        def _bootstrap(self) -> None:
            go_on.wait(PATIENCE_S)
            super()._bootstrap()  # type: ignore[misc]

    slow = Slow(target=done.set)
    starting = threading.Thread(target=start, args=(slow,))
    starting.start()
    starting.join(0.05)  # longer than it takes to look whether the thread has ended
    assert starting.is_alive()
    go_on.set()
    starting.join(PATIENCE_S)
    assert done.wait(PATIENCE_S)


def test_threads_take_memory_from_one_part() -> None:
    """Each part keeps what its threads once needed."""
    program = """
import ctypes, sys, threading
from trunkline.actors.core.runtime.thread_start import share_memory
libc = ctypes.CDLL(None)
if not hasattr(libc, "malloc_info"):
    print("<heap ")
    sys.exit()
if sys.argv[1:]:
    share_memory()
libc.malloc.restype = ctypes.c_void_p
there = threading.Barrier(4)
def work():
    libc.malloc(50_000)
    there.wait()
threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
"""

    def parts(*arguments: str) -> int:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.count("<heap ")

    assert parts("shared") == 1 <= parts()
