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
from trunkline.http.calls.dispatch import json_response
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import APP_PATH, DATA_TABLE_ACTOR, DATA_TABLE_PATH, Route

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


ROUTES = (
    Route(
        method="GET",
        path=TABLES,
        operation="dataTables.get",
        summary="List data tables",
        message=ListDataTables,
        query=TablePage,
        reply=("list", TableView),
        cli=True,
    ),
    Route(
        method="POST",
        path=TABLES,
        operation="dataTables.post",
        summary="Create a data table",
        message=CreateDataTable,
        body=TablePost,
        to=DATA_TABLE_ACTOR,
        then=GetDataTable,
        reply=TableView,
        ok=201,
        access="write",
    ),
    Route(
        method="GET",
        path=DATA_TABLE_PATH,
        operation="dataTable.get",
        summary="Get a data table",
        message=GetDataTable,
        reply=TableView,
        cli=True,
    ),
    Route(
        method="PATCH",
        path=DATA_TABLE_PATH,
        operation="dataTable.patch",
        summary="Change the name or the description of a data table",
        message=PatchDataTable,
        body=TablePatch,
        to=DATA_TABLE_ACTOR,
        then=GetDataTable,
        reply=TableView,
        access="write",
    ),
    Route(
        method="DELETE",
        path=DATA_TABLE_PATH,
        operation="dataTable.delete",
        summary="Delete a data table and its rows",
        message=DeleteDataTable,
        to=DATA_TABLE_ACTOR,
        access="write",
    ),
    Route(
        method="POST",
        path=COLUMN,
        operation="dataTable.addColumn",
        summary="Add a column; existing rows have null in it",
        message=AddColumn,
        body=Column,
        to=DATA_TABLE_ACTOR,
        then=GetDataTable,
        reply=TableView,
        access="write",
    ),
    Route(
        method="DELETE",
        path=COLUMN,
        operation="dataTable.removeColumn",
        summary="Remove a column and its values",
        message=RemoveColumn,
        query=ColumnChoice,
        to=DATA_TABLE_ACTOR,
        then=GetDataTable,
        reply=TableView,
        access="write",
    ),
    Route(
        method="GET",
        path=ROWS,
        operation="dataTableRows.get",
        summary="List rows",
        message=ListRows,
        query=RowsPage,
        reply=RowsView,
        cli=True,
        also=_TOO_MUCH,
    ),
    Route(
        method="POST",
        path=ROWS,
        operation="dataTableRows.post",
        takes_key=True,
        summary="Insert a row, or an array of rows",
        message=InsertRows,
        body=RowOrRows,
        takes_many=True,
        to=DATA_TABLE_ACTOR,
        answer_is_reply=True,
        reply=Inserted,
        ok=201,
        access="write",
        bulk=True,
        fast_path=True,
    ),
    Route(
        method="POST",
        path=ROWS + "/query",
        operation="dataTableRows.query",
        summary="List the rows that match an advanced query",
        message=ListRows,
        query=RowsPage,
        body=AdvancedQuery,
        optional_body=True,
        reply=RowsView,
        also=_TOO_MUCH,
    ),
    Route(
        method="POST",
        path=ROWS + "/delete",
        operation="dataTableRows.delete",
        summary="Delete the rows that match an advanced query",
        message=SelectRows,
        query=RowsLimit,
        body=AdvancedQuery,
        optional_body=True,
        to=DATA_TABLE_ACTOR,
        reply=RemovedView,
        access="write",
        handler=delete_rows,
    ),
    Route(
        method="POST",
        path=ROWS + "/truncate",
        operation="dataTableRows.truncate",
        summary="Delete all rows",
        message=TruncateRows,
        to=DATA_TABLE_ACTOR,
        access="write",
    ),
    Route(
        method="GET",
        path=ROW,
        operation="dataTableRow.get",
        summary="Get a row",
        message=GetRow,
        reply=RowView,
        fast_path=True,
    ),
    Route(
        method="PATCH",
        path=ROW,
        operation="dataTableRow.patch",
        summary="Change a row",
        message=PatchRow,
        body=RowBody,
        to=DATA_TABLE_ACTOR,
        answer_is_reply=True,
        reply=RowView,
        access="write",
    ),
    Route(
        method="DELETE",
        path=ROW,
        operation="dataTableRow.delete",
        summary="Delete a row",
        message=DeleteRow,
        to=DATA_TABLE_ACTOR,
        access="write",
    ),
)
