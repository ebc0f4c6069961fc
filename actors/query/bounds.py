"""Where the matches of a query must lie: what tells a reader which index could serve it.

Owns `Bounds` and how they join. Does not own which condition gives which bounds (`query/conditions.py`), nor
any index: a reader takes the bounds of a field it has an index for, reads what lies within, and still asks
the query about each document. Bounds are never too narrow; they may be wider than the query.

The order is that of lists, `keys.sortable`: null, false, true, numbers, texts by their case-folded form and
then by themselves. Hence a range of texts, which a query compares by code point, is bounded only as "a text",
while the beginning of a text and equality without regard to case are bounded well. Both ends of a range of
numbers are included also where the query leaves them out: the bytes of an index tell integers beyond 2**64
and long texts not apart.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from trunkline.store import keys

Scalar = str | int | float | bool | None

SPANS_MAX: Final = 1000
"""Values or spans of one field. Past it a query is taken for unbounded: so many seeks cost as much as a scan,
and a query may list a hundred thousand values."""


class Span(NamedTuple):
    """A run of `keys.sortable` bytes: `low` and what sorts behind it, up to `high`, which is left out.

    With the prefix of an index before both it is a range of keys; the ids at the end of the keys do not hurt.
    """

    low: bytes
    high: bytes


class Bounds:
    """What a document must hold at one field to match; without spans nothing can match. Immutable.

    `spans` are in order and do not overlap. `values`, if it is not None, are all the values that a match may
    hold, each once, among them None for null: equal as the query sees it, where 1 is 1.0 and is not true.
    """

    __slots__ = ("_spans", "values")

    def __init__(self, spans: tuple[Span, ...] | None, values: tuple[Scalar, ...] | None = None) -> None:
        assert spans is not None or values is not None, "bounds without values need spans"
        self._spans = spans
        self.values = values

    @property
    def spans(self) -> tuple[Span, ...]:
        """The runs of `keys.sortable` bytes in which the field lies. Those of values are made when asked for."""
        if self._spans is None:
            self._spans = _merged(_begins(keys.sortable(value)) for value in self.values or ())
        return self._spans

    def __contains__(self, value: Scalar) -> bool:
        """Whether a match may hold this value."""
        if self.values is not None:
            return _same(value) in map(_same, self.values)
        key = keys.sortable(value)
        place = bisect_right(self.spans, key, key=lambda span: span.low) - 1
        return place >= 0 and self.spans[place].low <= key < self.spans[place].high

    def __repr__(self) -> str:
        return f"Bounds({self.spans}, {self.values})"


_IDS: Final = 1 << (8 * keys.ID_BYTES)
_HEX: Final = re.compile(rb"[0-9a-f]{24}")


def one_of(values: Iterable[Scalar]) -> Bounds:
    """Bounds of what is equal to one of these values."""
    return Bounds(None, tuple({_same(value): value for value in values}.values()))


def within(low: bytes, high: bytes) -> Bounds:
    """Bounds of the `keys.sortable` bytes from `low` to before `high`."""
    return Bounds((Span(low, high),) if low < high else ())


def folded(text: str) -> Bounds:
    """Bounds of the texts that are equal to this one but for their case."""
    return Bounds((_begins(keys.sortable_folded(text)),))


def starting(text: str) -> Bounds:
    """Bounds of the texts that begin with this one, whatever their case."""
    return Bounds((_begins(keys.sortable_start(text)),))


def at_least(value: Scalar) -> bytes:
    """The `low` of a span of values that are at least this one."""
    return keys.sortable(value)


def at_most(value: Scalar) -> bytes:
    """The `high` of a span of values that are at most this one."""
    return _begins(keys.sortable(value)).high


def both(one: Bounds, other: Bounds) -> Bounds:
    """Bounds of what lies within both."""
    if one.values is None and other.values is None:
        return Bounds(tuple(_overlaps(one.spans, other.spans)))
    if one.values is None or other.values is None:
        listed, against = (other, one) if one.values is None else (one, other)
        return one_of(value for value in listed.values or () if value in against)
    wanted = set(map(_same, other.values))
    return one_of(value for value in one.values if _same(value) in wanted)


def any_of(bounds: Iterable[Bounds]) -> Bounds | None:
    """Bounds of what lies within one of these at least; None where these are too many to be of use."""
    given = list(bounds)
    if sum(len(each.spans if each.values is None else each.values) for each in given) > SPANS_MAX:
        return None
    if all(each.values is not None for each in given):
        return one_of(value for each in given for value in each.values or ())
    return Bounds(_merged(span for each in given for span in each.spans))


def listed_ids(bounds: Bounds) -> list[bytes] | None:
    """The values of a field of identifiers as ids of 12 bytes; None where the bounds do not list values.

    Null and texts that are no identifier are left out, since no record has them.
    """
    if bounds.values is None:
        return None
    texts = (value for value in bounds.values if isinstance(value, str))
    return [bytes.fromhex(text) for text in texts if _HEX.fullmatch(text.encode("utf-8", "surrogatepass"))]


def id_ranges(bounds: Bounds) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the spans of a field of identifiers as ranges of ids of 12 bytes, the form they have in keys.

    The second end is left out; None there means up to the last id.
    """
    for span in bounds.spans:
        first = _first_id(span.low)
        end = _first_id(span.high)
        if first is not None and first != end:
            yield first, end


def join_all(parts: Iterable[Mapping[str, Bounds]]) -> dict[str, Bounds]:
    """The bounds of each field where all parts must hold. A field that is not named is without bounds."""
    joined: dict[str, Bounds] = {}
    for part in parts:
        for field, bounds in part.items():
            joined[field] = both(joined[field], bounds) if field in joined else bounds
    return joined


def join_any(parts: list[Mapping[str, Bounds]]) -> dict[str, Bounds]:
    """The bounds of each field where one part must hold: only of fields that each part bounds."""
    first, *rest = parts
    shared = [field for field in first if all(field in part for part in rest)]
    joined = {field: any_of(part[field] for part in parts) for field in shared}
    return {field: bounds for field, bounds in joined.items() if bounds is not None}


def _first_id(bound: bytes) -> bytes | None:
    """The first id whose `keys.sortable` bytes do not sort before these; None where there is none."""
    low, high = 0, _IDS
    if _HEX.fullmatch(digits := bound[1 : 1 + 2 * keys.ID_BYTES]):
        # A whole identifier: it is the one, or the one before.
        low = int(digits, 16)
        high = low + 1
    while low < high:
        middle = (low + high) // 2
        if keys.sortable(middle.to_bytes(keys.ID_BYTES, "big").hex()) < bound:
            low = middle + 1
        else:
            high = middle
    return low.to_bytes(keys.ID_BYTES, "big") if low < _IDS else None


def _begins(prefix: bytes) -> Span:
    end = keys.prefix_end(prefix)
    assert end is not None, "the first byte of a sortable value is below 0xff"
    return Span(prefix, end)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order, joined where they touch."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.low <= merged[-1].high:
            merged[-1] = Span(merged[-1].low, max(span.high, merged[-1].high))
        else:
            merged.append(span)
    return tuple(merged)


def _overlaps(one: tuple[Span, ...], other: tuple[Span, ...]) -> Iterator[Span]:
    left = right = 0
    while left < len(one) and right < len(other):
        low = max(one[left].low, other[right].low)
        high = min(one[left].high, other[right].high)
        if low < high:
            yield Span(low, high)
        if one[left].high <= other[right].high:
            left += 1
        else:
            right += 1


def _same(value: Scalar) -> tuple[bool, Scalar]:
    """What tells values apart as a query does: true is not 1, and 1 is 1.0."""
    return isinstance(value, bool), value
