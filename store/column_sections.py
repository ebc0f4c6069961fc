"""The sections of a block: bytes of bits, whole numbers and values, compressed where that makes them shorter.

The directory of a block describes its sections; `column_codec` owns it, and knows which sections a column has.

What a section is, where `length` is its length and `size` the length before compression; it is compressed if `length`
is less than `size`, and then a zstd frame that names `size`:

- Bits: one for each row or value, the first one in the highest bit of a byte. The directory has `length`, or nothing.
- Whole numbers: `[length, width, minimum, *firsts]`. For each of `firsts` the numbers were replaced by the first one
  and the differences between neighbours. From what is left the minimum is subtracted; the lowest bytes of all numbers
  follow each other, then the next higher ones, `width` of them. All this is modulo 2**64.
- Values: a CBOR array of the distinct ones, and a section of whole numbers with an index for each value.

The reader checks lengths before it allocates, and raises ValueError for what is wrong.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import zstandard

from trunkline.store import codec
from trunkline.store.columns import Mask
from trunkline.store.compression import compress

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COMPRESSED_BYTES_MIN: Final = 24
"""Shorter sections are not compressed: the header of a frame has up to 18 bytes."""
_COMPRESSED_BYTES_MAX: Final = 1 << 24
"""Larger sections of values are not compressed, so that a damaged length cannot make the reader allocate more."""


class Sections:
    """Takes the sections of a block one after the other."""

    __slots__ = ("at", "raw")

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw = raw
        self.at = at

    def take(self, length: int, size: int) -> bytes:
        """Return the next section without its compression, which has `size` bytes then."""
        end = self.at + length
        if not 0 <= length <= size or end > len(self.raw):
            raise ValueError("the block is damaged: a section is longer than it can be")
        raw = self.raw[self.at : end]
        self.at = end
        if length == size:
            return raw
        if zstandard.frame_content_size(raw) != size:
            raise ValueError("the block is damaged: a section has another size than its column")
        return _zstandard.decompress(raw)


def squeeze(raw: bytes) -> bytes:
    """Return the compressed bytes where they are shorter."""
    if _COMPRESSED_BYTES_MIN <= len(raw) <= _COMPRESSED_BYTES_MAX:
        squeezed = compress(_zstandard.compressor, raw)
        if len(squeezed) < len(raw):
            return squeezed
    return raw


def pack_bits(bits: Mask, sections: list[bytes]) -> int:
    """Append the section of bits and return what the directory says about it."""
    section = squeeze(np.packbits(bits).tobytes())
    sections.append(section)
    return len(section)


def unpack_bits(length: int, count: int, sections: Sections) -> Mask:
    """Return the next section, which has `count` bits."""
    raw = sections.take(length, (count + 7) // 8)
    return np.unpackbits(np.frombuffer(raw, np.uint8), count=count).view(np.bool_)


def pack_whole(values: NDArray[np.int64], sections: list[bytes]) -> list[int]:
    """Append the section of whole numbers and return what the directory says about it."""
    firsts: list[int] = []
    while True:
        minimum = values.min()
        above = (values - minimum).view(np.uint64)
        if len(firsts) == 2 or len(values) < 3:
            break
        steps = values[1:] - values[:-1]
        # A heuristic: noise around a level takes fewer bits as it is, a slow change as differences.
        if 3 * int(np.abs(steps).sum()) >= int(above.sum()):
            break
        firsts.append(int(values[0]))
        values = steps
    width = (int(above.max()).bit_length() + 7) // 8
    section = squeeze(planes(above, width))
    sections.append(section)
    return [len(section), width, int(minimum), *firsts]


def unpack_whole(packed: list[int], count: int, sections: Sections) -> NDArray[np.int64]:
    """Return the next section, which has `count` whole numbers."""
    length, width, minimum, *firsts = packed
    left = count - len(firsts)
    if not 0 <= width <= 8 or len(firsts) > 2 or left < 1:
        raise ValueError("the block is damaged: it has numbers of an impossible width")
    values = from_planes(sections.take(length, width * left), left, width).view(np.int64)
    values += minimum
    for first in reversed(firsts):
        differences = values
        values = np.empty(len(differences) + 1, np.int64)
        values[0] = first
        values[1:] = differences
        np.add.accumulate(values, out=values)
    return values


def pack_values(values: list[Any], sections: list[bytes]) -> tuple[int, int, list[int]]:
    """Append the sections of values and return what the directory says about them.

    Raises ValueError for texts that are no Unicode.
    """
    indexes: dict[Any, int] = {}
    if set(map(type, values)) == {str}:
        codes = [indexes.setdefault(value, len(indexes)) for value in values]
        distinct = codec.encode(list(indexes))
    else:
        # By their bytes: equal values of different types differ there, and any value can be a key.
        first: list[Any] = []
        codes = []
        for value in values:
            code = indexes.setdefault(codec.encode(value), len(first))
            if code == len(first):
                first.append(value)
            codes.append(code)
        distinct = codec.encode(first)
    section = squeeze(distinct)
    sections.append(section)
    return len(section), len(distinct), pack_whole(np.array(codes, np.int64), sections)


def unpack_values(length: int, size: int, packed: list[int], count: int, sections: Sections) -> list[Any]:
    """Return the next two sections, which have `count` values."""
    if length != size and size > _COMPRESSED_BYTES_MAX:
        raise ValueError("the block is damaged: it has values of an impossible size")
    distinct = codec.decode(sections.take(length, size))
    if type(distinct) is not list:
        raise ValueError("the block is damaged: it does not have a list of values")
    codes = unpack_whole(packed, count, sections)
    if codes.min() < 0:
        raise ValueError("the block is damaged: a value has no index")
    return [distinct[code] for code in codes.tolist()]


def planes(numbers: NDArray[np.uint64], width: int) -> bytes:
    """Return the lowest bytes of all numbers, then the next higher ones, `width` of them."""
    if not width:
        return b""
    return numbers.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()


def from_planes(raw: bytes, count: int, width: int) -> NDArray[np.uint64]:
    """Return the numbers of these bytes: the reverse of `planes`."""
    if not width:
        return np.zeros(count, np.uint64)
    planes = np.frombuffer(raw, np.uint8).reshape(width, count)
    numbers: NDArray[np.uint64] = planes[-1].astype(np.uint64)
    for plane in planes[-2::-1]:
        numbers <<= 8
        numbers |= plane
    return numbers


class _Zstandard(threading.local):
    """A compressor and a decompressor for each thread: they are expensive to make and cannot be shared."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=3)
        self.decompress = zstandard.ZstdDecompressor().decompress


_zstandard: Final = _Zstandard()
