"""The data table actor: the only writer of a table's record, its rows and the index of its unique columns.

Owns the rules across rows: that a unique column contains each value once, and the number of rows. One actor handles
all messages of the table, one at a time, and looks values up in the index through the journal, which also sees
uncommitted writes. So uniqueness needs no lock and holds for any number of writers, inside one bulk insert, and
against rows whose commit is in progress.

The index (`keys.CELLS`) has one entry for each value of a unique column; null has none. A turn stages a row together
with its entries and the new counts, so a crash leaves all of them or none.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from trunkline.actors.core.query.problems import shown
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.revision import WithEtag, check_match, check_revision
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound, PayloadTooLarge
from trunkline.actors.core.values.ids import RowIds, row_created_ms
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Created, Message
from trunkline.actors.core.values.timestamps import HOUR_MS, iso
from trunkline.actors.data.tables.columns import UPDATED, Columns, Table, Values, declared, read_table
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.messages import (
    AddColumn,
    ChangeMatchingRow,
    CreateDataTable,
    DeleteDataTable,
    DeleteRow,
    DeleteRows,
    InsertRows,
    PatchDataTable,
    PatchRow,
    RemoveColumn,
    RowsInserted,
    TablePatch,
    TidyRows,
    TruncateRows,
)
from trunkline.actors.data.tables.oldest_match import oldest_match
from trunkline.actors.data.tables.rows import RowCounts, RowQuery, show_row
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.store import keys
from trunkline.store.codec import decode, encode

_ACTIONS: Final = frozenset({"insert", "bulkInsert", "update", "delete"})
"""Flags of triggers of workflows."""

IndexEntries = dict[bytes, bytes]
"""Entries of the index: key to row id."""


class DataTable(Actor):
    """One data table of one application. `ref.parent` is the application's id."""

    kind: ClassVar[str] = "dataTable"
    noun: ClassVar[str] = "data table"
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateDataTable})

    __slots__ = ("_rows_prefix", "_unique", "counts", "raw", "row_ids", "table")

    def __init__(self, system: Any, ref: Ref) -> None:
        self.raw = b""
        self.table: Table
        self.counts = RowCounts()
        self.row_ids = RowIds(system.random_bytes)
        super().__init__(system, ref)

    def load(self) -> bool:
        journal = self.system.journal
        raw = records.raw_of(journal.get, DATA_TABLE, self.ref.parent, self.ref.id)
        if raw is None:
            return False
        self._keep(raw)
        head = keys.rows_head_key(self.ref.id, self.table.generation)
        self.counts = RowCounts.decoded(journal.get(keys.ROWS, head))
        return True

    def flush(self) -> None:
        if self.exists and self.counts.changed:
            self.counts.changes += 1
            self.put(keys.ROWS, keys.rows_head_key(self.ref.id, self.table.generation), self.counts.encoded())

    # The record.

    def on_create_data_table(self, message: CreateDataTable) -> Created:
        """Create the table; the answer is its id."""
        if self.exists:
            raise Invalid(f"id: there is already a data table {self.ref.id.hex()}.")
        if not self._parent_exists():
            raise NotFound(f"There is no application {self.ref.parent.hex()}.")
        body = message.body
        docs: list[dict[str, Any]] = []
        for position, column in enumerate(() if body.columns is msgspec.UNSET else body.columns):
            taken = {doc["name"]: doc for doc in docs}
            docs.append(declared(column, position + 1, taken, position, at=f"columns[{position}]."))
        now_ms = self.system.clock.wall_ms()
        doc: Doc = {"creationDate": now_ms, "lastUpdated": now_ms, "name": body.name}
        if body.description is not msgspec.UNSET:
            doc["description"] = body.description
        doc |= {"columns": docs, "columnNext": len(docs) + 1, "generation": 1}
        self._keep(records.write(self, DATA_TABLE, self.ref.parent, self.ref.id, None, doc))
        self.exists = True
        return Created(self.ref.id)

    def on_patch_data_table(self, message: PatchDataTable) -> None:
        """Change the fields that the body sets."""
        check_match(message.if_match, self.raw)
        body: TablePatch = message.body
        self._store(msgspec.to_builtins(body))

    def on_delete_data_table(self, message: DeleteDataTable) -> None:
        """Delete the record now, which hides the rows, and store a marker for the sweeper."""
        check_match(message.if_match, self.raw)
        records.erase(self, DATA_TABLE, self.ref.parent, self.ref.id, self.table.doc)
        self._mark_for_sweep()
        self.delete(keys.META, keys.tidy_key(self.ref.id))
        self.exists = False

    def on_add_column(self, message: AddColumn) -> None:
        """Add a column without changing a row: old rows are null in it."""
        check_match(message.if_match, self.raw)
        number = self.table.doc["columnNext"]
        columns = self.table.columns.added(message.body, number)
        self._store({"columns": columns.docs, "columnNext": number + 1})

    def on_remove_column(self, message: RemoveColumn) -> None:
        """Remove a column without changing a row: values with its number are ignored, and removed later."""
        check_match(message.if_match, self.raw)
        columns, gone = self.table.columns.removed(message.query.column_name)
        if gone.unique:
            self._mark_for_sweep(gone.number)
            self.counts.forget(gone.number)
        if self.counts.rows:
            self._mark_for_tidy(b"")
        self._store({"columns": columns.docs})

    def on_truncate_rows(self, _message: TruncateRows) -> None:
        """Delete all rows by starting a new generation: one write, whatever their number."""
        if not self.counts.rows:
            return
        self._mark_for_sweep()
        self.delete(keys.META, keys.tidy_key(self.ref.id))
        generation = self.table.generation + 1
        doc = {**self.table.doc, "generation": generation}
        self._keep(records.write(self, DATA_TABLE, self.ref.parent, self.ref.id, self.table.doc, doc))
        self.counts = RowCounts()

    def _store(self, changes: Doc) -> None:
        before = self.table.doc
        now_ms = records.next_update_ms(self.system.clock.wall_ms(), before)
        doc = {**before, **changes, "lastUpdated": now_ms}
        self._keep(records.write(self, DATA_TABLE, self.ref.parent, self.ref.id, before, doc))

    def _keep(self, raw: bytes) -> None:
        self.raw = raw
        table = self.table = read_table(raw)
        self._rows_prefix = keys.rows_prefix(self.ref.id, table.generation)
        self._unique = [
            (column.number, keys.cells_prefix(self.ref.id, table.generation, column.number))
            for column in table.columns.unique
        ]

    def _mark_for_sweep(self, column: int | None = None) -> None:
        marker = keys.sweep_key(self.ref.id, self.table.generation, column)
        self.put(keys.META, marker, encode({"dataTableId": self.ref.id.hex()}))

    def _mark_for_tidy(self, after: bytes) -> None:
        marker = {"applicationId": self.ref.parent, "after": after}
        self.put(keys.META, keys.tidy_key(self.ref.id), encode(marker))

    def on_tidy_rows(self, message: TidyRows) -> None:
        """Remove the values of removed columns from some rows, and store the progress in the marker.

        The visible row does not change, so `updatedAt` stays. If another column was removed in the meantime, the
        pass over the rows starts again, and a step of the old pass is ignored.
        """
        marker = self.system.journal.get(keys.META, keys.tidy_key(self.ref.id))
        if marker is None or decode(marker)["after"] != message.begun:
            return
        numbers = self.table.columns.numbers
        for id in message.rows:
            raw = self.system.journal.get(keys.ROWS, self._key(id))
            values: Values = {} if raw is None else decode(raw)
            if raw is not None and not values.keys() <= numbers:
                tidied = encode({number: value for number, value in values.items() if number in numbers})
                self.put(keys.ROWS, self._key(id), tidied)
                self.counts.bytes += len(tidied) - len(raw)
                self.counts.changed = True
        if message.reached is None:
            self.delete(keys.META, keys.tidy_key(self.ref.id))
        else:
            self._mark_for_tidy(message.reached)

    # Rows.

    def on_insert_rows(self, message: InsertRows) -> WithEtag | RowsInserted:
        """Insert one row (the answer is the row) or an array of rows, all or none."""
        now_ms = self.system.clock.wall_ms()
        body = message.body
        if isinstance(body, list):
            return self._insert_all(message, body, now_ms)
        id = self.row_ids.new(now_ms)
        columns = self.table.columns
        values = columns.inserted(body, self.system.limits.string_bytes_max)
        entries = self._index_entries(values, id)
        for key in entries:
            self._check_free(key, columns, values)
        raw = self._write(id, values, entries)
        self.counts.rows += 1
        self._count(1, now_ms)
        row = show_row(columns, id, values)
        self._trigger("insert", {"newRow": row}, message.origin, now_ms)
        return WithEtag(row, self.table.row_revision(raw))

    def _insert_all(self, message: InsertRows, rows: list[dict[str, Any]], now_ms: int) -> RowsInserted:
        limits, import_ids = self.system.limits, message.import_ids
        if len(rows) > limits.inserted_rows_max:
            raise PayloadTooLarge(
                f"{len(rows)} rows in one call; insert at most {limits.inserted_rows_max} a call."
            )
        columns, bytes_max = self.table.columns, limits.string_bytes_max
        claimed: dict[bytes, int] = {}
        ids: list[str] = []
        for position, given in enumerate(rows):
            try:
                id = self.row_ids.new(now_ms) if import_ids is None else import_ids[position]
                if import_ids is not None and self.system.journal.get(keys.ROWS, self._key(id)) is not None:
                    continue
                values = columns.inserted(given, bytes_max, is_import=import_ids is not None)
                entries = self._index_entries(values, id)
                for key in entries:
                    if key in claimed:
                        raise Invalid(_twice(key, columns, values, f"row [{claimed[key]}] of this call"))
                    self._check_free(key, columns, values)
                    claimed[key] = position
            except Invalid as refusal:
                raise Invalid(f"[{position}].{refusal.message}") from None
            self._write(id, values, entries)
            ids.append(id.hex())
        if ids:
            self.counts.rows += len(ids)
            self._count(len(ids), now_ms)
        if import_ids is None and len(ids) == 1:
            row = show_row(columns, bytes.fromhex(ids[0]), values)
            self._trigger("insert", {"newRow": row}, message.origin, now_ms)
        elif import_ids is None and ids:
            told = {"count": len(ids), "errorCount": 0, "rowIds": ids}
            self._trigger("bulkInsert", told, message.origin, now_ms)
        return RowsInserted(created_at=iso(now_ms), count=len(ids), row_ids=ids)

    def on_patch_row(self, message: PatchRow) -> WithEtag:
        """Change the columns that the body sets; the answer is the row."""
        raw = self._row(message.row)
        self._check_row_match(message.if_match, raw)
        columns = self.table.columns
        before: Values = decode(raw)
        changes = columns.patched(message.body, self.system.limits.string_bytes_max)
        now_ms = self.system.clock.wall_ms()
        values = {
            number: value
            for number, value in {**before, **changes}.items()
            if value is not None and number in columns.numbers
        }
        # The times of changes of one row ascend strictly, even if the clock does not.
        values[UPDATED] = max(now_ms, before.get(UPDATED, row_created_ms(message.row)) + 1)
        old, new = self._index_entries(before, message.row), self._index_entries(values, message.row)
        for key in new:
            if key not in old:
                self._check_free(key, columns, values)
        for key in old:
            if key not in new:
                self._free(key)
        self.counts.bytes -= len(raw)
        raw = self._write(message.row, values, {key: id for key, id in new.items() if key not in old})
        self._count(1, now_ms)
        row = show_row(columns, message.row, values)
        if any(values.get(number) != before.get(number) for number in columns.numbers - {UPDATED}):
            told = {"newRow": row, "oldRow": show_row(columns, message.row, before)}
            self._trigger("update", told, message.origin, now_ms)
        return WithEtag(row, self.table.row_revision(raw))

    async def on_change_matching_row(self, message: ChangeMatchingRow) -> WithEtag | None:
        """Change the oldest row that matches, or insert one; the answer is the row."""
        found = await oldest_match(self.system, self.ref, self.raw, self.counts.changes, message.query)
        if found is not None:
            return self.on_patch_row(PatchRow(row=found, body=message.body, origin=message.origin))
        if not message.inserts:
            return None
        inserted = self.on_insert_rows(InsertRows(body=message.body, origin=message.origin))
        assert isinstance(inserted, WithEtag)
        return inserted

    def on_delete_row(self, message: DeleteRow) -> None:
        """Delete one row."""
        raw = self._row(message.row)
        self._check_row_match(message.if_match, raw)
        values: Values = decode(raw)
        self._erase(message.row, raw, values)
        now_ms = self.system.clock.wall_ms()
        self._count(1, now_ms)
        row = show_row(self.table.columns, message.row, values)
        told = {"oldRow": row, "count": 1, "errorCount": 0, "rowIds": [message.row.hex()]}
        self._trigger("delete", told, message.origin, now_ms)

    def on_delete_rows(self, message: DeleteRows) -> int:
        """Delete the rows that still exist and still match; the answer is their number.

        The ids were selected from a snapshot, and rows may have changed since.
        """
        query = RowQuery(self.table.columns, message.body)
        removed: list[str] = []
        for id in message.rows:
            raw = self.system.journal.get(keys.ROWS, self._key(id))
            if raw is not None:
                values = decode(raw)
                if query.matches(id, values):
                    self._erase(id, raw, values)
                    removed.append(id.hex())
        if removed:
            now_ms = self.system.clock.wall_ms()
            self._count(len(removed), now_ms)
            told = {"count": len(removed), "errorCount": 0, "rowIds": removed}
            self._trigger("delete", told, message.origin, now_ms)
        return len(removed)

    def _trigger(self, action: str, told: Doc, origin: Origin | None, now_ms: int) -> None:
        """Stage the triggers of workflows that wait for a change of rows."""
        id = self.ref.id.hex()
        waiting = self.system.component(FlowIndex).of(self.ref.parent).get("dataTable", id)
        watchers = [each for each in waiting if each.wants(action, _ACTIONS)]
        if watchers:
            stage(self, watchers, Cause(id, {"action": action, **told}, now_ms, origin=origin))

    def _key(self, row: bytes) -> bytes:
        return self._rows_prefix + row

    def _row(self, id: bytes) -> bytes:
        raw = self.system.journal.get(keys.ROWS, self._key(id))
        if raw is None:
            raise NotFound(f"There is no row {id.hex()} here.")
        return raw

    def _check_row_match(self, if_match: str | None, raw: bytes) -> None:
        if if_match is not None:
            check_revision(if_match, self.table.row_revision(raw))

    def _write(self, id: bytes, values: Values, entries: IndexEntries) -> bytes:
        """Stage a row and its new index entries. Return the stored bytes."""
        raw = encode(values)
        self.put(keys.ROWS, self._key(id), raw)
        for key in entries:
            self.put(keys.CELLS, key, id)
            self.counts.fill(keys.cell_column(key), 1)
        self.counts.bytes += len(raw)
        self.counts.changed = True
        return raw

    def _erase(self, id: bytes, raw: bytes, values: Values) -> None:
        self.delete(keys.ROWS, self._key(id))
        for key in self._index_entries(values, id):
            self._free(key)
        self.counts.rows -= 1
        self.counts.bytes -= len(raw)
        self.counts.changed = True

    def _free(self, key: bytes) -> None:
        self.delete(keys.CELLS, key)
        self.counts.fill(keys.cell_column(key), -1)
        self.counts.changed = True

    def _index_entries(self, values: Values, id: bytes) -> IndexEntries:
        """Return the index entries of a row: one for each unique column in which it is not null."""
        return {prefix + keys.cell(values[number]): id for number, prefix in self._unique if number in values}

    def _check_free(self, key: bytes, columns: Columns, values: Values) -> None:
        if self.system.journal.get(keys.CELLS, key) is not None:
            raise Invalid(_twice(key, columns, values, "another row"))

    def _count(self, rows: int, now_ms: int) -> None:
        """Count payloads of the application: one for each row that is written or deleted."""
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.parent, now_ms // HOUR_MS), {"dataTable": rows})


def _twice(key: bytes, columns: Columns, values: Values, where: str) -> str:
    number = keys.cell_column(key)
    column = next(column for column in columns.unique if column.number == number)
    return (
        f"{column.name}: {shown(values[number])} stands in {where} already, and the column is unique; "
        "give another value or null."
    )
