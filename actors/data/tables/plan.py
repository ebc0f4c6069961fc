"""Query plans: which rows must be read to find the matches of a query, by ids, by an index or by a range of keys.

Owns the choice of the plan. The bounds of a query (`core/query/bounds.py`) limit the values of its matches; rows are
stored in order of their ids, which is the order of creation, and each unique column has an index. The query is still
applied to each row that the plan reads, so a plan may read too many rows, but never too few.

The bounds of texts are made for lists, which sort without case, but the index of a column sorts texts by code point.
So ranges and prefixes of texts are taken from the query itself, if they are at its top level or below `$and`;
elsewhere they do not narrow the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from trunkline.actors.core.query.bounds import Bounds, id_ranges, listed_ids
from trunkline.actors.core.values.ids import timestamp_bytes
from trunkline.actors.data.tables.columns import ColumnSpec
from trunkline.actors.data.tables.row_reader import Row, RowReader
from trunkline.actors.data.tables.rows import RowQuery
from trunkline.store import keys

KeySpan = tuple[bytes, bytes | None]
"""A range of keys: the first key, and the end, which is excluded (None: no end)."""

SHARE_MAX: Final = 8
"""A range of an index is used if it contains at most one in so many rows: fetching a row by its id costs a few times
as much as reading it in a scan."""

IDS_MAX: Final = 100_000
"""Ids that are kept in memory for sorting: 5 MB."""

_ID_TIMES_MS: Final = 2**32 * 1000


class Plan(NamedTuple):
    """The rows to read: those with these ids or, if `ids` is None, those in these ranges of keys."""

    ids: list[bytes] | None
    ranges: list[KeySpan]

    def rows(self, rows: RowReader, *, descending: bool = False) -> Iterator[Row]:
        """Yield the rows of the plan in order of creation."""
        if self.ids is None:
            for low, high in reversed(self.ranges) if descending else self.ranges:
                yield from rows.between(low, high, descending=descending)
            return
        for id in reversed(self.ids) if descending else self.ids:
            values = rows.get(id)
            if values is not None:
                yield id, values


def make_plan(rows: RowReader, row_query: RowQuery, query: Mapping[str, Any] | None) -> Plan:
    """Choose the plan that reads the fewest rows for `row_query`, which was compiled from `query`."""
    ids = _ids_of_values(rows, row_query)
    if ids is None:
        ids = _ids_of_ranges(rows, row_query, query)
    return Plan(ids, [] if ids is not None else _key_ranges(rows, row_query))


def named_ids(rows: RowReader, row_query: RowQuery) -> int | None:
    """Return how many rows the query can match if it lists their ids or unique values, else None."""
    ids = _ids_of_values(rows, row_query)
    return None if ids is None else len(ids)


def _ids_of_values(rows: RowReader, row_query: RowQuery) -> list[bytes] | None:
    """Return the ids of rows that the query lists by id or by values of a unique column, else None."""
    best: list[bytes] | None = None
    bounds = row_query.compiled.bounds
    named = bounds.get("id")
    if named is not None:
        best = listed_ids(named)
    for column in rows.table.columns.unique:
        found = bounds.get(column.name)
        if found is None or found.values is None or (None in found.values and _has_nulls(rows, column)):
            continue
        if best is None or len(found.values) < len(best):
            ids = (rows.id_of_value(_key(rows, column, value)) for value in found.values if value is not None)
            best = [id for id in ids if id is not None]
    return None if best is None else sorted(set(best))


def _ids_of_ranges(
    rows: RowReader, row_query: RowQuery, query: Mapping[str, Any] | None
) -> list[bytes] | None:
    """Return the ids of rows in a narrow range of a unique column; None if there is no such range."""
    ids_max = min(rows.counts.rows // SHARE_MAX, IDS_MAX)
    for column in rows.table.columns.unique:
        ranges = _cell_ranges(rows, column, row_query.compiled.bounds.get(column.name), query or {})
        if ranges is None:
            continue
        found = (id for low, high in ranges for id in rows.ids_by_value(low, high))
        ids = list(islice(found, ids_max + 1))
        if len(ids) <= ids_max:
            return sorted(ids)
    return None


def _cell_ranges(
    rows: RowReader, column: ColumnSpec, bounds: Bounds | None, query: Mapping[str, Any]
) -> list[KeySpan] | None:
    """Return the index ranges that contain all matches; None if the column is not bounded or matches may be null."""
    if bounds is None or (None in bounds and _has_nulls(rows, column)):
        return None
    prefix = keys.cells_prefix(rows.id, rows.table.generation, column.number)
    if column.takes_text:
        low, high = _text_range(column.name, query)
        return None if (low, high) == keys.TEXTS else [(prefix + low, prefix + high)]
    # Numbers and booleans have the same bytes in every index.
    return [(prefix + span.low, prefix + span.high) for span in bounds.spans]


def _text_range(name: str, query: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the range of the bytes of `keys.cell` that contains all matching texts of this column."""
    low, high = keys.TEXTS
    for condition in _conditions(name, query):
        for operator, operand in condition.items():
            if not isinstance(operand, str):
                continue
            if operator in ("$gt", "$gte"):
                low = max(low, keys.cell_start(operand))
            elif operator in ("$lt", "$lte"):
                high = min(high, _end(keys.cell_start(operand)))
            elif operator == "$startsWith" and condition.get("$ci") is not True:
                low = max(low, keys.cell_start(operand))
                high = min(high, _end(keys.cell_start(operand)))
    return low, max(low, high)


def _conditions(name: str, query: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the operator objects of this field that every match must satisfy."""
    found = query.get(name)
    if isinstance(found, dict):
        yield found
    for part in query.get("$and", ()):
        yield from _conditions(name, part)


def _end(prefix: bytes) -> bytes:
    end = keys.prefix_end(prefix)
    assert end is not None, "a text does not begin with 0xff"
    return end


def _key_ranges(rows: RowReader, row_query: RowQuery) -> list[KeySpan]:
    """Return the ranges of row keys that contain all matches, by bounds of `id` or `createdAt`."""
    prefix = keys.rows_prefix(rows.id, rows.table.generation)
    whole: list[KeySpan] = [(prefix, keys.prefix_end(prefix))]
    bounds = row_query.compiled.bounds
    ids, moments = bounds.get("id"), bounds.get("createdAt")
    if ids is not None:
        return [
            (prefix + low, keys.prefix_end(prefix) if high is None else prefix + high)
            for low, high in id_ranges(ids)
        ]
    if moments is not None:
        return [
            (prefix + timestamp_bytes(first), prefix + timestamp_bytes(end))
            for first, end in _moment_ranges(moments)
        ]
    return whole


def _moment_ranges(bounds: Bounds) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a time field in ms, limited to the times that ids can contain; the end is excluded."""
    for span in bounds.spans:
        first, end = _first_moment(span.low), _first_moment(span.high)
        if first < end:
            yield first, end


def _first_moment(bound: bytes) -> int:
    """Return the first millisecond whose sortable bytes are not less than `bound`."""
    low, high = 0, _ID_TIMES_MS - 1
    while low < high:
        middle = (low + high) // 2
        if keys.sortable(middle) < bound:
            low = middle + 1
        else:
            high = middle
    return low


def _has_nulls(rows: RowReader, column: ColumnSpec) -> bool:
    return rows.counts.filled.get(column.number, 0) < rows.counts.rows


def _key(rows: RowReader, column: ColumnSpec, value: Any) -> bytes:
    return keys.cell_key(rows.id, rows.table.generation, column.number, keys.cell(value))
