"""Login: users with a password, devices with an access key."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, UnsetType

from trunkline.actors.access.authority import Admitted, admit_device, find_user
from trunkline.actors.access.certificate_login import AdmitCertificate
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, TooManyRequests, Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.actors.people.accounts.ended_logins import EndLogin
from trunkline.actors.people.accounts.messages import (
    AuthedDevice,
    AuthedUser,
    DeviceCredentials,
    LogIn,
    Session,
    UserCredentials,
)
from trunkline.actors.people.accounts.passwords import simulate_verification
from trunkline.actors.people.accounts.reach import device_filter, key_admits_address
from trunkline.actors.people.accounts.sessions import session_claims
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import ME_PATH, USER_ACTOR, Handler
from trunkline.http.calls.verbs import get, post

_TTL_S_MAX = 10 * 366 * 86_400


async def authenticate_user(call: Call) -> Response:
    """Return a user's token for an e-mail address and its password."""
    body: UserCredentials = call.body
    service = call.service
    system = service.system
    scopes, ttl_s = wanted_token(call)
    with system.store.snapshot() as snapshot:
        user = find_user(snapshot, body.email)
    session: Session | None = None
    account = body.email if user is None else user.hex()
    async with service.login_throttle.attempt(account, call.request.address, system.clock.monotonic_s):
        if user is None:
            await simulate_verification()
        else:
            session = (
                await system.ask(
                    Ref("user", ROOT, user),
                    LogIn(password=body.password, two_factor_code=body.two_factor_code),
                )
            ).value
        if user is None or session is None:
            raise Unauthorized("email and password do not fit together.")
    return user_token(call, user, session, scopes, ttl_s)


async def authenticate_device(call: Call) -> Response:
    """Return a device's token for an access key of its application and its secret, or for the client's certificate.

    A token for a certificate expires with it.
    """
    body: DeviceCredentials = call.body
    service = call.service
    system = service.system
    scopes = frozenset({"all.Device"})
    if body.requested_scopes is not UNSET:
        scopes = service.tokens.checked_scopes(body.requested_scopes, kind="device", field="requestedScopes")
    ttl_s: float | None = lifetime_s(body.token_ttl, None)
    device_id = body.device_id.lower()
    try:
        admitted, proof = await _admitted(call, body, bytes.fromhex(device_id))
    except Unauthorized:
        service.login_throttle.count_failure(device_id, call.request.address, system.clock.monotonic_s())
        raise
    claims = {
        "typ": "device",
        "sub": device_id,
        "app": admitted.application_id.hex(),
        **proof,
    }
    if "certificate" in proof:
        left_s = (parse_iso(admitted.key["certificateInfo"]["notValidAfter"]) - call.now_ms) / 1000
        ttl_s = left_s if ttl_s is None else min(ttl_s, left_s)
    token = service.tokens.issue(claims, scopes, call.now_ms, ttl_s)
    shown = {
        "applicationId": admitted.application_id.hex(),
        "deviceId": device_id,
        "deviceClass": admitted.device["deviceClass"],
        "token": token,
        "restricted": device_filter(admitted.key) != "all",
        "ownerType": admitted.owner_type,
        "filterType": admitted.key["filterType"],
        "pubTopics": admitted.key["pubTopics"],
        "subTopics": admitted.key["subTopics"],
    }
    return json_response(call, 200, shown)


async def _admitted(call: Call, body: DeviceCredentials, device: bytes) -> tuple[Admitted, dict[str, str]]:
    """The device with what admits it, and the claims about that. Raises `Unauthorized`."""
    system = call.service.system
    if body.key is UNSET and body.secret is UNSET and call.request.certificate is not None:
        admitted: Admitted = await call.service.read_message(
            AdmitCertificate(device=device, certificate=call.request.certificate, now_ms=call.now_ms)
        )
        fingerprint = admitted.key["certificateInfo"]["fingerprint"]
        return admitted, {"certificate": admitted.key_id.hex(), "fingerprint": fingerprint}
    for field, value in (("key", body.key), ("secret", body.secret)):
        if value is UNSET:
            raise Invalid(
                f"{field}: is missing; a device logs in with deviceId, key and secret, "
                "or with deviceId over a connection with its certificate."
            )
    assert isinstance(body.key, str)
    assert isinstance(body.secret, str)
    with system.store.snapshot() as snapshot:
        admitted = admit_device(snapshot, device, body.key, body.secret)
    if not key_admits_address(admitted.key, call.request.address):
        raise Unauthorized("deviceId, key and secret do not fit together.")
    return admitted, {"key": admitted.key_id.hex()}


def wanted_token(call: Call) -> tuple[frozenset[str], float | None]:
    """The scopes and the lifetime in seconds of the user's token that the body of a login asks for."""
    service, body = call.service, call.body
    scopes = frozenset({"all.User"})
    if body.requested_scopes is not UNSET:
        scopes = service.tokens.checked_scopes(body.requested_scopes, kind="user", field="requestedScopes")
    return scopes, lifetime_s(body.token_ttl, service.token_ttl_s)


def noted(handler: Handler) -> Handler:
    """The handler of a login, with failures in the log."""

    async def noting(call: Call) -> Response:
        try:
            return await handler(call)
        except (Unauthorized, TooManyRequests) as refusal:
            system = call.service.system
            subject: str | None = None
            if isinstance(call.body, DeviceCredentials):
                subject = call.body.device_id.lower()
            elif isinstance(call.body, UserCredentials):
                # Not the address as it was typed: people type passwords into the wrong field.
                with system.store.snapshot() as snapshot:
                    user = find_user(snapshot, call.body.email)
                subject = None if user is None else user.hex()
            call.service.login_failures.note(
                call.route.operation, call.request.address, subject, refusal, system.clock.monotonic_s()
            )
            raise

    return noting


async def refresh_token(call: Call) -> Response:
    """Return a new token with the scopes and the lifetime of the token of the call."""
    principal = call.principal
    if principal.token_id is not None:
        raise Invalid("An API token cannot be renewed; its expiry is fixed when it is made. Make a new one.")
    assert principal.user_id is not None
    assert principal.session is not None
    # The session is still that of the login with a password, so whatever ends it also ends this token.
    return user_token(call, principal.user_id, principal.session, principal.scopes, principal.ttl_s)


async def log_out(call: Call) -> Response:
    """End the login of the token of the call: this token, and all that were renewed from the same login."""
    service, principal = call.service, call.principal
    if principal.token_id is not None:
        raise Invalid(
            f"An API token belongs to no login; delete it with `DELETE /me/tokens/{principal.token_id.hex()}`."
        )
    assert principal.session is not None
    await service.system.ask(service.ref(call), EndLogin(session=principal.session, ttl_s=principal.ttl_s))
    return json_response(call, 200, {"success": True})


def user_token(
    call: Call, user: bytes, session: Session, scopes: Iterable[str], ttl_s: float | None
) -> Response:
    """The response with a new token of a session."""
    tokens, system = call.service.tokens, call.service.system
    claims = {"typ": "user", "sub": user.hex(), **session_claims(session)}
    token = tokens.issue(claims, scopes, system.clock.wall_ms(), ttl_s)
    with system.store.snapshot() as snapshot:
        found = records.find(snapshot, USER, ROOT, user)
    unverified = found is not None and "emailVerified" not in found.doc
    return json_response(call, 200, {"userId": user.hex(), "token": token, "needsToVerifyEmail": unverified})


def lifetime_s(asked: int | UnsetType, default_s: int | None) -> int | None:
    """The lifetime of a token in seconds; None for no expiry, which is requested with 0."""
    if asked is UNSET:
        return default_s or None
    if asked > _TTL_S_MAX:
        raise Invalid(f"tokenTTL: {asked} seconds are more than ten years; give less, or 0 for no expiry.")
    return asked or None


ROUTES = (
    post(
        "/auth/user",
        "auth.authenticateUser",
        "Log in a user",
        noted(authenticate_user),
        body=UserCredentials,
        reply=AuthedUser,
        access="none",
        also={401: "The e-mail address or the password is wrong", 429: "Too many failed logins"},
    ),
    post(
        "/auth/device",
        "auth.authenticateDevice",
        "Log in a device",
        noted(authenticate_device),
        body=DeviceCredentials,
        reply=AuthedDevice,
        access="none",
        only_reads=True,
        also={401: "The device, the key or the secret is wrong", 429: "Too many failed logins"},
    ),
    get(
        ME_PATH + "/refreshToken",
        "me.refreshToken",
        "Renew the token",
        refresh_token,
        AuthedUser,
        access="read",
        area="user",
    ),
    post(
        ME_PATH + "/logout",
        "me.logout",
        "Log out: end the login of the token",
        log_out,
        to=USER_ACTOR,
        access="read",
        area="user",
        also={507: "The disk is full, and so is the room for ends of logins; nothing was stored"},
    ),
)
