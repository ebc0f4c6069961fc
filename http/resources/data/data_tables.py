"""Data tables, their columns and their rows."""

from __future__ import annotations

from typing import Any

from trunkline.actors.data.tables.messages import (
    AddColumn,
    AdvancedQuery,
    Column,
    ColumnChoice,
    CreateDataTable,
    DeleteDataTable,
    DeleteRow,
    DeleteRows,
    GetDataTable,
    GetRow,
    Inserted,
    InsertRows,
    ListDataTables,
    ListRows,
    PatchDataTable,
    PatchRow,
    RemoveColumn,
    RemovedView,
    RowBody,
    RowOrRows,
    RowsLimit,
    RowsPage,
    RowsView,
    RowView,
    SelectRows,
    TablePage,
    TablePatch,
    TablePost,
    TableView,
    TruncateRows,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH, DATA_TABLE_ACTOR, DATA_TABLE_PATH
from trunkline.http.calls.verbs import Shown, delete, get, list_of, patch, post

TABLES = APP_PATH + "/data-tables"
COLUMN = DATA_TABLE_PATH + "/column"
ROWS = DATA_TABLE_PATH + "/rows"
ROW = ROWS + "/{rowId}"

DELETED_AT_ONCE = 200
"""Rows deleted in one turn of the table's actor, which takes some milliseconds. Other calls run in between."""

_TOO_MUCH = {413: "The rows are more than 20 MB; request smaller pages"}


async def delete_rows(call: Call) -> Response:
    """Delete the rows that match, the oldest first, and at most `limit`; without a query any row matches.

    They are deleted in steps of 200; each step deletes all of its rows or none. A row that changes meanwhile is deleted
    only if it still matches. No deletion triggers are raised.
    """
    service = call.service
    chosen: list[bytes] = await service.read(call, SelectRows)
    removed = 0
    for start in range(0, len(chosen), DELETED_AT_ONCE):
        step = DeleteRows(rows=chosen[start : start + DELETED_AT_ONCE], body=call.body, origin=call.origin)
        removed += (await service.system.ask(service.ref(call), step)).value
    answer: dict[str, Any] = {"removed": removed}
    return json_response(call, 200, answer)


_TABLE = Shown(GetDataTable, TableView)
ROUTES = (
    list_of(TABLES, "dataTables.get", "List data tables", ListDataTables, TableView, TablePage, cli=True),
    post(
        TABLES,
        "dataTables.post",
        "Create a data table",
        CreateDataTable,
        _TABLE,
        body=TablePost,
        to=DATA_TABLE_ACTOR,
        ok=201,
    ),
    get(DATA_TABLE_PATH, "dataTable.get", "Get a data table", _TABLE, cli=True),
    patch(
        DATA_TABLE_PATH,
        "dataTable.patch",
        "Change the name or the description of a data table",
        PatchDataTable,
        _TABLE,
        body=TablePatch,
        to=DATA_TABLE_ACTOR,
    ),
    delete(
        DATA_TABLE_PATH,
        "dataTable.delete",
        "Delete a data table and its rows",
        DeleteDataTable,
        to=DATA_TABLE_ACTOR,
    ),
    post(
        COLUMN,
        "dataTable.addColumn",
        "Add a column; existing rows have null in it",
        AddColumn,
        _TABLE,
        body=Column,
        to=DATA_TABLE_ACTOR,
    ),
    delete(
        COLUMN,
        "dataTable.removeColumn",
        "Remove a column and its values",
        RemoveColumn,
        query=ColumnChoice,
        to=DATA_TABLE_ACTOR,
        then=GetDataTable,
        reply=TableView,
    ),
    get(ROWS, "dataTableRows.get", "List rows", ListRows, RowsView, query=RowsPage, cli=True, also=_TOO_MUCH),
    post(
        ROWS,
        "dataTableRows.post",
        "Insert a row, or an array of rows",
        InsertRows,
        takes_key=True,
        body=RowOrRows,
        takes_many=True,
        to=DATA_TABLE_ACTOR,
        answer_is_reply=True,
        reply=Inserted,
        ok=201,
        bulk=True,
        fast_path=True,
    ),
    post(
        ROWS + "/query",
        "dataTableRows.query",
        "List the rows that match an advanced query",
        ListRows,
        query=RowsPage,
        body=AdvancedQuery,
        optional_body=True,
        reply=RowsView,
        also=_TOO_MUCH,
        access="read",
    ),
    post(
        ROWS + "/delete",
        "dataTableRows.delete",
        "Delete the rows that match an advanced query",
        SelectRows,
        query=RowsLimit,
        body=AdvancedQuery,
        optional_body=True,
        to=DATA_TABLE_ACTOR,
        reply=RemovedView,
        handler=delete_rows,
    ),
    post(ROWS + "/truncate", "dataTableRows.truncate", "Delete all rows", TruncateRows, to=DATA_TABLE_ACTOR),
    get(ROW, "dataTableRow.get", "Get a row", GetRow, RowView, fast_path=True),
    patch(
        ROW,
        "dataTableRow.patch",
        "Change a row",
        PatchRow,
        body=RowBody,
        to=DATA_TABLE_ACTOR,
        answer_is_reply=True,
        reply=RowView,
    ),
    delete(ROW, "dataTableRow.delete", "Delete a row", DeleteRow, to=DATA_TABLE_ACTOR),
)
