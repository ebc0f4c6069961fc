"""Work in Trio's threads whose result is lost: the process ends, as somebody would wait for it for ever.

Where no memory is left, a thread may end before it begins its work, or fail to hand over the result, and the part of
Trio that takes results may end. Python and Trio write that down, if they can. Who waits for the result is not told,
also when there is memory again. As Trio lets nobody leave work in a thread alone, the server could not end either.

Owns what notices that. Does not own threads that cannot be started (`thread_start.py`).

A thread has the only reference to its work, which it lets go before it hands over the result. So a result is lost if
the work is gone and the result does not come.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from weakref import ref

import trio
from trio import _threads
from trio.lowlevel import start_thread_soon

CHECK_S: Final = 1.0
CHECKS: Final = 30
"""So often something is missed before it is lost: between its steps a thread may wait for the processor."""

_LOST: Final = b"trunkline: No memory was left for a thread, whose result is lost.\n"
_ENDED: Final = b"trunkline: The event loop has ended, as it does without memory, and waits for a thread.\n"

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


@contextmanager
def end_for_lost_work() -> Iterator[None]:
    """Have the process end with a sentence, and exit code 1, once a result of a thread of Trio's is lost.

    In a run of Trio; until the end of the context, which a server does not reach that waits for such a result.
    """
    of_trio: Any = _threads
    run = _Run()
    trio.lowlevel.spawn_system_task(run.notice_end)
    threading.Thread(target=_watch, args=(run,), name="lost-work", daemon=True).start()
    of_trio.start_thread_soon = start_work
    try:
        yield
    finally:
        of_trio.start_thread_soon = start_thread_soon
        run.is_over = True


class _Run:
    """A run of Trio: whether it may end (`is_over`), and whether Trio ends it."""

    def __init__(self) -> None:
        self.is_over = self.is_ending = False

    async def notice_end(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.is_ending = True


def _watch(run: _Run) -> None:
    ending = 0
    while not run.is_over:
        try:  # all in one frame: there may be no memory for another
            time.sleep(CHECK_S)
            most = ending = ending + 1 if run.is_ending else 0
            for handover in tuple(_under_way):
                handover.missed = handover.missed + 1 if handover.work() is None else 0
                most = max(most, handover.missed)
            if most > CHECKS and not run.is_over:
                os.write(2, _ENDED if run.is_ending else _LOST)
                os._exit(1)
        except MemoryError:
            pass
