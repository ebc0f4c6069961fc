"""Data tables and their rows: bodies, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.jobs.messages import (
    NotifyBody,
)
from trunkline.actors.query.fields import ID_AS_TEXT, TIME, Fields
from trunkline.actors.query.schema import query_over
from trunkline.actors.records.page import Page
from trunkline.actors.values.structs import Body, Message, Query, View
from trunkline.actors.values.terms import (
    Description,
    Id,
    Key,
    Links,
    Name,
    RecordView,
    Scalar,
    SortDirection,
)

ROW_FIELDS: Final = Fields("row", {"id": ID_AS_TEXT, "createdAt": TIME, "updatedAt": TIME}, open=True)
"""What every row has beside its columns."""


# Tables.


class Column(Body, frozen=True):
    """A column. `defaultValue` fills the field where an insert leaves it out; null is no default."""

    name: Key
    data_type: Literal["string", "number", "boolean"]
    constraint: Literal["unique", "required", "optional"]
    default_value: Scalar | UnsetType | None = UNSET


class TablePost(Body, frozen=True):
    """A new data table."""

    name: Name
    description: Description | UnsetType = UNSET
    columns: Annotated[list[Column], Meta(max_length=50)] | UnsetType = UNSET


class TablePatch(Body, frozen=True):
    """Changes of a data table; what is left out stays. Columns have operations of their own."""

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET


class TablePage(Page, frozen=True):
    """A page of data tables."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None


class ColumnChoice(Query, frozen=True):
    """Which column is meant."""

    column_name: Key


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


class CreateDataTable(Message, frozen=True):
    """Create the data table behind the ref."""

    body: TablePost


class PatchDataTable(Message, frozen=True):
    """Change the name or the description of the data table."""

    body: TablePatch
    if_match: str | None = None


class DeleteDataTable(Message, frozen=True):
    """Delete the data table with its rows. No deletion triggers are raised."""

    if_match: str | None = None


class AddColumn(Message, frozen=True):
    """Add a column. Rows that are there are null in it, whatever its constraint and default."""

    body: Column
    if_match: str | None = None


class RemoveColumn(Message, frozen=True):
    """Remove a column with all its values."""

    query: ColumnChoice
    if_match: str | None = None


# Rows.

_CELL = {"type": ["string", "number", "boolean", "null"]}
CellValue = Annotated[Any, Meta(extra_json_schema=_CELL)]
"""Any value at the door: only the column knows its type, and says its name where it is another one."""

RowBody = Annotated[dict[str, CellValue], Meta(description="Values by column name")]
RowOrRows = RowBody | list[RowBody]
AdvancedQuery = Annotated[dict[str, Any], query_over(ROW_FIELDS)]
"""Over the columns, `id`, `createdAt` and `updatedAt`."""

RowView = Annotated[
    dict[str, Scalar | None],
    Meta(description="`id`, `createdAt`, `updatedAt`, and a value or null for each column"),
]
Inserted = Annotated[
    dict[str, Scalar | list[str] | None],
    Meta(description="The row that was inserted; of an array `{createdAt, count, rowIds}`"),
]


class RowsPage(Query, frozen=True):
    """Which rows: `offset` of them are left out, at most `limit` shown. Without `sortColumn` in order of creation.

    `includeFields` names columns, `id`, `createdAt` and `updatedAt`, separated by commas; default all.
    """

    sort_column: Annotated[str, Meta(max_length=255)] | None = None
    sort_direction: SortDirection = "asc"
    limit: Annotated[int, Meta(ge=0)] = 1000
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    include_fields: str | None = None


class RowsLimit(Query, frozen=True):
    """How many rows at most."""

    limit: Annotated[int, Meta(ge=0)] = 1000


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
    """How many rows were removed."""

    removed: int


class InsertRows(Message, frozen=True):
    """Insert one row, or an array of rows: all of them or none."""

    body: RowOrRows


class PatchRow(Message, frozen=True):
    """Change the columns that the body names."""

    row: bytes
    body: RowBody
    if_match: str | None = None


class DeleteRow(Message, frozen=True):
    """Delete one row."""

    row: bytes
    if_match: str | None = None


class DeleteRows(Message, frozen=True):
    """Delete those of `rows` that are there and match `body` (None: all of them). Answers with their number."""

    rows: list[bytes]
    body: AdvancedQuery | None


class TidyRows(Message, frozen=True):
    """Take what removed columns left out of `rows`, on the way from `begun` to `reached` (None: the end)."""

    rows: list[bytes]
    begun: bytes
    reached: bytes | None


class TruncateRows(Message, frozen=True):
    """Delete all rows at once. No deletion triggers are raised."""


class RowExportOptions(Body, frozen=True):
    """In which order rows are exported, and how many: without `limit` all of them."""

    sort_column: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    sort_direction: Literal["asc", "desc", "ASC", "DESC", ""] = "asc"
    limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class RowExport(NotifyBody, frozen=True):
    """Which rows of a data table are exported; without `query` all of them."""

    query: AdvancedQuery | UnsetType = UNSET
    query_options: RowExportOptions = RowExportOptions()


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
