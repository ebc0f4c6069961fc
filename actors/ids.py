"""Identifiers of records: 12 bytes inside, 24 lower-case hexadecimal digits outside.

The first four bytes are the second of creation, so that byte order is roughly age order and new records
of a kind lie side by side in the store; five random bytes belong to this process and three count up.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from trunkline.actors.errors import Invalid

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


def parse_id(text: str, name: str) -> bytes:
    """Turn the 24 hexadecimal digits of field `name` into bytes; anything else is `Invalid`."""
    if _HEX24.match(text) is None:
        raise Invalid(f"{name}: {text[:64]!r} is not an id; an id is 24 hexadecimal digits.")
    return bytes.fromhex(text)
