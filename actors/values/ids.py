"""Identifiers of records: 12 bytes inside, 24 lower-case hexadecimal digits outside.

The first four bytes are the second of creation, so that byte order is roughly age order and new records
of a kind lie side by side in the store; five random bytes belong to this process and three count up.

Rows of data tables have ids that also tell the millisecond of their creation (`RowIds`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from trunkline.actors.values.errors import Invalid

ROOT = bytes(12)
"""The parent of records that no application owns (users, applications)."""

_HEX24 = re.compile(r"[0-9A-Fa-f]{24}\Z")


class IdFactory:
    """Makes ids that are unique in this data directory. Not shared between processes.

    `random_bytes` is the seam to chance: it returns as many random bytes as it is asked for.
    """

    __slots__ = ("_count", "_process")

    def __init__(self, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._process = random_bytes(5)
        self._count = int.from_bytes(random_bytes(3), "big")

    def new(self, now_ms: int) -> bytes:
        """Return a fresh id for the wall-clock time `now_ms` (milliseconds since the epoch)."""
        self._count = (self._count + 1) & 0xFFFFFF
        seconds = (now_ms // 1000) & 0xFFFFFFFF
        return seconds.to_bytes(4, "big") + self._process + self._count.to_bytes(3, "big")


class RowIds:
    """Makes the ids of the rows of one data table: their byte order is the order of creation.

    Four bytes of the second, two of the millisecond in it, and six that are random for each new millisecond
    and count up within it.
    """

    __slots__ = ("_ms", "_random_bytes", "_tail")

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._ms = -1
        self._tail = 0

    def new(self, now_ms: int) -> bytes:
        """Return a fresh id for the wall-clock time `now_ms` (milliseconds since the epoch)."""
        if now_ms == self._ms:
            self._tail += 1
        else:
            # One bit less than there is room for, so that counting up never runs over.
            self._ms, self._tail = now_ms, int.from_bytes(self._random_bytes(6), "big") >> 1
        return moment_bytes(now_ms) + self._tail.to_bytes(6, "big")


def moment_bytes(time_ms: int) -> bytes:
    """The first six bytes of the id of a row that was created at this moment."""
    seconds, ms = divmod(time_ms, 1000)
    return (seconds & 0xFFFFFFFF).to_bytes(4, "big") + ms.to_bytes(2, "big")


def row_created_ms(id: bytes) -> int:
    """The moment in the id of a row."""
    return int.from_bytes(id[:4], "big") * 1000 + int.from_bytes(id[4:6], "big")


def parse_id(text: str, name: str) -> bytes:
    """Turn the 24 hexadecimal digits of field `name` into bytes; anything else is `Invalid`."""
    if _HEX24.match(text) is None:
        raise Invalid(f"{name}: {text[:64]!r} is not an id; an id is 24 hexadecimal digits.")
    return bytes.fromhex(text)
