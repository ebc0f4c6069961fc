"""Reports of one device in CBOR, read as arrays: no step of Python for each of them.

Owns the recognition of plain reports: maps of a few attributes to numbers, booleans and texts, with heads and marks of
the link between them. All reports are read together, attribute by attribute: the places of the first bytes are an
array, and each step moves all of them behind the next item. Reports may come late, and several may be about one time.
What is not recognized is not wrong: the ordinary decoder reads it (`report_items.py`).
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from trunkline.store.columns import Column, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS_MAX: Final = 24
"""The items of a commit that are read at once."""
_LINK_PARTS_MAX: Final = 8
_PADDING: Final = bytes(9)
"""So that eight bytes can be read behind each byte."""
_TIME, _HEAD, _LINK = 0x1B, 0x20, 0x23
_MAP, _MAPS_END, _ARRAY = 0xA0, 0xB7, 0x80
_LONG_KEY: Final = 0x18
_WHOLE_MAX: Final = 2**53
_LONGEST_SHIFT: Final = 63

_OTHER, _UNSIGNED, _NEGATIVE, _FLOAT, _BOOLEAN, _TEXT, _BYTES = range(7)
_TRUE: Final = 0x15
"""The lower bits of the first byte of true."""

Places: TypeAlias = "NDArray[np.int64]"


class _Values(NamedTuple):
    """Some values of an attribute: the rows that have them, their kinds, numbers or lengths, and where texts begin."""

    rows: Places
    kinds: NDArray[np.uint8]
    bits: NDArray[np.uint64]
    places: Places

    def some(self, which: NDArray[Any]) -> _Values:
        """Those at some indexes, or where a mask is true."""
        return _Values(self.rows[which], self.kinds[which], self.bits[which], self.places[which])

    @classmethod
    def joined(cls, parts: list[_Values]) -> _Values:
        """All parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.bits for part in parts]),
            np.concatenate([part.places for part in parts]),
        )


class _Bytes:
    """Bytes that are read at many places at once."""

    __slots__ = ("_eights", "_ones", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw + _PADDING
        self._ones = np.frombuffer(self.raw, np.uint8)
        self._eights = np.ndarray((len(raw) + 1,), ">u8", self.raw, strides=(1,))

    def first(self, places: Places) -> NDArray[np.uint8]:
        """The byte at each place."""
        return self._ones[places]

    def number(self, places: Places) -> NDArray[np.uint64]:
        """The eight bytes at each place as a number."""
        return self._eights[places].astype(np.uint64)

    def headed(self, firsts: NDArray[np.uint8], places: Places) -> tuple[NDArray[np.uint64], Places]:
        """The numbers or lengths of items of CBOR, of which `firsts` stand at `places`, and where their heads end."""
        widths = _widths()[firsts]
        shifts = ((8 - widths) * 8).astype(np.uint64)
        longer = self.number(places + 1) >> np.minimum(shifts, np.uint64(_LONGEST_SHIFT))
        return np.where(widths > 0, longer, firsts & 0x1F), places + 1 + widths


def points_at_once(raw: bytes, starts: Places, numbers: Container[int] | None = None) -> Points | None:
    """The points of items that stand one after the other; None if the ordinary decoder has to read them.

    `starts` are places where items begin, the first of them 0; after each there may be several. With `numbers`, only
    these attributes are read; the rows are all there.
    """
    try:
        return _read(_Bytes(raw), len(raw), starts, numbers)
    except (IndexError, UnicodeDecodeError):  # the ordinary decoder says what is wrong
        return None


def _read(data: _Bytes, length: int, starts: Places, numbers: Container[int] | None) -> Points | None:
    at, ends = starts, np.append(starts[1:], length)
    pieces = np.arange(len(starts))
    times: list[NDArray[np.uint64]] = []
    owners: list[Places] = []
    found: dict[int, list[_Values]] = {}
    count = 0
    for _ in range(_ROUNDS_MAX):
        firsts = data.first(at)
        timed = np.flatnonzero(firsts == _TIME)
        if len(timed) == len(at):
            after = _read_maps(data, at, count, numbers, found)
        else:
            after = at.copy()
            others = np.flatnonzero(firsts != _TIME)
            passed = _passed(data, firsts[others], at[others])
            moved = _read_maps(data, at[timed], count, numbers, found) if len(timed) else at[timed]
            if passed is None or moved is None:
                return None
            after[others], after[timed] = passed, moved
        if after is None or (after > ends).any():
            return None
        times.append(data.number(at[timed] + 1))
        owners.append(pieces[timed])
        count += len(timed)
        left = np.flatnonzero(after < ends)
        if not len(left):
            return _points(data.raw, np.concatenate(times), np.concatenate(owners), found) if count else None
        at, ends, pieces = after[left], ends[left], pieces[left]
    return None


@cache
def _kinds() -> NDArray[np.uint8]:
    """By the first byte of a value: its kind."""
    kinds = np.full(256, _OTHER, np.uint8)
    for major, kind in ((0x00, _UNSIGNED), (0x20, _NEGATIVE), (0x40, _BYTES), (0x60, _TEXT)):
        kinds[major : major + 28] = kind
    kinds[0xF4:0xF6] = _BOOLEAN
    kinds[0xFB] = _FLOAT
    return kinds


@cache
def _widths() -> NDArray[np.int64]:
    """By the first byte of a value: the bytes of its number or length."""
    widths = np.zeros(256, np.int64)
    for major in (0x00, 0x20, 0x40, 0x60):
        widths[major + 24 : major + 28] = 1, 2, 4, 8
    widths[0xFB] = 8
    return widths


def _passed(data: _Bytes, firsts: NDArray[np.uint8], at: Places) -> Places | None:
    """Where heads and marks of the link end; None if there is something else."""
    heads, links = firsts == _HEAD, firsts == _LINK
    if not (heads | links).all():
        return None
    end = at + 1
    if heads.any():
        places = end[heads]
        kinds = data.first(places)
        if (_kinds()[kinds] != _BYTES).any():
            return None
        lengths, begin = data.headed(kinds, places)
        end[heads] = begin + lengths.astype(np.int64)
    if links.any():
        places = end[links]
        lists = data.first(places).astype(np.int64) - _ARRAY
        if lists.min() < 0 or lists.max() > _LINK_PARTS_MAX:
            return None
        places = places + 1
        for part in range(int(lists.max())):
            kinds = data.first(places)
            is_part = lists > part
            if (_kinds()[kinds[is_part]] > _NEGATIVE).any():
                return None
            places = np.where(is_part, places + 1 + _widths()[kinds], places)
        end[links] = places
    return end


def _read_maps(
    data: _Bytes, at: Places, first_row: int, numbers: Container[int] | None, found: dict[int, list[_Values]]
) -> Places | None:
    """Read the maps of reports that begin at these places, and return where they end; None if they are not plain."""
    at = at + 9
    lengths = data.first(at).astype(np.int64) - _MAP
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest < 1 or longest > _MAPS_END - _MAP:
        return None
    at += 1
    rows = np.arange(first_row, first_row + len(at))
    for field in range(longest):
        chosen: Any = slice(None) if field < shortest else np.flatnonzero(lengths > field)
        here = at[chosen]
        keys = data.first(here)
        if keys.max() >= _LONG_KEY:
            if keys.max() > _LONG_KEY:
                return None
            is_long = keys == _LONG_KEY
            keys = np.where(is_long, data.first(here + 1), keys)
            here = here + is_long
        firsts = data.first(here + 1)
        kinds = _kinds()[firsts]
        if kinds.min() == _OTHER or kinds.max() == _BYTES:
            return None
        bits, after = data.headed(firsts, here + 1)
        values = _Values(rows[chosen], kinds, bits, after)
        for key in {int(keys[0])} if (keys == keys[0]).all() else set(keys.tolist()):
            if numbers is None or key in numbers:
                of_key = keys == key
                part = values if of_key.all() else values.some(of_key)
                found.setdefault(key, []).append(part)
        is_text = kinds == _TEXT
        if is_text.any():
            text_bytes = np.where(is_text, bits, 0)
            if text_bytes.max() > len(data.raw):
                return None
            after = after + text_bytes.astype(np.int64)
        at[chosen] = after
    return at


def _points(raw: bytes, times: NDArray[np.uint64], owners: Places, found: dict[int, list[_Values]]) -> Points:
    """The points of reports that were read. Of several values of one attribute for one time the last one counts."""
    order = np.argsort(owners, kind="stable")
    of_rows = times.astype(np.int64)
    ordered = of_rows[order]
    if not (ordered[1:] > ordered[:-1]).all():
        order = order[np.argsort(ordered, kind="stable")]
        ordered = of_rows[order]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    is_last = np.append(ordered[1:] > ordered[:-1], True)
    points = np.cumsum(is_last) - is_last
    """For each rank the point that it is about."""
    ordered = ordered[is_last]
    columns: dict[int, Column] = {}
    for number in sorted(found):
        values = _Values.joined(found[number])
        at = ranks[values.rows]
        if not (at[1:] > at[:-1]).all():
            by_rank = np.argsort(at, kind="stable")
            at = at[by_rank]
            values = values.some(by_rank)
        at = points[at]
        counts = np.append(at[1:] > at[:-1], True)
        if not counts.all():
            at = at[counts]
            values = values.some(counts)
        present = None
        if len(at) < len(ordered):
            present = np.zeros(len(ordered), np.bool_)
            present[at] = True
        columns[number] = _column(raw, values, present)
    return Points(ordered, columns)


def _column(raw: bytes, values: _Values, present: NDArray[np.bool_] | None) -> Column:
    """The same column as `Column.of` makes of the decoded values."""
    kinds, bits = values.kinds, values.bits
    first, last = int(kinds.min()), int(kinds.max())
    if first == last == _FLOAT:
        return Column(present, bits.view(np.float64))
    if first == last == _BOOLEAN:
        return Column(present, bits == _TRUE)
    if last <= _FLOAT and int(bits[kinds != _FLOAT].max()) <= _WHOLE_MAX:
        whole = bits.astype(np.int64)
        if first != _UNSIGNED or last != _UNSIGNED:
            whole = np.where(kinds == _NEGATIVE, ~whole, whole)
        if last <= _NEGATIVE:
            return Column(present, whole)
        is_float = kinds == _FLOAT
        # One less than the largest: the smallest of the negative ones is one more in absolute value.
        if abs(int(whole[~is_float].min())) <= _WHOLE_MAX:
            return Column(present, np.where(is_float, bits.view(np.float64), whole), ~is_float)
    return Column.of(_listed(raw, values), present)


def _listed(raw: bytes, values: _Values) -> list[Any]:
    """The values one by one."""
    found: list[Any] = []
    floats = values.bits.view(np.float64).tolist()
    each = zip(values.kinds.tolist(), values.bits.tolist(), floats, values.places.tolist(), strict=True)
    for kind, number, real, at in each:
        if kind == _UNSIGNED:
            found.append(number)
        elif kind == _NEGATIVE:
            found.append(-1 - number)
        elif kind == _FLOAT:
            found.append(real)
        elif kind == _BOOLEAN:
            found.append(number == _TRUE)
        else:
            found.append(raw[at : at + number].decode())
    return found
