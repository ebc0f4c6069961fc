"""Dashboards: those of an application, and by their id alone those of the current user and of organizations as well.

A dashboard that is public can be read without a token, if it has a password with that.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from trunkline.actors.access import authority
from trunkline.actors.core.records.messages import CreateRecord, DeleteRecord, PatchRecord
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.errors import Forbidden, Invalid, Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.terms import Success
from trunkline.actors.core.values.timestamps import resolve_range
from trunkline.actors.people.accounts.passwords import verify_password
from trunkline.actors.people.organizations.messages import AccessView, GetAccess
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.presentation.dashboards.context import resolve_context
from trunkline.actors.presentation.dashboards.holder import Holder
from trunkline.actors.presentation.dashboards.messages import (
    ContextQuery,
    ContextRefusal,
    ContextValues,
    ContextView,
    DashboardPassword,
    DashboardPatch,
    DashboardPost,
    FindDashboard,
    ListOwnedDashboards,
    OwnedDashboardPage,
    OwnedDashboardPost,
    OwnedDashboardView,
    SendReport,
    ValidateContext,
)
from trunkline.actors.presentation.dashboards.reads import Held
from trunkline.actors.presentation.dashboards.report_options import report_options
from trunkline.actors.presentation.dashboards.report_schedule import job_kind
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS, USER_DASHBOARDS
from trunkline.http.calls.access import check_access
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import protocol_error
from trunkline.http.calls.request import Response
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH, LinkTemplates
from trunkline.http.calls.verbs import delete, get, job, list_of, patch, post
from trunkline.http.resources.platform.jobs import queue_job
from trunkline.http.resources.presentation.dashboard_rights import check_writer, refusals
from trunkline.limits.extras import how_to_install, lacks, library_missing

DASHBOARDS_PATH = "/dashboards"
DASHBOARD_PATH = DASHBOARDS_PATH + "/{dashboardId}"
_KIND = USER_DASHBOARDS.kind
PASSWORD_ERRORS = {
    401: "The token is not valid, or the password of the public dashboard is missing or wrong",
    429: "Too many wrong passwords",
}
_REPORT_ERRORS = {
    429: "A report of the dashboard is already queued or running",
    501: "The server lacks the library that draws pictures",
    507: "The disk is full",
}
_OWN_LINKS = {"self": DASHBOARD_PATH}


async def create_dashboard(call: Call) -> Response:
    """Create a dashboard of the current user, of the organization `orgId`, or of the application `applicationId`."""
    body: OwnedDashboardPost = call.body
    holder = Holder("user", call.ids["user"])
    if body.application_id is not UNSET:
        if body.org_id is not UNSET:
            raise Invalid("orgId: is that of the application; leave it out.")
        holder = Holder("application", bytes.fromhex(body.application_id))
        check_access(call, "application", holder.id, Level.WRITE)
    elif body.org_id is not UNSET:
        holder = Holder("org", bytes.fromhex(body.org_id))
        check_access(call, "org", holder.id, Level.MANAGE)
    check_writer(call, holder, msgspec.to_builtins(body), {})
    record = DashboardPost(**{name: getattr(body, name) for name in DashboardPost.__struct_fields__})
    message = CreateRecord(resource=holder.resource, body=record, by=call.principal.creator)
    answer = await call.service.system.ask(holder.ref, message)
    call.ids = {**call.ids, "dashboard": answer.value.id}
    return json_response(call, 201, (await _find(call)).shown)


async def get_dashboard(call: Call) -> Response:
    """Get a dashboard: with a token that reaches it, or without one if it is public."""
    return json_response(call, 200, (await find_readable(call)).shown)


async def get_access(call: Call) -> Response:
    """What the caller may do with a dashboard."""
    access = _access(call, await find_reached(call))
    message = GetAccess(owner=access.owner, level=access.level)
    return json_response(call, 200, await call.service.read_message(message))


async def patch_dashboard(call: Call) -> Response:
    """Change a dashboard."""
    held = await find_reached(call)
    check_writer(call, held.holder, msgspec.to_builtins(call.body), held.found.doc)
    message = PatchRecord(
        resource=held.holder.resource,
        record=held.found.id,
        body=call.body,
        by=call.principal.creator,
        if_match=call.if_match,
    )
    await call.service.system.ask(held.holder.ref, message)
    return json_response(call, 200, (await _find(call)).shown)


async def delete_dashboard(call: Call) -> Response:
    """Delete a dashboard."""
    held = await find_reached(call)
    message = DeleteRecord(resource=held.holder.resource, record=held.found.id, if_match=call.if_match)
    await call.service.system.ask(held.holder.ref, message)
    return json_response(call, 200, {"success": True})


async def validate_context(call: Call) -> Response:
    """Check the values of the parameters of a dashboard; those that are not given have their defaults.

    The answer has all values. If one does not fit, the error names it in `invalidCtxName`.
    """
    held = await find_readable(call)
    query: ContextQuery = call.query
    if query.end is not None:
        resolve_range(call.now_ms, end=query.end)
    message = ValidateContext(
        dashboard=held.found.id,
        first=held.holder.id,
        ctx=msgspec.to_builtins(call.body),
        query=query,
        refused=frozenset(refusals(call, held)),
    )
    shown = await call.service.read_message(message)
    return json_response(call, 200 if "success" in shown else 400, shown)


async def send_report(call: Call) -> Response:
    """Send a report of a dashboard by mail: its blocks with their data, as HTML with pictures and as text.

    The report has the authority of the caller at the time when it is made. If it cannot be made, its readers get a mail
    that says why. `callbackUrl` is told of the end, with a link to the mail as a file.
    """
    body: SendReport = call.body
    if body.to_email is UNSET and body.callback_url is UNSET:
        raise Invalid("toEmail: name who gets the report, or give a callbackUrl.")
    if await in_thread(SHORT, lacks, "reports"):
        cause, remedy = library_missing("reports"), how_to_install("reports")
        headers, refusal = protocol_error(
            501, f"This server makes no reports: {cause}; its operator can {remedy}."
        )
        return Response(501, headers, refusal)
    held = await (find_in_application(call) if "application" in call.ids else find_reached(call))
    options = await in_thread(SHORT, report_options, body, call.now_ms)
    with call.service.system.store.snapshot() as snapshot:
        resolve_context(snapshot, held.holder, held.found.doc, options["ctx"], refusals(call, held))
    kind = job_kind(held.holder.kind)
    return await queue_job(
        call,
        held.found.id,
        options,
        notify=(body,),
        result_to=body.to_email or [],
        owner=(kind.operation, Ref(kind.owner, ROOT, held.holder.id)),
    )


# Access.


async def find_in_application(call: Call) -> Held:
    message = FindDashboard(dashboard=call.ids["dashboard"], first=call.application)
    held: Held = await call.service.read_message(message)
    if held.holder.id != call.application:
        raise missing(_KIND, held.found.id)
    return held


async def find_reached(call: Call) -> Held:
    """The dashboard of the path. Raises `NotFound` if there is none, `Forbidden` if the token does not reach it."""
    held = await _find(call)
    _check_reach(call, held)
    return held


async def find_readable(call: Call) -> Held:
    """The dashboard of the path for a caller who may have no token; then without its reports.

    Raises `NotFound` without a token unless it is public, `Unauthorized` for a wrong password.
    """
    if not call.is_anonymous:
        return await find_reached(call)
    held: Held = await call.service.read_message(FindDashboard(dashboard=call.ids["dashboard"], first=None))
    if not held.found.doc["public"]:
        raise missing(_KIND, held.found.id)
    await _check_password(call, held)
    return held._replace(shown={**held.shown, "reportConfigs": []})


async def _find(call: Call) -> Held:
    message = FindDashboard(dashboard=call.ids["dashboard"], first=call.principal.user_id)
    held: Held = await call.service.read_message(message)
    return held


def _check_reach(call: Call, held: Held) -> None:
    level = call.route.level
    if held.holder.kind == "org" and call.route.method == "DELETE":
        level = Level.MANAGE
    authority.check_level(_access(call, held), level, call.route.operation)


def _access(call: Call, held: Held) -> authority.Access:
    """What the caller may do with a dashboard. Raises `Forbidden` if that is nothing."""
    holder, principal = held.holder, call.principal
    if holder.kind == "application":
        check_access(call, "application", holder.id, Level.READ)
        return principal.accesses[holder.id]
    if holder.kind == "org":
        check_access(call, "org", holder.id, Level.MEMBER)
        with call.service.system.store.snapshot() as snapshot:
            return authority.dashboard_access(snapshot, principal, holder.id, held.found.id)
    if holder.id != principal.user_id:
        raise Forbidden(f"This token does not reach the dashboard {held.found.id.hex()}.")
    return authority.Access(Level.ADMINISTER, holder.id)


async def _check_password(call: Call, held: Held) -> None:
    """Check the password of a public dashboard. Wrong ones count like failed logins."""
    stored = held.found.doc.get("passwordHash")
    if stored is None:
        return
    given: str | None = call.query.password
    if given is None:
        raise Unauthorized("This dashboard has a password; give it as the parameter `password`.")
    service, clock = call.service, call.service.system.clock
    if service.public_answers.knows_password(held.found.id, stored, given):
        return
    id = held.found.id.hex()
    async with service.login_throttle.attempt(f"dashboard {id}", call.request.address, clock.monotonic_s):
        if not await verify_password(stored, given):
            raise Unauthorized("password: is not the password of this dashboard.")
    service.public_answers.note_password(held.found.id, stored, given)


ROUTES = (
    *resource_routes(APP_PATH + "/dashboards", DASHBOARDS),
    list_of(
        DASHBOARDS_PATH,
        "dashboards.get",
        "List the dashboards that the user reaches",
        ListOwnedDashboards,
        OwnedDashboardView,
        OwnedDashboardPage,
        links=LinkTemplates({"self": DASHBOARDS_PATH}, _OWN_LINKS),
        resource=USER_DASHBOARDS,
        area="organization",
        beside={"applicationId": str, "orgId": str},
    ),
    post(
        DASHBOARDS_PATH,
        "dashboards.post",
        "Create a dashboard of the user or of an application",
        create_dashboard,
        body=OwnedDashboardPost,
        prepare=USER_DASHBOARDS.prepare,
        reply=OwnedDashboardView,
        ok=201,
        links=LinkTemplates(_OWN_LINKS),
        resource=USER_DASHBOARDS,
        area="organization",
    ),
    get(
        DASHBOARD_PATH,
        "dashboard.get",
        "Get a dashboard; without a token if it is public",
        get_dashboard,
        OwnedDashboardView,
        query=DashboardPassword,
        links=LinkTemplates(_OWN_LINKS),
        resource=USER_DASHBOARDS,
        area="organization",
        anonymous=True,
        also=PASSWORD_ERRORS,
    ),
    get(
        DASHBOARD_PATH + "/access",
        "dashboard.access",
        "Get what you may do with it",
        get_access,
        AccessView,
        area="organization",
    ),
    post(
        DASHBOARD_PATH + "/validateContext",
        "dashboard.validateContext",
        "Check values for the parameters of a dashboard",
        validate_context,
        query=ContextQuery,
        body=ContextValues,
        reply=ContextView,
        refusal=ContextRefusal,
        area="organization",
        anonymous=True,
        also=PASSWORD_ERRORS,
        access="read",
        only_reads=True,
    ),
    job(
        DASHBOARD_PATH,
        "dashboard.sendReport",
        "Send a report of a dashboard by mail",
        send_report,
        body=SendReport,
        access="write",
        area="organization",
        also=_REPORT_ERRORS,
    ),
    job(
        APP_PATH + DASHBOARD_PATH,
        "applicationDashboard.sendReport",
        "Send a report of a dashboard by mail",
        send_report,
        body=SendReport,
        access="write",
        also=_REPORT_ERRORS,
    ),
    patch(
        DASHBOARD_PATH,
        "dashboard.patch",
        "Change a dashboard",
        patch_dashboard,
        body=DashboardPatch,
        prepare=USER_DASHBOARDS.prepare,
        reply=OwnedDashboardView,
        links=LinkTemplates(_OWN_LINKS),
        resource=USER_DASHBOARDS,
        area="organization",
    ),
    delete(
        DASHBOARD_PATH,
        "dashboard.delete",
        "Delete a dashboard",
        delete_dashboard,
        reply=Success,
        resource=USER_DASHBOARDS,
        area="organization",
    ),
)
