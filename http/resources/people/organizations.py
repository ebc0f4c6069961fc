"""Organizations, their members and invitations."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from trunkline.actors.access.authority import Principal, find_user
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.mail import Mail
from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.queries.counts import CountDevices, DeviceCounts
from trunkline.actors.people.organizations.invitations import (
    AcceptInvite,
    DismissInvite,
    FindInvite,
    GetInvite,
    GetMyInvite,
    InviteAction,
    InviteInfo,
    InviteLink,
    InviteMember,
    InvitePost,
    InviteRemoval,
    InviteResult,
    InviteView,
    ListInvites,
    ListMyInvites,
    MyInviteAction,
    MyInviteResult,
    MyInviteView,
    NewInvite,
    RejectInvite,
    RevokeInvite,
    mail_of,
    verified_address,
)
from trunkline.actors.people.organizations.messages import (
    AccessView,
    CreateOrg,
    DeleteOrg,
    GetAccess,
    GetOrg,
    ListOrgs,
    MemberPatch,
    MemberRemoval,
    ModifyMember,
    OrgPage,
    OrgPatch,
    OrgPost,
    OrgView,
    PatchOrg,
    RemoveMember,
)
from trunkline.actors.people.organizations.roles import Level
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
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.platform.transfer import ResourceTransfer
from trunkline.http.calls.access import check_access
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH, ME_PATH, ORG_PATH, ORGANIZATION_ACTOR
from trunkline.http.calls.verbs import Shown, delete, get, list_of, patch, post
from trunkline.http.resources.people.account import transfer_resources


async def remove_member(call: Call) -> Response:
    """Remove a member. Every member may leave; removing somebody else is for administrators."""
    service, query = call.service, call.query
    member = bytes.fromhex(query.user_id)
    if member != call.ids["user"]:
        check_access(call, "org", call.ids["org"], Level.ADMINISTER)
    await service.system.ask(service.ref(call), RemoveMember(member=member))
    return json_response(call, 200, await service.read(call, GetOrg))


async def get_access(call: Call) -> Response:
    """What the caller may do in an application."""
    access = call.principal.accesses[call.application]
    message = GetAccess(owner=access.owner, level=access.level)
    return json_response(call, 200, await call.service.read_message(message))


async def invite_member(call: Call) -> Response:
    """Invite somebody by mail. If the mail is not sent, the invitation is revoked."""
    service, system, body = call.service, call.service.system, call.body
    ref = service.ref(call)
    answer = await system.ask(ref, service.message(call, InviteMember))
    new: NewInvite = answer.value
    mail = mail_of(new, body, system.component(Results).base_url, call.now_ms, system.limits.invite_s)
    try:
        await system.component(Mail).send(mail)
    except Undelivered as reason:
        with suppress(NotFound):  # answered or revoked in the meantime
            await system.ask(ref, RevokeInvite(invite=new.id))
        raise Overloaded(f"The mail was not sent. {reason} Nobody was invited; try again later.") from None
    headers = [] if answer.verdict is None else [*rate_limit("invite_member", answer.verdict)]
    return json_response(call, 200, await service.read(call, ListInvites), [JSON, *headers])


async def revoke_invite(call: Call) -> Response:
    """Revoke an invitation that was not answered yet."""
    service = call.service
    invite = bytes.fromhex(call.query.invite_id)
    await service.system.ask(service.ref(call), RevokeInvite(invite=invite))
    return json_response(call, 200, await service.read(call, ListInvites))


async def answer_by_token(call: Call) -> Response:
    """Answer an invitation with the token of its mail. To accept it there must be a user with the address."""
    body: InviteAction = call.body
    service, system = call.service, call.service.system
    org, invite = await service.read_message(FindInvite(email=body.email, token=body.token))
    with system.store.snapshot() as snapshot:
        user = find_user(snapshot, body.email)
    call.principal = Principal(
        kind="user", scopes=frozenset(), expires_ms=None, user_id=user, name=body.email
    )
    call.concern(org, "OrgInvite", invite.hex())
    if body.accept:
        if user is None:
            raise Invalid(
                f"email: there is no user {body.email}, and there is no sign-up; ask the operator of the server to "
                "create one. The invitation stays valid until it expires."
            )
        await system.ask(Ref("org", ROOT, org), AcceptInvite(invite=invite, user=user))
    else:
        await system.ask(Ref("org", ROOT, org), RejectInvite(invite=invite))
    return json_response(call, 200, {"accepted": body.accept, "orgId": org.hex()})


async def answer_my_invite(call: Call) -> Response:
    """Answer an invitation of the current user."""
    body: MyInviteAction = call.body
    service, system, user = call.service, call.service.system, call.ids["user"]
    with system.store.snapshot() as snapshot:
        email = verified_address(snapshot, user)
    org, invite = await service.read_message(FindInvite(email=email, invite=call.ids["invite"]))
    call.concern(org, "OrgInvite", invite.hex())
    messages: dict[str, tuple[Message, str]] = {
        "accept": (AcceptInvite(invite=invite, user=user), "accepted"),
        "reject": (RejectInvite(invite=invite), "rejected"),
        "dismiss": (DismissInvite(invite=invite), "dismissed"),
    }
    message, result = messages[body.action]
    await system.ask(Ref("org", ROOT, org), message)
    return json_response(call, 200, {"result": result, "orgId": org.hex()})


_NO_INVITE: Final = {
    404: "There is no such invitation: it was answered, revoked or replaced",
    410: "The invitation has expired",
}

_ORG = Shown(GetOrg, OrgView, SummaryChoice)
ROUTES = (
    list_of(
        "/orgs", "orgs.get", "List the organizations of the user", ListOrgs, OrgView, OrgPage, area="user"
    ),
    post(
        "/orgs",
        "orgs.post",
        "Create an organization",
        CreateOrg,
        _ORG,
        body=OrgPost,
        to=ORGANIZATION_ACTOR,
        ok=201,
        area="user",
    ),
    get(ORG_PATH, "org.get", "Get an organization", _ORG, area="organization"),
    get(APP_PATH + "/access", "application.access", "Get what you may do in it", get_access, AccessView),
    patch(
        ORG_PATH,
        "org.patch",
        "Change an organization",
        PatchOrg,
        _ORG,
        body=OrgPatch,
        to=ORGANIZATION_ACTOR,
        area="organization",
    ),
    delete(
        ORG_PATH,
        "org.delete",
        "Delete an organization that owns nothing",
        DeleteOrg,
        to=ORGANIZATION_ACTOR,
        area="organization",
    ),
    patch(
        ORG_PATH + "/member",
        "org.modifyMember",
        "Change the roles of a member",
        ModifyMember,
        _ORG,
        body=MemberPatch,
        to=ORGANIZATION_ACTOR,
        area="organization",
    ),
    delete(
        ORG_PATH + "/member",
        "org.removeMember",
        "Remove a member, or leave",
        remove_member,
        uses=(GetOrg,),
        query=MemberRemoval,
        to=ORGANIZATION_ACTOR,
        reply=OrgView,
        area="organization",
    ),
    get(
        ORG_PATH + "/invites",
        "org.pendingInvites",
        "List the invitations that were not answered yet",
        ListInvites,
        list[InviteView],
        area="organization",
    ),
    post(
        ORG_PATH + "/invites",
        "org.inviteMember",
        "Invite somebody by mail",
        InviteMember,
        handler=invite_member,
        uses=(ListInvites,),
        body=InvitePost,
        to=ORGANIZATION_ACTOR,
        reply=list[InviteView],
        area="organization",
        also={503: "The mail was not sent"},
    ),
    delete(
        ORG_PATH + "/invites",
        "org.revokeInvite",
        "Revoke an invitation",
        revoke_invite,
        uses=(ListInvites,),
        query=InviteRemoval,
        to=ORGANIZATION_ACTOR,
        reply=list[InviteView],
        area="organization",
    ),
    get(
        "/invites",
        "orgInvites.get",
        "Show what an invitation is about, by the token of its mail",
        GetInvite,
        InviteInfo,
        query=InviteLink,
        access="none",
        also=_NO_INVITE,
    ),
    post(
        "/invites",
        "orgInvites.post",
        "Answer an invitation with the token of its mail",
        answer_by_token,
        body=InviteAction,
        reply=InviteResult,
        access="none",
        also=_NO_INVITE,
    ),
    get(
        ME_PATH + "/invites",
        "me.invites",
        "List the invitations of the user",
        ListMyInvites,
        list[MyInviteView],
        area="user",
    ),
    get(
        ME_PATH + "/invites/{inviteId}",
        "me.invite",
        "Get an invitation of the user",
        GetMyInvite,
        MyInviteView,
        area="user",
    ),
    post(
        ME_PATH + "/invites/{inviteId}",
        "me.respondToInvite",
        "Answer an invitation of the user",
        answer_my_invite,
        body=MyInviteAction,
        reply=MyInviteResult,
        area="user",
        also={410: _NO_INVITE[410]},
    ),
    get(
        ORG_PATH + "/deviceCounts",
        "org.deviceCounts",
        "Count devices per day in the applications of an organization",
        CountDevices,
        DeviceCounts,
        query=DayRange,
        area="organization",
    ),
    get(
        ORG_PATH + "/payloadCounts",
        "org.payloadCounts",
        "Count payloads by kind in the applications of an organization",
        CountPayloads,
        PayloadStats,
        query=PayloadCountRange,
        area="organization",
    ),
    get(
        ORG_PATH + "/payloadCountsBreakdown",
        "org.payloadCountsBreakdown",
        "Count payloads of an organization for each hour or day",
        BreakDownPayloads,
        PayloadBreakdown,
        query=PayloadPeriods,
        area="organization",
    ),
    get(
        ORG_PATH + "/notebookMinuteCounts",
        "org.notebookMinuteCounts",
        "Count the minutes of notebooks of an organization per day",
        CountNotebookMinutes,
        NotebookMinuteCounts,
        query=DayRange,
        area="organization",
    ),
    patch(
        ORG_PATH + "/transferResources",
        "org.transferResources",
        "Give applications and dashboards of an organization to another owner",
        transfer_resources,
        body=ResourceTransfer,
        to=ORGANIZATION_ACTOR,
        area="organization",
    ),
)
