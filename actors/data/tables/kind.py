"""The kind of data table records."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import Kind, Prefixes
from trunkline.store import keys


def _rows(_application: bytes, table: bytes) -> Prefixes:
    """The rows of a table, the index of its unique columns, and the marker that rows are to be tidied."""
    return ((keys.ROWS, table), (keys.CELLS, table), (keys.META, keys.tidy_key(table)))


DATA_TABLE: Final = Kind(
    name="dataTable", noun="data table", counted_as="dataTableCount", owned_keys=_rows, audited_as="DataTable"
)
