"""Threads for what is too long for the event loop, shared by owner.

Owns the threads in which workflows compute, and the decoding and encoding of long JSON there. What is computed is
charged to the budget of the work at hand (`core/formulas/price.py`); it is looked at times whether anybody still
waits. The threads share the interpreter with the event loop, so more of them would not be faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import trio

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.json_values import is_short, json_encoded, json_value
from trunkline.actors.core.formulas.price import Budget, TakesLong
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.precedence import give_way

THREADS_MAX: Final = 2
"""Threads at one time, half of them of one owner."""
THREADS_WAITING_MAX: Final = 1_024
"""Computations that wait for a thread; there are fewer runs."""
INLINE_JSON_BYTES: Final = 65_536
"""Bytes of JSON that are decoded in the event loop."""

SWITCH_INTERVAL_S: Final = 0.0005
"""After so long a thread that computes leaves the interpreter to the event loop; Python's default is ten times that."""

_THREADS: trio.lowlevel.RunVar[OwnerShares] = trio.lowlevel.RunVar("computing_threads")


def switch_often() -> None:
    """Have the event loop wait at most a little for threads that compute. For the whole process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do the work in a thread, and return or raise what it does. Long work calls `give_up_if_cancelled` at times."""
    budget = price.current() or Budget()
    priced = partial(budget.in_thread, partial(work, *arguments), give_up_if_cancelled)
    return await _threads().compute(budget.owner, priced)


async def compute(budget: Budget, long: TakesLong) -> None:
    """Compute in a thread what did not fit into the event loop. Then the work that needs it can be begun again."""
    assert long.work is not None
    priced = partial(budget.compute_in_thread, long.work, give_up_if_cancelled)
    await _threads().compute(budget.owner, priced)
    budget.again()


async def decoded(text: bytes) -> Any:
    """The value of JSON. Raises `msgspec.DecodeError` and `RecursionError`."""
    if len(text) <= INLINE_JSON_BYTES:
        return msgspec.json.decode(text)
    return await in_thread(json_value, text)


async def encoded(value: Any) -> bytes:
    """A value as JSON. Raises `RecursionError`."""
    if is_short(value):
        return msgspec.json.encode(value)
    text: bytes = await in_thread(json_encoded, value)
    return text


def give_up_if_cancelled() -> None:
    """In a thread, let the event loop go first, and end work whose run was cancelled, by `trio.Cancelled`.

    Outside of a thread, do nothing.
    """
    try:
        trio.from_thread.check_cancelled()
    except RuntimeError:
        return
    give_way()


def _threads() -> OwnerShares:
    try:
        return _THREADS.get()
    except LookupError:
        threads = OwnerShares("computations of workflows", THREADS_MAX, THREADS_WAITING_MAX, leaves=1)
        _THREADS.set(threads)
        return threads
