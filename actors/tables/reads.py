"""Reading data tables: their records and lists. Their rows: `tables/pages.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunkline.actors.devices.selection import all_of, envelope, glob_match
from trunkline.actors.messages.reads import GetDataTable, ListDataTables
from trunkline.actors.records import records
from trunkline.actors.records.kinds import DATA_TABLE
from trunkline.actors.values.errors import NotFound
from trunkline.actors.values.timestamps import iso

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


def get_data_table(snapshot: Snapshot, message: GetDataTable) -> dict[str, Any]:
    """One data table."""
    found = records.find(snapshot, DATA_TABLE, message.application, message.table)
    if found is None:
        raise NotFound(f"There is no data table {message.table.hex()} here.")
    return show_table(message.application, found)


def show_table(application: bytes, found: records.Found) -> dict[str, Any]:
    """A data table as the caller sees it."""
    doc, id = found.doc, found.id.hex()
    shown: dict[str, Any] = {
        "id": id,
        "dataTableId": id,
        "applicationId": application.hex(),
        "creationDate": iso(doc["creationDate"]),
        "lastUpdated": iso(doc["lastUpdated"]),
        "name": doc["name"],
        "columns": [
            {name: value for name, value in column.items() if name != "number"} for column in doc["columns"]
        ],
    }
    if "description" in doc:
        shown["description"] = doc["description"]
    return shown | {"_etag": found.etag, "_type": "dataTable"}


def data_table_listing(message: ListDataTables) -> records.Listing:
    """What a list of data tables asks for."""
    query = message.query
    return records.Listing(
        kind=DATA_TABLE,
        parent=message.application,
        sort_field=query.sort_field,
        descending=query.sort_direction == "desc",
        page=query.page,
        per_page=query.per_page,
        match=all_of(glob_match(query, query.filter_field)),
    )


def list_data_tables_is_long(snapshot: Snapshot, message: ListDataTables) -> bool:
    """True where answering would hold the event loop for more than a moment."""
    return records.is_long(snapshot, data_table_listing(message))


def list_data_tables(snapshot: Snapshot, message: ListDataTables) -> dict[str, Any]:
    """A page of data tables."""
    query = message.query
    found, total = records.page(snapshot, data_table_listing(message))
    items = [show_table(message.application, each) for each in found]
    shown = envelope("dataTables", items, total, query, query.sort_field, query.filter_field)
    return shown | {"applicationId": message.application.hex()}
