"""Logins at another place: single sign-on by SAML 2.0 for configured domains, and a code host."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from trunkline.actors.access.authority import find_user
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.errors import Invalid, Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.accounts.messages import (
    AuthedUser,
    GetMe,
    MeChoice,
    MeView,
    SsoQuery,
    SsoRequest,
)
from trunkline.actors.people.accounts.saml import Partners, read_response, request_url
from trunkline.actors.people.accounts.sso import (
    BeginSession,
    CodehostLogin,
    CodehostToken,
    ConnectCodehost,
    DisconnectCodehost,
    Provider,
    SamlLogin,
    SingleSignOn,
)
from trunkline.actors.platform.jobs.results import Results
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import ME_PATH, USER_ACTOR
from trunkline.http.calls.verbs import get, patch, post
from trunkline.http.resources.people.auth import noted, user_token, wanted_token


async def sso_domain(call: Call) -> Response:
    """Return the URL at which the users of an e-mail domain log in. 204 if the domain has no single sign-on.

    The response depends on the domain alone, so it does not tell who is a user.
    """
    partners = _partners(call, call.query.email.rpartition("@")[2])
    if partners is None:
        return Response(204, [])
    return json_response(call, 200, {"ssoType": "SAML", "ssoRequest": request_url(partners)})


async def authenticate_user_saml(call: Call) -> Response:
    """Return a user's token for the answer of the identity provider of the user's domain. An answer is used once."""
    body: SamlLogin = call.body
    wanted = wanted_token(call)
    async with _attempt(call):
        partners = _partners(call, body.saml_domain)
        if partners is None:
            raise Invalid(f"SAMLDomain: {body.saml_domain} has no single sign-on; log in with the password.")
        assertion = await in_thread(SHORT, read_response, body.saml_response, partners)
        used = (assertion.expires_ms, assertion.id)
        return await _begin_session(call, "saml", (assertion.email,), used, wanted)


async def authenticate_user_codehost(call: Call) -> Response:
    """Return a user's token for a token of the code host, which must know the user by a verified address.

    Refused for users who have a second factor, or have disconnected the code host.
    """
    wanted = wanted_token(call)
    async with _attempt(call):
        emails = await call.service.system.component(SingleSignOn).codehost_emails(call.body.access_token)
        return await _begin_session(call, "codehost", emails, None, wanted)


async def connect_codehost(call: Call) -> Response:
    """Permit logins by the code host, which must know the user by the user's verified e-mail address."""
    service = call.service
    async with _attempt(call):
        emails = await service.system.component(SingleSignOn).codehost_emails(call.body.access_token)
        await service.system.ask(service.ref(call), ConnectCodehost(emails=emails))
    return json_response(call, 200, await service.read(call, GetMe))


def _partners(call: Call, domain: str) -> Partners | None:
    system = call.service.system
    return system.component(SingleSignOn).partners(domain, system.component(Results).base_url, call.now_ms)


def _attempt(call: Call) -> AbstractAsyncContextManager[None]:
    """Failed attempts count for the network address: who logs in is not known before."""
    address, now_s = call.request.address, call.service.system.clock.monotonic_s
    return call.service.login_throttle.attempt(None, address, now_s)


async def _begin_session(
    call: Call,
    provider: Provider,
    emails: tuple[str, ...],
    assertion: tuple[int, str] | None,
    wanted: tuple[frozenset[str], float | None],
) -> Response:
    """Log in the first user who has one of the addresses, verified if there is one such. Raises `Unauthorized`."""
    system = call.service.system
    with system.store.snapshot() as snapshot:
        ids = [id for email in emails if (id := find_user(snapshot, email)) is not None]
        users = [user for id in ids if (user := records.find(snapshot, USER, ROOT, id)) is not None]
    if not users:
        raise Unauthorized("There is no user with this e-mail address.")
    # An account whose address is not verified may be somebody else's, so it does not stand in the way of another.
    user = next((each for each in users if "emailVerified" in each.doc), users[0])
    message = BeginSession(provider=provider, emails=emails, assertion=assertion)
    session = (await system.ask(Ref("user", ROOT, user.id), message)).value
    return user_token(call, user.id, session, *wanted)


_REFUSED = {401: "The login at the other place is not accepted", 429: "Too many failed logins"}
_UNREACHED = {503: "The code host cannot be asked"}

ROUTES = (
    get(
        "/auth/ssoDomain",
        "auth.ssoDomain",
        "Ask whether an e-mail domain has single sign-on",
        sso_domain,
        SsoRequest,
        query=SsoQuery,
        access="none",
        also={204: "The domain has no single sign-on: log in with the password"},
    ),
    post(
        "/auth/user/saml",
        "auth.authenticateUserSaml",
        "Log in a user by single sign-on",
        noted(authenticate_user_saml),
        body=SamlLogin,
        reply=AuthedUser,
        access="none",
        also=_REFUSED,
    ),
    post(
        "/auth/user/codehost",
        "auth.authenticateUserCodehost",
        "Log in a user by the code host",
        noted(authenticate_user_codehost),
        body=CodehostLogin,
        reply=AuthedUser,
        access="none",
        also=_REFUSED | _UNREACHED,
    ),
    patch(
        ME_PATH + "/connectCodehost",
        "me.connectCodehost",
        "Permit logins by the code host",
        connect_codehost,
        body=CodehostToken,
        query=MeChoice,
        to=USER_ACTOR,
        reply=MeView,
        area="user",
        uses=(GetMe,),
        also=_REFUSED | _UNREACHED,
    ),
    patch(
        ME_PATH + "/disconnectCodehost",
        "me.disconnectCodehost",
        "Refuse logins by the code host",
        DisconnectCodehost,
        query=MeChoice,
        to=USER_ACTOR,
        then=GetMe,
        reply=MeView,
        area="user",
    ),
)
