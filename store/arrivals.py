"""Arrivals: what devices reported and is not in the runs yet.

Owns what is staged for a commit, and when chunks are packed and windows are full. Does not own the stored form
(`arrival_chunks.py`), the copy in memory (`arrival_window.py`), what comes after it (`flusher.py`, `sorted_runs.py`)
nor the meaning of a head (`actors/fleet/devices/state/head.py`).

A commit stores what all devices reported as one value, the chunk, so it changes the same few pages whatever the number
of devices. About every eighty chunks are packed into one compressed value, the segment, so that the tree of the chunks
stays one page. Neither is made to be read: readers use the copy in memory, by device, which is made again from the
segments and chunks at a start.

The copy consists of windows. The newest one is open; when it is full it is closed, and the flusher writes its points
into a run. The window is then dropped, but a snapshot that was opened before still uses it. Its segments stay until the
next window is flushed, for streams that resume (`report_log.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import trio

from trunkline.store.arrival_chunks import Chunk, collect, entry
from trunkline.store.arrival_window import BUFFER_BYTES, Entry, Mark, Window
from trunkline.store.errors import StoreDamaged
from trunkline.store.report_items import Reports, has_columns, is_head, range_of

PACKED_CHUNKS: Final = 80
"""So many chunks become a segment: their keys fit into one page, with the names of the databases and a few chunks."""
PACKED_BYTES: Final = 1024 * 1024
"""Larger chunks become a segment earlier."""
MEMORY_SHARE: Final = 3
"""A window is also full with so many times as much memory as it may have reports: with very many devices."""

_PIECE_ITEMS: Final = 16
"""Many reports of a device in one commit become entries of so many, so that the newest are read without the others."""


class _Staged:
    """What was appended of a device for a commit; no `mark` if nothing was."""

    __slots__ = ("device", "mark")

    def __init__(self, device: bytes) -> None:
        self.device = device
        self.mark: Mark | None = None


class Arrivals:
    """All windows, oldest first. Changed only in the thread of the event loop; read by all threads."""

    __slots__ = (
        "_closed_bytes",
        "_staged",
        "_waiting",
        "_window_bytes",
        "flushed_seq",
        "seq",
        "unpacked",
        "unpacked_bytes",
        "windows",
    )

    def __init__(self, window_bytes: int, flushed_seq: int = 0) -> None:
        self.windows: tuple[Window, ...] = (Window(flushed_seq),)
        self.seq = flushed_seq
        """The number of the last commit."""
        self.flushed_seq = flushed_seq
        """The number of the last commit whose reports are all in the runs."""
        self.unpacked: list[Chunk] = []
        """The chunks that are in no segment yet."""
        self.unpacked_bytes = 0
        self._closed_bytes = 0
        self._window_bytes = window_bytes
        self._waiting = trio.lowlevel.ParkingLot()
        self._staged: list[_Staged] = []

    def load(self, chunks: Sequence[Chunk]) -> None:
        """Fill the open window, which is empty, with chunks that are on disk. Raises StoreDamaged."""
        bodies: dict[bytes, list[bytes]] = {}
        heads: dict[bytes, int] = {}
        for seq, value in chunks:
            try:
                collect(value, bodies, heads)
            except ValueError as error:
                raise StoreDamaged(
                    f"What devices reported in the commit {seq} is damaged: {error}."
                ) from error
        if chunks:
            self.seq = chunks[-1].seq
            self.windows[-1].load(chunks[0].seq - 1, self.seq, bodies, heads)

    @property
    def size_bytes(self) -> int:
        """The memory of all windows."""
        return self._closed_bytes + self.windows[-1].size_bytes

    @property
    def is_full(self) -> bool:
        """Whether the open window is full: it has `window_bytes` of reports, or three times as much memory.

        With many devices most of the memory is that of their buffers. The reports decide, because what flushing
        writes for each of them is the less, the more there are of a device.
        """
        window = self.windows[-1]
        reports_bytes = window.size_bytes - BUFFER_BYTES * len(window.buffers)
        return reports_bytes >= self._window_bytes or window.size_bytes >= MEMORY_SHARE * self._window_bytes

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
        """Append what is about to be committed, and return the chunk. Then `committed` or `undo` must be called.

        If it raises, as where no memory is left, nothing is appended.
        """
        seq, window = self.seq + 1, self.windows[-1]
        parts: list[bytes] = []
        try:
            for device, report in reports.items():
                pieces = _pieces(report)
                for body, _, _, has_head in pieces:
                    parts.append(entry(device, body, has_head=has_head))
                staged = _Staged(device)
                self._staged.append(staged)
                staged.mark = window.add(device, seq, pieces)
            return Chunk(seq, b"".join(parts))
        except BaseException:
            self.undo()
            raise

    def committed(self, chunk: Chunk) -> None:
        """The chunk of `stage` is on disk."""
        self.seq = chunk.seq
        self._staged.clear()
        self.keep(chunk)

    def undo(self) -> None:
        """The commit of `stage` has failed, or there was none."""
        window = self.windows[-1]
        for staged in reversed(self._staged):
            if staged.mark is not None:
                window.cut(staged.device, staged.mark)
        self._staged.clear()

    def keep(self, chunk: Chunk) -> None:
        """The chunk is in no segment yet."""
        self.unpacked.append(chunk)
        self.unpacked_bytes += len(chunk.value)
        if self.is_due:
            self._waiting.unpark_all()

    # Packing and flushing.

    def packed(self, chunks: int) -> None:
        """So many of the oldest chunks are in a segment."""
        self.unpacked_bytes -= sum(len(chunk.value) for chunk in self.unpacked[:chunks])
        del self.unpacked[:chunks]

    def close_window(self) -> None:
        """Begin a new window."""
        self.windows[-1].last = self.seq
        self._closed_bytes += self.windows[-1].size_bytes
        self.windows = (*self.windows, Window(self.seq))

    def skip_to(self, seq: int) -> None:
        """Let there be no commit between the last one and `seq`: whoever reads the log finds something missing there.

        The caller stores `seq` at `keys.SKIPPED_KEY`.
        """
        self.seq = max(self.seq, seq)

    def flushed(self, window: Window) -> None:
        """Drop the oldest window: all of it is in the runs."""
        assert self.windows[0] is window
        assert window.last is not None
        self.flushed_seq = window.last
        self._closed_bytes -= window.size_bytes
        self.windows = self.windows[1:]


def chunk_value(reports: Mapping[bytes, Reports]) -> bytes:
    """The value of the chunk that `Arrivals.stage` makes of these reports."""
    return b"".join(
        entry(device, body, has_head=has_head)
        for device, report in reports.items()
        for body, _, _, has_head in _pieces(report)
    )


def _pieces(reports: Reports) -> list[Entry]:
    """What a device reported in a commit as entries of a chunk. Of several, one with a head has nothing else.

    States as columns are an entry of their own as well, since they are many.
    """
    items = reports.items
    if len(items) <= _PIECE_ITEMS and not any(map(has_columns, items)):
        return [Entry(b"".join(items), *range_of(items), reports.has_head)]
    pieces: list[Entry] = []
    alone = [at for at, item in enumerate(items) if is_head(item) or has_columns(item)]
    for start, stop in pairwise([-1, *alone, len(items)]):
        for at in range(start + 1, stop, _PIECE_ITEMS):
            part = items[at : min(at + _PIECE_ITEMS, stop)]
            pieces.append(Entry(b"".join(part), *range_of(part), has_head=False))
        if stop < len(items):
            item = items[stop]
            pieces.append(Entry(item, *range_of((item,)), has_head=is_head(item)))
    return pieces
