"""Arrivals: what devices reported and is not in the runs yet.

Owns the form in which reports are committed, and the copy of it in memory that readers use. Does not own what comes
after it (`settler.py`, `runs.py`) nor the meaning of a head (`actors/devices/head.py`).

A commit stores what all devices reported as one value, the chunk, so it changes the same few pages whatever the number
of devices. About every eighty chunks are packed into one compressed value, the segment, so that the tree of the chunks
stays one page. Neither is made to be read: readers use the copy in memory, by device, which is made again from the
segments and chunks at a start.

The copy consists of windows. The newest one is open; when it is full it is closed, and the settler writes its points
into a run. Its segments are then deleted and the window is dropped, but a snapshot that was opened before still uses
it. Each report in a window has the number of its commit, so a snapshot sees exactly the reports of the commits that it
sees.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import trio
import zstandard

from trunkline.store import keys
from trunkline.store.errors import StoreDamaged
from trunkline.store.report_items import Item, Reports, decoded_items, is_head, range_of

PACKED_CHUNKS: Final = 80
"""So many chunks become a segment: their keys fit into one page, with the names of the databases and a few chunks."""
PADDED_FROM: Final = 256
OWN_PAGE_FROM: Final = 2048
"""LMDB keeps longer values in pages of their own, and others in the page that lists them: it would soon be several."""
PACKED_BYTES: Final = 1024 * 1024
"""Larger chunks become a segment earlier."""
SEGMENT_BYTES_MAX: Final = 1 << 32
BUFFER_BYTES: Final = 400
"""The memory of a device in a window, in addition to its reports."""

_HAS_HEAD: Final = 1 << 31
"""In the length of an entry of a chunk: it has a head, or a removal of everything."""
_LEVEL: Final = 1
_PIECE_ITEMS: Final = 16
"""Many reports of a device in one commit become entries of so many, so that the newest are read without the others."""
_SPAN_BYTES: Final = 512
"""Reports of several commits share an entry of `spans` until it has so many bytes."""

_ENTRY = struct.Struct("<12sI")
_NO_DEVICE: Final = bytes(keys.ID_BYTES)
_NUMBERED = struct.Struct("<QI")


# In memory.


class Span(NamedTuple):
    """A place in a buffer where some reports are, and the range of their times.

    `first_ms` -1: the range is not known. A removal of everything is of all times, a head of none.
    """

    start: int
    first_ms: int
    last_ms: int
    before_ms: int
    """The largest `last_ms` of the spans before it in the buffer, at least."""


SPAN_FIELDS: Final = len(Span._fields)


class Buffer:
    """The reports of one device in a window: pairs of CBOR (`report_items.py`), one after the other.

    Changed only in the thread of the event loop, where it grows at its end, or is cut where a commit failed; read by
    all threads. A reader first asks how much of it it sees, and never reads more. Copies of the arrays are made in one
    step, so a reader finds them as they were at one moment.
    """

    __slots__ = ("commits", "data", "head_at", "spans")

    def __init__(self) -> None:
        self.data = bytearray()
        self.commits = array("I")
        """For each commit where its reports end, and its number in the window."""
        self.spans = array("q")
        """The fields of each `Span`, in the order of the commits."""
        self.head_at = -1
        """Where the last entry begins that has a head or a removal of everything; -1 if there is none."""

    def end(self, base: int, last_seq: int) -> int:
        """Where the reports of the commits up to `last_seq` end; 0 if there are none."""
        last = self.commits[-2:]
        if last and base + last[1] <= last_seq:
            return last[0]
        commits = self.commits[:]
        count = bisect_right(commits[1::2], last_seq - base)
        return commits[2 * count - 2] if count else 0

    def items(self, base: int, last_seq: int, start: int = 0) -> list[Item] | None:
        """The pairs from `start` of the commits up to `last_seq`; None if there are none."""
        end = self.end(base, last_seq)
        return decoded_items(bytes(self.data[start:end])) if end > start else None

    def append(self, number: int, entries: Sequence[Entry]) -> int:
        """Append entries of a commit; return by how much the memory grows."""
        data, spans = self.data, self.spans
        before = len(data) + len(spans) * spans.itemsize
        for body, first_ms, last_ms, has_head in entries:
            start = len(data)
            if has_head:
                self.head_at = start
            data += body
            if spans and (
                start - spans[-4] < _SPAN_BYTES or first_ms > last_ms
            ):  # a head is with its reports
                if first_ms < spans[-3]:
                    spans[-3] = first_ms
                if last_ms > spans[-2]:
                    spans[-2] = last_ms
            else:
                spans.extend((start, first_ms, last_ms, max(spans[-2:]) if spans else -1))
        self.commits.extend((len(data), number))
        return len(data) + len(spans) * spans.itemsize - before + 2 * self.commits.itemsize

    def found(self, index: int, first_ms: int, last_ms: int) -> None:
        """Remember the range of a span after which there is another one. All readers find the same."""
        at = index * SPAN_FIELDS
        self.spans[at + 1] = first_ms
        self.spans[at + 2] = last_ms


class Entry(NamedTuple):
    """Some reports of a device in a commit, the range of their times, and whether they have a head (or a removal)."""

    body: bytes
    first_ms: int
    last_ms: int
    has_head: bool


class Mark(NamedTuple):
    """What a buffer was before it was appended to."""

    buffer: Buffer
    length: int
    commits: int
    spans: int
    last_span: array[int]
    head_at: int
    size_bytes: int
    """By how much the memory of the window grew."""


class Window:
    """The reports of the commits after `base`, by device. `last` is the number of its last commit once it is closed."""

    __slots__ = ("base", "buffers", "last", "size_bytes")

    def __init__(self, base: int) -> None:
        self.base = base
        self.last: int | None = None
        self.buffers: dict[bytes, Buffer] = {}
        self.size_bytes = 0

    def add(self, device: bytes, seq: int, entries: Sequence[Entry]) -> Mark:
        """Append what a device reported in a commit; return what `cut` needs to take it back."""
        buffer, grown = self.buffers.get(device), 0
        if buffer is None:
            buffer, grown = Buffer(), BUFFER_BYTES
        length, commits, spans = len(buffer.data), len(buffer.commits), len(buffer.spans)
        last_span, head_at = buffer.spans[-SPAN_FIELDS:], buffer.head_at
        grown += buffer.append(seq - self.base, entries)
        self.buffers[device] = buffer
        self.size_bytes += grown
        return Mark(buffer, length, commits, spans, last_span, head_at, grown)

    def cut(self, device: bytes, mark: Mark) -> None:
        """Take back the last `add` of a device."""
        buffer = mark.buffer
        self.size_bytes -= mark.size_bytes
        if not mark.length:
            del self.buffers[device]
            return
        del buffer.commits[mark.commits :]
        del buffer.spans[mark.spans :]
        buffer.spans[-SPAN_FIELDS:] = mark.last_span
        del buffer.data[mark.length :]
        buffer.head_at = mark.head_at


class Chunk(NamedTuple):
    """What all devices reported in one commit, as it is stored."""

    seq: int
    value: bytes


class Arrivals:
    """All windows, oldest first. Changed only in the thread of the event loop; read by all threads."""

    __slots__ = (
        "_closed_bytes",
        "_staged",
        "_waiting",
        "_window_bytes",
        "seq",
        "unpacked",
        "unpacked_bytes",
        "windows",
    )

    def __init__(self, window_bytes: int) -> None:
        self.windows: tuple[Window, ...] = (Window(0),)
        self.seq = 0
        """The number of the last commit."""
        self.unpacked: list[Chunk] = []
        """The chunks that are in no segment yet."""
        self.unpacked_bytes = 0
        self._closed_bytes = 0
        self._window_bytes = window_bytes
        self._waiting = trio.lowlevel.ParkingLot()
        self._staged: list[tuple[bytes, Mark]] = []

    def load(self, chunk: Chunk) -> None:
        """Append a chunk that is on disk. Raises StoreDamaged."""
        seq, value = chunk
        window = self.windows[-1]
        if not window.buffers:
            window.base = seq - 1  # numbers in a window have 32 bits
        try:
            for device, body, has_head in entries(value):
                # Readers find out the range of the times: here it would take as long as everything else.
                window.add(device, seq, [Entry(body, -1, keys.TIME_MS_MAX, has_head)])
        except ValueError as error:
            raise StoreDamaged(f"What devices reported in the commit {seq} is damaged: {error}.") from error
        self.seq = seq

    @property
    def size_bytes(self) -> int:
        """The memory of all windows."""
        return self._closed_bytes + self.windows[-1].size_bytes

    @property
    def is_full(self) -> bool:
        """Whether the open window is full: it has `window_bytes` of reports, or twice as many bytes of memory.

        With many devices most of the memory is that of their buffers. The reports decide, because what settling
        writes for each of them is the less, the more there are of a device.
        """
        window = self.windows[-1]
        reports_bytes = window.size_bytes - BUFFER_BYTES * len(window.buffers)
        return reports_bytes >= self._window_bytes or window.size_bytes >= 2 * self._window_bytes

    @property
    def is_due(self) -> bool:
        """Whether the chunks are to be packed."""
        return len(self.unpacked) >= PACKED_CHUNKS or self.unpacked_bytes >= PACKED_BYTES

    async def wait_due(self) -> None:
        """Return when the chunks are to be packed."""
        while not self.is_due:
            await self._waiting.park()

    # A commit.

    def stage(self, reports: Mapping[bytes, Reports]) -> Chunk:
        """Append what is about to be committed, and return the chunk. Then `committed` or `undo` must be called."""
        seq, window = self.seq + 1, self.windows[-1]
        parts: list[bytes] = []
        for device, report in reports.items():
            pieces = _pieces(report)
            for body, _, _, has_head in pieces:
                parts.append(_ENTRY.pack(device, len(body) | _HAS_HEAD if has_head else len(body)))
                parts.append(body)
            self._staged.append((device, window.add(device, seq, pieces)))
        return Chunk(seq, b"".join(parts))

    def committed(self, chunk: Chunk) -> None:
        """The chunk of `stage` is on disk."""
        self.seq = chunk.seq
        self._staged.clear()
        self.keep(chunk)

    def undo(self) -> None:
        """The commit of `stage` has failed, or there was none."""
        window = self.windows[-1]
        for device, mark in reversed(self._staged):
            window.cut(device, mark)
        self._staged.clear()

    def keep(self, chunk: Chunk) -> None:
        """The chunk is in no segment yet."""
        self.unpacked.append(chunk)
        self.unpacked_bytes += len(chunk.value)
        if self.is_due:
            self._waiting.unpark_all()

    # Packing and settling.

    def packed(self, chunks: int) -> None:
        """So many of the oldest chunks are in a segment."""
        self.unpacked_bytes -= sum(len(chunk.value) for chunk in self.unpacked[:chunks])
        del self.unpacked[:chunks]

    def close_window(self) -> None:
        """Begin a new window."""
        self.windows[-1].last = self.seq
        self._closed_bytes += self.windows[-1].size_bytes
        self.windows = (*self.windows, Window(self.seq))

    def settled(self, window: Window) -> None:
        """Drop the oldest window: all of it is in the runs, and its segments are deleted."""
        assert self.windows[0] is window
        self._closed_bytes -= window.size_bytes
        self.windows = self.windows[1:]


# Chunks and segments.


def _pieces(reports: Reports) -> list[Entry]:
    """What a device reported in a commit as entries of a chunk. Of several, one with a head has nothing else."""
    items = reports.items
    if len(items) <= _PIECE_ITEMS:
        return [Entry(b"".join(items), *range_of(items), reports.has_head)]
    pieces: list[Entry] = []
    heads = [at for at, item in enumerate(items) if is_head(item)] if reports.has_head else []
    for start, stop in pairwise([-1, *heads, len(items)]):
        for at in range(start + 1, stop, _PIECE_ITEMS):
            part = items[at : min(at + _PIECE_ITEMS, stop)]
            pieces.append(Entry(b"".join(part), *range_of(part), has_head=False))
        if stop < len(items):
            head = items[stop : stop + 1]
            pieces.append(Entry(head[0], *range_of(head), has_head=True))
    return pieces


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
            yield device, body, bool(length & _HAS_HEAD)


def packed(chunks: Iterable[Chunk]) -> bytes:
    """The segment of these chunks. May run in any thread."""
    parts = [part for seq, value in chunks for part in (_NUMBERED.pack(seq, len(value)), value)]
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(parts))


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
        at = begin + (length & (_HAS_HEAD - 1))
        if at > len(raw):
            raise ValueError(f"{noun} ends within a part")
        yield name, length, raw[begin:at]
