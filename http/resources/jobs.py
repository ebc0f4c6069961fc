"""Jobs: queuing one, and the job log of an application."""

from __future__ import annotations

from typing import Any

from trunkline.actors.actor import Ref
from trunkline.actors.ids import ROOT
from trunkline.actors.jobs import short_job_id
from trunkline.actors.messages.jobs import JobLogPage, JobLogView, QueueJob
from trunkline.actors.messages.reads import GetJobLog, ListJobLogs
from trunkline.http.call import Call, Response
from trunkline.http.dispatch import reply
from trunkline.http.route import APP, Route


async def queue_job(call: Call, resource: bytes, input: dict[str, Any]) -> Response:
    """Queue the job of the call's operation; 202 when it is on disk.

    `resource` is the id of what it is about, `input` what the job needs to know, as plain values.
    """
    assert call.application is not None
    message = QueueJob(operation=call.route.operation, resource=resource, input=input, by=call.by)
    answer = await call.dispatcher.system.ask(Ref("application", ROOT, call.application), message)
    queued = {"success": True, "jobQueued": True, "jobId": short_job_id(answer.value)}
    return reply(call, 202, queued)


ROUTES = (
    Route(
        method="GET",
        path=APP + "/jobLogs",
        operation="applicationJobLogs.get",
        summary="List the jobs of an application",
        message=ListJobLogs,
        query=JobLogPage,
        reply=("list", JobLogView),
    ),
    Route(
        method="GET",
        path=APP + "/jobLogs/{jobId}",
        operation="applicationJobLog.get",
        summary="Get a job: how far it is, and what came of it",
        message=GetJobLog,
        reply=JobLogView,
    ),
)
