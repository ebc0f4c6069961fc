"""The head of a device: what is known of it now, in one small value beside its newest points.

Owns the composite state (the newest value of each attribute), the running position of the command and
connection logs, and the payload counts of the current hour. It is written with every batch of the device;
since it lies on the same leaf of the b-tree as the newest point, that costs next to nothing.
"""

from __future__ import annotations

from typing import Any

from trunkline.store.codec import decode, encode

HOUR_MS = 3_600_000

POSITION_SHIFT = 32
"""A position in a log is `time_ms << 32 | seq`: one integer that orders as the log does."""


class Head:
    """The mutable head in the memory of its device actor.

    `values` maps the interned number of an attribute to `(time_ms, value)`. `newest_ms` is the time of the
    newest stored point (-1 without any), `command_ms` that of the newest command, `seq` counts log entries
    and never goes back.
    """

    __slots__ = ("command_ms", "counts", "hour", "newest_ms", "seq", "values")

    def __init__(self) -> None:
        self.seq = 0
        self.newest_ms = -1
        self.command_ms = 0
        self.hour = 0
        self.counts: dict[str, int] = {}
        self.values: dict[int, tuple[int, Any]] = {}

    @classmethod
    def decoded(cls, raw: bytes | None) -> Head:
        """The head as it is stored; a fresh one where nothing is stored yet."""
        head = cls()
        if raw is not None:
            seq, newest_ms, command_ms, hour, counts, values = decode(raw)
            head.seq = seq
            head.newest_ms = newest_ms
            head.command_ms = command_ms
            head.hour = hour
            head.counts = dict(counts)
            head.values = {number: (entry[0], entry[1]) for number, entry in values.items()}
        return head

    def encoded(self) -> bytes:
        """The bytes to store."""
        return encode((self.seq, self.newest_ms, self.command_ms, self.hour, self.counts, self.values))
