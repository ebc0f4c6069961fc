"""A window: what devices reported in some commits, in memory, by device.

Changed only in the thread of the event loop; read by all threads. Each report has the number of its commit, so a
snapshot sees exactly the reports of the commits that it sees.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from trunkline.store import keys
from trunkline.store.report_items import Item, decoded_items

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUFFER_BYTES: Final = 400
"""The memory of a device in a window, in addition to its reports."""

_SPAN_BYTES: Final = 512
"""Reports of several commits share an entry of `spans` until it has so many bytes."""


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

    __slots__ = ("commits", "data", "head_at", "late_ms", "spans")

    def __init__(self) -> None:
        self.data = bytearray()
        self.commits = array("I")
        """For each commit where its reports end, and its number in the window."""
        self.spans = array("q")
        """The fields of each `Span`, in the order of the commits."""
        self.head_at = -1
        """Where the last entry begins that has a head or a removal of everything; -1 if there is none."""
        self.late_ms = -1
        """Each report of a later time than this came after all reports of earlier times, by spans."""

    def end(self, base: int, last_seq: int) -> int:
        """Where the reports of the commits up to `last_seq` end; 0 if there are none."""
        last = self.commits[-2:]
        if last and base + last[1] <= last_seq:
            return last[0]
        commits = self.commits[:]
        count = bisect_right(commits[1::2], last_seq - base)
        return commits[2 * count - 2] if count else 0

    def ends_between(self, start: int, end: int) -> NDArray[np.uint32] | None:
        """Where the reports of commits end, after `start` and before `end`, of what a reader sees.

        None if a commit is taken back meanwhile, which is found by looking beyond the end.
        """
        commits = self.commits
        places = range(0, len(commits), 2)
        try:
            first = bisect_right(places, start, key=commits.__getitem__)
            last = bisect_left(places, end, key=commits.__getitem__)
        except IndexError:
            return None
        return np.frombuffer(commits[2 * first : 2 * last], np.uint32)[::2]

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
                    if first_ms <= spans[-1]:
                        self.late_ms = spans[-1]
                    spans[-3] = first_ms
                if last_ms > spans[-2]:
                    spans[-2] = last_ms
            else:
                before_ms = max(spans[-2:]) if spans else -1
                if first_ms <= before_ms:
                    self.late_ms = before_ms
                spans.extend((start, first_ms, last_ms, before_ms))
        self.commits.extend((len(data), number))
        return len(data) + len(spans) * spans.itemsize - before + 2 * self.commits.itemsize

    def load(self, number: int, bodies: Sequence[bytes], head: int | None) -> int:
        """Fill an empty buffer; return its memory. `head` is the index of the last body with a head.

        Readers find the ranges of the times: here that would take as long as everything else.
        """
        self.data += b"".join(bodies)
        starts = list(accumulate(map(len, bodies), initial=0))
        if head is not None:
            self.head_at = starts[head]
        for start in starts[: -1 : max(1, _SPAN_BYTES * len(bodies) // len(self.data))]:
            self.spans.extend((start, -1, keys.TIME_MS_MAX, keys.TIME_MS_MAX if start else -1))
        self.commits.extend((len(self.data), number))
        return len(self.data) + len(self.spans) * self.spans.itemsize

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
    late_ms: int
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
        """Append what a device reported in a commit; return what `cut` needs to take it back.

        If it raises, as where no memory is left, nothing is appended.
        """
        buffer, grown = self.buffers.get(device), 0
        if buffer is None:
            buffer, grown = Buffer(), BUFFER_BYTES
        length, commits, spans = len(buffer.data), len(buffer.commits), len(buffer.spans)
        last_span, head_at, late_ms = buffer.spans[-SPAN_FIELDS:], buffer.head_at, buffer.late_ms
        mark = Mark(buffer, length, commits, spans, last_span, head_at, late_ms, grown)
        try:
            mark = mark._replace(size_bytes=grown + buffer.append(seq - self.base, entries))
            self.buffers[device] = buffer
        except BaseException:
            _restore(mark)
            raise
        self.size_bytes += mark.size_bytes
        return mark

    def load(
        self, base: int, seq: int, bodies: Mapping[bytes, Sequence[bytes]], heads: Mapping[bytes, int]
    ) -> None:
        """Fill an empty window with the reports of the commits after `base` up to `seq`, as `collect` returns them.

        There is no snapshot yet, so what is loaded of a device counts as reported in one commit, the last one.
        """
        self.base = base  # numbers in a window have 32 bits
        for device, of in bodies.items():
            buffer = self.buffers[device] = Buffer()
            self.size_bytes += BUFFER_BYTES + buffer.load(seq - base, of, heads.get(device))

    def cut(self, device: bytes, mark: Mark) -> None:
        """Take back the last `add` of a device."""
        self.size_bytes -= mark.size_bytes
        if mark.length:
            _restore(mark)
        else:
            del self.buffers[device]


def _restore(mark: Mark) -> None:
    """Make a buffer what it was."""
    buffer = mark.buffer
    del buffer.commits[mark.commits :]
    del buffer.spans[mark.spans :]
    buffer.spans[-SPAN_FIELDS:] = mark.last_span
    del buffer.data[mark.length :]
    buffer.head_at = mark.head_at
    buffer.late_ms = mark.late_ms
