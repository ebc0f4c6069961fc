"""The form in which reports are committed: chunks, and the segments that they are packed into.

A chunk is what all devices reported in one commit: an entry for each device, or several for one that reported much. A
segment is some chunks, compressed together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import zstandard

from trunkline.store import keys
from trunkline.store.compression import compress

PADDED_FROM: Final = 256
OWN_PAGE_FROM: Final = 2048
"""LMDB keeps longer values in pages of their own, and others in the page that lists them: it would soon be several."""
SEGMENT_BYTES_MAX: Final = 1 << 32
HAS_HEAD: Final = 1 << 31
"""In the length of an entry of a chunk: it has a head, or a removal of everything."""

_LEVEL: Final = 1
_ENTRY = struct.Struct("<12sI")
ENTRY_BYTES: Final = _ENTRY.size
"""The bytes of an entry of a chunk, in addition to its reports."""
_NO_DEVICE: Final = bytes(keys.ID_BYTES)
_NUMBERED = struct.Struct("<QI")


class Chunk(NamedTuple):
    """What all devices reported in one commit, as it is stored."""

    seq: int
    value: bytes


def entry(device: bytes, body: bytes, *, has_head: bool) -> bytes:
    """An entry of a chunk."""
    return _ENTRY.pack(device, len(body) | HAS_HEAD if has_head else len(body)) + body


def padded(value: bytes) -> bytes:
    """A chunk as it is stored: with an entry of zeros if it needs that to get a page of its own.

    Very short ones do not, because the page that lists them is written in any case.
    """
    if not PADDED_FROM <= len(value) < OWN_PAGE_FROM:
        return value
    zeros = bytes(OWN_PAGE_FROM - len(value))
    return value + _ENTRY.pack(_NO_DEVICE, len(zeros)) + zeros


def entries(value: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield device, reports and whether they have a head, of a chunk. Raises ValueError if it is none."""
    for device, length, body in _parts(value, _ENTRY, "the chunk"):
        if device != _NO_DEVICE:
            yield device, body, length >= HAS_HEAD


def collect(value: bytes, bodies: dict[bytes, list[bytes]], heads: dict[bytes, int]) -> None:
    """Append the reports of a chunk to `bodies`, by device, and note in `heads` the index of the last one with a head.

    Raises ValueError if it is no chunk. Like `entries`, but without a generator: a start takes longest for this.
    """
    at, end = 0, len(value)
    unpack, size = _ENTRY.unpack_from, _ENTRY.size
    try:
        while at < end:
            device, length = unpack(value, at)
            at += size
            of = bodies.get(device)
            if of is None:
                of = bodies[device] = []
            if length >= HAS_HEAD:
                length -= HAS_HEAD
                heads[device] = len(of)
            of.append(value[at : at + length])
            at += length
    except struct.error:
        at = end + 1
    if at > end:
        raise ValueError("the chunk ends within a part")
    bodies.pop(_NO_DEVICE, None)


def packed(chunks: Iterable[Chunk]) -> bytes:
    """The segment of these chunks. May run in any thread. Raises MemoryError."""
    parts = [part for seq, value in chunks for part in (_NUMBERED.pack(seq, len(value)), value)]
    return compress(zstandard.ZstdCompressor(level=_LEVEL), b"".join(parts))


def unpacked(segment: bytes) -> Iterator[Chunk]:
    """Yield the chunks of a segment. Raises ValueError if it is none."""
    try:
        raw = zstandard.ZstdDecompressor().decompress(segment, max_output_size=SEGMENT_BYTES_MAX)
    except zstandard.ZstdError as error:
        raise ValueError(f"no segment: {error}") from error
    for seq, _, value in _parts(raw, _NUMBERED, "the segment"):
        yield Chunk(seq, value)


def _parts(raw: bytes, head: struct.Struct, noun: str) -> Iterator[tuple[Any, int, bytes]]:
    """Yield what stands before each part of `raw` (two fields, of which the second has its length), and the part."""
    at = 0
    while at < len(raw):
        begin = at + head.size
        if begin > len(raw):
            raise ValueError(f"{noun} ends within a part")
        name, length = head.unpack_from(raw, at)
        at = begin + (length & (HAS_HEAD - 1))
        if at > len(raw):
            raise ValueError(f"{noun} ends within a part")
        yield name, length, raw[begin:at]
