"""What a device reports, as it is stored in the arrivals: a sequence of pairs of CBOR.

Owns these pairs, and what several of them say together. Does not own where they are stored (`arrivals.py`).

Each is the time in milliseconds and

    a map            a report: attribute number to value; overrides what the point of that time has of these attributes
    null             the point of that time is removed
    [map]            the point of that time is replaced

or, without a time,

    -1, bytes        the head of the device after what comes before it
    -2, null         all data of the device is removed
    -3, an array     many states as columns (`state_columns.py`): as good as a report for each of them
    -4, an array     which frames of the link are stored, after what comes before it; a head has that as well
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import compress, islice
from operator import lt
from typing import Any, Final, NamedTuple

from trunkline.store import codec, keys, state_columns
from trunkline.store.columns import MERGES, REMOVES, REPLACES, Points, stacked
from trunkline.store.state_columns import StateColumns

BACKLOG: Final = b"\xa0"
"""An empty map. A report of it begins a backlog, which the next head ends; streams leave out what is between them."""
HEAD: Final = -1
"""Stands where the time would be."""
_WIPED: Final = -2
COLUMNS: Final = state_columns.KEY
_LINK: Final = -4
_TIMED = struct.Struct(">BQ").pack
_NULL: Final = b"\xf6"
_LIST_OF_ONE: Final = b"\x81"
_TIME: Final = 0x1B
"""The first byte of an item with a time."""
_HEAD_KEY: Final = b"\x20"
_WIPED_ITEM: Final = b"\x21\xf6"
_LINK_KEY: Final = b"\x23"
_HEADS: Final = frozenset({_HEAD_KEY[0], _WIPED_ITEM[0]})
_LIST: Final = b"\x9f"
_END: Final = b"\xff"

Item = tuple[int, Any]
"""A time and what was reported for it, or a negative number and what it stands for."""


# What a device reports.


def reported(time_ms: int, point: bytes) -> bytes:
    """A report: `point` is CBOR."""
    return _TIMED(_TIME, time_ms) + point


def replaced(time_ms: int, point: bytes) -> bytes:
    """A point that replaces that of its time."""
    return _TIMED(_TIME, time_ms) + _LIST_OF_ONE + point


def removed(time_ms: int) -> bytes:
    """The removal of the point of a time."""
    return _TIMED(_TIME, time_ms) + _NULL


def head_item(head: bytes) -> bytes:
    """The head of the device after everything before it."""
    return _HEAD_KEY + codec.encode(head)


def wiped() -> bytes:
    """The removal of all data of the device."""
    return _WIPED_ITEM


def link_item(mark: Sequence[int]) -> bytes:
    """Which frames of the link are stored."""
    return _LINK_KEY + codec.encode(mark)


def is_head(item: bytes) -> bool:
    """Whether an item is a head or the removal of everything."""
    return item[0] in _HEADS


def has_columns(item: bytes) -> bool:
    """Whether an item has many states."""
    return item[0] == state_columns.FIRST_BYTE


def range_of(items: Sequence[bytes]) -> tuple[int, int]:
    """The first and the last time that items are about, in ms; TIME_MS_MAX and -1 if they are only heads."""
    times: list[int] = []
    for item in items:
        if item[0] == _TIME:
            times.append(int.from_bytes(item[1:9], "big"))
        elif has_columns(item):
            times += state_columns.range_of(item)
        elif item == _WIPED_ITEM:
            return 0, keys.TIME_MS_MAX
    return min(times, default=keys.TIME_MS_MAX), max(times, default=-1)


def range_of_decoded(found: list[Any]) -> tuple[int, int]:
    """The same of decoded items."""
    times = found[::2]
    if _WIPED in times:
        return 0, keys.TIME_MS_MAX
    timed = [time_ms for time_ms in times if time_ms >= 0]
    if COLUMNS in times:
        for key, value in zip(times, found[1::2], strict=True):
            if key == COLUMNS:
                timed += value[:2]
    return min(timed, default=keys.TIME_MS_MAX), max(timed, default=-1)


class Reports:
    """What one device reported in batches that wait for a commit. `has_head`: there is a head, or a removal of all."""

    __slots__ = ("has_head", "items")

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.has_head = False

    def extend(self, other: Reports) -> None:
        """Append what `other` has."""
        self.items += other.items
        self.has_head = self.has_head or other.has_head


# Reading what was reported.


class Ahead(NamedTuple):
    """A stored head, None if there is none, and what came after it, in order.

    `link` says which frames of the link are stored, None if the head does.
    """

    head: bytes | None
    reports: list[tuple[int, dict[int, Any]]]
    link: list[int] | None = None

    @classmethod
    def of(cls, head: bytes | None, later: Iterable[Item]) -> Ahead:
        """A head, and the pairs after it."""
        reports: list[tuple[int, dict[int, Any]]] = []
        link = None
        for key, value in later:
            if type(value) is dict:
                reports.append((key, value))
            elif key == COLUMNS:
                reports += StateColumns(value).rows()
            elif key == _LINK:
                link = value
        return cls(head, reports, link)


def head_of(found: Iterable[list[Item]]) -> tuple[bytes | None, list[Item], bool]:
    """The last head in pairs, the pairs after it, and whether there is one (or a removal of everything, then None).

    `found` are the pairs of windows, the newest window first; it is read as far as needed.
    """
    later: list[Item] = []
    for items in found:
        for index in range(len(items) - 1, -1, -1):
            if items[index][0] in (HEAD, _WIPED):
                head = items[index][1] if items[index][0] == HEAD else None
                return head, items[index + 1 :] + later, True
        later = items + later
    return None, later, False


def decoded(raw: bytes) -> list[Any]:
    """Items that stand one after the other: times (or negative numbers), each followed by what stands for it."""
    found: list[Any] = codec.decode(_LIST + raw + _END)
    if len(found) % 2:
        raise ValueError("an item of a report lacks its value")
    return found


def decoded_items(raw: bytes) -> list[Item]:
    """The same as pairs."""
    found = iter(decoded(raw))
    return list(zip(found, found, strict=True))


def points_of(found: list[Any]) -> tuple[Points | None, bool]:
    """What decoded items say together: the points, None if there are none, and whether all before them is removed."""
    times, values = found[::2], found[1::2]
    if COLUMNS not in times:
        return _points(times, values)
    parts: list[Points] = []
    is_wiped = False
    begin = 0
    for at in [*(at for at, key in enumerate(times) if key == COLUMNS), len(times)]:
        points, wipes = _points(times[begin:at], values[begin:at])
        if wipes:
            is_wiped = True
            parts.clear()
        if points is not None:
            parts.append(points)
        if at < len(times):
            states = StateColumns(values[at])
            of_states = states.points() or fold(states.rows()).rows()
            assert of_states is not None
            parts.append(of_states)
        begin = at + 1
    return stacked(parts) if parts else None, is_wiped


def _points(times: list[int], values: list[Any]) -> tuple[Points | None, bool]:
    """The same of items without columns."""
    if not times:
        return None, False
    if min(times) < 0:
        kept = [time_ms >= 0 or time_ms == _WIPED for time_ms in times]
        times, values = list(compress(times, kept)), list(compress(values, kept))
    if set(map(type, values)) == {dict} and all(map(lt, times, islice(times, 1, None))):
        return Points.of_maps(times, values), False  # nearly always, and as fast as it can be
    folded = fold(zip(times, values, strict=True))
    return folded.rows(), folded.is_wiped


class Fold(NamedTuple):
    """What a device reported, put together: whether all data before is removed, and the points."""

    is_wiped: bool
    points: dict[int, dict[int, Any]]
    marks: dict[int, int]
    """The marks of the points (`columns.py`) that do not merge."""

    def rows(self) -> Points | None:
        """The points, None if there are none."""
        if not self.points:
            return None
        marks = self.marks.get
        return Points.of(
            [(time_ms, self.points[time_ms], marks(time_ms, MERGES)) for time_ms in sorted(self.points)]
        )


def fold(items: Iterable[Item]) -> Fold:
    """Put together what a device reported."""
    is_wiped = False
    points: dict[int, dict[int, Any]] = {}
    marks: dict[int, int] = {}
    for key, value in items:
        if key >= 0:
            if type(value) is dict:
                before = points.get(key)
                if before is None:
                    points[key] = value
                else:
                    points[key] = {**before, **value}
                    if marks.get(key) == REMOVES:
                        marks[key] = REPLACES
            elif value is None:
                points[key], marks[key] = {}, REMOVES
            else:
                points[key], marks[key] = value[0], REPLACES
        elif key == _WIPED:
            is_wiped = True
            points.clear()
            marks.clear()
    return Fold(is_wiped, points, marks)
