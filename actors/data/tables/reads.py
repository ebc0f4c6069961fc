"""Reads of data tables: one record, and lists of records. Their rows: `data/tables/pages.py`."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.records import records
from trunkline.actors.core.records.listing import Listing, read_page
from trunkline.actors.core.records.page import all_of, envelope, glob_match
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.messages import GetDataTable, ListDataTables


def get_data_table(reading: Reading, message: GetDataTable) -> dict[str, Any]:
    """Return one data table."""
    snapshot = reading.snapshot
    found = records.find(snapshot, DATA_TABLE, message.application, message.data_table)
    if found is None:
        raise NotFound(f"There is no data table {message.data_table.hex()} here.")
    return show_table(message.application, found)


def show_table(application: bytes, found: Found) -> dict[str, Any]:
    """Return a data table as the caller sees it."""
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
    return shown | {"_etag": found.revision, "_type": "dataTable"}


def data_table_listing(message: ListDataTables) -> Listing:
    """Return the listing that a page of data tables is read from."""
    query = message.query
    match = all_of(glob_match(query, query.filter_field))
    return Listing.of(query, DATA_TABLE, message.application, match=match)


def list_data_tables(reading: Reading, message: ListDataTables) -> dict[str, Any]:
    """Return a page of data tables."""
    query = message.query
    found, total = read_page(reading, data_table_listing(message))
    items = [show_table(message.application, each) for each in found]
    shown = envelope("dataTables", items, total, query)
    return shown | {"applicationId": message.application.hex()}
