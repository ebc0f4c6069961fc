"""Applications, their access keys, their API tokens and their counts."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.messages import CreateRecord, GetRecord
from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Forbidden, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Created
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.actors.fleet.devices.queries.counts import CountDevices, DeviceCounts
from trunkline.actors.fleet.devices.queries.period_summaries import (
    ListPeriodSummaries,
    PeriodPage,
    PeriodSummary,
)
from trunkline.actors.fleet.devices.state.arrays import load_arrays
from trunkline.actors.people.accounts.messages import Session
from trunkline.actors.people.accounts.sessions import session_claims
from trunkline.actors.people.accounts.tokens import APPLICATION_TOKENS, USER_TOKENS, TokenPost
from trunkline.actors.platform.applications.keys import KEYS
from trunkline.actors.platform.applications.messages import (
    ApplicationPage,
    ApplicationPatch,
    ApplicationPost,
    ApplicationView,
    CreateApplication,
    DeleteApplication,
    GetApplication,
    ListApplications,
    PatchApplication,
)
from trunkline.actors.platform.applications.notebook_minutes import CountNotebookMinutes, NotebookMinuteCounts
from trunkline.actors.platform.applications.payload_counts import (
    BreakDownPayloads,
    CountPayloads,
    DayRange,
    PayloadBreakdown,
    PayloadCountRange,
    PayloadPeriods,
    PayloadStats,
)
from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.actors.portability.bundles.messages import PartProblems
from trunkline.http.calls.access import check_access
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH, APPLICATION_ACTOR, ME_PATH
from trunkline.http.calls.verbs import Shown, delete, get, list_of, patch, post
from trunkline.http.resources.platform.clones import template_id
from trunkline.http.resources.platform.jobs import do_small_job, queued


async def create_application(call: Call) -> Response:
    """Create an application of the user, or of an organization in which the role of the user allows it."""
    body: ApplicationPost = call.body
    service, org = call.service, None
    await load_arrays()
    if isinstance(body.org_id, str):
        org = bytes.fromhex(body.org_id)
        try:
            check_access(call, "org", org, call.route.level)
        except NotFound as missing:
            raise Invalid(f"orgId: {missing.message[0].lower()}{missing.message[1:]}") from None
    if isinstance(body.application_template_id, str):
        return await _create_from_template(call, body, org)
    message = CreateApplication(body=body, user=call.ids["user"], org=org)
    await service.system.ask(service.ref(call), message)
    return json_response(call, 201, await service.read(call, GetApplication))


async def _create_from_template(call: Call, body: ApplicationPost, org: bytes | None) -> Response:
    """Create an application with what a template describes: all of it, or nothing."""
    assert isinstance(body.application_template_id, str)
    owner = org or call.ids["user"]
    input = {
        "templateId": template_id(call, body.application_template_id, "applicationTemplateId"),
        "body": msgspec.to_builtins(body),
        "ownerType": "user" if org is None else "organization",
    }
    job = (call.route.operation, Ref("userJobs", ROOT, owner))
    id, output = await do_small_job(call, owner, input, owner=job)
    if output is None:
        return queued(call, id)
    call.ids = {**call.ids, "application": bytes.fromhex(output["applicationId"])}
    return json_response(call, 201, await call.service.read(call, GetApplication))


async def create_token(call: Call) -> Response:
    """Create an API token. Only this response contains the token."""
    body: TokenPost = call.body
    service, resource = call.service, call.route.resource
    assert resource is not None
    kind = "application" if resource.parent == "application" else "user"
    family = "all.Application" if kind == "application" else "all.User"
    wanted = [family] if body.scope is UNSET else list(body.scope)
    scopes = service.tokens.checked_scopes(wanted, kind=kind, field="scope")
    for scope in sorted(scopes):
        if not service.tokens.covers(call.principal.scopes, scope):
            raise Forbidden(
                f"scope: a token can grant only scopes that it has itself, and this one does not have {scope}."
            )
    call.body = msgspec.structs.replace(body, scope=sorted(scopes))
    ttl_s = None
    if isinstance(body.expiration_date, str):
        ttl_s = (parse_iso(body.expiration_date, field="expirationDate") - call.now_ms) / 1000
    claims: dict[str, Any] = {"typ": kind, "sub": call.ids[kind].hex()}
    session = call.principal.session
    if kind == "user" and session is not None:
        # The token ends with the password, as the token of its creator does, but has its own start time.
        claims |= session_claims(Session(session.generation, max(call.now_ms, session.since_ms)))
    answer = await service.system.ask(service.ref(call), service.message(call, CreateRecord))
    created: Created = answer.value
    call.ids = {**call.ids, resource.kind.name: created.id}
    token = service.tokens.issue({**claims, "jti": created.id.hex()}, scopes, call.now_ms, ttl_s)
    return json_response(call, 201, {**await service.read(call, GetRecord), "token": token})


_APPLICATION = Shown(GetApplication, ApplicationView, SummaryChoice)
ROUTES = (
    list_of(
        "/applications",
        "applications.get",
        "List the applications that the user can read",
        ListApplications,
        ApplicationView,
        ApplicationPage,
        area="organization",
        cli=True,
    ),
    post(
        "/applications",
        "applications.post",
        "Create an application",
        create_application,
        uses=(GetApplication,),
        body=ApplicationPost,
        query=SummaryChoice,
        to=APPLICATION_ACTOR,
        reply=ApplicationView,
        ok=201,
        job=JobQueued,
        problems=PartProblems,
        area="organization",
    ),
    list_of(
        "/applications/periodSummaries",
        "applications.periodSummaries",
        "List the applications of the user with their counts per day",
        ListPeriodSummaries,
        PeriodSummary,
        PeriodPage,
        area="organization",
    ),
    get(APP_PATH, "application.get", "Get an application", _APPLICATION, cli=True),
    patch(
        APP_PATH,
        "application.patch",
        "Change an application",
        PatchApplication,
        _APPLICATION,
        body=ApplicationPatch,
        to=APPLICATION_ACTOR,
        cli=True,
    ),
    delete(
        APP_PATH,
        "application.delete",
        "Delete an application and everything in it",
        DeleteApplication,
        to=APPLICATION_ACTOR,
    ),
    get(
        APP_PATH + "/deviceCounts",
        "application.deviceCounts",
        "Count devices per day",
        CountDevices,
        DeviceCounts,
        query=DayRange,
    ),
    get(
        APP_PATH + "/payloadCounts",
        "application.payloadCounts",
        "Count payloads by kind",
        CountPayloads,
        PayloadStats,
        query=PayloadCountRange,
    ),
    get(
        APP_PATH + "/payloadCountsBreakdown",
        "application.payloadCountsBreakdown",
        "Count payloads per hour or day",
        BreakDownPayloads,
        PayloadBreakdown,
        query=PayloadPeriods,
    ),
    get(
        APP_PATH + "/notebookMinuteCounts",
        "application.notebookMinuteCounts",
        "Count minutes of notebooks per day",
        CountNotebookMinutes,
        NotebookMinuteCounts,
        query=DayRange,
    ),
    *resource_routes(APP_PATH + "/keys", KEYS),
    *resource_routes(APP_PATH + "/tokens", APPLICATION_TOKENS, create=create_token),
    *resource_routes(ME_PATH + "/tokens", USER_TOKENS, create=create_token),
)
