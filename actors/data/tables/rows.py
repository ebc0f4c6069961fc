"""The rows of a data table: their counts, how a row is shown, and whether it matches a query.

Owns the code that the table's actor and the reads of rows share. Pure, except for the functions that take a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.ids import row_created_ms
from trunkline.actors.core.values.names import did_you_mean
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.tables.columns import SERVER_FIELDS, UPDATED, Columns, Table, Values, read_table
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_ROWS: Final = "rows"
_BYTES: Final = "bytes"
_FILLED: Final = "filled"
_CHANGES: Final = "changes"


class RowCounts:
    """The number of rows of a table, their bytes, and the number of values (not null) of each unique column.

    `changes` counts the batches that have changed rows. Stored after the rows, in the batch of every change of rows.
    """

    __slots__ = ("bytes", "changed", "changes", "filled", "rows")

    def __init__(
        self, rows: int = 0, bytes: int = 0, filled: Mapping[int, int] | None = None, changes: int = 0
    ) -> None:
        self.rows = rows
        self.bytes = bytes
        self.filled = dict(filled or {})
        self.changes = changes
        self.changed = False

    @classmethod
    def decoded(cls, raw: bytes | None) -> RowCounts:
        """Decode stored counts; None gives the counts of an empty table."""
        if raw is None:
            return cls()
        doc = decode(raw)
        return cls(doc[_ROWS], doc[_BYTES], doc[_FILLED], doc.get(_CHANGES, 0))

    def encoded(self) -> bytes:
        """Return the bytes to store."""
        counts = {_ROWS: self.rows, _BYTES: self.bytes, _FILLED: self.filled, _CHANGES: self.changes}
        return encode(counts)

    def fill(self, column: int, by: int) -> None:
        """Add `by` (may be negative) to the number of values of a unique column."""
        self.filled[column] = self.filled.get(column, 0) + by

    def forget(self, column: int) -> None:
        """Stop counting the values of a column."""
        if self.filled.pop(column, None) is not None:
            self.changed = True


def find_table(snapshot: Snapshot, application: bytes, table: bytes) -> Table:
    """Read a table's record. Raises `NotFound` if there is no such table in the application."""
    raw = records.raw_of(snapshot.get, DATA_TABLE, application, table)
    if raw is None:
        raise NotFound(f"There is no data table {table.hex()} here.")
    return read_table(raw)


def read_counts(snapshot: Snapshot, id: bytes, table: Table) -> RowCounts:
    """Read the counts of a table's rows."""
    return RowCounts.decoded(snapshot.get(keys.ROWS, keys.rows_head_key(id, table.generation)))


def show_row(columns: Columns, id: bytes, values: Values) -> dict[str, Any]:
    """Return a row with all its fields as the caller sees it."""
    created_ms = row_created_ms(id)
    shown: dict[str, Any] = {
        "id": id.hex(),
        "createdAt": iso(created_ms),
        "updatedAt": iso(values.get(UPDATED, created_ms)),
    }
    for name, number in columns.shown:
        shown[name] = values.get(number)
    return shown


class Projection:
    """The fields of rows that a caller selects (None: all), in the order of the table. Raises `Invalid`."""

    __slots__ = ("_columns", "_created", "_id", "_updated")

    def __init__(self, columns: Columns, fields: Iterable[str] | None) -> None:
        names = None if fields is None else frozenset(fields)
        known = (*SERVER_FIELDS, *columns.by_name)
        for name in sorted(names or ()):
            if name not in known:
                raise Invalid(
                    f"includeFields: the table has no column {name[:255]}{did_you_mean(name, known)}; "
                    "name columns, id, createdAt or updatedAt, separated by commas."
                )
        self._id, self._created, self._updated = (names is None or kept in names for kept in SERVER_FIELDS)
        self._columns = [(name, number) for name, number in columns.shown if names is None or name in names]

    def show(self, id: bytes, values: Values) -> dict[str, Any]:
        """Return a row with the selected fields."""
        shown: dict[str, Any] = {}
        if self._id:
            shown["id"] = id.hex()
        if self._created:
            shown["createdAt"] = iso(row_created_ms(id))
        if self._updated:
            shown["updatedAt"] = iso(values.get(UPDATED) or row_created_ms(id))
        for name, number in self._columns:
            shown[name] = values.get(number)
        return shown


class RowQuery:
    """A compiled advanced query over the rows of a table. Raises `QueryError` naming the path.

    `matches_all` is true without a query or with an empty one.
    """

    __slots__ = ("_columns", "_created", "_id", "_updated", "compiled", "matches_all")

    def __init__(self, columns: Columns, query: Mapping[str, Any] | None) -> None:
        self.matches_all = not query
        self.compiled = compile_query({} if query is None else query, columns.fields)
        used = self.compiled.fields
        self._columns = [(name, number) for name, number in columns.shown if name in used]
        self._id, self._created, self._updated = (kept in used for kept in SERVER_FIELDS)

    def matches(self, id: bytes, values: Values) -> bool:
        """Return whether the row matches. The document that is tested has only the fields that the query uses."""
        if self.matches_all:
            return True
        get = values.get
        doc: dict[str, Any] = {name: get(number) for name, number in self._columns}
        if self._id:
            doc["id"] = id.hex()
        if self._created:
            doc["createdAt"] = row_created_ms(id)
        if self._updated:
            doc["updatedAt"] = get(UPDATED) or row_created_ms(id)
        return self.compiled.matches(doc)
