"""What has arrived of one device, read from the windows as far as needed.

Owns the order in which places in the buffers are decoded. Does not own the buffers (`arrival_window.py`), nor how
arrivals and runs become one series (`sorted_runs.py`).

Reports need not come in the order of their times. But each span of a buffer has the range of its times, so the spans
are decoded in the order of these ranges, some at a time, and a point is passed on as soon as no other span can be
about its time. So a page costs what it shows, also after a late report or a wrong clock. Where the spans of the newest
buffer are in order, which is the usual case, they are found by bisection; otherwise a table of all is made. After a
start the ranges are not known: the first reader of a device finds them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from trunkline.store import keys
from trunkline.store.arrival_window import SPAN_FIELDS, Buffer, Span
from trunkline.store.columns import Points
from trunkline.store.report_items import decoded, points_of, range_of_decoded
from trunkline.store.reports_at_once import points_at_once

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS: Final = (1, 8, 64)
"""So many spans are decoded together, first, then, and in all further steps: up to a thousand reports."""
_AT_ONCE: Final = 512
"""So many are read together after that, as long as their reports are plain ones: up to ten thousand."""
_AT_ONCE_BYTES_MIN: Final = 4096
"""Of fewer bytes, arrays take longer than they save."""
_UNKNOWN: Final = -1

_Spans: TypeAlias = "NDArray[np.int64]"
"""A row for each span, oldest first: the index of its buffer, where it begins and ends there, and the first and the
last time of its reports."""
_SOURCE, _START, _STOP, _FIRST, _LAST = range(5)


class Seen(NamedTuple):
    """A buffer, and how many bytes of it a reader sees."""

    buffer: Buffer
    end: int


class DeviceArrivals:
    """The reports of a device: `seen` are its buffers, the oldest first, `waiting` reports that wait for a commit.

    `numbers` are the attributes that are wanted, None for all; others may be there as well.
    """

    __slots__ = ("_numbers", "_seen", "_waiting")

    def __init__(
        self, seen: Sequence[Seen], waiting: bytes = b"", numbers: Container[int] | None = None
    ) -> None:
        self._seen = seen
        self._waiting = waiting
        self._numbers = numbers

    def points(
        self, low_ms: int, high_ms: int, *, reverse: bool, rows: int | None = None
    ) -> tuple[Iterator[Points], bool]:
        """The points in a range, and whether all that is in the runs is removed.

        They come as parts that are disjoint in time and ascend (`reverse`: descend); the points in a part ascend.
        `rows`: so many are wanted.
        """
        if self._waiting:
            return self._whole(low_ms, high_ms)
        if not self._seen:
            return iter(()), False
        buffer, end = self._seen[-1]
        spans = buffer.spans
        count = len(spans) // SPAN_FIELDS
        while not (fields := spans[SPAN_FIELDS * (count - 1) : SPAN_FIELDS * count]) or fields[0] >= end:
            count -= 1
        last = Span(*fields)
        newest_ms = max(last.last_ms, last.before_ms)
        after_ms = keys.TIME_MS_MAX if newest_ms == keys.TIME_MS_MAX else buffer.late_ms
        for older, _ in self._seen[:-1]:
            after_ms = max(after_ms, *older.spans[-2:])
        if after_ms < min(newest_ms, high_ms):
            return self._mostly_ordered(count, after_ms, low_ms, high_ms, reverse=reverse, rows=rows), False
        table = self._spans()
        if ((table[:, _FIRST] <= 0) & (table[:, _LAST] == keys.TIME_MS_MAX)).any():
            return self._whole(low_ms, high_ms)  # everything was removed once
        return self._parts(table, low_ms, high_ms, reverse=reverse), False

    def _whole(self, low_ms: int, high_ms: int) -> tuple[Iterator[Points], bool]:
        """The same, made from all reports at once."""
        found = decoded(b"".join([buffer.data[:end] for buffer, end in self._seen]) + self._waiting)
        points, is_wiped = points_of(found)
        rows = None if points is None else points.between(low_ms, high_ms)
        return iter((rows,) if rows else ()), is_wiped

    def _mostly_ordered(
        self, count: int, after_ms: int, low_ms: int, high_ms: int, *, reverse: bool, rows: int | None
    ) -> Iterator[Points]:
        """The same where the `count` spans of the newest buffer are in order, for all times after `after_ms`."""
        if low_ms > after_ms:
            yield from self._ordered(count, low_ms, high_ms, reverse=reverse, rows=rows)
        elif reverse:
            yield from self._ordered(count, after_ms + 1, high_ms, reverse=True, rows=rows)
            yield from self._parts(self._spans(), low_ms, after_ms, reverse=True)
        else:
            yield from self._parts(self._spans(), low_ms, after_ms, reverse=False)
            yield from self._ordered(count, after_ms + 1, high_ms, reverse=False, rows=rows)

    def _ordered(
        self, count: int, low_ms: int, high_ms: int, *, reverse: bool, rows: int | None
    ) -> Iterator[Points]:
        """The points of the newest buffer. It needs no table of all spans: these are found by bisection."""
        buffer, end = self._seen[-1]
        spans, data = buffer.spans, buffer.data
        # What stands before a span is not later than its `before_ms`, and what it has in this range is.
        before = range(3, SPAN_FIELDS * count, SPAN_FIELDS)
        begin = bisect_right(before, low_ms - 1, key=spans.__getitem__) - 1 if low_ms else 0
        stop = count if spans[before[-1]] < high_ms else bisect_left(before, high_ms, key=spans.__getitem__)
        step = 0
        number = _STEPS[0]
        steps: tuple[int, ...] = (*_STEPS, _AT_ONCE)
        while begin < stop:
            taken = min(number, stop - begin)
            first, last = (stop - taken, stop) if reverse else (begin, begin + taken)
            from_byte = spans[SPAN_FIELDS * first]
            to_byte = spans[SPAN_FIELDS * last] if last < count else end
            points = self._at_once([(len(self._seen) - 1, from_byte, to_byte)])
            if points is not None:
                found = _within(points, low_ms, high_ms)
            elif taken > _STEPS[-1]:
                steps, step, number = _STEPS, len(_STEPS) - 1, _STEPS[-1]
                continue
            else:
                found = _shown(decoded(bytes(data[from_byte:to_byte])), low_ms, high_ms)
            begin, stop = (begin, first) if reverse else (last, stop)
            step = min(step + 1, len(steps) - 1)
            number = steps[step]
            if found is not None:
                yield found
                if rows is not None and (rows := rows - len(found)) > 0:
                    number = min(-(-rows * taken // len(found)), number)

    def _at_once(self, places: Sequence[tuple[int, int, int]]) -> Points | None:
        """The points in places of buffers, (index of the buffer, start, end); None if each is to be decoded alone."""
        if sum(end - start for _, start, end in places) < _AT_ONCE_BYTES_MIN:
            return None
        raw: list[bytes] = []
        starts: list[NDArray[np.int64]] = []
        length = 0
        for source, start, end in places:
            buffer = self._seen[source].buffer
            ends = buffer.ends_between(start, end)
            if ends is None:
                return None
            starts.append(np.append(0, ends.astype(np.int64) - start) + length)
            raw.append(bytes(buffer.data[start:end]))
            length += end - start
        return points_at_once(b"".join(raw), np.concatenate(starts), self._numbers)

    def _parts(self, spans: _Spans, low_ms: int, high_ms: int, *, reverse: bool) -> Iterator[Points]:
        spans = spans[(spans[:, _FIRST] <= high_ms) & (spans[:, _LAST] >= low_ms)]
        # Those that reach farthest to the side where the series begins come first.
        order = np.argsort(-spans[:, _LAST] if reverse else spans[:, _FIRST], kind="stable")
        steps: tuple[int, ...] = (*_STEPS, _AT_ONCE)
        step = 0
        partly: dict[int, list[Any]] = {}
        """What was decoded of spans of which not all points are passed on yet."""
        at = 0
        while at < len(order):
            taken = order[at : at + steps[min(step, len(steps) - 1)]]
            after = at + len(taken)
            # The points that no later span can be about.
            from_ms, to_ms = low_ms, high_ms
            if after < len(order) and reverse:
                from_ms = max(low_ms, int(spans[order[after], _LAST]) + 1)
            elif after < len(order):
                to_ms = min(high_ms, int(spans[order[after], _FIRST]) - 1)
            rows = np.sort(np.concatenate((taken, np.fromiter(partly, np.int64, len(partly)))))
            done = spans[rows, _FIRST] >= from_ms if reverse else spans[rows, _LAST] <= to_ms
            later = rows[~done].tolist()
            points = None
            if from_ms <= to_ms and 2 * len(later) <= len(rows):  # what is not done is read once more
                points = self._at_once(_joined(spans[rows]))
            if points is None and len(taken) > _STEPS[-1]:
                steps, step = _STEPS, len(_STEPS) - 1
                continue
            at, step = after, step + 1
            if points is not None:
                shown = _within(points, from_ms, to_ms)
                partly = {row: self._items(partly, spans, row) for row in later}
            elif not later and not partly:
                shown = _shown(self._decoded(spans[rows]), from_ms, to_ms)
            else:
                partly = {row: self._items(partly, spans, row) for row in rows.tolist()}
                found = list(chain.from_iterable(partly.values()))
                shown = _shown(found, from_ms, to_ms) if from_ms <= to_ms else None
                partly = {row: partly[row] for row in later}
            if shown is not None:
                yield shown
            if from_ms <= to_ms:
                low_ms, high_ms = (low_ms, from_ms - 1) if reverse else (to_ms + 1, high_ms)

    def _items(self, partly: dict[int, list[Any]], spans: _Spans, row: int) -> list[Any]:
        """What was decoded of a span, or is now."""
        found = partly.get(row)
        return self._decoded(spans[row : row + 1]) if found is None else found

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
                first_ms, last_ms = range_of_decoded(self._decoded(table[index : index + 1]))
                table[index, _FIRST:] = first_ms, last_ms
                if index + 1 < count:  # to the last one more may be appended
                    buffer.found(index, first_ms, last_ms)
            tables.append(table)
        return tables[0] if len(tables) == 1 else np.concatenate(tables)


def _joined(spans: _Spans) -> list[tuple[int, int, int]]:
    """The places of spans, those that stand one after the other in a buffer as one."""
    first = np.ones(len(spans), np.bool_)
    first[1:] = (spans[1:, _SOURCE] != spans[:-1, _SOURCE]) | (spans[1:, _START] != spans[:-1, _STOP])
    begins = np.flatnonzero(first)
    stops = spans[np.append(begins[1:], len(spans)) - 1, _STOP]
    return list(
        zip(spans[begins, _SOURCE].tolist(), spans[begins, _START].tolist(), stops.tolist(), strict=True)
    )


def _shown(found: list[Any], low_ms: int, high_ms: int) -> Points | None:
    """The points of decoded items in a range; None if there are none."""
    points, _ = points_of(found)
    return None if points is None else _within(points, low_ms, high_ms)


def _within(points: Points, low_ms: int, high_ms: int) -> Points | None:
    """The points in a range; None if there are none."""
    points = points.between(low_ms, high_ms)
    return points if len(points) else None
