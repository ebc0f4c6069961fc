"""Rows in CBOR that all have the same layout, read as arrays: no number becomes an object.

Owns the recognition of such rows: each one has as many bytes as the first, with the same types and widths at the same
places, as those of a client that sends times and floats, or numbers of a fixed width. What is not recognized is not
wrong: the ordinary decoder reads it, and says what is wrong with it (`frames.py`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRAY: Final = 4
_TEXT: Final = 3
_WIDTH_BITS: Final = {24: 1, 25: 2, 26: 4, 27: 8}
_FIELDS: Final = {
    0x18: (1, ">u1"),
    0x19: (2, ">u2"),
    0x1A: (4, ">u4"),
    0x1B: (8, ">u8"),
    0xFA: (4, ">f4"),
    0xFB: (8, ">f8"),
}
"""By the first byte of a number: how many bytes follow, and what they are."""
_FLOATS_FROM: Final = 0xFA
_SIGNED_MAX: Final = 2**63 - 1


class UniformRows(NamedTuple):
    """The parts of a frame. `columns` are the times and the values, float64 or int64; `end` is where the rows end."""

    n: int
    names: list[str]
    columns: list[NDArray[Any]]
    end: int


def uniform_rows(data: bytes) -> UniformRows | None:
    """Read a frame of rows (its first two bytes say that it is one), None if they are not uniform."""
    try:
        kind, n, at = _head(data, 2)
        noun, names_count, at = _head(data, at)
        if kind or noun != _ARRAY:
            return None
        names: list[str] = []
        for _ in range(names_count):
            kind, length, at = _head(data, at)
            if kind != _TEXT:
                return None
            names.append(data[at : at + length].decode())
            at += length
        kind, count, begin = _head(data, at)
        noun, fields, at = _head(data, begin)
        if kind != _ARRAY or noun != _ARRAY or not count or fields != names_count + 1:
            return None
        markers = bytearray()
        head_bytes = at - begin
        for _ in range(fields):
            markers.append(data[at])
            at += 1 + _FIELDS[data[at]][0]
    except (LookupError, UnicodeDecodeError):
        return None
    if markers[0] >= _FLOATS_FROM:
        return None
    layout = _layout(head_bytes, bytes(markers))
    end = begin + count * layout.itemsize
    if end > len(data):
        return None
    raw = np.frombuffer(data, np.uint8, end - begin, begin).reshape(count, -1)
    fixed = raw[:, layout.fixed]
    if not (fixed == fixed[0]).all():
        return None
    rows = np.frombuffer(data, layout.dtype, count, begin)
    columns: list[NDArray[Any]] = []
    for name in layout.names:
        column = rows[name]
        if column.dtype.kind == "f":
            columns.append(column.astype(np.float64))
        elif column.itemsize == 8 and column.max() > _SIGNED_MAX:
            return None
        else:
            columns.append(column.astype(np.int64))
    return UniformRows(n, names, columns, end)


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """The major type of the item at a place, its number or length, and where its head ends. Raises LookupError."""
    first = data[at]
    low = first & 31
    if low < 24:
        return first >> 5, low, at + 1
    end = at + 1 + _WIDTH_BITS[low]
    if end > len(data):
        raise IndexError
    return first >> 5, int.from_bytes(data[at + 1 : end], "big"), end


class _Layout(NamedTuple):
    """The layout of a row: where its bytes are that all rows share, and its numbers."""

    itemsize: int
    fixed: NDArray[np.intp]
    dtype: np.dtype[Any]
    names: tuple[str, ...]


@lru_cache(256)
def _layout(head_bytes: int, markers: bytes) -> _Layout:
    fixed, offsets, formats = [*range(head_bytes)], list[int](), list[str]()
    at = head_bytes
    for marker in markers:
        width, kind = _FIELDS[marker]
        fixed.append(at)
        offsets.append(at + 1)
        formats.append(kind)
        at += 1 + width
    names = tuple(f"f{number}" for number in range(len(markers)))
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": at})
    return _Layout(at, np.array(fixed), dtype, names)
