"""The rows of a data table: how many there are, how one is shown, and whether it matches a query.

Owns what the table's actor and the readers of its rows share. Pure, but for opening a table in a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.query.compile import compile_query
from trunkline.actors.query.conditions import did_you_mean
from trunkline.actors.tables.columns import KEPT, UPDATED, Columns, Table, Values, read_table
from trunkline.actors.tables.kind import DATA_TABLE
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.ids import row_created_ms
from trunkline.actors.values.timestamps import iso
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_ROWS: Final = "rows"
_BYTES: Final = "bytes"
_FILLED: Final = "filled"


class RowCounts:
    """How many rows a table has, their bytes, and how many values each unique column has that are not null.

    Stored behind the rows with every change of them, so all that is counted was counted in one commit.
    """

    __slots__ = ("bytes", "changed", "filled", "rows")

    def __init__(self, rows: int = 0, bytes: int = 0, filled: Mapping[int, int] | None = None) -> None:
        self.rows = rows
        self.bytes = bytes
        self.filled = dict(filled or {})
        self.changed = False

    @classmethod
    def decoded(cls, raw: bytes | None) -> RowCounts:
        """The counts as they were stored; those of no rows where nothing was."""
        if raw is None:
            return cls()
        doc = decode(raw)
        return cls(doc[_ROWS], doc[_BYTES], doc[_FILLED])

    def encoded(self) -> bytes:
        """The bytes to store."""
        return encode({_ROWS: self.rows, _BYTES: self.bytes, _FILLED: self.filled})

    def fill(self, column: int, by: int) -> None:
        """Count values of a unique column in or out."""
        self.filled[column] = self.filled.get(column, 0) + by

    def forget(self, column: int) -> None:
        """Stop counting the values of a column."""
        if self.filled.pop(column, None) is not None:
            self.changed = True


def find_table(snapshot: Snapshot, application: bytes, table: bytes) -> Table:
    """The table's record; `NotFound` where there is no such table in the application."""
    raw = snapshot.get(keys.RECORDS, keys.record_key(DATA_TABLE.name, application, table))
    if raw is None:
        raise NotFound(f"There is no data table {table.hex()} here.")
    return read_table(raw)


def read_counts(snapshot: Snapshot, id: bytes, table: Table) -> RowCounts:
    """The counts of the table's rows."""
    return RowCounts.decoded(snapshot.get(keys.ROWS, keys.rows_head_key(id, table.generation)))


def show_row(columns: Columns, id: bytes, values: Values) -> dict[str, Any]:
    """A row as the caller sees it."""
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
    """Shows of each row the fields that are asked for, in the order of the table."""

    __slots__ = ("_columns", "_created", "_id", "_updated")

    def __init__(self, columns: Columns, wanted: Iterable[str] | None) -> None:
        names = None if wanted is None else frozenset(wanted)
        known = (*KEPT, *columns.by_name)
        for name in sorted(names or ()):
            if name not in known:
                raise Invalid(
                    f"includeFields: the table has no column {name[:255]}{did_you_mean(name, known)}; "
                    "name columns, id, createdAt or updatedAt, separated by commas."
                )
        self._id, self._created, self._updated = (names is None or kept in names for kept in KEPT)
        self._columns = [(name, number) for name, number in columns.shown if names is None or name in names]

    def show(self, id: bytes, values: Values) -> dict[str, Any]:
        """A row as the caller asked for it."""
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
    """An advanced query over the rows of a table. Raises `QueryError`, which names the place.

    Without a query, or with an empty one, every row matches and `everything` is true.
    """

    __slots__ = ("_columns", "_created", "_id", "_updated", "compiled", "everything")

    def __init__(self, columns: Columns, query: Mapping[str, Any] | None) -> None:
        self.everything = not query
        self.compiled = compile_query({} if query is None else query, columns.fields)
        used = self.compiled.fields
        self._columns = [(name, number) for name, number in columns.shown if name in used]
        self._id, self._created, self._updated = (kept in used for kept in KEPT)

    def matches(self, id: bytes, values: Values) -> bool:
        """Whether the row matches. The document has only what the query looks at."""
        if self.everything:
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
