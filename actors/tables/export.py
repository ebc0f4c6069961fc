"""The export of the rows of a data table, as CSV: a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.jobs.job import Job, JobKind
from trunkline.actors.jobs.messages import QueueJob
from trunkline.actors.query.compile import compile_query
from trunkline.actors.records.kind import Doc
from trunkline.actors.tables.pages import open_rows, walk_rows
from trunkline.actors.values.csv_text import CSV, CsvLines

if TYPE_CHECKING:
    from trunkline.actors.jobs.results import Write
    from trunkline.store.snapshot import Snapshot


async def export_rows(job: Job) -> Doc:
    """Write the rows that match, a line for each: id, createdAt, updatedAt, and the columns of the table.

    Input: `query` (None for all rows), and `sortColumn`, `sortDirection`, `offset` and `limit` as in a query of
    rows; a limit of None is none.
    """
    lines = CsvLines()

    def fill(snapshot: Snapshot, write: Write) -> None:
        wanted = job.input
        if wanted["query"] is None:
            left = max(0, open_rows(snapshot, job.application, job.resource).counts.rows - wanted["offset"])
            job.total = left if wanted["limit"] is None else min(left, wanted["limit"])
        table, rows = walk_rows(
            snapshot,
            job.application,
            job.resource,
            wanted["query"],
            sort_column=wanted["sortColumn"],
            sort_direction=wanted["sortDirection"],
            offset=wanted["offset"],
            limit=wanted["limit"],
        )
        write(lines.line(["id", "createdAt", "updatedAt", *(name for name, _ in table.columns.shown)]))
        for row in rows:
            write(lines.line(row.values()))
            job.completed += 1

    job.completed, job.total = 0, None
    file = await job.write_file(f"rows-{job.resource.hex()}.csv", CSV, fill)
    return {"file": file, "rows": job.completed, "escapedTexts": lines.escaped}


def check_row_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise NotFound for an unknown table, Invalid for a wrong query or an unknown column to sort by."""
    wanted = message.input
    rows = open_rows(snapshot, application, message.resource)
    if wanted["query"] is not None:
        compile_query(wanted["query"], rows.table.columns.fields, at="query")
    walk_rows(snapshot, application, message.resource, sort_column=wanted["sortColumn"])


ROW_EXPORT = JobKind(
    operation="dataTableRows.export",
    resource_type="datatable",
    run=export_rows,
    check=check_row_export,
    gate="data_table_export_concurrent_calls_max",
)
