"""How values become bytes: CBOR, and the only module that knows it.

CBOR because it keeps bytes, integers of any size and the difference between 1 and 1.0, needs no schema to be
read again in ten years, and decodes in 0.3 us. Encodings are not canonical: never compare or hash them to
learn whether two values are equal.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import cbor2

_SMALL = 24
"""Below it a number, or a length, is one byte together with its kind (RFC 8949, 3)."""

_NUMBERS = [bytes([number]) for number in range(_SMALL)]
_MAPS = [bytes([0xA0 + length]) for length in range(_SMALL)]
_FLOATS = [number + b"\xfb" for number in _NUMBERS]
_PACK = struct.Struct(">d").pack


def encode(obj: Any) -> bytes:
    """Return the CBOR bytes of plain data: None, booleans, numbers, text, bytes, lists and maps."""
    return cbor2.dumps(obj)


def encode_numbered(values: Mapping[int, Any]) -> bytes:
    """The same bytes as `encode` for a map whose keys are numbers; twice as fast for floats under small ones.

    For the points of devices, of which one is encoded for each report.
    """
    if len(values) >= _SMALL:
        return encode(values)
    parts = [_MAPS[len(values)]]
    for number, value in values.items():
        if not 0 <= number < _SMALL:
            parts += (encode(number), encode(value))
        elif type(value) is float and value - value == 0.0:  # infinite and no number are shorter
            parts += (_FLOATS[number], _PACK(value))
        elif value is True or value is False:
            parts += (_NUMBERS[number], b"\xf5" if value else b"\xf4")
        else:
            parts += (_NUMBERS[number], encode(value))
    return b"".join(parts)


def decode(raw: bytes) -> Any:
    """Return what `encode` was given. Raises ValueError where `raw` is no CBOR."""
    try:
        return cbor2.loads(raw)
    except cbor2.CBORDecodeError as error:
        raise ValueError(f"no CBOR: {error}") from error
