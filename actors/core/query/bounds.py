"""The bounds of a query: for each field, the values that a match can have, so that a reader can use an index.

Owns `Bounds` with its union and intersection. Does not own the bounds of each condition
(`core/query/conditions.py`), nor any index: a reader takes the bounds of an indexed field, reads the records within
them, and still tests each document with the query. Bounds are never too narrow; they may be wider than the query.

The order is that of sorted lists, `keys.sortable`: null, false, true, numbers, texts by their case-folded form
and then by themselves. A query compares texts by code point, so a range of texts has no narrower bounds than
"any text"; the beginning of a text and equality that ignores case have narrow bounds. Both ends of a range of
numbers are included even if the query excludes them: index keys do not distinguish all integers beyond 2**64,
nor all long texts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from trunkline.store import keys

Scalar = str | int | float | bool | None

SPANS_MAX: Final = 1000
"""The most values or spans of one field. With more, the field is unbounded: so many seeks cost as much as a scan,
and a query may list a hundred thousand values."""


class Span(NamedTuple):
    """A range of `keys.sortable` bytes, from `low` (included) to `high` (excluded).

    With the prefix of an index before both, it is a range of keys; the ids at the end of the keys do not matter.
    """

    low: bytes
    high: bytes


class Bounds:
    """The values of one field that a matching document can have; if there are no spans, nothing matches. Immutable.

    `spans` are in order and do not overlap. `values`, if not None, are all the values that a match can have,
    each once (None for null). Equality is that of queries: 1 is 1.0 and is not true.
    """

    __slots__ = ("_spans", "values")

    def __init__(self, spans: tuple[Span, ...] | None, values: tuple[Scalar, ...] | None = None) -> None:
        assert spans is not None or values is not None, "bounds without values need spans"
        self._spans = spans
        self.values = values

    @property
    def spans(self) -> tuple[Span, ...]:
        """The ranges of `keys.sortable` bytes of the field. Those of `values` are computed on first use."""
        if self._spans is None:
            self._spans = _merged(_span_of_prefix(keys.sortable(value)) for value in self.values or ())
        return self._spans

    def __contains__(self, value: Scalar) -> bool:
        """Whether a match can have this value."""
        if self.values is not None:
            return _comparable(value) in map(_comparable, self.values)
        key = keys.sortable(value)
        place = bisect_right(self.spans, key, key=lambda span: span.low) - 1
        return place >= 0 and self.spans[place].low <= key < self.spans[place].high

    def __repr__(self) -> str:
        return f"Bounds({self.spans}, {self.values})"


_IDS: Final = 1 << (8 * keys.ID_BYTES)
_HEX: Final = re.compile(rb"[0-9a-f]{24}")


def one_of(values: Iterable[Scalar]) -> Bounds:
    """The bounds of values that are equal to one of these."""
    return Bounds(None, tuple({_comparable(value): value for value in values}.values()))


def within(low: bytes, high: bytes) -> Bounds:
    """The bounds of values whose `keys.sortable` bytes are from `low` (included) to `high` (excluded)."""
    return Bounds((Span(low, high),) if low < high else ())


def equal_folded(text: str) -> Bounds:
    """The bounds of texts that are equal to this one if case is ignored."""
    return Bounds((_span_of_prefix(keys.sortable_folded(text)),))


def starting_with(text: str) -> Bounds:
    """The bounds of texts that begin with this one if case is ignored."""
    return Bounds((_span_of_prefix(keys.sortable_start(text)),))


def at_least(value: Scalar) -> bytes:
    """The `low` of a span of values that are at least this one."""
    return keys.sortable(value)


def at_most(value: Scalar) -> bytes:
    """The `high` of a span of values that are at most this one."""
    return _span_of_prefix(keys.sortable(value)).high


def intersection(one: Bounds, other: Bounds) -> Bounds:
    """The bounds of values that are within both."""
    if one.values is None and other.values is None:
        return Bounds(tuple(_overlaps(one.spans, other.spans)))
    if one.values is None or other.values is None:
        listed, against = (other, one) if one.values is None else (one, other)
        return one_of(value for value in listed.values or () if value in against)
    wanted = set(map(_comparable, other.values))
    return one_of(value for value in one.values if _comparable(value) in wanted)


def union(bounds: Iterable[Bounds]) -> Bounds | None:
    """The bounds of values that are within at least one; None if they exceed `SPANS_MAX`."""
    given = list(bounds)
    if sum(len(each.spans if each.values is None else each.values) for each in given) > SPANS_MAX:
        return None
    if all(each.values is not None for each in given):
        return one_of(value for each in given for value in each.values or ())
    return Bounds(_merged(span for each in given for span in each.spans))


def listed_ids(bounds: Bounds) -> list[bytes] | None:
    """The values of a field of identifiers as ids of 12 bytes; None if the bounds do not list values.

    Null and texts that are not identifiers are skipped, since no record has them.
    """
    if bounds.values is None:
        return None
    texts = (value for value in bounds.values if isinstance(value, str))
    return [bytes.fromhex(text) for text in texts if _HEX.fullmatch(text.encode("utf-8", "surrogatepass"))]


def id_ranges(bounds: Bounds) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the spans of a field of identifiers as ranges of ids of 12 bytes, which is their form in keys.

    The end is excluded; None means that the range includes the last id.
    """
    for span in bounds.spans:
        first = _first_id(span.low)
        end = _first_id(span.high)
        if first is not None and first != end:
            yield first, end


def intersect_fields(parts: Iterable[Mapping[str, Bounds]]) -> dict[str, Bounds]:
    """The bounds of each field if all parts must match. A field that no part names is unbounded."""
    joined: dict[str, Bounds] = {}
    for part in parts:
        for field, bounds in part.items():
            joined[field] = intersection(joined[field], bounds) if field in joined else bounds
    return joined


def union_fields(parts: list[Mapping[str, Bounds]]) -> dict[str, Bounds]:
    """The bounds of each field if one part must match: only of fields that every part bounds."""
    first, *rest = parts
    shared = [field for field in first if all(field in part for part in rest)]
    joined = {field: union(part[field] for part in parts) for field in shared}
    return {field: bounds for field, bounds in joined.items() if bounds is not None}


def _first_id(bound: bytes) -> bytes | None:
    """The first id whose `keys.sortable` bytes are not less than `bound`; None if there is none."""
    low, high = 0, _IDS
    if _HEX.fullmatch(digits := bound[1 : 1 + 2 * keys.ID_BYTES]):
        # The bound contains a whole identifier: the result is that one or the next.
        low = int(digits, 16)
        high = low + 1
    while low < high:
        middle = (low + high) // 2
        if keys.sortable(middle.to_bytes(keys.ID_BYTES, "big").hex()) < bound:
            low = middle + 1
        else:
            high = middle
    return low.to_bytes(keys.ID_BYTES, "big") if low < _IDS else None


def _span_of_prefix(prefix: bytes) -> Span:
    end = keys.prefix_end(prefix)
    assert end is not None, "the first byte of a sortable value is below 0xff"
    return Span(prefix, end)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order; those that touch or overlap are merged."""
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


def _comparable(value: Scalar) -> tuple[bool, Scalar]:
    """A value in a form whose equality is that of queries: true is not 1, and 1 is 1.0."""
    return isinstance(value, bool), value
