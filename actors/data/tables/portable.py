"""The export and import of data tables. Their rows are read and inserted by tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from trunkline.actors.core.records import records
from trunkline.actors.core.records.export_lines import body_of, line
from trunkline.actors.core.records.portable import Item, Portable
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.messages import (
    AddColumn,
    CreateDataTable,
    PatchDataTable,
    RowBody,
    TablePatch,
    TablePost,
)
from trunkline.actors.data.tables.pages import open_rows

if TYPE_CHECKING:
    from trunkline.actors.core.records.export_lines import Lines
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot


def _read(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in records.scan(snapshot, DATA_TABLE, application):
        columns = [
            {name: each for name, each in column.items() if name != "number"} for column in doc["columns"]
        ]
        yield line(id, body_of(TablePost, {**doc, "columns": columns}))


def row_lines(snapshot: Snapshot, application: bytes, table: bytes) -> Lines:
    """The lines of the rows of a table, in order of creation. Every column is named, also where a row is null."""
    rows = open_rows(snapshot, application, table)
    columns = rows.table.columns.shown
    for id, values in rows.created():
        yield line(id, {name: values.get(number) for name, number in columns})


def _make(item: Item) -> Iterator[Ask]:
    ref = Ref("dataTable", item.application, item.id)
    if item.existing is None:
        yield ref, CreateDataTable(body=item.body)
        return
    yield ref, PatchDataTable(body=item.patch(TablePatch))
    present = {column["name"]: column for column in item.existing["columns"]}
    for column in () if item.body.columns is UNSET else item.body.columns:
        other = present.get(column.name)
        if other is None:
            yield ref, AddColumn(body=column)
        elif (other["dataType"], other["constraint"]) != (column.data_type, column.constraint):
            raise Invalid(
                f"columns: the table that is to be replaced has a column {column.name} of another type or constraint; "
                "remove that column first."
            )


TABLES: Final = (
    Portable(
        name="DataTable",
        created_by="dataTables.post",
        changed_by="dataTable.patch",
        body=TablePost,
        kinds=(DATA_TABLE,),
        read=_read,
        make=_make,
    ),
    Portable(
        name="DataTableRow",
        created_by="dataTableRows.post",
        changed_by="dataTableRows.post",
        body=RowBody,
        option="includeDataTableRows",
        contents="rows",
    ),
)
