"""Exports of records as one file: CSV, or a JSON array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.csv_text import CSV, CsvLines
from trunkline.actors.platform.jobs.job import Job

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
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
        for piece in csv_pieces(lines, columns, counted(snapshot), row):
            write(piece)

    def as_json(snapshot: Snapshot, write: Write) -> None:
        for piece in json_pieces(counted(snapshot)):
            write(piece)

    job.completed, job.total = 0, None
    name = f"{file or what}-{job.application.hex()}"
    if job.input["format"] == "json":
        result = await job.write_file(f"{name}.json", "application/json", as_json)
    else:
        result = await job.write_file(f"{name}.csv", CSV, as_csv)
    return {"file": result, what: job.completed, "escapedTexts": lines.escaped}


def csv_pieces(
    lines: CsvLines,
    columns: Sequence[str],
    docs: Iterable[Doc],
    row: Callable[[Doc], Doc] = lambda doc: doc,
) -> Iterator[bytes]:
    """Yield the CSV of documents: the columns, then a line for each."""
    yield lines.line(columns)
    for doc in docs:
        flat = row(doc)
        yield lines.line(flat.get(name) for name in columns)


def json_pieces(docs: Iterable[Doc]) -> Iterator[bytes]:
    """Yield one JSON array of documents, with a line for each."""
    before = b"[\n"
    for doc in docs:
        yield before + msgspec.json.encode(doc)
        before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"
