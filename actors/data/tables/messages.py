"""Data tables and their rows: bodies, query strings, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.fields import ID_AS_TEXT, TIME, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.changes import Fixed, changes_of
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import (
    Description,
    Id,
    IsoTime,
    Key,
    Links,
    Name,
    RecordView,
    Scalar,
    SortDirection,
)
from trunkline.actors.platform.jobs.messages import NotifyBody

ROW_FIELDS: Final = Fields("row", {"id": ID_AS_TEXT, "createdAt": TIME, "updatedAt": TIME}, open=True)
"""The fields that every row has in addition to its columns."""

_CELL = {"type": ["string", "number", "boolean", "null"]}

CellValue = Annotated[Any, Meta(extra_json_schema=_CELL)]
"""Accepted as any value; the column checks its type, so that the refusal names the column."""

RowBody = Annotated[dict[str, CellValue], Meta(description="Values by column name")]

RowOrRows = RowBody | list[RowBody]

AdvancedQuery = Annotated[dict[str, Any], query_over(ROW_FIELDS)]
"""A query over the columns, `id`, `createdAt` and `updatedAt`."""

RowView = Annotated[
    dict[str, Scalar | None],
    Meta(description="`id`, `createdAt`, `updatedAt`, and a value or null for each column"),
]


class RowsInserted(View, frozen=True):
    """The answer to an array of rows: when they were inserted, how many they are, and their ids in order."""

    created_at: IsoTime
    count: int
    row_ids: list[str]


Inserted = Annotated[
    dict[str, Scalar | list[str] | None],
    Meta(description="The row that was inserted; of an array `{createdAt, count, rowIds}`"),
]


# Bodies.


class Column(Body, frozen=True):
    """A column. `defaultValue` is used if an insert omits the column; null means no default."""

    name: Key
    data_type: Literal["string", "number", "boolean"]
    constraint: Literal["unique", "required", "optional"]
    default_value: Scalar | UnsetType | None = UNSET


class TablePost(Body, frozen=True):
    """A new data table."""

    name: Name
    description: Description | UnsetType = UNSET
    columns: Fixed[Annotated[list[Column], Meta(max_length=50)]] | UnsetType = UNSET


@changes_of(TablePost)
class TablePatch(Body, frozen=True):
    """Changes of a data table; omitted fields stay as they are. Columns have their own operations."""


class RowExportOptions(Body, frozen=True):
    """The order of the exported rows, and their number: without `limit` all of them."""

    sort_column: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    sort_direction: Literal["asc", "desc", "ASC", "DESC", ""] = "asc"
    limit: Annotated[int, Meta(ge=0, le=2**53)] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class RowExport(NotifyBody, frozen=True):
    """The rows of a data table that are exported; without `query` all of them."""

    query: AdvancedQuery | UnsetType = UNSET
    query_options: RowExportOptions = RowExportOptions()


# Query strings.


class TablePage(Page, frozen=True):
    """A page of data tables."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None


class ColumnChoice(Query, frozen=True):
    """The column to remove."""

    column_name: Key


class RowsPage(Query, frozen=True):
    """A page of rows: at most `limit`, after the first `offset`. The default order is that of creation.

    `includeFields` lists columns, `id`, `createdAt` and `updatedAt`, separated by commas; the default is all.
    """

    sort_column: Annotated[str, Meta(max_length=255)] | None = None
    sort_direction: SortDirection = "asc"
    limit: Annotated[int, Meta(ge=0)] = 1000
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    include_fields: str | None = None


class RowsLimit(Query, frozen=True):
    """The maximum number of rows."""

    limit: Annotated[int, Meta(ge=0)] = 1000


# Messages to the actor.


class CreateDataTable(Message, frozen=True):
    """Create a data table."""

    body: TablePost


class PatchDataTable(Message, frozen=True):
    """Change the name or the description of a data table."""

    body: TablePatch
    if_match: str | None = None


class DeleteDataTable(Message, frozen=True):
    """Delete a data table with its rows. No deletion triggers are raised."""

    if_match: str | None = None


class AddColumn(Message, frozen=True):
    """Add a column. Existing rows are null in it, whatever its constraint and default."""

    body: Column
    if_match: str | None = None


class RemoveColumn(Message, frozen=True):
    """Remove a column with all its values."""

    query: ColumnChoice
    if_match: str | None = None


class InsertRows(Message, frozen=True):
    """Insert one row, or an array of rows: all of them or none.

    `import_ids`: the rows of the array come from another application (`actors/portability/bundles/`), and these are
    their ids. Those that exist are left as they are, and a required column may be null, as in rows that are older than
    it.
    """

    body: RowOrRows
    import_ids: list[bytes] | None = None
    origin: Origin | None = None


class PatchRow(Message, frozen=True):
    """Change the columns that the body sets."""

    row: bytes
    body: RowBody
    if_match: str | None = None
    origin: Origin | None = None


class ChangeMatchingRow(Message, frozen=True):
    """Change the oldest row that matches `query`; without one insert a row if `inserts`, else the answer is None."""

    query: AdvancedQuery
    body: RowBody
    inserts: bool
    origin: Origin | None = None


class DeleteRow(Message, frozen=True):
    """Delete one row."""

    row: bytes
    if_match: str | None = None
    origin: Origin | None = None


class DeleteRows(Message, frozen=True):
    """Delete those of `rows` that exist and match `body` (None: all of them). The answer is their number."""

    rows: list[bytes]
    body: AdvancedQuery | None
    origin: Origin | None = None


class TidyRows(Message, frozen=True):
    """Remove the values of removed columns from `rows`, in one step from `begun` to `reached` (None: the end)."""

    rows: list[bytes]
    begun: bytes
    reached: bytes | None


class TruncateRows(Message, frozen=True):
    """Delete all rows at once. No deletion triggers are raised."""


# Messages of reads.


class GetDataTable(Message, frozen=True):
    """One data table."""

    application: bytes
    data_table: bytes


class ListDataTables(Message, frozen=True):
    """A page of data tables."""

    application: bytes
    query: TablePage


class GetRow(Message, frozen=True):
    """One row."""

    application: bytes
    data_table: bytes
    row: bytes


class ListRows(Message, frozen=True):
    """A page of the rows that match `body` (None: all)."""

    application: bytes
    data_table: bytes
    query: RowsPage
    body: AdvancedQuery | None = None


class SelectRows(Message, frozen=True):
    """The ids of the oldest rows that match `body` (None: all), at most `limit` of the query."""

    application: bytes
    data_table: bytes
    query: RowsLimit
    body: AdvancedQuery | None


# Answers.


class ColumnView(View, frozen=True):
    """A column of a data table."""

    name: str
    data_type: Literal["string", "number", "boolean"]
    constraint: Literal["unique", "required", "optional"]
    default_value: Scalar | None = None


class TableView(RecordView, frozen=True, kw_only=True):
    """A data table."""

    data_table_id: Id
    application_id: Id
    name: str
    columns: list[ColumnView]
    description: str | None = None
    links: Links | None = msgspec.field(default=None, name="_links")


class RowsView(View, frozen=True):
    """A page of rows. `totalCount` counts all rows that match."""

    items: list[RowView]
    count: int
    total_count: int
    limit: int
    offset: int
    sort_column: str
    sort_direction: SortDirection
    data_table_id: Id
    application_id: Id
    query: dict[str, Any] | None = None
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


class RemovedView(View, frozen=True):
    """The number of rows that were removed."""

    removed: int
