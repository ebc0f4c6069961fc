"""Jobs: what queues one, what moves it on, and what its log shows."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.accounts.messages import Email
from trunkline.actors.query.fields import ID, TEXT, TIME, Fields
from trunkline.actors.query.schema import query_over
from trunkline.actors.records.messages import Creator
from trunkline.actors.records.page import Page
from trunkline.actors.values.structs import Body, Message, Query, View
from trunkline.actors.values.terms import (
    Id,
    IsoTime,
    Links,
)

JOB_LOG_FIELDS: Final = Fields(
    "job",
    {
        "id": ID,
        "name": TEXT,
        "status": TEXT,
        "resourceType": TEXT,
        "resourceId": ID,
        "runQueuedAt": TIME,
        "runStartedAt": TIME,
        "runCompletedAt": TIME,
    },
)


JobLogQuery = Annotated[dict[str, Any], query_over(JOB_LOG_FIELDS)]


CallbackUrl = Annotated[
    str,
    Meta(
        max_length=1024,
        pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+(?!\n)$",
        description="an http or https URL that a POST tells of the end of the job",
    ),
]


JobStatus = Literal["queued", "inProgress", "completed", "errored", "failed"]
ResourceType = Literal["application", "dashboard", "datatable", "event", "device", "notebook", "deviceRecipe"]

ENDED = frozenset({"completed", "errored", "failed"})
"""The statuses that a job ends with: done; refused, with a sentence why; given up after several attempts."""


# What is answered.


class JobQueued(View, frozen=True):
    """The job is on disk and will be done, also after a restart. `jobId` finds its log."""

    success: Literal[True]
    job_queued: Literal[True]
    job_id: Annotated[str, Meta(max_length=21)]


class JobProgress(View, frozen=True):
    """How far a job is. What is counted depends on the job: rows, events, devices. `total` may be unknown."""

    completed: int
    status: JobStatus
    total: int | None = None


class JobError(View, frozen=True):
    """Why a job did not complete."""

    name: str
    message: str


class JobLogView(View, frozen=True):
    """A job: what was asked for, how far it is, and what came of it."""

    id: Id
    job_id: Id
    job_execution_id: Id
    application_job_log_id: Id
    application_id: Id
    name: str
    run_queued_at: IsoTime
    status: JobStatus
    requested_by_id: Id
    requested_by_type: Literal["user", "apiToken", "flow", "device", "system"]
    owner_type: Literal["application", "user", "organization"]
    owner_id: Id
    resource_type: ResourceType
    resource_id: Id
    progress: JobProgress
    run_started_at: IsoTime | None = None
    run_completed_at: IsoTime | None = None
    error: JobError | None = None
    input: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    etag: str | None = msgspec.field(default=None, name="_etag")
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


class JobLogPage(Page, frozen=True):
    """A page of an application's jobs."""

    sort_field: Literal["name", "status", "resourceType", "runQueuedAt", "runStartedAt", "runCompletedAt"] = (
        "runQueuedAt"
    )
    query: JobLogQuery | None = None


class DownloadLink(Query, frozen=True):
    """What a link to a result carries."""

    token: Annotated[str, Meta(max_length=1024)]


# What the application actor is told. All but the first come from the runner.


class QueueJob(Message, frozen=True):
    """Queue a job of the kind that belongs to `operation`. Answers with its id.

    `resource` is the id of what it is about (the application's own where it is about no single thing);
    `input` is what the job needs to know, as plain values. Who is told of its end: `email`, by default the
    address of `user` or else of the application's owner; and `callbackUrl`, where there is one.
    """

    operation: str
    resource: bytes
    input: dict[str, Any]
    by: Creator
    user: bytes | None = None
    email: str | None = None
    callback_url: str | None = None


class BeginJob(Message, frozen=True):
    """Begin, or begin again, the job `id`. Answers with its record; None where there is nothing to do."""

    id: bytes


class NoteJob(Message, frozen=True):
    """Note how far the running job `id` is, and in `note` where it would go on after a restart."""

    id: bytes
    completed: int
    total: int | None
    note: dict[str, Any] | None = None


class EndJob(Message, frozen=True):
    """End the job `id`. A job ends once: where it has ended already, nothing changes."""

    id: bytes
    status: JobStatus
    completed: int
    total: int | None
    output: dict[str, Any] | None = None
    error: dict[str, str] | None = None


class ToldJob(Message, frozen=True):
    """Somebody was told of the end of the job `id`, or could not be: then `problem` is a sentence."""

    id: bytes
    by: str
    problem: str | None = None


class PutBackJob(Message, frozen=True):
    """Put the running job `id` back into the queue: the server stops, and the attempt shall not count."""

    id: bytes


class ForgetJobs(Message, frozen=True):
    """Forget the jobs `ids`, as far as they have ended: the bound on logs is reached."""

    ids: list[bytes]


class Told(Body, frozen=True):
    """Who is told when the job has ended; by default the address of the caller's account."""

    email: Email | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET


class ToldQuery(Query, frozen=True):
    """Who is told when the job has ended; by default the address of the caller's account."""

    email: Email | None = None
    callback_url: CallbackUrl | None = None


class GetJobLog(Message, frozen=True):
    """One job of an application."""

    application: bytes
    job: bytes


class ListJobLogs(Message, frozen=True):
    """A page of the jobs of an application."""

    application: bytes
    query: JobLogPage
