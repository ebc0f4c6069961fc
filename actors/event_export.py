"""The export of events, as CSV or JSON: a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trunkline.actors import records
from trunkline.actors.csv_text import CSV, CsvLines
from trunkline.actors.events import events_in_order
from trunkline.actors.jobs import Job, JobKind
from trunkline.actors.kinds import EVENT
from trunkline.actors.messages.jobs import QueueJob
from trunkline.actors.query import EVENT_FIELDS, compile_query
from trunkline.actors.records import Doc

if TYPE_CHECKING:
    from trunkline.actors.job_results import Write
    from trunkline.store.snapshot import Snapshot

_COLUMNS = (
    "id",
    "creationDate",
    "lastUpdated",
    "level",
    "state",
    "subject",
    "message",
    "deviceId",
    "deviceName",
    "sourceType",
    "sourceId",
    "sourceName",
    "eventTags",
    "data",
)
_HIDDEN = ("_etag", "_type")


async def export_events(job: Job) -> Doc:
    """Write the events that match, the oldest first.

    Input: `query` (None for all events), `format` (csv or json), and whether `updates` are left out. A JSON
    file is one array, an event a line.
    """
    wanted = job.input
    lines = CsvLines()
    left_out = {*_HIDDEN, "updates"} if wanted["excludeUpdates"] else {*_HIDDEN}

    def events(snapshot: Snapshot) -> Any:
        if wanted["query"] is None:
            job.total = records.total(snapshot, EVENT, job.application)
        for event in events_in_order(snapshot, job.application, wanted["query"]):
            yield {name: value for name, value in event.items() if name not in left_out}
            job.completed += 1

    def as_csv(snapshot: Snapshot, write: Write) -> None:
        columns = _COLUMNS if wanted["excludeUpdates"] else (*_COLUMNS, "updates")
        write(lines.line(columns))
        for event in events(snapshot):
            write(lines.line(event.get(name) for name in columns))

    def as_json(snapshot: Snapshot, write: Write) -> None:
        before = b"[\n"
        for event in events(snapshot):
            write(before + msgspec.json.encode(event))
            before = b",\n"
        write(b"\n]\n" if before == b",\n" else b"[]\n")

    job.completed, job.total = 0, None
    name = f"events-{job.application.hex()}"
    if wanted["format"] == "json":
        file = await job.write_file(f"{name}.json", "application/json", as_json)
    else:
        file = await job.write_file(f"{name}.csv", CSV, as_csv)
    return {"file": file, "events": job.completed, "escapedTexts": lines.escaped}


def check_event_export(_snapshot: Snapshot, _application: bytes, message: QueueJob) -> None:
    """Raise `QueryError` for a query that is none."""
    if message.input["query"] is not None:
        compile_query(message.input["query"], EVENT_FIELDS, at="query")


EVENT_EXPORT = JobKind(
    operation="events.export",
    resource_type="event",
    run=export_events,
    check=check_event_export,
    gate="event_export_concurrent_calls_max",
)
