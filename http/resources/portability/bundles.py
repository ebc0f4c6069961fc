"""Bundles: applications as files."""

from __future__ import annotations

from msgspec import UNSET

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.portability.bundles.messages import ApplicationExport, ApplicationExportResult
from trunkline.actors.portability.bundles.writer import count_resources
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import post
from trunkline.http.resources.platform.jobs import do_small_job, queue_job, queued


async def export_application(call: Call) -> Response:
    """Export an application as one zip file, which `applications.import` and `application.import` read.

    The link to the file of a small application is in the response. A larger one is exported by a job. The bundle has no
    secrets, and nothing of what devices reported.
    """
    body: ApplicationExport = call.body
    if body.export_type == "repo":
        raise Invalid("exportType: this server does not write to repositories; give zip, or leave it out.")
    for name, value in (("credentialName", body.credential_name), ("repo", body.repo)):
        if value is not UNSET:
            raise Invalid(
                f"{name}: is for exports to a repository, which this server does not make; leave it out."
            )
    options = {
        "includeFiles": body.include_files,
        "includePrivateFiles": body.include_private_files,
        "includeDataTableRows": body.include_data_table_rows,
        "includeDevices": body.include_devices,
    }
    system, application = call.service.system, call.application
    records = await system.read(lambda snapshot: count_resources(snapshot, application, options))
    if body.force_job or records > system.limits.bundle_small_records_max:
        return await queue_job(call, application, options, notify=(body,))
    id, output = await do_small_job(call, application, options, notify=(body,))
    if output is None:
        return queued(call, id)
    link = system.component(Results).link(application, id, output["file"])
    return json_response(call, 200, {"url": link})


ROUTES = (
    post(
        APP_PATH + "/export",
        "application.export",
        "Export an application as one file",
        export_application,
        body=ApplicationExport,
        reply=ApplicationExportResult,
        job=JobQueued,
        also={
            413: "The bundle would be too large",
            429: "The application is being exported already, or has too many jobs",
            507: "The disk is full; nothing was stored",
        },
        access="read",
    ),
)
