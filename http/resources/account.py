"""The user's account: the password, and the end of the account."""

from __future__ import annotations

from trunkline.actors.accounts.messages import (
    AuthedUser,
    ChangePassword,
    PasswordChange,
    Session,
    UserCredentials,
    VerifyCredentials,
)
from trunkline.actors.boot import delete_account
from trunkline.actors.records import records
from trunkline.actors.records.kinds import USER
from trunkline.actors.values.errors import Unauthorized
from trunkline.actors.values.ids import ROOT
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import json_response
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import ME_PATH, USER_ACTOR, Route
from trunkline.http.resources.auth import lifetime_s, user_token

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
    ref, message = service.ref(call), service.message(call, ChangePassword)
    async with service.login_throttle.attempt(
        ref.id.hex(), call.request.address, service.system.clock.monotonic_s
    ):
        session: Session = (await service.system.ask(ref, message)).value
    return user_token(call, ref.id, session, principal.scopes, ttl_s)


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
        await system.ask(ref, VerifyCredentials(password=body.password))
    await delete_account(system, ref.id)
    return json_response(call, 200, {"success": True})


ROUTES = (
    Route(
        method="PATCH",
        path=ME_PATH + "/changePassword",
        operation="me.changePassword",
        summary="Change the password",
        message=ChangePassword,
        body=PasswordChange,
        to=USER_ACTOR,
        reply=AuthedUser,
        access="write",
        area="user",
        handler=change_password,
        also=_WRONG_CREDENTIALS,
    ),
    Route(
        method="POST",
        path=ME_PATH + "/delete",
        operation="me.delete",
        summary="Delete the current user",
        body=UserCredentials,
        to=USER_ACTOR,
        access="write",
        area="user",
        handler=delete_me,
        also=_WRONG_CREDENTIALS,
    ),
)
