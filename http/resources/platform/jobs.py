"""Jobs: queueing a job, and the job log of an application."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Forbidden,
    Invalid,
    InvalidParts,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
)
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.platform.jobs.job import short_job_id
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import (
    ENDED,
    DownloadLink,
    GetJobLog,
    JobLogPage,
    JobLogView,
    ListJobLogs,
    QueueJob,
)
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.presentation.dashboards.report_job import USER_REPORT
from trunkline.http.calls.call import Call
from trunkline.http.calls.download_headers import download_headers
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import get, list_of

_REFUSALS: Final[dict[str, type[DomainError]]] = {
    each.type: each for each in (Invalid, Forbidden, NotFound, PayloadTooLarge)
}
"""The errors with which a job may end, other than faults of the server."""


async def queue_job(
    call: Call,
    resource: bytes,
    input: dict[str, Any],
    *,
    notify: Iterable[Any] = (),
    data: bytes | None = None,
    result_to: list[str] | None = None,
    owner: tuple[str, Ref] | None = None,
) -> Response:
    """Queue the job of the call's operation. Responds with 202 when the job is on disk.

    `resource` is the id of the resource of the job, `input` its parameters, as plain values. `notify` are bodies and
    queries of which the first that says it names the `email` (by default the address of the caller's account) and the
    `callbackUrl` that are notified when the job has ended. `data` is kept until then. `result_to` is as in `QueueJob`.
    `owner` is the name of the job and the actor that keeps it; by default the operation, and the application of the
    path.
    """
    operation, ref = owner or _own_job(call)
    message = _message(call, operation, ref, resource, input, notify)
    message = msgspec.structs.replace(message, data=data, result_to=result_to)
    return queued(call, (await call.service.system.ask(ref, message)).value)


def _message(
    call: Call,
    operation: str,
    ref: Ref,
    resource: bytes,
    input: dict[str, Any],
    notify: Iterable[Any],
) -> QueueJob:
    """The message that queues a job in the name of the caller."""
    return QueueJob(
        operation=operation,
        resource=resource,
        input=input,
        by=call.principal.creator,
        level=job_level(call, ref),
        user=call.principal.user_id,
        email=_first_said(notify, "email"),
        callback_url=_first_said(notify, "callback_url"),
    )


def _first_said(notify: Iterable[Any], name: str) -> str | None:
    """The field of the first body or query that has it and says something."""
    found = (getattr(each, name, None) for each in notify)
    return next((value for value in found if value), None)


def job_level(call: Call, owner: Ref) -> Level:
    """What the caller must still be allowed at the owner of a job when the job is done.

    The jobs of users and organizations make applications for them. But the report of a dashboard reads with the roles
    of its caller, which it finds out itself.
    """
    if owner.kind == "application":
        return call.route.level
    return Level.MEMBER if call.route.operation == USER_REPORT.operation else Level.MANAGE


async def do_small_job(
    call: Call,
    resource: bytes,
    input: dict[str, Any],
    *,
    notify: Iterable[Any] = (),
    owner: tuple[str, Ref] | None = None,
) -> tuple[bytes, dict[str, Any] | None]:
    """Queue a job as `queue_job` does, and wait until it ends, at most `job_wait_s`.

    Returns its id, and its output, None if it has not ended: then it goes on, and the call responds with `queued`. It
    goes on as well if the client leaves, and if another process does it. Raises the error with which it ended. Nobody
    gets a mail unless `notify` names an `email`.
    """
    operation, ref = owner or _own_job(call)
    system = call.service.system
    message = _message(call, operation, ref, resource, input, notify)
    message = msgspec.structs.replace(message, result_to=None if message.email else [])
    id: bytes = (await system.ask(ref, message)).value
    if not system.is_elsewhere(ref):
        await system.component(JobQueue).wait_end(id, system.limits.job_wait_s)
    return id, job_output(call, ref.id, id)


def job_output(call: Call, owner: bytes, id: bytes) -> dict[str, Any] | None:
    """The output of a job, None if it has not ended. Raises the error with which it ended."""
    with call.service.system.store.snapshot() as snapshot:
        found = records.find(snapshot, JOB, owner, id)
    if found is None or found.doc["status"] not in ENDED:
        return None
    if found.doc["status"] != "completed":
        error, details = found.doc["error"], found.doc.get("output") or {}
        if "validationErrors" in details:
            problems = details["validationErrors"]
            raise InvalidParts(error["message"], problems, count=details["count"], logged_max=len(problems))
        raise _REFUSALS.get(error["name"], Crashed)(error["message"])
    output: dict[str, Any] = found.doc["output"]
    return output


def queued(call: Call, id: bytes) -> Response:
    """The response that a job is on disk."""
    return json_response(call, 202, {"success": True, "jobQueued": True, "jobId": short_job_id(id)})


def _own_job(call: Call) -> tuple[str, Ref]:
    return call.route.operation, Ref("application", ROOT, call.application)


def check_no_revision(call: Call) -> None:
    """Raise if `If-Match` names a revision, for a call that changes many records."""
    if call.if_match is not None and call.if_match.strip() != "*":
        raise PreconditionFailed(
            "If-Match: names a revision of one record, and this call changes many; leave it out."
        )


async def get_job_log(call: Call) -> Response:
    """Get one job of an application: its progress, its result and its notifications.

    A result has a link if the token may run such a job.
    """
    shown = await call.service.read(call, GetJobLog)
    _add_links(call, [shown])
    return json_response(call, 200, shown)


async def list_job_logs(call: Call) -> Response:
    """List a page of the jobs of an application. The logs of old jobs are deleted, as the limits say."""
    shown = await call.service.read(call, ListJobLogs)
    _add_links(call, shown["items"])
    return json_response(call, 200, shown)


def _add_links(call: Call, items: list[dict[str, Any]]) -> None:
    """Add download links. A link gives access to the result, so only tokens that may run the job see it."""
    service, principal = call.service, call.principal
    level = principal.accesses[call.application].level
    for item in items:
        route = service.route_of(item["name"])
        if route is not None and level >= route.level and not route.scopes.isdisjoint(principal.scopes):
            service.system.component(Results).add_link(call.application, bytes.fromhex(item["id"]), item)


async def download(call: Call) -> Response:
    """Download the file of a job by the link in its mail, its callback and its log. No token is needed.

    The last bytes are sent only if the hash of the whole file is correct, so a complete download is correct.
    """
    file, found = await call.service.system.component(Results).open(call.query.token, call.request.address)
    disposition = f'attachment; filename="{file["name"]}"'
    headers = download_headers(file["contentType"], disposition, file["sha256"], "private, no-store")
    return Response(200, [*headers, (b"content-length", b"%d" % file["size"])], stream=found)


ROUTES = (
    list_of(
        APP_PATH + "/jobLogs",
        "applicationJobLogs.get",
        "List the jobs of an application",
        list_job_logs,
        JobLogView,
        JobLogPage,
        uses=(ListJobLogs,),
    ),
    get(
        APP_PATH + "/jobLogs/{jobId}",
        "applicationJobLog.get",
        "Get a job with its progress and its result",
        get_job_log,
        JobLogView,
        uses=(GetJobLog,),
    ),
    get(
        "/downloads",
        "downloads.get",
        "Download the file of a job",
        download,
        bytes,
        query=DownloadLink,
        access="none",
        also={
            403: "The link is not a valid link of this server",
            404: "The link has expired, or the file is deleted",
        },
    ),
)
