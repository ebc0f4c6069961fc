"""Work that grows with the payload: the bounds on what a node makes, and threads for what takes longer.

A node whose work may take more than a few milliseconds does it in a thread, so that the event loop serves others
meanwhile (`core/runtime/computing.py`). The run waits for the thread, so nothing else touches its payload.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas import price
from trunkline.actors.core.runtime.computing import in_thread
from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.visit import Visit

INLINE_ITEMS_MAX: Final = 1_000
"""Items that a node goes through without a thread."""
INLINE_BYTES_MAX: Final = 65_536
"""About the bytes as JSON of what a node copies without a thread."""


def is_large(value: Any) -> bool:
    """Whether copying a value takes more than a millisecond, or makes a payload much larger."""
    return isinstance(value, list | dict) and size_of(value, INLINE_BYTES_MAX) > INLINE_BYTES_MAX


def copy_of(value: Any) -> Any:
    """A deep copy of a value, in the price of the visit. For nodes that have changed nothing yet."""
    return price.long_work(copied, value) if is_large(value) else copied(value)


async def copied_value(value: Any) -> Any:
    """The same for what waits anyway."""
    return await in_thread(copied, value) if is_large(value) else copied(value)


async def size_in_bytes(value: Any, most: int) -> int:
    """About the bytes of a value as JSON; the count ends as soon as it is above `most`."""
    size = size_of(value, INLINE_BYTES_MAX)
    if size <= INLINE_BYTES_MAX:
        return size
    counted: int = await in_thread(size_of, value, most)
    return counted


def check_items(visit: Visit, count: int, field: str) -> None:
    """Refuse an array of more items than a loop takes."""
    most = visit.run.bounds.loop_items
    if count > most:
        raise NodeError("TooManyItems", f"{field}: {count} items; an array has at most {most} here.")


def check_sum(visit: Visit, value: Any, replaced: Any) -> None:
    """Refuse a value with which the payload would be over the bound. For nodes that put several."""
    most = visit.run.bounds.payload_bytes
    if size_of([visit.payload, value], INLINE_BYTES_MAX) <= INLINE_BYTES_MAX:
        return
    if price.long_work(_size_with, visit.payload, value, replaced, 2 * most) > most:
        raise NodeError("PayloadTooLarge", f"The payload has more than {most} bytes as JSON.")


def _size_with(payload: Any, value: Any, replaced: Any, most: int) -> int:
    return size_of([payload, value], most) - size_of(replaced, most)


def check_payload(visit: Visit) -> None:
    """Have a payload refused that is over the bound, at the end of the visit. For nodes that put something large."""
    visit.has_grown = True
