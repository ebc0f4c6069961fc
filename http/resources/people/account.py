"""The user's account: the password, the second factor, what is given away, and the end of the account."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.people.accounts.messages import (
    AuthedUser,
    ChangePassword,
    GetMe,
    MeChoice,
    MeView,
    PasswordChange,
    Session,
    UserCredentials,
    VerifyCredentials,
)
from trunkline.actors.people.accounts.two_factor import (
    DisableTwoFactor,
    EnableTwoFactor,
    GenerateTwoFactor,
    TwoFactorDisabling,
    TwoFactorEnabling,
    TwoFactorKey,
)
from trunkline.actors.people.organizations.membership import find_membership, memberships
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.platform.transfer import ResourceTransfer, transfer
from trunkline.actors.server_users import delete_account
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import ME_PATH, USER_ACTOR
from trunkline.http.calls.verbs import patch, post
from trunkline.http.resources.people.auth import lifetime_s, user_token

_WRONG_CREDENTIALS = {
    401: "No token, one that is not valid, or a wrong current password",
    429: "Too many wrong passwords",
}


async def change_password(call: Call) -> Response:
    """Change the password, and return a new token with the scopes of the token of the call.

    A wrong current password counts as a failed login.
    """
    service, principal = call.service, call.principal
    ttl_s = lifetime_s(call.body.token_ttl, service.token_ttl_s)
    session: Session = await _ask_checked(call, ChangePassword)
    return user_token(call, service.ref(call).id, session, principal.scopes, ttl_s)


async def delete_me(call: Call) -> Response:
    """Delete the user with all applications, tokens and other records of the user. The credentials are needed.

    Refused for the only user of the server. Wrong credentials count as a failed login.
    """
    service, body = call.service, call.body
    system, ref = service.system, service.ref(call)
    async with service.login_throttle.attempt(ref.id.hex(), call.request.address, system.clock.monotonic_s):
        with system.store.snapshot() as snapshot:
            user = records.find(snapshot, USER, ROOT, ref.id)
        if user is None or user.doc["email"].casefold() != body.email.casefold():
            raise Unauthorized("email: is not that of the user of the token.")
        await system.ask(ref, VerifyCredentials(password=body.password, two_factor_code=body.two_factor_code))
    with system.store.snapshot() as snapshot:
        joined = [each.org for each in memberships(snapshot, ref.id)]
    await delete_account(system, ref.id)
    for org in joined:
        call.concern(org)
    return json_response(call, 200, {"success": True})


async def enable_two_factor(call: Call) -> Response:
    """Require a code at each login from now on. The response shows the recovery codes, once.

    Wrong credentials count as a failed login.
    """
    codes = await _ask_checked(call, EnableTwoFactor)
    shown = await call.service.read(call, GetMe)
    return json_response(call, 200, {**shown, "recoveryCodes": codes})


async def disable_two_factor(call: Call) -> Response:
    """Require no codes any more. Wrong credentials count as a failed login."""
    await _ask_checked(call, DisableTwoFactor)
    return json_response(call, 200, await call.service.read(call, GetMe))


async def transfer_resources(call: Call) -> Response:
    """Give applications and dashboards of the user, or of the organization of the path, to another owner.

    The new owner is a user, or an organization in which the user may create applications. Without `strict`, what does
    not belong to the source is left out.
    """
    body, system = call.body, call.service.system
    source = call.service.ref(call)
    _concern(call, source)
    if body.destination_type == "organization":
        with system.store.snapshot() as snapshot:
            membership = find_membership(snapshot, body.destination.id, call.ids["user"])
        if membership is None or membership.level < Level.MANAGE:
            raise Invalid(
                f"destinationId: there is no organization {body.destination_id} in which you may create applications."
            )
        _concern(call, body.destination)
    await transfer(system, source, body)
    _concern(call, body.destination)
    return json_response(call, 200, {"success": True})


def _concern(call: Call, owner: Ref) -> None:
    """Let a transfer have an entry in the audit log of its source or destination; that of a user is of applications."""
    applications = call.body.application_ids
    if owner.kind == "user" and not applications:
        return
    if len(applications) != 1 or call.body.dashboard_ids:
        call.concern(owner.id)
        return
    with call.service.system.store.snapshot() as snapshot:
        found = records.find(snapshot, APPLICATION, ROOT, bytes.fromhex(applications[0]))
    name = None if found is None else found.doc["name"]
    call.concern(owner.id, "Application", applications[0].lower(), name)


async def _ask_checked(call: Call, message: type[Message]) -> Any:
    """Ask the user with a message that has credentials. Wrong ones count as a failed login."""
    service = call.service
    ref, filled = service.ref(call), service.message(call, message)
    now_s = service.system.clock.monotonic_s
    async with service.login_throttle.attempt(ref.id.hex(), call.request.address, now_s):
        return (await service.system.ask(ref, filled)).value


ROUTES = (
    patch(
        ME_PATH + "/changePassword",
        "me.changePassword",
        "Change the password",
        ChangePassword,
        body=PasswordChange,
        to=USER_ACTOR,
        reply=AuthedUser,
        area="user",
        handler=change_password,
        also=_WRONG_CREDENTIALS,
    ),
    post(
        ME_PATH + "/delete",
        "me.delete",
        "Delete the current user",
        delete_me,
        body=UserCredentials,
        to=USER_ACTOR,
        area="user",
        also=_WRONG_CREDENTIALS,
    ),
    patch(
        ME_PATH + "/generateTwoFactorAuth",
        "me.generateTwoFactorAuth",
        "Make a key for two-factor authentication",
        GenerateTwoFactor,
        to=USER_ACTOR,
        reply=TwoFactorKey,
        answer_is_reply=True,
        area="user",
    ),
    patch(
        ME_PATH + "/enableTwoFactorAuth",
        "me.enableTwoFactorAuth",
        "Enable two-factor authentication",
        EnableTwoFactor,
        body=TwoFactorEnabling,
        query=MeChoice,
        to=USER_ACTOR,
        reply=MeView,
        area="user",
        handler=enable_two_factor,
        uses=(GetMe,),
        also=_WRONG_CREDENTIALS,
    ),
    patch(
        ME_PATH + "/disableTwoFactorAuth",
        "me.disableTwoFactorAuth",
        "Disable two-factor authentication",
        DisableTwoFactor,
        body=TwoFactorDisabling,
        query=MeChoice,
        to=USER_ACTOR,
        reply=MeView,
        area="user",
        handler=disable_two_factor,
        uses=(GetMe,),
        also=_WRONG_CREDENTIALS,
    ),
    patch(
        ME_PATH + "/transferResources",
        "me.transferResources",
        "Give applications and dashboards to another owner",
        transfer_resources,
        body=ResourceTransfer,
        to=USER_ACTOR,
        area="user",
    ),
)
