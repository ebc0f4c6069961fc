"""The check of the rows of all data tables, a part of the verification of a store.

Every value of a unique column must have its entry in the index and every entry its row, the stored counts must be
right, and rows that belong to no table must have a marker for the sweeper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.tables.columns import Table, read_table
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.row_reader import RowReader
from trunkline.actors.data.tables.rows import read_counts
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_PREFIX_BYTES = keys.ID_BYTES + 4


def row_problems(snapshot: Snapshot) -> Iterator[str]:
    """Yield a sentence for each fault of rows and their index."""
    known: set[bytes] = set()
    deleted: set[bytes] = set()
    prefix = keys.kind_prefix(DATA_TABLE.name)
    for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        application, id = bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES]), bytes(key[-keys.ID_BYTES :])
        if not records.exists(snapshot, APPLICATION, ROOT, application):
            deleted.add(id)  # the sweep of its application removes the rows before this record
            continue
        try:
            table = read_table(raw)
        except (ValueError, KeyError, TypeError):
            yield f"data table {id.hex()}: its record cannot be read"
            continue
        known.add(keys.generation_prefix(id, table.generation))
        try:
            yield from _problems_of(snapshot, id, table)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield f"data table {id.hex()}: a row cannot be read: {error!r}"
    for marker in snapshot.keys(keys.META, keys.SWEEP_PREFIX, keys.prefix_end(keys.SWEEP_PREFIX)):
        known.add(bytes(marker[len(keys.SWEEP_PREFIX) :][:_PREFIX_BYTES]))
    for db in (keys.ROWS, keys.CELLS):
        for found in _generations(snapshot, db):
            if found not in known and found[: keys.ID_BYTES] not in deleted:
                yield f"{db} {found.hex()}: belongs to no data table, and has no marker for the sweeper"


def _problems_of(snapshot: Snapshot, id: bytes, table: Table) -> Iterator[str]:
    counts = read_counts(snapshot, id, table)
    rows = RowReader(snapshot, id, table, counts)
    here = f"data table {id.hex()}"
    found = size = 0
    filled: Counter[int] = Counter()
    for row, values, raw in rows.stored():
        found += 1
        size += len(raw)
        for column in table.columns.unique:
            if column.number in values:
                filled[column.number] += 1
                key = keys.cell_key(id, table.generation, column.number, keys.cell(values[column.number]))
                if rows.id_of_value(key) != row:
                    yield f"{here}: row {row.hex()} lacks its entry in the index of {column.name}"
    if (found, size) != (counts.rows, counts.bytes):
        yield f"{here}: {found} rows of {size} bytes are there, {counts.rows} of {counts.bytes} are counted"
    for column in table.columns.unique:
        prefix = keys.cells_prefix(id, table.generation, column.number)
        entries = snapshot.count(keys.CELLS, prefix, keys.prefix_end(prefix))
        counted = counts.filled.get(column.number, 0)
        if not entries == filled[column.number] == counted:
            yield (
                f"{here}: {filled[column.number]} rows have a {column.name}, "
                f"{entries} are in its index, {counted} are counted"
            )


def _generations(snapshot: Snapshot, db: str) -> Iterator[bytes]:
    """Yield the key prefix of each stored generation, with one seek of the cursor for each."""
    low: bytes | None = b""
    while low is not None:
        key = next(snapshot.keys(db, low, None), None)
        if key is None:
            return
        prefix = bytes(key[:_PREFIX_BYTES])
        yield prefix
        low = keys.prefix_end(prefix)
