"""Which rows a query could match at all: the shortest way to them that an index knows.

Owns the choice of the way. The bounds of a query (`query/bounds.py`) say where its matches must lie; rows
lie in order of their ids, which is that of creation, and each unique column has an index. Whatever the way,
each row is still asked whether it matches, so a way may be too wide and never too narrow.

Bounds of texts are those of lists, which sort regardless of case, and the index of a column sorts texts by code
point. So ranges and beginnings of texts are read off the query itself, where they stand at its top or below
`$and`; elsewhere they are looked for row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from trunkline.actors.query.bounds import Bounds, id_ranges, listed_ids
from trunkline.actors.tables.columns import Cell
from trunkline.actors.tables.rows import RowQuery
from trunkline.actors.tables.walks import Row, Rows
from trunkline.actors.values.ids import timestamp_bytes
from trunkline.store import keys

Range = tuple[bytes, bytes | None]
"""From a key on, up to another one that is left out; None: to the end."""

SHARE_MAX: Final = 8
"""A range of an index is followed while it holds at most this part of the rows: fetching a row by its id
costs a few times what it costs when rows are read one after the other."""

IDS_MAX: Final = 100_000
"""Ids that are held to be put in order: 5 MB."""

_MOMENTS: Final = 2**32 * 1000


class Way(NamedTuple):
    """Where the matches lie: the rows of these ids, or else the rows of these ranges of keys."""

    ids: list[bytes] | None
    ranges: list[Range]

    def rows(self, rows: Rows, *, descending: bool = False) -> Iterator[Row]:
        """The rows on the way in order of creation."""
        if self.ids is None:
            for low, high in reversed(self.ranges) if descending else self.ranges:
                yield from rows.between(low, high, descending=descending)
            return
        for id in reversed(self.ids) if descending else self.ids:
            values = rows.get(id)
            if values is not None:
                yield id, values


def find_way(rows: Rows, chosen: RowQuery, query: Mapping[str, Any] | None) -> Way:
    """The shortest way to the matches of `chosen`, which was compiled from `query`."""
    ids = _ids_of_values(rows, chosen)
    if ids is None:
        ids = _ids_of_ranges(rows, chosen, query)
    return Way(ids, [] if ids is not None else _key_ranges(rows, chosen))


def named_ids(rows: Rows, chosen: RowQuery) -> int | None:
    """How many rows the query could match where it names their ids or unique values; None where it does not."""
    ids = _ids_of_values(rows, chosen)
    return None if ids is None else len(ids)


def _ids_of_values(rows: Rows, chosen: RowQuery) -> list[bytes] | None:
    """The ids of rows that the query names by their ids or by values of a unique column."""
    best: list[bytes] | None = None
    bounds = chosen.compiled.bounds
    named = bounds.get("id")
    if named is not None:
        best = listed_ids(named)
    for cell in rows.table.columns.unique:
        found = bounds.get(cell.name)
        if found is None or found.values is None or (None in found.values and _has_nulls(rows, cell)):
            continue
        if best is None or len(found.values) < len(best):
            ids = (rows.id_of_value(_key(rows, cell, value)) for value in found.values if value is not None)
            best = [id for id in ids if id is not None]
    return None if best is None else sorted(set(best))


def _ids_of_ranges(rows: Rows, chosen: RowQuery, query: Mapping[str, Any] | None) -> list[bytes] | None:
    """The ids of rows in a narrow range of a unique column."""
    ids_max = min(rows.counts.rows // SHARE_MAX, IDS_MAX)
    for cell in rows.table.columns.unique:
        ranges = _cell_ranges(rows, cell, chosen.compiled.bounds.get(cell.name), query or {})
        if ranges is None:
            continue
        found = (id for low, high in ranges for id in rows.ids_by_value(low, high))
        ids = list(islice(found, ids_max + 1))
        if len(ids) <= ids_max:
            return sorted(ids)
    return None


def _cell_ranges(
    rows: Rows, cell: Cell, bounds: Bounds | None, query: Mapping[str, Any]
) -> list[Range] | None:
    """The ranges of the index in which matches lie; None where they may lie anywhere, or are null."""
    if bounds is None or (None in bounds and _has_nulls(rows, cell)):
        return None
    prefix = keys.cells_prefix(rows.id, rows.table.generation, cell.number)
    if cell.takes_text:
        low, high = _text_range(cell.name, query)
        return None if (low, high) == keys.TEXTS else [(prefix + low, prefix + high)]
    # Numbers and booleans have the same bytes in every index.
    return [(prefix + span.low, prefix + span.high) for span in bounds.spans]


def _text_range(name: str, query: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The bytes of `keys.cell` between which a text of this column must lie."""
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
    """The objects of operators that every match must meet at this field."""
    found = query.get(name)
    if isinstance(found, dict):
        yield found
    for part in query.get("$and", ()):
        yield from _conditions(name, part)


def _end(prefix: bytes) -> bytes:
    end = keys.prefix_end(prefix)
    assert end is not None, "a text does not begin with 0xff"
    return end


def _key_ranges(rows: Rows, chosen: RowQuery) -> list[Range]:
    """The ranges of rows in order of creation in which matches lie."""
    prefix = keys.rows_prefix(rows.id, rows.table.generation)
    whole: list[Range] = [(prefix, keys.prefix_end(prefix))]
    bounds = chosen.compiled.bounds
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
    """The spans of a field of times in milliseconds, as far as ids reach."""
    for span in bounds.spans:
        first, end = _first_moment(span.low), _first_moment(span.high)
        if first < end:
            yield first, end


def _first_moment(bound: bytes) -> int:
    """The first millisecond whose bytes do not sort before these."""
    low, high = 0, _MOMENTS - 1
    while low < high:
        middle = (low + high) // 2
        if keys.sortable(middle) < bound:
            low = middle + 1
        else:
            high = middle
    return low


def _has_nulls(rows: Rows, cell: Cell) -> bool:
    return rows.counts.filled.get(cell.number, 0) < rows.counts.rows


def _key(rows: Rows, cell: Cell, value: Any) -> bytes:
    return keys.cell_key(rows.id, rows.table.generation, cell.number, keys.cell(value))
