"""The login of an MQTT client: what it presents in CONNECT, and who it is then.

Owns the forms of credentials, how failures are counted, and that a login holds only as long as what it depends on. Does
not own what keys and tokens are (`actors/access/`, `http/calls/auth.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.access.authority import Principal, application_access, check_level, resolve
from trunkline.actors.access.certificate_login import AdmitCertificate
from trunkline.actors.access.client_login import (
    DEVICE_SCOPES,
    check_not_deleted,
    client_key,
    device_of,
    principal_of_key,
    principal_of_key_id,
    topics_of,
)
from trunkline.actors.core.values.errors import DomainError, Invalid, Unauthorized
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.actors.data.topics.filters import may_publish, may_subscribe
from trunkline.actors.people.accounts.reach import key_admits_address
from trunkline.http.calls.auth import check_scope

if TYPE_CHECKING:
    from trunkline.http.calls.dispatch import Dispatcher

BEARER: Final = "token"
"""The user name with which the password is a token; for the token of a user, the application follows: `token/ID`."""
PUBLISH: Final = "application.mqttPublishMessage"
SUBSCRIBE: Final = "application.mqttSubscriptionStream"


class Presented(NamedTuple):
    """What a client presents. `certificate` is that of its connection, in DER."""

    client_id: str
    username: str | None
    password: bytes | None
    certificate: bytes | None
    address: str


class Client(NamedTuple):
    """Who a client is. `device` is None for one that is no device; `login` is the id of the access key or certificate,
    None for a token. `again` looks once more, after a revocation."""

    principal: Principal
    application: bytes
    device: bytes | None
    key: bytes
    origin: Origin
    login: bytes | None
    again: Callable[[], Client]

    def may_publish(self, topic: str) -> bool:
        """Whether it may publish to a topic of the application."""
        return may_publish(*topics_of(self.principal.key, "pub"), topic)

    def may_subscribe(self, filter: str) -> bool:
        """Whether it may subscribe to a filter over topics of the application."""
        return may_subscribe(*topics_of(self.principal.key, "sub"), filter)


async def log_in(service: Dispatcher, presented: Presented, anonymous_key: str | None) -> Client:
    """Who a client is. Raises `DomainError`, `Unauthorized` where it has no password and there is no `anonymous_key`.

    Only the login with a certificate waits.
    """
    system = service.system
    now_s = system.clock.monotonic_s()
    try:
        if presented.username is None and presented.certificate is not None:
            return await _with_certificate(service, presented)
        if presented.password is None and anonymous_key is not None:
            return _anonymous(service, presented, anonymous_key)
        return _at_once(service, presented)
    except Unauthorized as refusal:
        account = presented.client_id[:64]
        service.login_throttle.count_failure(account, presented.address, now_s)
        service.login_failures.note("mqtt.connect", presented.address, account, refusal, now_s)
        raise


def _at_once(service: Dispatcher, presented: Presented) -> Client:
    username, password = presented.username, presented.password
    if username is None or password is None:
        raise Unauthorized(
            "Log in with an access key as the user name and its secret as the password, with the user name token and "
            "a token as the password, or with a client certificate."
        )
    try:
        secret = password.decode()
    except UnicodeDecodeError:
        raise Unauthorized("The password is neither a secret nor a token.") from None
    if username == BEARER or username.startswith(f"{BEARER}/"):
        return _with_token(service, presented, username[len(BEARER) + 1 :], b"Bearer " + secret.encode())
    system = service.system
    with system.store.snapshot() as snapshot:
        principal = principal_of_key(snapshot, presented.client_id, username, secret, presented.address)
    assert principal.application_id is not None
    where = (presented.client_id, presented.address)
    return _key_client(service, *where, principal, bytes.fromhex(username[24:]))


def _anonymous(service: Dispatcher, presented: Presented, key: str) -> Client:
    application, key_id = bytes.fromhex(key[:24]), bytes.fromhex(key[24:])
    with service.system.store.snapshot() as snapshot:
        principal = principal_of_key_id(snapshot, presented.client_id, application, key_id, presented.address)
    return _key_client(service, presented.client_id, presented.address, principal, key_id)


def _key_client(
    service: Dispatcher, client_id: str, address: str, principal: Principal, key_id: bytes
) -> Client:
    application, device = principal.application_id, principal.device_id
    assert application is not None
    origin = principal.origin or Origin(key_id.hex(), "applicationKey")
    again = partial(_key_client_again, service, client_id, address, application, device, key_id)
    return Client(principal, application, device, client_key(client_id, device), origin, key_id, again)


def _key_client_again(
    service: Dispatcher, client_id: str, address: str, application: bytes, device: bytes | None, key_id: bytes
) -> Client:
    with service.system.store.snapshot() as snapshot:
        found = principal_of_key_id(snapshot, client_id, application, key_id, address)
    if found.device_id != device:
        raise Unauthorized("The device was deleted.")
    return _key_client(service, client_id, address, found, key_id)


def _with_token(service: Dispatcher, presented: Presented, named: str, header: bytes) -> Client:
    """The client of a token: that of a device is the device, any other is none."""
    system = service.system
    principal = service.tokens.authenticate(header)
    if principal.key and not key_admits_address(principal.key, presented.address):
        raise Unauthorized("The access key of this token is not for the network address that the client has.")
    device, application = principal.device_id, principal.application_id
    if device is not None:
        if presented.client_id.lower() != device.hex():
            raise Unauthorized(f"The client id must be the id of the token's device, {device.hex()}.")
    else:
        application = _application_of(service, principal, named)
        with system.store.snapshot() as snapshot:
            if device_of(snapshot, application, presented.client_id) is not None:
                raise Unauthorized(
                    "The client id is that of a device; use another one, or the device's own credentials."
                )
            check_not_deleted(snapshot, application, presented.client_id)
    assert application is not None
    origin = principal.origin or Origin(application.hex(), "application")
    key = client_key(presented.client_id, device)
    return Client(
        principal,
        application,
        device,
        key,
        origin,
        None,
        partial(_with_token, service, presented, named, header),
    )


def _application_of(service: Dispatcher, principal: Principal, named: str) -> bytes:
    """The application of a token that is not a device's: its own, or the one that is named. It must be allowed to
    publish and to subscribe. Raises `DomainError`."""
    system, application = service.system, principal.application_id
    if application is None:
        try:
            application = bytes.fromhex(named)
        except ValueError:
            application = b""
        if len(application) != 12:
            raise Invalid(
                "user name: the token of a user reaches several applications; name one, as in token/APPLICATION_ID."
            )
    for operation in (PUBLISH, SUBSCRIBE):
        route = service.route_of(operation)
        assert route is not None
        check_scope(route, principal)
        access = principal.accesses.get(application)
        if access is None:
            with system.store.snapshot() as snapshot:
                access = principal.accesses[application] = application_access(
                    snapshot, principal, application
                )
            system.revocations.add_subject(principal, application)
            system.revocations.add_subject(principal, access.owner)
        check_level(access, route.level, operation)
    return application


async def _with_certificate(service: Dispatcher, presented: Presented) -> Client:
    """The device of a certificate, whose client id is its id. The login ends with the certificate."""
    system = service.system
    try:
        device = bytes.fromhex(presented.client_id)
    except ValueError:
        device = b""
    if len(device) != 12:
        raise Unauthorized("With a client certificate alone the client id must be the id of a device.")
    assert presented.certificate is not None
    now_ms = system.clock.wall_ms()
    admitted = await service.read_message(
        AdmitCertificate(device=device, certificate=presented.certificate, now_ms=now_ms)
    )
    claims = {
        "typ": "device",
        "iat": now_ms / 1000,
        "exp": parse_iso(admitted.key["certificateInfo"]["notValidAfter"]) / 1000,
        "sub": device.hex(),
        "app": admitted.application_id.hex(),
        "certificate": admitted.key_id.hex(),
        "fingerprint": admitted.key["certificateInfo"]["fingerprint"],
    }

    def again() -> Client:
        with system.store.snapshot() as snapshot:
            principal = resolve(snapshot, claims, DEVICE_SCOPES)
        return Client(
            principal,
            admitted.application_id,
            device,
            device,
            Origin(device.hex(), "device"),
            admitted.key_id,
            again,
        )

    return again()


def still_allowed(client: Client) -> Client | DomainError:
    """The client after something has changed that its login depends on, or why it is not allowed any more."""
    try:
        return client.again()
    except DomainError as refusal:
        return refusal
