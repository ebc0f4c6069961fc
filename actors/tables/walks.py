"""The ways through the rows of a data table: in order of creation, along the index of a unique column, sorted.

Owns the order of rows and how each order is come by. Does not own what a page shows (`tables/pages.py`). Pure
reads of a snapshot; where a way may be long, it runs in a worker thread.

The order of values is null, false, true, numbers by size, texts by code point: the order in which a query
compares them, so that whoever pages by `{column: {"$gt": last}}` meets every row once. Rows that are equal in
it follow in order of creation. Descending is the exact reverse.

Rows lie in order of creation, and each unique column has an index of its values that are not null. Any other
order is come by with a heap of keys and ids that is never larger than what is asked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.query.conditions import did_you_mean
from trunkline.actors.tables.columns import UPDATED, Cell, Table, Values
from trunkline.actors.tables.rows import RowCounts
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.ids import row_created_ms
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

Row = tuple[bytes, Values]
"""The id of a row and its values."""

Matches = Callable[[bytes, Values], bool]

PASS_ROWS: Final = 100_000
"""Rows of which a sort without an index holds keys and ids at once: at most 40 MB."""


class Order(NamedTuple):
    """By what rows are sorted. `cell` is None for the order of creation, and for the moment of the last change."""

    name: str
    cell: Cell | None
    descending: bool

    @classmethod
    def of(cls, table: Table, name: str | None, direction: str) -> Order:
        """The order that a caller asks for. Raises `Invalid` for a column that is not there."""
        descending = direction.lower() == "desc"
        if name is None or name in ("id", "createdAt", "updatedAt"):
            return cls(name or "id", None, descending)
        cell = table.columns.by_name.get(name)
        if cell is None:
            guess = did_you_mean(name, table.columns.by_name)
            raise Invalid(
                f"sortColumn: the table has no column {name[:255]}{guess}; "
                "name a column, id, createdAt or updatedAt."
            )
        return cls(name, cell, descending)

    @property
    def by_creation(self) -> bool:
        """Whether rows lie in this order."""
        return self.cell is None and self.name != "updatedAt"

    @property
    def indexed(self) -> bool:
        """Whether no row needs to be looked at to find its place."""
        return self.by_creation or (self.cell is not None and self.cell.unique)

    def key(self, id: bytes, values: Values) -> bytes:
        """Bytes that sort as the rows do, up to those that are equal in the order."""
        if self.cell is None:
            return b"" if self.by_creation else keys.cell(values.get(UPDATED) or row_created_ms(id))
        return keys.cell(values.get(self.cell.number))


class Rows:
    """The rows of one table in one snapshot."""

    __slots__ = ("_snapshot", "counts", "id", "table")

    def __init__(self, snapshot: Snapshot, id: bytes, table: Table, counts: RowCounts) -> None:
        self._snapshot = snapshot
        self.id = id
        self.table = table
        self.counts = counts

    def get(self, id: bytes) -> Values | None:
        """One row, or None."""
        raw = self._snapshot.get(keys.ROWS, keys.row_key(self.id, self.table.generation, id))
        return None if raw is None else decode(raw)

    def created(self, *, descending: bool = False, skip: int = 0) -> Iterator[Row]:
        """All rows in order of creation."""
        prefix = keys.rows_prefix(self.id, self.table.generation)
        return self.between(prefix, keys.prefix_end(prefix), descending=descending, skip=skip)

    def stored(self) -> Iterator[tuple[bytes, Values, bytes]]:
        """All rows in order of creation with their stored bytes."""
        prefix = keys.rows_prefix(self.id, self.table.generation)
        for key, raw in self._snapshot.range(keys.ROWS, prefix, keys.prefix_end(prefix)):
            yield bytes(key[-keys.ID_BYTES :]), decode(raw), raw

    def between(
        self, low: bytes, high: bytes | None, *, descending: bool = False, skip: int = 0
    ) -> Iterator[Row]:
        """The rows of a range of keys in order of creation."""
        for key, raw in self._snapshot.range(keys.ROWS, low, high, reverse=descending, skip=skip):
            yield bytes(key[-keys.ID_BYTES :]), decode(raw)

    def ids_by_value(
        self, low: bytes, high: bytes | None, *, descending: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        """The ids of the rows of a range of the index, in order of their values."""
        for _, id in self._snapshot.range(keys.CELLS, low, high, reverse=descending, skip=skip):
            yield bytes(id)

    def id_of_value(self, key: bytes) -> bytes | None:
        """The id of the row that has a value of a unique column."""
        return self._snapshot.get(keys.CELLS, key)

    def all(self, order: Order, *, skip: int = 0) -> Iterator[Row]:
        """All rows in an order that is indexed, without the first `skip`."""
        if skip >= self.counts.rows:
            return  # else the cursor would go on over the rows of other tables
        if order.by_creation:
            yield from self.created(descending=order.descending, skip=skip)
            return
        assert order.cell is not None
        filled = self.counts.filled.get(order.cell.number, 0)
        nulls = self.counts.rows - filled
        if order.descending:
            yield from self._filled(order.cell, filled, skip, descending=True)
            yield from self._nulls(order.cell, nulls, max(0, skip - filled), descending=True)
        else:
            yield from self._nulls(order.cell, nulls, skip, descending=False)
            yield from self._filled(order.cell, filled, max(0, skip - nulls), descending=False)

    def _filled(self, cell: Cell, filled: int, skip: int, *, descending: bool) -> Iterator[Row]:
        if skip >= filled:
            return
        prefix = keys.cells_prefix(self.id, self.table.generation, cell.number)
        ids = self.ids_by_value(prefix, keys.prefix_end(prefix), descending=descending, skip=skip)
        for id in ids:
            values = self.get(id)
            assert values is not None, "an entry of the index is stored with its row"
            yield id, values

    def _nulls(self, cell: Cell, nulls: int, skip: int, *, descending: bool) -> Iterator[Row]:
        """The rows that are null in a unique column: the index knows only how many there are."""
        if skip >= nulls:
            return
        found = (row for row in self.created(descending=descending) if cell.number not in row[1])
        yield from islice(found, skip, nulls)

    def sorted(self, rows: Iterable[Row], order: Order, skip: int, take: int) -> tuple[list[bytes], int]:
        """The ids of the rows at the places from `skip` on, at most `take` of them, and how many rows there are.

        Holds the keys and ids of `skip + take` rows.
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

    def walk(self, matches: Matches | None, order: Order) -> Iterator[Row]:
        """Every row that matches, in order and in bounded memory: for exports, however large the table is.

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
        self, matches: Matches | None, order: Order, last: tuple[bytes, bytes] | None
    ) -> list[tuple[bytes, bytes]]:
        """Keys and ids of the next rows in the order, those behind `last`."""

        def ranked() -> Iterator[tuple[bytes, bytes]]:
            for id, values in self.created():
                if matches is None or matches(id, values):
                    place = (order.key(id, values), id)
                    if last is None or (place < last if order.descending else place > last):
                        yield place

        pick = heapq.nlargest if order.descending else heapq.nsmallest
        return pick(PASS_ROWS, ranked())
