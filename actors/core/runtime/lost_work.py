"""Work in Trio's threads whose result is lost: the process ends, as somebody would wait for it for ever.

Where no memory is left, a thread may end before it begins its work, or fail to hand over the result. Python and Trio
write that down, if they can. Who waits for the result is not told, also when there is memory again, and as Trio lets
nobody leave a thread alone, the server could not end either.

Owns what notices that. Does not own threads that cannot be started (`thread_start.py`).

A thread has the only reference to its work, which it lets go before it hands over the result. So a result is lost if
the work is gone and the result does not come.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from weakref import ref

from trio import _threads
from trio.lowlevel import start_thread_soon

CHECK_S: Final = 1.0
CHECKS: Final = 10
"""So often a result is missed before it is lost: between both steps a thread may wait for the processor."""

_SENTENCE: Final = b"trunkline: No memory was left for a thread, whose result is lost.\n"

_under_way: Final[set[_Handover]] = set()


class _Handover:
    """How a thread hands over the result of its work."""

    __slots__ = ("_deliver", "missed", "work")

    def __init__(self, work: partial[Any], deliver: Callable[[Any], object]) -> None:
        self.work = ref(work)
        self._deliver = deliver
        self.missed = 0

    def __call__(self, result: Any) -> None:
        self._deliver(result)
        _under_way.discard(self)


def start_work(work: Callable[[], Any], deliver: Callable[[Any], object], name: str | None = None) -> None:
    """What `trio.lowlevel.start_thread_soon` does; a result that is lost is noticed."""
    held = partial(work)
    handover = _Handover(held, deliver)
    _under_way.add(handover)
    try:
        start_thread_soon(held, handover, name)
    except BaseException:
        _under_way.discard(handover)
        raise


def end_for_lost_work() -> None:
    """Have the process end with a sentence, and exit code 1, once a result of a thread of Trio's is lost."""
    of_trio: Any = _threads
    of_trio.start_thread_soon = start_work
    threading.Thread(target=_watch, name="lost-work", daemon=True).start()


def _watch() -> None:
    while True:
        try:  # all in one frame: there may be no memory for another
            time.sleep(CHECK_S)
            for handover in tuple(_under_way):
                handover.missed = handover.missed + 1 if handover.work() is None else 0
                if handover.missed > CHECKS:
                    os.write(2, _SENTENCE)
                    os._exit(1)
        except MemoryError:
            pass
