"""The job that exports the rows of a data table as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.csv_text import CSV, CsvLines
from trunkline.actors.data.tables.pages import open_rows, walk_rows
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.messages import QueueJob

if TYPE_CHECKING:
    from trunkline.actors.data.tables.columns import Table
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.store.snapshot import Snapshot


async def export_rows(job: Job) -> Doc:
    """Write one line for each row that matches: id, createdAt, updatedAt, and the columns of the table.

    Input: `query` (None for all rows), and `sortColumn`, `sortDirection`, `offset` and `limit` as in a query of
    rows (`limit` None: no limit).
    """
    lines = CsvLines()

    def fill(snapshot: Snapshot, write: Write) -> None:
        options = job.input
        if options["query"] is None:
            left = max(0, open_rows(snapshot, job.application, job.resource).counts.rows - options["offset"])
            job.total = left if options["limit"] is None else min(left, options["limit"])
        table, rows = walk_rows(
            snapshot,
            job.application,
            job.resource,
            options["query"],
            sort_column=options["sortColumn"],
            sort_direction=options["sortDirection"],
            offset=options["offset"],
            limit=options["limit"],
        )
        write(row_header(lines, table))
        for row in rows:
            write(lines.line(row.values()))
            job.completed += 1

    job.completed, job.total = 0, None
    file = await job.write_file(f"rows-{job.resource.hex()}.csv", CSV, fill)
    return {"file": file, "rows": job.completed, "escapedTexts": lines.escaped}


def row_header(lines: CsvLines, table: Table) -> bytes:
    """The line with the names of the columns."""
    return lines.line(["id", "createdAt", "updatedAt", *(name for name, _ in table.columns.shown)])


def check_row_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise `NotFound` for an unknown table, `QueryError` or `Invalid` for a wrong query or sort column."""
    options = message.input
    rows = open_rows(snapshot, application, message.resource)
    if options["query"] is not None:
        compile_query(options["query"], rows.table.columns.fields, at="query")
    walk_rows(snapshot, application, message.resource, sort_column=options["sortColumn"])


ROW_EXPORT = JobKind(
    operation="dataTableRows.export",
    resource_type="datatable",
    run=export_rows,
    check=check_row_export,
    gate="data_table_export_concurrent_calls_max",
)
