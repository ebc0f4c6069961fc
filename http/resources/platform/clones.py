"""Routes: clones of applications, and application templates that are applied."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Forbidden, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import ApplicationView, GetApplication
from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.actors.portability.bundles.messages import (
    ApplicationClone,
    CloneCheck,
    NewApplication,
    PartProblems,
)
from trunkline.actors.portability.bundles.writer import count_resources
from trunkline.actors.portability.templates.catalogue import Catalogue
from trunkline.actors.portability.templates.messages import TemplateApplication
from trunkline.http.calls.access import check_access
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import patch, post
from trunkline.http.resources.platform.jobs import do_small_job, queue_job, queued


async def clone_application(call: Call) -> Response:
    """Make a new application with everything that a bundle of this one has. Secrets are not cloned.

    The clone of a small application is in the response; a larger one is made by a job. With `dryRun` nothing is made.
    """
    body: ApplicationClone = call.body or ApplicationClone()
    system = call.service.system
    owner, owner_type = _owner_of_clone(call, body)
    if not body.dry_run:
        call.concern(owner)
    input: dict[str, Any] = {
        "applicationId": call.application.hex(),
        "ownerType": owner_type,
        "dryRun": body.dry_run,
        "includeFiles": body.include_files,
        "includePrivateFiles": body.include_private_files,
        "includeDataTableRows": body.include_data_table_rows,
        "includeDevices": body.include_devices,
    }
    size = await system.read(lambda snapshot: count_resources(snapshot, call.application, input))
    is_large = body.force_job or size > system.limits.bundle_small_records_max
    job = (call.route.operation, Ref("userJobs", ROOT, owner))
    if is_large and not body.dry_run:
        return await queue_job(call, owner, input, notify=(body,), owner=job)
    id, output = await do_small_job(call, owner, input, notify=(body,), owner=job)
    if output is None:
        return queued(call, id)
    if body.dry_run:
        return json_response(call, 200, {"success": True, "requiresJob": is_large})
    made = await call.service.read_message(
        GetApplication(application=bytes.fromhex(output["applicationId"]), query=SummaryChoice())
    )
    return json_response(call, 201, {"application": made, "validationErrors": []})


def _owner_of_clone(call: Call, body: ApplicationClone) -> tuple[bytes, str]:
    """The owner of the clone and its type. Raises unless the caller may create applications there."""
    user = call.principal.user_id
    if user is None:
        raise Forbidden(
            "A token of an application cannot clone it, because it would not reach the clone; use one of a user."
        )
    if body.owner_id:
        owner = bytes.fromhex(body.owner_id)
        owner_type = body.owner_type or ("user" if owner == user else "organization")
    elif body.owner_type is not UNSET and body.owner_type == "user":
        owner, owner_type = user, "user"
    else:
        with call.service.system.store.snapshot() as snapshot:
            found = records.find(snapshot, APPLICATION, ROOT, call.application)
        if found is None:
            raise NotFound(f"There is no application {call.application.hex()}.")
        owner, owner_type = bytes.fromhex(found.doc["ownerId"]), found.doc["ownerType"]
    if owner_type == "organization":
        creation = call.service.route_of("applications.post")
        assert creation is not None
        try:
            check_access(call, "org", owner, creation.level)
        except NotFound as missing:
            raise Invalid(f"ownerId: {missing.message[0].lower()}{missing.message[1:]}") from None
    elif owner != user:
        raise Invalid("ownerId: is another user; leave it out, or give yourself or an organization.")
    return owner, owner_type


async def apply_template(call: Call) -> Response:
    """Create in an application what a template describes: all of it, or nothing.

    Globals that the application has already stay as they are, and so does its readme. What clashes with something that
    the application has (the route of an endpoint) refuses the template.
    """
    body: TemplateApplication = call.body
    template = template_id(call, body.template_id, "templateId")
    input = {"templateId": template}
    id, output = await do_small_job(call, call.application, input, notify=(body,))
    if output is None:
        return queued(call, id)
    return json_response(call, 200, await call.service.read(call, GetApplication))


def template_id(call: Call, text: str, field: str) -> str:
    """The id of a template of the catalogue. Raises `Invalid` for the field."""
    id = text.lower()
    if id not in call.service.system.component(Catalogue).templates:
        raise Invalid(
            f"{field}: there is no application template {id}; GET /applicationTemplates lists them."
        )
    return id


ROUTES = (
    post(
        APP_PATH + "/clone",
        "application.clone",
        "Clone an application",
        clone_application,
        body=ApplicationClone,
        optional_body=True,
        reply=NewApplication,
        ok=201,
        job=JobQueued,
        checked=CloneCheck,
        problems=PartProblems,
        also={
            429: "The owner of the clone has another clone or import that is not finished",
            507: "The disk is full; nothing was stored",
        },
    ),
    patch(
        APP_PATH + "/applyTemplate",
        "application.applyTemplate",
        "Apply an application template",
        apply_template,
        body=TemplateApplication,
        query=SummaryChoice,
        uses=(GetApplication,),
        reply=ApplicationView,
        job=JobQueued,
        problems=PartProblems,
        also={
            429: "A template or a bundle is being applied to the application already",
            507: "The disk is full; nothing was stored",
        },
    ),
)
