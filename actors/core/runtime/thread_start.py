"""Starting threads: one that has no memory to begin is an error for who starts it, not a wait for ever.

Owns what a process does while it starts a thread, and where its threads take memory from. Does not own what threads are
used for (`threads.py`).

`Thread.start` waits until the new thread says that it has begun. Where there is no memory for its first frame, Python
writes a line to standard error and ends it, and nobody says anything (https://github.com/python/cpython/issues/140746).
Trio starts its threads in the event loop, which then waits for ever, also when there is memory again. The new thread
holds the only reference to the method that it was to run: once that is gone, it has ended.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from typing import Any, Final
from weakref import ref

from trunkline.actors.core.runtime.computing import switch_often

POLL_S: Final = 0.01
"""How often a start that takes long looks whether the thread has ended. Most threads begin in a tenth of that."""

_ARENA_MAX: Final = -8
"""`M_ARENA_MAX` of the C library's `malloc.h`."""

_start = threading.Thread.start


class ThreadNotStarted(RuntimeError):
    """A thread could not begin: there is no memory for it, or the system lets the process have no more."""


class _Beginning(threading.Event):
    """Set by a thread when it begins. Who waits for that is told if it has ended before."""

    def __init__(self, thread: threading.Thread) -> None:
        super().__init__()
        self._of_thread = thread

    def wait(self, timeout: float | None = None) -> bool:
        method = vars(self._of_thread).pop("_bootstrap", None)
        if timeout is not None or method is None:
            return super().wait(timeout)
        running = ref(method)
        del method
        while not super().wait(POLL_S):
            if running() is None and not self.is_set():
                raise ThreadNotStarted("No memory is left for a new thread.")
        return True


def start(thread: threading.Thread) -> None:
    """What `Thread.start` does. Raises ThreadNotStarted."""
    given: Any = thread
    if thread.ident is not None:
        _start(thread)  # which says that threads are started once
        return
    given._started = _Beginning(thread)  # noqa: SLF001 - there is no other way
    given._bootstrap = given._bootstrap  # noqa: SLF001 - of this object, so that `_Beginning` can let it go
    try:
        _start(thread)
    except ThreadNotStarted:
        raise
    except RuntimeError as error:
        raise ThreadNotStarted(
            f"The system gives no new thread ({error}): memory or the number of processes is limited."
        ) from error
    finally:
        vars(thread).pop("_bootstrap", None)


def prepare_threads() -> None:
    """Have all threads of the process started by `start`, and let none keep the event loop waiting for long.

    They take memory from where the event loop takes it. By itself glibc has a part for each of several threads, and
    each keeps what it once needed: after an hour of everything that was 6 MB of 118.
    """
    switch_often()
    share_memory()
    threading.Thread.start = start  # type: ignore[method-assign, assignment]


def share_memory() -> None:
    """Let all threads that begin from now on take memory from one part, where the C library is glibc."""
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
