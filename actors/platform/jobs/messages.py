"""Jobs: the messages that change them, the bodies that requests share, and the views of the job log."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.fields import ID, TEXT, TIME, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.structs import FORM, Body, Message, Query, View
from trunkline.actors.core.values.terms import (
    Id,
    IsoTime,
    Links,
)
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.people.organizations.roles import Level

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
        extra={FORM: "an http or https URL of at most 1024 characters, such as https://example.com/done"},
    ),
]


JobStatus = Literal["queued", "inProgress", "completed", "errored", "failed"]
ResourceType = Literal["application", "dashboard", "datatable", "event", "device", "notebook", "deviceRecipe"]

ENDED = frozenset({"completed", "errored", "failed"})
"""The final statuses of a job: done; refused with a reason; failed after several attempts."""


# Answers.


class JobQueued(View, frozen=True):
    """The job is on disk and will be done, even after a restart. `jobId` identifies it in the job log."""

    success: Literal[True]
    job_queued: Literal[True]
    job_id: Annotated[str, Meta(max_length=21)]


class JobProgress(View, frozen=True):
    """The progress of a job. The unit depends on the job: rows, events, devices. `total` may be unknown."""

    completed: int
    status: JobStatus
    total: int | None = None


class JobError(View, frozen=True):
    """Why a job did not complete."""

    name: str
    message: str


class JobLogView(View, frozen=True):
    """A job: its request, its progress and its result."""

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
    """The query string of a link to a result."""

    token: Annotated[str, Meta(max_length=1024)]


# Messages to the application actor. All but the first are sent by the runner.


class QueueJob(Message, frozen=True):
    """Queue a job of the kind for `operation`. The answer is its id.

    `resource` is the id of its subject (the application's own if there is no single subject); `input` are its
    parameters, as plain values. `data` is kept until the job ends and never shown: what is too large for the log. Its
    end is reported to `email`, by default the address of `user` or else of the application's owner, and to
    `callback_url`, if given. `result_to`: the result is a mail, which is sent to these addresses, and nobody else gets
    a mail. `id` is that of the job, if something was stored for it already.

    The job acts in the name of the authors of `by`: each attempt needs that they still have `level` at its owner.
    """

    operation: str
    resource: bytes
    input: dict[str, Any]
    by: Creator
    user: bytes | None = None
    email: str | None = None
    callback_url: str | None = None
    data: bytes | None = None
    result_to: list[str] | None = None
    id: bytes | None = None
    level: int = Level.WRITE


class BeginJob(Message, frozen=True):
    """Begin an attempt of the job `id`. The answer is its record; None if there is nothing to do."""

    id: bytes


class SaveProgress(Message, frozen=True):
    """Store the progress of the running job `id`, and in `note` the position for a later attempt."""

    id: bytes
    completed: int
    total: int | None
    note: dict[str, Any] | None = None


class EndJob(Message, frozen=True):
    """End the job `id`. If it has ended already, nothing changes."""

    id: bytes
    status: JobStatus
    completed: int
    total: int | None
    output: dict[str, Any] | None = None
    error: dict[str, str] | None = None


class EndNotification(Message, frozen=True):
    """A notification of the end of the job `id` was delivered or, with a `problem`, given up."""

    id: bytes
    by: str
    to: str
    problem: str | None = None


class RequeueJob(Message, frozen=True):
    """Put the running job `id` back into the queue without counting the attempt, because the server stops."""

    id: bytes


class DeleteJobs(Message, frozen=True):
    """Delete the records of those of the jobs `ids` that have nothing left to do (retention of the job log)."""

    ids: list[bytes]


class NotifyBody(Body, frozen=True):
    """The recipients of the notification when the job has ended; by default the caller's e-mail address."""

    email: Email | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET


class NotifyQuery(Query, frozen=True):
    """The recipients of the notification when the job has ended; by default the caller's e-mail address."""

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
