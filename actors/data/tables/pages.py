"""Reads of rows: one row, a page, the ids of rows to delete, and all rows for an export.

Pure reads of a snapshot. A page is encoded as JSON while it is read, in the worker thread if it is large, so the
event loop only passes the bytes on. Its size is checked while it grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from trunkline.actors.core.records.reading import INLINE_BYTES_MAX, SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.revision import WithEtag
from trunkline.actors.core.values.errors import Invalid, NotFound, PayloadTooLarge
from trunkline.actors.data.tables.messages import GetRow, ListRows, SelectRows
from trunkline.actors.data.tables.plan import make_plan, named_ids
from trunkline.actors.data.tables.row_reader import Order, Row, RowReader
from trunkline.actors.data.tables.rows import Projection, RowQuery, find_table, read_counts, show_row
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.data.tables.columns import Table
    from trunkline.store.snapshot import Snapshot


def open_rows(snapshot: Snapshot, application: bytes, table: bytes) -> RowReader:
    """Open a table for reading its rows. Raises `NotFound` if there is no such table in the application."""
    snapshot = snapshot.of_application(application)
    found = find_table(snapshot, application, table)
    return RowReader(snapshot, table, found, read_counts(snapshot, table, found))


# One row.


def get_row(reading: Reading, message: GetRow) -> WithEtag:
    """Return one row."""
    snapshot = reading.snapshot.of_application(message.application)
    table = find_table(snapshot, message.application, message.data_table)
    raw = snapshot.get(keys.ROWS, keys.row_key(message.data_table, table.generation, message.row))
    if raw is None:
        raise NotFound(f"There is no row {message.row.hex()} here.")
    return WithEtag(show_row(table.columns, message.row, decode(raw)), table.row_revision(raw))


# Pages.


def list_rows(reading: Reading, message: ListRows) -> dict[str, Any]:
    """Return a page of the rows that match, in the requested order, and the number of all rows that match.

    Raises `Invalid` for a wrong query, column or limit, and `PayloadTooLarge` if the page or the sort is too large.
    """
    query = message.query
    rows = open_rows(reading.snapshot, message.application, message.data_table)
    fields = None if query.include_fields is None else _names(query.include_fields)
    order = Order.of(rows.table, query.sort_column, query.sort_direction)
    row_query = RowQuery(rows.table.columns, message.body)
    limits = reading.limits
    _check_limit(query.limit, limits.rows_limit_max)
    reading.check_time(is_long=_is_long(rows, _rows_read(rows, order, row_query, message)))
    page = _Page(Projection(rows.table.columns, fields), limits.rows_bytes_max)
    total = _fill(page, rows, order, row_query, message, limits.sorted_rows_max)
    shown: dict[str, Any] = {
        "items": page.items(),
        "count": page.count,
        "totalCount": total,
        "limit": query.limit,
        "offset": query.offset,
        "sortColumn": order.name,
        "sortDirection": query.sort_direction,
        "dataTableId": message.data_table.hex(),
        "applicationId": message.application.hex(),
        "_type": "dataTableRows",
    }
    if message.body is not None:
        shown["query"] = message.body
    return shown


def _fill(
    page: _Page, rows: RowReader, order: Order, row_query: RowQuery, message: ListRows, sorted_rows_max: int
) -> int:
    """Add the rows of the page, and return how many rows match."""
    skip, take = message.query.offset, message.query.limit
    if row_query.matches_all and (order.indexed or skip >= rows.counts.rows or not take):
        page.add_all(islice(rows.all(order, skip=skip), take) if order.indexed else ())
        return rows.counts.rows
    plan = make_plan(rows, row_query, message.body)
    matches = row_query.matches
    if order.by_creation or not take:  # with `take` 0 a sort would not count the matches
        found = (row for row in plan.rows(rows, descending=order.descending) if matches(*row))
        return page.add_window(found, skip, take)
    matching = (row for row in plan.rows(rows) if matches(*row))
    most = rows.counts.rows if plan.ids is None else len(plan.ids)
    if min(skip + take, most) > sorted_rows_max:
        if order.indexed:
            in_order = (row for row in rows.all(order) if matches(*row))
            return page.add_window(in_order, skip, take)
        raise PayloadTooLarge(
            f"offset: sorting by {order.name} without an index holds at most {sorted_rows_max} rows, "
            f"and offset and limit reach to {skip + take}; sort by id or a unique column, or narrow the query."
        )
    ids, total = rows.sorted(matching, order, skip, take)
    page.add_all((id, rows.get(id) or {}) for id in ids)
    return total


class _Page:
    """The rows of a page as JSON."""

    def __init__(self, projection: Projection, bytes_max: int) -> None:
        self._show = projection.show
        self._bytes_max = bytes_max
        self._size = 0
        self._pieces: list[bytes] = []

    @property
    def count(self) -> int:
        return len(self._pieces)

    def add(self, row: Row) -> None:
        """Add a row. Raises `PayloadTooLarge` if the page becomes too large."""
        piece = msgspec.json.encode(self._show(*row))
        self._size += len(piece) + 1
        if self._size > self._bytes_max:
            raise PayloadTooLarge(
                f"These rows make more than {self._bytes_max} bytes, which one answer carries at most; "
                f"ask for them page by page with limit={max(1, self.count)} and offset, "
                "or for fewer fields with includeFields."
            )
        self._pieces.append(piece)

    def add_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.add(row)

    def add_window(self, rows: Iterable[Row], skip: int, take: int) -> int:
        """Add at most `take` rows after the first `skip`, and return the number of all rows."""
        count = 0
        end = skip + take
        for row in rows:
            if skip <= count < end:
                self.add(row)
            count += 1
        return count

    def items(self) -> msgspec.Raw:
        """The JSON array."""
        return msgspec.Raw(b"[" + b",".join(self._pieces) + b"]")


def _rows_read(rows: RowReader, order: Order, row_query: RowQuery, message: ListRows) -> int:
    """Estimate how many rows are read for a page: those that are shown, or those that are searched."""
    counts, query = rows.counts, message.query
    if message.body:
        return _searched(rows, row_query)
    if order.indexed and _nulls(rows, order) == 0:
        # A skipped row costs a twentieth of a shown one.
        return min(query.limit, counts.rows) + min(query.offset, counts.rows) // 20
    return counts.rows


def _searched(rows: RowReader, row_query: RowQuery) -> int:
    """Return how many rows a query reads: those whose ids or unique values it lists, or all of them."""
    named = named_ids(rows, row_query)
    return rows.counts.rows if named is None else min(named, rows.counts.rows)


def _is_long(rows: RowReader, rows_read: int) -> bool:
    """Return whether reading so many rows takes too long for the event loop."""
    counts = rows.counts
    if rows_read > SCAN_INLINE_MAX:
        return True
    return bool(counts.rows) and counts.bytes // counts.rows * rows_read > INLINE_BYTES_MAX


def _nulls(rows: RowReader, order: Order) -> int:
    """Return the number of rows that are missing in the order's index because they are null there."""
    return 0 if order.column is None else rows.counts.rows - rows.counts.filled.get(order.column.number, 0)


def _names(listed: str) -> list[str]:
    return [name for part in listed.split(",") if (name := part.strip())]


def _check_limit(limit: int, limit_max: int) -> None:
    if limit > limit_max:
        raise Invalid(
            f"limit: {limit} is more than {limit_max}, which is the most that one call takes; make several calls."
        )


# Rows to delete.


def select_rows(reading: Reading, message: SelectRows) -> list[bytes]:
    """Return the ids of the oldest rows that match, at most `limit`."""
    limit = message.query.limit
    _check_limit(limit, reading.limits.rows_limit_max)
    rows = open_rows(reading.snapshot, message.application, message.data_table)
    row_query = RowQuery(rows.table.columns, message.body)
    rows_read = _searched(rows, row_query) if message.body else min(limit, rows.counts.rows)
    reading.check_time(is_long=_is_long(rows, rows_read))
    plan = make_plan(rows, row_query, message.body)
    return list(islice((id for id, values in plan.rows(rows) if row_query.matches(id, values)), limit))


# Exports.


def walk_rows(
    snapshot: Snapshot,
    application: bytes,
    table: bytes,
    query: dict[str, Any] | None = None,
    *,
    sort_column: str | None = None,
    sort_direction: str = "asc",
    offset: int = 0,
    limit: int | None = None,
) -> tuple[Table, Iterator[dict[str, Any]]]:
    """Return the table (for its columns), and an iterator over the rows that match, as the API shows them, in order.

    Memory is bounded, whatever the size of the table. Raises `NotFound` and `Invalid` (wrong query or column) before
    the first row. Slow: for a worker thread.
    """
    rows = open_rows(snapshot, application, table)
    order = Order.of(rows.table, sort_column, sort_direction)
    row_query = RowQuery(rows.table.columns, query)
    matches = None if row_query.matches_all else row_query.matches
    end = None if limit is None else offset + limit
    found = islice(rows.walk(matches, order), offset, end)
    return rows.table, (show_row(rows.table.columns, id, values) for id, values in found)
