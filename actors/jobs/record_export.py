"""Exports of records as one file: CSV, or a JSON array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from trunkline.actors.jobs.job import Job
from trunkline.actors.records.kind import Doc
from trunkline.actors.values.csv_text import CSV, CsvLines

if TYPE_CHECKING:
    from trunkline.actors.jobs.results import Write
    from trunkline.store.snapshot import Snapshot


async def export_records(
    job: Job,
    what: str,
    columns: Sequence[str],
    shown: Callable[[Snapshot], Iterator[Doc]],
    row: Callable[[Doc], Doc] = lambda doc: doc,
    *,
    file: str | None = None,
) -> Doc:
    """Write the records that `shown` yields, in the `format` of the input, and return the output of the job.

    csv: a line for each record, with the `columns` of `row(record)`. json: one array, with a line for each record.
    `what` is the name of the number of records in the output, `file` the beginning of the file name (default: `what`).
    """
    lines = CsvLines()

    def counted(snapshot: Snapshot) -> Iterator[Doc]:
        for doc in shown(snapshot):
            yield doc
            job.completed += 1

    def as_csv(snapshot: Snapshot, write: Write) -> None:
        write(lines.line(columns))
        for doc in counted(snapshot):
            flat = row(doc)
            write(lines.line(flat.get(name) for name in columns))

    def as_json(snapshot: Snapshot, write: Write) -> None:
        before = b"[\n"
        for doc in counted(snapshot):
            write(before + msgspec.json.encode(doc))
            before = b",\n"
        write(b"\n]\n" if before == b",\n" else b"[]\n")

    job.completed, job.total = 0, None
    name = f"{file or what}-{job.application.hex()}"
    if job.input["format"] == "json":
        result = await job.write_file(f"{name}.json", "application/json", as_json)
    else:
        result = await job.write_file(f"{name}.csv", CSV, as_csv)
    return {"file": result, what: job.completed, "escapedTexts": lines.escaped}
