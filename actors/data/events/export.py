"""The job that exports events as CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.events.messages import EVENT_FIELDS
from trunkline.actors.data.events.reads import events_in_order
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.messages import QueueJob
from trunkline.actors.platform.jobs.record_export import export_records

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

EVENT_COLUMNS = (
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
    "updates",
)


async def export_events(job: Job) -> Doc:
    """Write the events that match, the oldest first.

    Input: `query` (None for all events), `format` (csv or json), and `excludeUpdates`.
    """
    options = job.input
    left_out = {"updates"} if options["excludeUpdates"] else set[str]()
    columns = tuple(name for name in EVENT_COLUMNS if name not in left_out)

    def shown(snapshot: Snapshot) -> Iterator[Doc]:
        if options["query"] is None:
            job.total = records.total(snapshot, EVENT, job.application)
        return shown_events(snapshot, job.application, options["query"], left_out)

    return await export_records(job, "events", columns, shown)


def shown_events(
    snapshot: Snapshot, application: bytes, query: Doc | None, left_out: AbstractSet[str] = frozenset()
) -> Iterator[Doc]:
    """Yield the events that match as an export writes them, the oldest first."""
    for event in events_in_order(snapshot, application, query):
        yield {name: value for name, value in event.items() if name[0] != "_" and name not in left_out}


def check_event_export(_snapshot: Snapshot, _application: bytes, message: QueueJob) -> None:
    """Raise `QueryError` for an invalid query."""
    if message.input["query"] is not None:
        compile_query(message.input["query"], EVENT_FIELDS, at="query")


EVENT_EXPORT = JobKind(
    operation="events.export",
    resource_type="event",
    run=export_events,
    check=check_event_export,
    gate="event_export_concurrent_calls_max",
)
