"""What has arrived of one device, read from the windows as far as needed.

Owns the order in which places in the buffers are decoded. Does not own the buffers (`arrival_window.py`), nor how
arrivals and runs become one series (`runs.py`).

Reports need not come in the order of their times. But each span of a buffer has the range of its times, so the spans
are decoded in the order of these ranges, some at a time, and a point is passed on as soon as no other span can be
about its time. So a page costs what it shows, also after a late report or a wrong clock. After a start the ranges are
not known: the first reader of a device finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import lt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trunkline.store import keys
from trunkline.store.arrival_window import SPAN_FIELDS, Buffer, Span
from trunkline.store.columns import Points
from trunkline.store.report_items import HEAD, decoded, fold, range_of_times

_STEPS: Final = (1, 8, 64)
"""So many spans are decoded together, first, then, and in all further steps: up to a thousand reports."""
_UNKNOWN: Final = -1

_Spans = NDArray[np.int64]
"""A row for each span, oldest first: the index of its buffer, where it begins and ends there, and the first and the
last time of its reports."""
_SOURCE, _START, _STOP, _FIRST, _LAST = range(5)


class Seen(NamedTuple):
    """A buffer, and how many bytes of it a reader sees."""

    buffer: Buffer
    end: int


class DeviceArrivals:
    """The reports of a device: `seen` are its buffers, the oldest first, `waiting` reports that wait for a commit."""

    __slots__ = ("_seen", "_waiting")

    def __init__(self, seen: Sequence[Seen], waiting: bytes = b"") -> None:
        self._seen = seen
        self._waiting = waiting

    def points(self, low_ms: int, high_ms: int, *, reverse: bool) -> tuple[Iterator[Points], bool]:
        """The points in a range, and whether all that is in the runs is removed.

        They come as parts that are disjoint in time and ascend (`reverse`: descend); the points in a part ascend.
        """
        if self._waiting:
            return self._whole(low_ms, high_ms)
        if not self._seen:
            return iter(()), False
        if reverse:
            buffer, end = self._seen[-1]
            span = Span(*buffer.spans[-SPAN_FIELDS:])
            if span.start < end and self._is_after_all_others(span):
                # It needs no table of all spans.
                return self._newest_first(span, low_ms, high_ms), False
        spans = self._spans()
        if ((spans[:, _FIRST] <= 0) & (spans[:, _LAST] == keys.TIME_MS_MAX)).any():
            return self._whole(low_ms, high_ms)  # everything was removed once
        return self._parts(spans, low_ms, high_ms, reverse=reverse), False

    def _whole(self, low_ms: int, high_ms: int) -> tuple[Iterator[Points], bool]:
        """The same, made from all reports at once."""
        found = decoded(b"".join([buffer.data[:end] for buffer, end in self._seen]) + self._waiting)
        folded = fold(zip(found[::2], found[1::2], strict=True))
        rows = folded.rows(low_ms, high_ms)
        return iter(() if rows is None else (rows,)), folded.is_wiped

    def _is_after_all_others(self, span: Span) -> bool:
        """Whether the times of the last span are known, and after those of all others."""
        for older, _ in self._seen[:-1]:
            if max(older.spans[-2:]) >= span.first_ms:
                return False
        return span.before_ms < span.first_ms <= span.last_ms < keys.TIME_MS_MAX

    def _newest_first(self, span: Span, low_ms: int, high_ms: int) -> Iterator[Points]:
        buffer, end = self._seen[-1]
        if span.first_ms <= high_ms and span.last_ms >= low_ms:
            yield from _shown(decoded(bytes(buffer.data[span.start : end])), low_ms, high_ms)
        if span.first_ms > low_ms:
            older = self._spans()
            older = older[older[:, _LAST] < span.first_ms]
            yield from self._parts(older, low_ms, min(high_ms, span.first_ms - 1), reverse=True, step=1)

    def _parts(
        self, spans: _Spans, low_ms: int, high_ms: int, *, reverse: bool, step: int = 0
    ) -> Iterator[Points]:
        spans = spans[(spans[:, _FIRST] <= high_ms) & (spans[:, _LAST] >= low_ms)]
        # Those that reach farthest to the side where the series begins come first.
        order = np.argsort(-spans[:, _LAST] if reverse else spans[:, _FIRST], kind="stable")
        partly: dict[int, list[Any]] = {}
        """What was decoded of spans of which not all points are passed on yet."""
        at = 0
        while at < len(order):
            taken = np.sort(order[at : at + _STEPS[min(step, len(_STEPS) - 1)]])
            at, step = at + len(taken), step + 1
            # The points that no later span can be about.
            from_ms, to_ms = low_ms, high_ms
            if at < len(order) and reverse:
                from_ms = max(low_ms, int(spans[order[at], _LAST]) + 1)
            elif at < len(order):
                to_ms = min(high_ms, int(spans[order[at], _FIRST]) - 1)
            within = spans[taken, _FIRST].min() >= from_ms if reverse else spans[taken, _LAST].max() <= to_ms
            if within and not partly:
                found = self._decoded(spans[taken])
            else:
                partly |= {int(row): self._decoded(spans[row : row + 1]) for row in taken}
                found = list(chain.from_iterable(partly[row] for row in sorted(partly)))
                done = spans[:, _FIRST] >= from_ms if reverse else spans[:, _LAST] <= to_ms
                partly = {row: items for row, items in partly.items() if not done[row]}
            if from_ms <= to_ms:
                yield from _shown(found, from_ms, to_ms)
                low_ms, high_ms = (low_ms, from_ms - 1) if reverse else (to_ms + 1, high_ms)

    def _decoded(self, spans: _Spans) -> list[Any]:
        """What the buffers have in spans."""
        seen = self._seen
        places = spans[:, [_SOURCE, _START, _STOP]].tolist()
        return decoded(b"".join([seen[source].buffer.data[start:stop] for source, start, stop in places]))

    def _spans(self) -> _Spans:
        """All spans. Finds the times of those that were loaded."""
        tables: list[_Spans] = []
        for source, (buffer, end) in enumerate(self._seen):
            fields = np.frombuffer(buffer.spans[:], np.int64).reshape(-1, SPAN_FIELDS)
            count = int(fields[:, 0].searchsorted(end))
            table = np.empty((count, _LAST + 1), np.int64)
            table[:, _SOURCE] = source
            table[:, _START], table[:-1, _STOP], table[-1:, _STOP] = (
                fields[:count, 0],
                fields[1:count, 0],
                end,
            )
            table[:, _FIRST:] = fields[:count, 1:3]
            for index in np.flatnonzero(table[:, _FIRST] == _UNKNOWN).tolist():
                first_ms, last_ms = range_of_times(self._decoded(table[index : index + 1])[::2])
                table[index, _FIRST:] = first_ms, last_ms
                if index + 1 < count:  # to the last one more may be appended
                    buffer.found(index, first_ms, last_ms)
            tables.append(table)
        return tables[0] if len(tables) == 1 else np.concatenate(tables)


def _shown(found: list[Any], low_ms: int, high_ms: int) -> Iterator[Points]:
    """The points of decoded items in a range; at most one part."""
    times, values = found[::2], found[1::2]
    at = 0
    for _ in range(times.count(HEAD)):
        at = times.index(HEAD, at)
        del times[at], values[at]
    if not times:
        return
    if set(map(type, values)) == {dict} and all(map(lt, times, islice(times, 1, None))):
        points: Points | None = Points.of_maps(times, values)  # nearly always, and as fast as it can be
    else:
        points = fold(zip(times, values, strict=True)).rows()
    if points is not None:
        points = points.between(low_ms, high_ms)
        if len(points):
            yield points
