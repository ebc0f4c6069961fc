"""The reads of the job log of an application."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.outgoing.http_calls import shown_receiver
from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.listing import Listing, read_page
from trunkline.actors.core.records.page import all_of, envelope, glob_match
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import JOB_LOG_FIELDS, GetJobLog, ListJobLogs

_TIMES = ("runQueuedAt", "runStartedAt", "runCompletedAt")


def get_job_log(reading: Reading, message: GetJobLog) -> dict[str, Any]:
    """One job."""
    snapshot = reading.snapshot
    found = records.find(snapshot, JOB, message.application, message.job)
    if found is None:
        raise NotFound("There is no such job here; old jobs are deleted.")
    return show_job(message.application, found)


def list_job_logs(reading: Reading, message: ListJobLogs) -> dict[str, Any]:
    """A page of jobs; `filter` is about the name.

    Raises `PayloadTooLarge` if their inputs and outputs are too large for one answer.
    """
    query = message.query
    matches = glob_match(query, "name")
    if query.query is not None:
        matches.append(compile_query(query.query, JOB_LOG_FIELDS, at="query").matches)
    found, total = read_page(reading, Listing.of(query, JOB, message.application, match=all_of(matches)))
    items = [show_job(message.application, each) for each in found]
    shown = envelope("applicationJobLogs", items, total, query)
    shown["applicationId"] = message.application.hex()
    return shown


def show_job(application: bytes, found: Found) -> dict[str, Any]:
    """A job as the log shows it, without the link to its result."""
    doc, id = found.doc, found.id.hex()
    shown: dict[str, Any] = {
        "id": id,
        "jobId": id,
        "applicationJobLogId": id,
        "jobExecutionId": doc["executionId"],
        "applicationId": application.hex(),
        "name": doc["name"],
        "status": doc["status"],
        "requestedById": doc["requestedById"],
        "requestedByType": doc["requestedByType"],
        "ownerType": "application",
        "ownerId": application.hex(),
        "resourceType": doc["resourceType"],
        "resourceId": doc["resourceId"],
        "progress": {**doc["progress"], "status": doc["status"]},
        "input": doc["input"],
        "_etag": found.revision,
        "_type": "applicationJobLog",
    }
    shown |= {field: iso(doc[field]) for field in _TIMES if field in doc}
    shown |= {field: doc[field] for field in ("error", "output") if field in doc}
    if doc["tell"]:
        shown["output"] = shown.get("output", {}) | {
            "told": [_show_notification(notification) for notification in doc["tell"]]
        }
    return shown


def _show_notification(notification: dict[str, Any]) -> dict[str, Any]:
    """A notification as the log shows it."""
    shown = {**notification, "to": shown_receiver(notification["to"])}
    if "at" in notification:
        shown["at"] = iso(notification["at"])
    return shown
