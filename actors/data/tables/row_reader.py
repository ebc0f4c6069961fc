"""The reader of the rows of a data table: in order of creation, by the index of a unique column, or sorted.

Owns the orders of rows and how rows are read in each. Does not own pages (`data/tables/pages.py`). Pure reads of a
snapshot; long ones run in a worker thread.

The order of values is null, false, true, numbers by size, texts by code point. Queries compare values in the same
order, so a client that pages by `{column: {"$gt": last}}` gets every row once. Rows with equal values are in order of
creation. Descending is the exact reverse.

Rows are stored in order of creation, and each unique column has an index of its values that are not null. Any other
order is produced with a heap of keys and ids that is never larger than the number of requested rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import row_created_ms
from trunkline.actors.core.values.names import did_you_mean
from trunkline.actors.data.tables.columns import UPDATED, ColumnSpec, Table, Values
from trunkline.actors.data.tables.rows import RowCounts
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

Row = tuple[bytes, Values]
"""The id of a row and its values."""

RowMatch = Callable[[bytes, Values], bool]
"""A predicate over the id and the values of a row."""

PASS_ROWS: Final = 100_000
"""Rows whose keys and ids one pass of a sort without an index keeps in memory: at most 40 MB."""


class Order(NamedTuple):
    """A sort order of rows. `column` is None for the order of creation and for that of the last change."""

    name: str
    column: ColumnSpec | None
    descending: bool

    @classmethod
    def of(cls, table: Table, name: str | None, direction: str) -> Order:
        """Return the order that a caller requests. Raises `Invalid` for an unknown column."""
        descending = direction.lower() == "desc"
        if name is None or name in ("id", "createdAt", "updatedAt"):
            return cls(name or "id", None, descending)
        column = table.columns.by_name.get(name)
        if column is None:
            guess = did_you_mean(name, table.columns.by_name)
            raise Invalid(
                f"sortColumn: the table has no column {name[:255]}{guess}; "
                "name a column, id, createdAt or updatedAt."
            )
        return cls(name, column, descending)

    @property
    def by_creation(self) -> bool:
        """Whether rows are stored in this order."""
        return self.column is None and self.name != "updatedAt"

    @property
    def indexed(self) -> bool:
        """Whether rows can be read in this order without sorting."""
        return self.by_creation or (self.column is not None and self.column.unique)

    def key(self, id: bytes, values: Values) -> bytes:
        """Return bytes that sort as the rows do; rows with equal values have equal keys."""
        if self.column is None:
            return b"" if self.by_creation else keys.cell(values.get(UPDATED) or row_created_ms(id))
        return keys.cell(values.get(self.column.number))


class RowReader:
    """The rows of one table in one snapshot."""

    __slots__ = ("_snapshot", "counts", "id", "table")

    def __init__(self, snapshot: Snapshot, id: bytes, table: Table, counts: RowCounts) -> None:
        self._snapshot = snapshot
        self.id = id
        self.table = table
        self.counts = counts

    def get(self, id: bytes) -> Values | None:
        """Return one row, or None."""
        raw = self._snapshot.get(keys.ROWS, keys.row_key(self.id, self.table.generation, id))
        return None if raw is None else decode(raw)

    def created(self, *, descending: bool = False, skip: int = 0) -> Iterator[Row]:
        """Yield all rows in order of creation."""
        prefix = keys.rows_prefix(self.id, self.table.generation)
        return self.between(prefix, keys.prefix_end(prefix), descending=descending, skip=skip)

    def stored(self) -> Iterator[tuple[bytes, Values, bytes]]:
        """Yield all rows in order of creation with their stored bytes."""
        prefix = keys.rows_prefix(self.id, self.table.generation)
        for key, raw in self._snapshot.range(keys.ROWS, prefix, keys.prefix_end(prefix)):
            yield bytes(key[-keys.ID_BYTES :]), decode(raw), raw

    def between(
        self, low: bytes, high: bytes | None, *, descending: bool = False, skip: int = 0
    ) -> Iterator[Row]:
        """Yield the rows in a range of keys in order of creation."""
        for key, raw in self._snapshot.range(keys.ROWS, low, high, reverse=descending, skip=skip):
            yield bytes(key[-keys.ID_BYTES :]), decode(raw)

    def ids_by_value(
        self, low: bytes, high: bytes | None, *, descending: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        """Yield the ids of the rows in a range of the index, in order of their values."""
        for _, id in self._snapshot.range(keys.CELLS, low, high, reverse=descending, skip=skip):
            yield bytes(id)

    def id_of_value(self, key: bytes) -> bytes | None:
        """Return the id of the row at a key of the index; None if no row has this value."""
        return self._snapshot.get(keys.CELLS, key)

    def all(self, order: Order, *, skip: int = 0) -> Iterator[Row]:
        """Yield all rows in an indexed order, without the first `skip`."""
        if skip >= self.counts.rows:
            return  # otherwise the cursor would continue over the rows of other tables
        if order.by_creation:
            yield from self.created(descending=order.descending, skip=skip)
            return
        assert order.column is not None
        filled = self.counts.filled.get(order.column.number, 0)
        nulls = self.counts.rows - filled
        if order.descending:
            yield from self._filled(order.column, filled, skip, descending=True)
            yield from self._nulls(order.column, nulls, max(0, skip - filled), descending=True)
        else:
            yield from self._nulls(order.column, nulls, skip, descending=False)
            yield from self._filled(order.column, filled, max(0, skip - nulls), descending=False)

    def _filled(self, column: ColumnSpec, filled: int, skip: int, *, descending: bool) -> Iterator[Row]:
        if skip >= filled:
            return
        prefix = keys.cells_prefix(self.id, self.table.generation, column.number)
        ids = self.ids_by_value(prefix, keys.prefix_end(prefix), descending=descending, skip=skip)
        for id in ids:
            values = self.get(id)
            assert values is not None, "an entry of the index is stored with its row"
            yield id, values

    def _nulls(self, column: ColumnSpec, nulls: int, skip: int, *, descending: bool) -> Iterator[Row]:
        """Yield the rows that are null in a unique column. The index does not contain them, so they are searched."""
        if skip >= nulls:
            return
        found = (row for row in self.created(descending=descending) if column.number not in row[1])
        yield from islice(found, skip, nulls)

    def sorted(self, rows: Iterable[Row], order: Order, skip: int, take: int) -> tuple[list[bytes], int]:
        """Sort rows. Return the ids of at most `take` of them after the first `skip`, and the number of all rows.

        Keeps the keys and ids of `skip + take` rows in memory.
        """
        count = 0

        def ranked() -> Iterator[tuple[bytes, bytes]]:
            nonlocal count
            for id, values in rows:
                count += 1
                yield order.key(id, values), id

        pick = heapq.nlargest if order.descending else heapq.nsmallest
        chosen = pick(skip + take, ranked())[skip:]
        return [id for _, id in chosen], count

    def walk(self, matches: RowMatch | None, order: Order) -> Iterator[Row]:
        """Yield every row that matches, in order and in bounded memory: for exports of tables of any size.

        An order without an index costs a pass over all rows for each 100,000 that match.
        """
        if order.indexed:
            for id, values in self.all(order):
                if matches is None or matches(id, values):
                    yield id, values
            return
        last: tuple[bytes, bytes] | None = None
        while True:
            chosen = self._next_pass(matches, order, last)
            for _, id in chosen:
                found = self.get(id)
                assert found is not None, "the snapshot does not change"
                yield id, found
            if len(chosen) < PASS_ROWS:
                return
            last = chosen[-1]

    def _next_pass(
        self, matches: RowMatch | None, order: Order, last: tuple[bytes, bytes] | None
    ) -> list[tuple[bytes, bytes]]:
        """Return the keys and ids of the next rows in the order, those after `last`."""

        def ranked() -> Iterator[tuple[bytes, bytes]]:
            for id, values in self.created():
                if matches is None or matches(id, values):
                    place = (order.key(id, values), id)
                    if last is None or (place < last if order.descending else place > last):
                        yield place

        pick = heapq.nlargest if order.descending else heapq.nsmallest
        return pick(PASS_ROWS, ranked())
