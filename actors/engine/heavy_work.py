"""Work that grows with the payload: the bounds on what a node makes, and threads for what takes longer.

A node whose work may take more than a few milliseconds does it in a thread, so that the event loop serves others
meanwhile. The run waits for the thread, so nothing else touches its payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio

from trunkline.actors.engine.copies import size_of
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.visit import Visit

INLINE_ITEMS_MAX: Final = 1_000
"""Items that a node goes through without a thread."""
INLINE_BYTES_MAX: Final = 65_536
"""About the bytes as JSON of what a node copies without a thread."""
THREADS_MAX: Final = 2
"""Threads of nodes at one time. They share the interpreter with the event loop, so more would not be faster."""

_THREADS: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("node_threads")


async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do the work in a thread, and return or raise what it does. Long work calls `give_up_if_cancelled` at times."""
    try:
        limiter = _THREADS.get()
    except LookupError:
        limiter = trio.CapacityLimiter(THREADS_MAX)
        _THREADS.set(limiter)
    return await trio.to_thread.run_sync(work, *arguments, limiter=limiter)


def give_up_if_cancelled() -> None:
    """End work in a thread whose run was cancelled, by `trio.Cancelled`. Outside of a thread, do nothing."""
    try:
        trio.from_thread.check_cancelled()
    except RuntimeError:
        return


def is_large(value: Any) -> bool:
    """Whether copying a value takes more than a few milliseconds, or makes a payload much larger."""
    return isinstance(value, list | dict) and size_of(value, INLINE_BYTES_MAX) > INLINE_BYTES_MAX


def check_items(visit: Visit, count: int, field: str) -> None:
    """Refuse an array of more items than a loop takes."""
    most = visit.run.bounds.loop_items
    if count > most:
        raise NodeError("TooManyItems", f"{field}: {count} items; an array has at most {most} here.")


def check_payload(visit: Visit) -> None:
    """Refuse a payload over the bound. For nodes that have put something large there, before the next one does."""
    most = visit.run.bounds.payload_bytes
    if size_of(visit.payload, most) > most:
        raise NodeError("PayloadTooLarge", f"The payload has more than {most} bytes as JSON.")
