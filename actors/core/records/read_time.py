"""How long a read may take: in the event loop before it goes to a thread, and in a thread before it is ended.

A read in a thread is charged for the time that it computes, not for the time that it waits for others, so that the
same read is answered or refused however busy the server is. Only far above that the clock on the wall counts, for a
disk that does not answer. The snapshot asks while it scans, and so do queries while they match (`core/query/price.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import msgspec

from trunkline.actors.core.records.reading import INLINE_BYTES_MAX, TakesLong
from trunkline.actors.core.runtime.precedence import give_way
from trunkline.actors.core.values.errors import Invalid, Overloaded
from trunkline.limits.table import Limits

INLINE_NS: Final = 3_000_000
"""After so many nanoseconds in the event loop a read goes to a thread, and begins anew there."""
LARGE_BYTES_MAX: Final = 65_536
"""Bytes of one stored value that is decoded in the event loop: 4 ms if it consists of many small values."""

_NARROWING: Final = frozenset(
    {
        *(
            "query",
            "filter",
            "deviceQuery",
            "eventFilter",
            "deviceIds",
            "deviceTags",
            "attributes",
            "tagFilter",
        ),
        *("start", "end", "since", "duration", "resolution", "limit", "perPage", "page", "sortField"),
    }
)
"""The fields that make a read smaller."""


class Inline:
    """A read in the event loop: `check` raises `TakesLong` when it has taken enough of it."""

    __slots__ = ("_began_ns", "_bytes_left")

    def __init__(self) -> None:
        self._began_ns = time.perf_counter_ns()
        self._bytes_left = INLINE_BYTES_MAX

    def check(self) -> None:
        """Raise `TakesLong` if the read must go on in a thread."""
        if time.perf_counter_ns() - self._began_ns > INLINE_NS:
            raise TakesLong

    def take(self, size: int) -> None:
        """Raise `TakesLong` if the read has more, or larger, values than may be decoded in the event loop."""
        self.check()
        self._bytes_left -= size
        if self._bytes_left < 0 or size > LARGE_BYTES_MAX:
            raise TakesLong


class ReadTime:
    """The time of one read in a thread. `begin` and `check` are called there; `check` raises when it is over."""

    def __init__(self, limits: Limits, message: object) -> None:
        self._limits = limits
        self._message = message
        self._cpu_s = 0.0
        self._wall_s = 0.0

    def begin(self) -> None:
        """The read begins."""
        self._cpu_s = time.thread_time() + self._limits.read_cpu_s
        self._wall_s = time.monotonic() + self._limits.read_wall_s

    def check(self) -> None:
        """Let the event loop go first. Raise `Invalid` for a read that computes too long, `Overloaded` for one that
        waits too long.
        """
        give_way()
        if time.thread_time() > self._cpu_s:
            fields = ", ".join(dict.fromkeys(_narrowing(self._message))) or "what the call names"
            raise Invalid(
                f"{fields}: the read computed for {self._limits.read_cpu_s:g} seconds, which is the most, and was "
                "ended; ask for less at a time, or with fewer conditions."
            )
        if time.monotonic() > self._wall_s:
            raise Overloaded(
                f"The read did not end within {self._limits.read_wall_s:g} seconds. Try again later, or ask for less."
            )


def _narrowing(message: object) -> Iterator[str]:
    """The fields of a message that are given and make it smaller, as callers write them."""
    if not isinstance(message, msgspec.Struct):
        return
    names = zip(message.__struct_fields__, message.__struct_encode_fields__, strict=True)
    for name, shown in names:
        value = getattr(message, name)
        if isinstance(value, msgspec.Struct):
            yield from _narrowing(value)
        elif name == "body" and isinstance(value, dict):
            yield "query"  # the body is the query
        elif shown in _NARROWING and value is not None and value is not msgspec.UNSET:
            yield shown
