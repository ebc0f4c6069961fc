"""Arrivals: what devices reported and is not in the runs yet.

Owns the form in which reports are committed, and the copy of it in memory that readers use. Does not own what comes
after it (`settler.py`, `runs.py`) nor the meaning of a head (`actors/devices/head.py`).

A commit stores what all devices reported as one value, the chunk, so it changes the same few pages whatever the number
of devices. About every hundred chunks are packed into one compressed value, the segment, so that the tree of the chunks
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
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import trio
import zstandard

from trunkline.store import codec, keys
from trunkline.store.errors import StoreDamaged
from trunkline.store.report_items import END, HEAD_KEY, LIST, Item, Reports

PACKED_CHUNKS: Final = 100
"""So many chunks become a segment: their keys fit into one page."""
PACKED_BYTES: Final = 1024 * 1024
"""Larger chunks become a segment earlier."""
SEGMENT_BYTES_MAX: Final = 1 << 32
BUFFER_BYTES: Final = 250
"""The memory of a device in a window, in addition to its reports."""

_HAS_HEAD: Final = 1 << 31
"""In the length of an entry of a chunk: it has a head, or a removal of everything."""
_LEVEL: Final = 1
_GROUPS_BACK: Final = 8
"""Where the newest reports are read, so many times as many groups are decoded with each step back."""
_GROUP_ITEMS: Final = 32

_ENTRY = struct.Struct("<12sI")
_NUMBERED = struct.Struct("<QI")
_GROUP = struct.Struct(">BIB").pack


# In memory.


class Buffer:
    """The reports of one device in a window: groups of the number of the commit and a list of pairs, in CBOR.

    `is_ordered`: all are reports or heads, in ascending times from `first_ms` to `last_ms`. Then the newest are
    read from the end.
    """

    __slots__ = ("data", "first_ms", "groups", "head_at", "is_ordered", "last_ms")

    def __init__(self) -> None:
        self.data = bytearray()
        self.groups = array("I")
        """Where each group begins."""
        self.head_at = -1
        """Where the last group begins that has a head or a removal of everything; -1 if there is none."""
        self.is_ordered = True
        self.first_ms = keys.TIME_MS_MAX
        self.last_ms = -1

    def items(self, base: int, last_seq: int, start: int = 0) -> list[Item] | None:
        """The pairs of all commits up to `last_seq`; None if the first group is of a later commit."""
        groups = codec.decode(LIST + bytes(self.data[start:]) + END)
        found: list[Item] = []
        for index in range(0, len(groups), 2):
            if base + groups[index] > last_seq:
                return found if index else None
            pairs = iter(groups[index + 1])
            found += zip(pairs, pairs, strict=True)
        return found

    def items_back(self, base: int, last_seq: int) -> Iterator[list[Item]]:
        """The same in parts, the last first, for who needs only the last ones. The pairs in a part are in order."""
        starts, end, count = self.groups[:], len(self.data), 1
        data = bytes(self.data[:end])
        while starts:
            part = starts[-count:]
            del starts[-count:]
            groups = codec.decode(LIST + data[part[0] : end] + END)
            found: list[Item] = []
            for index in range(0, len(groups), 2):
                if base + groups[index] <= last_seq:
                    pairs = iter(groups[index + 1])
                    found += zip(pairs, pairs, strict=True)
            yield found
            end, count = part[0], count * _GROUPS_BACK


class Mark(NamedTuple):
    """What a buffer was before an `add`."""

    buffer: Buffer
    length: int
    groups: int
    head_at: int
    is_ordered: bool
    last_ms: int


class Window:
    """The reports of the commits after `base`, by device. `last` is the number of its last commit once it is closed."""

    __slots__ = ("base", "buffers", "last", "size_bytes")

    def __init__(self, base: int) -> None:
        self.base = base
        self.last: int | None = None
        self.buffers: dict[bytes, Buffer] = {}
        self.size_bytes = 0

    def add(self, device: bytes, seq: int, body: bytes, reports: Reports) -> Mark:
        """Append what a device reported in a commit; return what `cut` needs to take it back.

        `body` are the items of `reports`.
        """
        buffer = self.buffers.get(device)
        if buffer is None:
            buffer = self.buffers[device] = Buffer()
            self.size_bytes += BUFFER_BYTES
        mark = Mark(
            buffer,
            len(buffer.data),
            len(buffer.groups),
            buffer.head_at,
            buffer.is_ordered,
            buffer.last_ms,
        )
        if reports.has_head:
            buffer.head_at = mark.length
        if not reports.is_ordered or reports.first_ms <= buffer.last_ms:
            buffer.is_ordered = False
        if reports.first_ms < buffer.first_ms:
            buffer.first_ms = reports.first_ms
        if reports.last_ms > buffer.last_ms:
            buffer.last_ms = reports.last_ms
        # In groups of few items, so that the newest are read without the others.
        items = reports.items
        parts = [body]
        if len(items) > _GROUP_ITEMS:
            parts = [b"".join(items[at : at + _GROUP_ITEMS]) for at in range(0, len(items), _GROUP_ITEMS)]
        for part in parts:
            start = len(buffer.data)
            group = _GROUP(0x1A, seq - self.base, 0x9F) + part + END
            buffer.groups.append(start)
            buffer.data += group
            self.size_bytes += len(group) + buffer.groups.itemsize
        if items and items[-1].startswith(HEAD_KEY):
            buffer.head_at = start
        return mark

    def cut(self, device: bytes, mark: Mark) -> None:
        """Take back the last `add` of a device."""
        buffer = mark.buffer
        groups = len(buffer.groups) - mark.groups
        self.size_bytes -= len(buffer.data) - mark.length + groups * buffer.groups.itemsize
        del buffer.data[mark.length :]
        del buffer.groups[mark.groups :]
        buffer.head_at, buffer.is_ordered, buffer.last_ms = mark.head_at, mark.is_ordered, mark.last_ms
        if not buffer.data:
            del self.buffers[device]
            self.size_bytes -= BUFFER_BYTES


class Chunk(NamedTuple):
    """What all devices reported in one commit, as it is stored."""

    seq: int
    value: bytes


class Arrivals:
    """All windows, oldest first. Changed only in the thread of the event loop; read by all threads."""

    __slots__ = ("_staged", "_waiting", "_window_bytes", "seq", "unpacked", "unpacked_bytes", "windows")

    def __init__(self, window_bytes: int) -> None:
        self.windows: tuple[Window, ...] = (Window(0),)
        self.seq = 0
        """The number of the last commit."""
        self.unpacked: list[Chunk] = []
        """The chunks that are in no segment yet."""
        self.unpacked_bytes = 0
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
            reports = Reports()
            reports.is_ordered = False  # it may be, but to find that out takes as long as to load it
            for device, body, reports.has_head in entries(value):
                window.add(device, seq, body, reports)
        except ValueError as error:
            raise StoreDamaged(f"What devices reported in the commit {seq} is damaged: {error}.") from error
        self.seq = seq

    @property
    def size_bytes(self) -> int:
        """The memory of all windows."""
        return sum(window.size_bytes for window in self.windows)

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
            body = b"".join(report.items)
            parts.append(_ENTRY.pack(device, len(body) | _HAS_HEAD if report.has_head else len(body)))
            parts.append(body)
            self._staged.append((device, window.add(device, seq, body, report)))
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
        self.windows = (*self.windows, Window(self.seq))

    def settled(self, window: Window) -> None:
        """Drop the oldest window: all of it is in the runs, and its segments are deleted."""
        assert self.windows[0] is window
        self.windows = self.windows[1:]


# Chunks and segments.


def entries(value: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield device, reports and whether they have a head, of a chunk. Raises ValueError if it is none."""
    at = 0
    while at < len(value):
        if at + _ENTRY.size > len(value):
            raise ValueError("the chunk ends within an entry")
        device, length = _ENTRY.unpack_from(value, at)
        at += _ENTRY.size
        has_head = bool(length & _HAS_HEAD)
        length &= _HAS_HEAD - 1
        if at + length > len(value):
            raise ValueError("the chunk ends within an entry")
        yield device, value[at : at + length], has_head
        at += length


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
    at = 0
    while at < len(raw):
        if at + _NUMBERED.size > len(raw):
            raise ValueError("the segment ends within a chunk")
        seq, length = _NUMBERED.unpack_from(raw, at)
        at += _NUMBERED.size
        if at + length > len(raw):
            raise ValueError("the segment ends within a chunk")
        yield Chunk(seq, raw[at : at + length])
        at += length
