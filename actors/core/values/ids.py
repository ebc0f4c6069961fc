"""Identifiers of records: 12 bytes internally, 24 lower-case hexadecimal digits in the API.

The first four bytes are the creation time in seconds, so that byte order is roughly creation order and new
records of a kind are adjacent in the store. Five random bytes identify the process, and three are a counter.

The ids of rows of data tables also contain the millisecond of their creation (`RowIds`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from trunkline.actors.core.values.errors import Invalid

ROOT = bytes(12)
"""The parent of records that no application owns (users, applications)."""

_HEX24 = re.compile(r"[0-9A-Fa-f]{24}\Z")


class IdFactory:
    """Makes ids that are unique in this data directory. Not shared between processes.

    `random_bytes` returns the requested number of random bytes; tests pass their own.
    """

    __slots__ = ("_count", "_process")

    def __init__(self, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._process = random_bytes(5)
        self._count = int.from_bytes(random_bytes(3), "big")

    def new(self, now_ms: int) -> bytes:
        """Return a new id for the wall-clock time `now_ms` (milliseconds since the epoch)."""
        self._count = (self._count + 1) & 0xFFFFFF
        seconds = (now_ms // 1000) & 0xFFFFFFFF
        return seconds.to_bytes(4, "big") + self._process + self._count.to_bytes(3, "big")


class RowIds:
    """Makes the ids of the rows of one data table: their byte order is the order of creation.

    Four bytes are the second, two the millisecond within it. The last six are random for each new millisecond
    and count up within it.
    """

    __slots__ = ("_ms", "_random_bytes", "_tail")

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._ms = -1
        self._tail = 0

    def new(self, now_ms: int) -> bytes:
        """Return a new id for the wall-clock time `now_ms` (milliseconds since the epoch)."""
        if now_ms == self._ms:
            self._tail += 1
        else:
            # One bit less than six bytes hold, so that counting up never overflows.
            self._ms, self._tail = now_ms, int.from_bytes(self._random_bytes(6), "big") >> 1
        return timestamp_bytes(now_ms) + self._tail.to_bytes(6, "big")


def timestamp_bytes(time_ms: int) -> bytes:
    """The first six bytes of the ids of rows that were created at `time_ms`."""
    seconds, ms = divmod(time_ms, 1000)
    return (seconds & 0xFFFFFFFF).to_bytes(4, "big") + ms.to_bytes(2, "big")


def row_created_ms(id: bytes) -> int:
    """The creation time of a row, in milliseconds since the epoch, from its id."""
    return int.from_bytes(id[:4], "big") * 1000 + int.from_bytes(id[4:6], "big")


def is_id(text: str) -> bool:
    """Whether a text is an id: 24 hexadecimal digits."""
    return _HEX24.match(text) is not None


def parse_id(text: str, name: str) -> bytes:
    """Turn the 24 hexadecimal digits of field `name` into bytes; anything else is `Invalid`."""
    if _HEX24.match(text) is None:
        raise Invalid(f"{name}: {text[:64]!r} is not an id; an id is 24 hexadecimal digits.")
    return bytes.fromhex(text)
