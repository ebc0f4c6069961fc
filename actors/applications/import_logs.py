"""The log of imports into an application. Nothing can be imported yet, so it is empty; what it will show is here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from trunkline.actors.jobs.messages import JobError, JobStatus
from trunkline.actors.records.reading import Reading
from trunkline.actors.values.structs import Message, Query, View
from trunkline.actors.values.terms import Id, IsoTime, QueryTime
from trunkline.actors.values.timestamps import resolve_range


class ImportLogRange(Query, frozen=True):
    """The newest imports, or those since a time."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1
    since: QueryTime | None = None


class ListImportLogs(Message, frozen=True):
    """The imports into an application, newest first."""

    query: ImportLogRange
    now_ms: int


class ImportLog(View, frozen=True, kw_only=True):
    """An import: where it came from, what was to be imported, and what became of it."""

    id: Id
    import_execution_id: Id
    application_id: Id
    import_source_type: Literal["importBundle", "importUrl", "fromApplication", "repository"]
    from_application_id: Id | None = None
    job_id: str
    status: JobStatus
    dry_run: bool
    include: list[str]
    conflict_behavior: Literal["create", "error", "retain", "replace"]
    run_queued_at: IsoTime
    run_started_at: IsoTime | None = None
    run_completed_at: IsoTime | None = None
    error: JobError | None = None


def list_import_logs(_reading: Reading, message: ListImportLogs) -> list[Any]:
    """No import has been made."""
    resolve_range(message.now_ms, since=message.query.since)  # refuses what is no time
    return []
