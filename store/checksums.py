"""The checksum at the end of every stored value.

Owns its form: the last four bytes are the CRC-32 of the key and the value, lowest byte first. It covers the key, so a
value under a wrong key, and a changed key of an index (whose value is empty), are found too. It finds every changed
bit and every changed run of up to 32 bits; of other damage one case in four thousand million is missed. It is no
protection against anyone who can write to the file.

Written by the overlay (`overlay.py`), and verified by every read and by `trunkline check`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final
from zlib import crc32

BYTES: Final = 4
"""The bytes that a stored value is longer than the value itself."""

RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of anything that ends with its own CRC-32, lowest byte first."""

_pack = struct.Struct("<I").pack


def sealed(key: bytes, value: bytes) -> bytes:
    """Return `value` with the checksum for its place under `key`."""
    return value + _pack(crc32(value, crc32(key)))


def sealed_items(items: Iterable[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes]]:
    """The same for keys and values, without the calls: for each commit. Values that are None are left out."""
    return [(key, value + _pack(crc32(value, crc32(key)))) for key, value in items if value is not None]


def opened(key: bytes, stored: bytes) -> bytes | None:
    """Return the value without its checksum; None if it is damaged."""
    return stored[:-BYTES] if crc32(stored, crc32(key)) == RESIDUE else None
