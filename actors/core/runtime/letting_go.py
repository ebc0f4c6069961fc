"""Frees large JSON values in pieces, between turns of the event loop.

Python frees what a container holds when the container goes, in one go and without letting anybody else run: 60 ns for
each array within, in a thread as in the event loop. So who holds a large value last lets it go here. It is kept until
the loop has its next turn, and then taken apart, a piece a turn.

Nothing is taken apart that somebody else holds: a container is emptied only if this module has the one reference to
it, so what is still used stays as it is, and its last holder frees it. Owns no value longer than that.

It is paid by nobody: to free takes a fraction of the time that the run was charged for making the value. At most
`WAITING_MAX` values of all tenants wait; what comes on top is freed at once.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from sys import getrefcount
from typing import Any, Final

import trio

PIECE_ITEMS: Final = 4_096
"""Items that are freed in a turn: a quarter of a millisecond, if all are arrays."""
_SLICE_ITEMS: Final = 256
_CONTAINERS: Final = frozenset((dict, list))
WAITING_MAX: Final = 1_000
"""Values that wait to be freed, each of at most some MiB."""


def _references_of_ours() -> int:
    """What `getrefcount` says of a container that only a variable holds: Pythons differ in counting its argument."""
    each: Any = [[]].pop()
    return getrefcount(each)


_OURS: Final = _references_of_ours()

_WAITING: trio.lowlevel.RunVar[deque[Any]] = trio.lowlevel.RunVar("values_to_free")


def let_go(value: Any) -> None:
    """Have a value freed in pieces if it is large. The caller, and who called it, drop it before their next turn."""
    if type(value) not in _CONTAINERS or not _is_much(value) or not trio.lowlevel.in_trio_task():
        return
    try:
        waiting = _WAITING.get()
    except LookupError:
        waiting = deque()
        _WAITING.set(waiting)
    if len(waiting) >= WAITING_MAX:
        return
    waiting.append(value)
    if len(waiting) == 1:
        trio.lowlevel.spawn_system_task(_free, waiting, name="letting_go")


async def _free(waiting: deque[Any]) -> None:
    """Free what waits. The first one waits until it is freed, so that there is one task."""
    while waiting:
        await trio.lowlevel.checkpoint()
        parts, waiting[0] = [waiting[0]], None
        while parts:
            _free_piece(parts)
            await trio.lowlevel.checkpoint()
        waiting.popleft()


def _free_piece(parts: list[Any]) -> None:
    """Take apart what nobody else holds, until enough is freed."""
    left = PIECE_ITEMS
    while parts and left > 0:
        each = parts.pop()
        left -= 1
        if getrefcount(each) != _OURS:
            continue
        if type(each) is dict:
            taken = [each.popitem()[1] for _ in range(min(len(each), _SLICE_ITEMS))]
        else:
            taken = each[-_SLICE_ITEMS:]
            del each[-_SLICE_ITEMS:]
        left -= len(taken)
        if each:
            parts.append(each)
        parts.extend([part for part in taken if type(part) in _CONTAINERS and part])
        del taken  # it would count as somebody who holds the next part


def _is_much(value: Any) -> bool:
    """Whether to free a value at once takes longer than a piece."""
    left, waiting = PIECE_ITEMS, [value]
    while waiting:
        each = waiting.pop()
        left -= len(each)
        if left < 0:
            return True
        waiting.extend([part for part in _items(each) if type(part) in _CONTAINERS])
    return False


def _items(value: Any) -> Any:
    return value.values() if type(value) is dict else islice(value, PIECE_ITEMS)
