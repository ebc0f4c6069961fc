"""The log of imports into an application: the jobs that made them, the newest first."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime, QueryTime
from trunkline.actors.core.values.timestamps import iso, resolve_range
from trunkline.actors.platform.jobs.job import short_job_id
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import JobError, JobStatus
from trunkline.actors.portability.bundles.import_jobs import INTO
from trunkline.actors.portability.bundles.messages import PartProblem
from trunkline.actors.portability.bundles.portable import PORTABLE
from trunkline.store import keys
from trunkline.store.codec import decode


class ImportLogRange(Query, frozen=True):
    """The newest imports, or those since a time."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1
    since: QueryTime | None = None


class ListImportLogs(Message, frozen=True):
    """The imports into an application, newest first."""

    application: bytes
    query: ImportLogRange
    now_ms: int


class ImportLog(View, frozen=True, kw_only=True):
    """An import: where it came from, what was to be imported, and what became of it.

    `validationErrors` are the first problems of a bundle that was refused.
    """

    id: Id
    import_execution_id: Id
    application_id: Id
    import_source_type: Literal["importBundle", "importUrl", "fromApplication", "repository"]
    from_application_id: Id | None = None
    import_url: str | None = None
    job_id: str
    source_id: Id
    source_type: Literal["flow", "user", "device", "apiToken", "notebook"]
    status: JobStatus
    dry_run: bool
    include: list[str]
    conflict_behavior: Literal["create", "error", "retain", "replace"]
    email: str | None = None
    callback_url: str | None = None
    run_queued_at: IsoTime
    run_started_at: IsoTime | None = None
    run_completed_at: IsoTime | None = None
    error: JobError | None = None
    validation_errors: list[PartProblem] | None = None


def list_import_logs(reading: Reading, message: ListImportLogs) -> list[Any]:
    """The newest imports."""
    since = message.query.since
    after_ms = 0 if since is None else resolve_range(message.now_ms, since=since).start_ms
    prefix = keys.record_prefix(JOB.name, message.application)
    found: list[Any] = []
    for key, raw in reading.snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix), reverse=True):
        doc = decode(raw)
        if len(found) == message.query.limit or doc["runQueuedAt"] < after_ms:
            break
        if doc["name"] == INTO:
            found.append(_show(message.application, bytes(key[-keys.ID_BYTES :]).hex(), doc))
    return found


def _show(application: bytes, id: str, doc: Doc) -> Doc:
    input = doc["input"]
    shown: Doc = {
        "id": id,
        "importExecutionId": doc["executionId"],
        "applicationId": application.hex(),
        "importSourceType": input["importSourceType"],
        "jobId": short_job_id(bytes.fromhex(id)),
        "sourceId": doc["requestedById"],
        "sourceType": doc["requestedByType"],
        "status": doc["status"],
        "dryRun": input["dryRun"],
        "include": input.get("include") or [each.name for each in PORTABLE],
        "conflictBehavior": input["conflictBehavior"],
    }
    shown |= {name: input[name] for name in ("fromApplicationId", "importUrl") if name in input}
    for each in doc["tell"]:
        if each["by"] == "email":
            shown["email"] = each["to"]
        else:
            shown["callbackUrl"] = each["to"].partition("?")[0]
    shown |= {
        name: iso(doc[name]) for name in ("runQueuedAt", "runStartedAt", "runCompletedAt") if name in doc
    }
    if "error" in doc:
        shown["error"] = doc["error"]
    problems = (doc.get("output") or {}).get("validationErrors")
    return shown if problems is None else shown | {"validationErrors": problems}
