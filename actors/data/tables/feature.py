"""What data tables add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.data.tables import messages, pages, reads
from trunkline.actors.data.tables.actor import DataTable
from trunkline.actors.data.tables.export import ROW_EXPORT
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.portable import TABLES

FEATURE: Final = Feature(
    kinds=(DATA_TABLE,),
    actors=(DataTable,),
    fields=(messages.ROW_FIELDS,),
    jobs=(ROW_EXPORT,),
    readers={
        messages.GetDataTable: reads.get_data_table,
        messages.ListDataTables: reads.list_data_tables,
        messages.GetRow: pages.get_row,
        messages.ListRows: pages.list_rows,
        messages.SelectRows: pages.select_rows,
    },
    portable=TABLES,
)
