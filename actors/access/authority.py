"""Authorization: who the bearer of a token is, and which applications and devices the token may access.

Pure reads of a snapshot. Signatures are verified by `http/`, which passes the claims on.

A `Principal` is the result for a verified token: the records that it depends on (user, application, device, key,
token) were read and are active. When one of them changes in a way that may end access, the principal is revoked and
the token is resolved again, so a deactivated key ends access with the next request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline.actors.access.certificates import CERTIFICATE
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.mandate import Mandate
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.runtime.revocations import Bearer
from trunkline.actors.core.values.errors import Forbidden, NotFound, Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.fleet.devices.record.kind import DEVICE, GATEWAYS
from trunkline.actors.people.accounts.actor import email_key
from trunkline.actors.people.accounts.messages import Session
from trunkline.actors.people.accounts.reach import Reach, device_filter, key_admits
from trunkline.actors.people.accounts.sessions import is_valid, session_of
from trunkline.actors.people.accounts.tokens import API_TOKEN
from trunkline.actors.people.organizations.membership import ORGANIZATION, find_membership
from trunkline.actors.people.organizations.roles import ROLE_OF, ROLES, Level
from trunkline.actors.platform.applications.keys import APPLICATION_KEY, active_key
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

NO_LONGER_VALID = "The token does not hold any more; log in again."


class Access(NamedTuple):
    """What a token may do with an application or an organization. `owner` is a further record that it depends on."""

    level: Level
    owner: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class Principal(Bearer):
    """The bearer of a token. Equal only to itself; nothing in it changes but the state of `Bearer`.

    `kind` is user, device or application. `scopes` are those of the token. `expires_ms` is None for a
    token without an expiry. Ids that do not apply are None.
    """

    kind: str
    scopes: frozenset[str]
    expires_ms: int | None
    ttl_s: float | None = None
    """The lifetime that the token was issued with."""
    user_id: bytes | None = None
    session: Session | None = None
    application_id: bytes | None = None
    device_id: bytes | None = None
    token_id: bytes | None = None
    name: str = ""
    author: Creator | None = None
    """The creator of what it creates, if that is neither the user nor the API token: a workflow."""
    mandate: Mandate | None = None
    """What is stored of it with what acts later in its name; made at the first use."""
    key: Mapping[str, Any] = field(default_factory=dict)
    accesses: dict[bytes, Access] = field(default_factory=dict)
    """What is known about applications and organizations. The tokens of an application and of its devices have every
    level in it; their scopes and keys restrict them."""

    def __post_init__(self) -> None:
        Bearer.__init__(self)
        for subject in (self.user_id, self.application_id, self.device_id, self.token_id):
            if subject is not None:
                self.add_subject(subject)
        if self.application_id is not None:
            self.accesses[self.application_id] = Access(Level.ADMINISTER, self.application_id)

    def expired(self, now_ms: int) -> bool:
        """Return whether the token has expired."""
        return self.expires_ms is not None and now_ms >= self.expires_ms

    @property
    def reach(self) -> Reach | None:
        """The devices that a list may show to this principal; None for all of the application."""
        if self.kind != "device":
            return None
        filter_type = device_filter(self.key)
        if filter_type == "all":
            return None
        assert self.device_id is not None
        return Reach(
            device_id=self.device_id.hex(),
            device_filter=filter_type,
            device_ids=self.key["deviceIds"],
            device_tags=self.key["deviceTags"],
        )

    @property
    def creator(self) -> Creator:
        """The creator that is stored in records that this principal creates."""
        if self.author is not None:
            return self.author
        if self.mandate is None:
            self.mandate = _mandate(self)
        mandates = (self.mandate,)
        if self.token_id is not None:
            return Creator(self.token_id.hex(), "apiToken", self.name, mandates)
        assert self.user_id is not None
        return Creator(self.user_id.hex(), "user", self.name, mandates)

    @property
    def origin(self) -> Origin | None:
        """What workflows are told of the cause of their runs."""
        for id, type in ((self.device_id, "device"), (self.token_id, "apiToken"), (self.user_id, "user")):
            if id is not None:
                return Origin(id.hex(), type)
        return None


def resolve(snapshot: Snapshot, claims: Mapping[str, Any], scopes: frozenset[str]) -> Principal:
    """Return the principal of verified claims.

    Raises `Unauthorized` if a record that they depend on is missing or inactive.

    Claims: `typ` (user, device, application), `sub` (id), `iat` (seconds, fractions), `exp` (seconds,
    optional), `app`, `key` or `certificate` with its `fingerprint` (device tokens), `jti` (API tokens), `gen`, `auth`,
    `sid` (users' sessions).
    """
    expires_ms = None if claims.get("exp") is None else round(claims["exp"] * 1000)
    ttl_s = None if claims.get("exp") is None else round(claims["exp"] - claims["iat"], 3)
    subject = bytes.fromhex(claims["sub"])
    token_id = bytes.fromhex(claims["jti"]) if "jti" in claims else None
    if claims["typ"] == "user":
        user = live(records.find(snapshot, USER, ROOT, subject))
        session = session_of(claims, user, is_api_token=token_id is not None)
        if not is_valid(snapshot, subject, user, session):
            raise Unauthorized(NO_LONGER_VALID)
        name = _check_api_token(snapshot, subject, token_id, user["email"])
        return Principal(
            kind="user",
            scopes=scopes,
            expires_ms=expires_ms,
            ttl_s=ttl_s,
            user_id=subject,
            session=session,
            token_id=token_id,
            name=name,
        )
    if claims["typ"] == "application":
        live(records.find(snapshot, APPLICATION, ROOT, subject))
        name = _check_api_token(snapshot, subject, token_id, "")
        return Principal(
            kind="application",
            scopes=scopes,
            expires_ms=expires_ms,
            application_id=subject,
            token_id=token_id,
            name=name,
        )
    application_id = bytes.fromhex(claims["app"])
    live(records.find(snapshot, APPLICATION, ROOT, application_id))
    device = live(records.find(snapshot, DEVICE, application_id, subject))
    if "certificate" in claims:
        key_id = bytes.fromhex(claims["certificate"])
        key = live(records.find_shared(snapshot, CERTIFICATE, application_id, key_id))
        if key["certificateInfo"]["fingerprint"] != claims["fingerprint"]:
            raise Unauthorized(NO_LONGER_VALID)
    else:
        key_id = bytes.fromhex(claims["key"])
        key = live(records.find_shared(snapshot, APPLICATION_KEY, application_id, key_id))
    if key["status"] != "active" or not key_admits(key, device | {"id": subject.hex()}):
        raise Unauthorized(NO_LONGER_VALID)
    principal = Principal(
        kind="device",
        scopes=scopes,
        expires_ms=expires_ms,
        application_id=application_id,
        device_id=subject,
        key=key,
    )
    principal.add_subject(key_id)
    return principal


# Acting later.


def _mandate(principal: Principal) -> Mandate:
    """What is stored of a caller with what acts later in the caller's name."""
    ids = (principal.user_id, principal.application_id, principal.token_id)
    user, application, token = (None if id is None else id.hex() for id in ids)
    session = principal.session
    return Mandate(
        name=principal.name,
        scopes=tuple(sorted(principal.scopes)),
        user=user,
        application=application,
        token=token,
        session=None if session is None or token is None else (session.generation, session.since_ms),
    )


# Logging in.


class Admitted(NamedTuple):
    """A device that presented a valid access key and its secret, or a certificate: `key` is the record of either."""

    application_id: bytes
    device: Doc
    key_id: bytes
    key: Doc
    owner_type: str


def admit_device(snapshot: Snapshot, device_id: bytes, key: str, secret: str) -> Admitted:
    """Check an access key's secret and that the key admits the device.

    Raises `Unauthorized`, always with the same sentence, so that the caller does not learn which part is wrong.
    """
    refusal = Unauthorized("deviceId, key and secret do not fit together.")
    found = active_key(snapshot, key, secret)
    if found is None:
        raise refusal
    application_id = bytes.fromhex(key[:24])
    application = records.find(snapshot, APPLICATION, ROOT, application_id)
    device = records.find(snapshot, DEVICE, application_id, device_id)
    if (
        application is None
        or device is None
        or not key_admits(found.doc, device.doc | {"id": device_id.hex()})
    ):
        raise refusal
    return Admitted(application_id, device.doc, found.id, found.doc, application.doc["ownerType"])


def find_user(snapshot: Snapshot, email: str) -> bytes | None:
    """Return the id of the user with this e-mail address; None if there is none."""
    return snapshot.get(keys.UNIQUE, email_key(email))


def live(found: Found | None) -> Doc:
    """The document of a record that a token depends on. Raises `Unauthorized` if there is none."""
    if found is None:
        raise Unauthorized(NO_LONGER_VALID)
    return found.doc


def _check_api_token(snapshot: Snapshot, owner: bytes, token_id: bytes | None, name: str) -> str:
    """Return the name of the bearer: `name` for a token from a login, which has no record, else the API token's name.

    Raises `Unauthorized` unless the record of an API token exists and is active.
    """
    if token_id is None:
        return name
    token = live(records.find(snapshot, API_TOKEN, owner, token_id))
    if token["status"] != "active":
        raise Unauthorized(NO_LONGER_VALID)
    return str(token["name"])


# Access checks.


def application_access(snapshot: Snapshot, principal: Principal, application_id: bytes) -> Access:
    """Return the access of a token to an application.

    The owner has every level, and a member of the organization that owns it the level of the role. Raises `NotFound`
    if there is no such application, `Forbidden` if the token does not reach it.
    """
    found = records.find(snapshot, APPLICATION, ROOT, application_id)
    if found is None:
        raise NotFound(f"There is no application {application_id.hex()}.")
    owner = bytes.fromhex(found.doc["ownerId"])
    level = None if principal.user_id is None else _level_of(snapshot, principal.user_id, found)
    if level is None:
        raise _refusal(snapshot, principal.user_id, owner, f"application {application_id.hex()}")
    return Access(level, owner)


def reaches_application(snapshot: Snapshot, user: bytes, application: Found) -> bool:
    """Return whether a user may read an application."""
    return _level_of(snapshot, user, application) is not None


def _level_of(snapshot: Snapshot, user: bytes, application: Found) -> Level | None:
    """The level of a user in an application; None without access to it."""
    owner = bytes.fromhex(application.doc["ownerId"])
    if owner == user:
        return Level.ADMINISTER
    membership = find_membership(snapshot, owner, user)
    level = Level.MEMBER if membership is None else membership.application_level(application.id)
    return level if level >= Level.READ else None


def _refusal(snapshot: Snapshot, user: bytes | None, org: bytes, what: str) -> Forbidden:
    """The error for what a token does not reach, with the reason if it is a second factor that the user lacks."""
    membership = None if user is None else find_membership(snapshot, org, user)
    if membership is not None and membership.needs_second_factor:
        return Forbidden(
            "The organization requires two-factor authentication; enable it with `PATCH /me/enableTwoFactorAuth`."
        )
    return Forbidden(f"This token does not reach the {what}.")


def organization_access(snapshot: Snapshot, principal: Principal, org: bytes) -> Access:
    """Return the access of a user's token to an organization: the level of the role.

    Raises `NotFound` if there is no such organization, `Forbidden` if the user does not belong to it.
    """
    if not records.exists(snapshot, ORGANIZATION, ROOT, org):
        raise NotFound(f"There is no organization {org.hex()}.")
    if principal.user_id is not None:
        membership = find_membership(snapshot, org, principal.user_id)
        if membership is not None:
            return Access(membership.level, org)
    raise Forbidden(f"This token does not reach the organization {org.hex()}.")


def dashboard_access(snapshot: Snapshot, principal: Principal, org: bytes, dashboard: bytes) -> Access:
    """Return the access of a user's token to a dashboard of an organization: the level of the role.

    Raises `Forbidden` if the role allows nothing with it.
    """
    member = None if principal.user_id is None else find_membership(snapshot, org, principal.user_id)
    level = Level.MEMBER if member is None else member.dashboard_level(dashboard)
    if level < Level.READ:
        raise Forbidden(f"This token does not reach the dashboard {dashboard.hex()}.")
    return Access(level, org)


def check_level(access: Access, level: Level, what: str) -> None:
    """Raise `Forbidden` if `access` is below the level that `what` (an operation) needs."""
    if access.level < level:
        roles = [role for role, highest in ROLES.items() if highest >= level]
        raise Forbidden(
            f"{what} needs one of the roles {', '.join(roles)} in the organization, and yours is "
            f"{ROLE_OF[access.level]}; an administrator of the organization can give you another one."
        )


def check_device(snapshot: Snapshot, principal: Principal, device_id: bytes, *, states: bool) -> None:
    """Raise `NotFound` or `Forbidden` unless the token may access the device.

    Only device tokens are restricted here. They may access their own device and those that their access key allows.
    `states` marks the operations that a device performs only for itself and, as a gateway, for its peripherals
    (sending state, setting the connection status).
    """
    if principal.kind != "device" or principal.device_id == device_id:
        return
    assert principal.application_id is not None
    assert principal.device_id is not None
    found = records.find(snapshot, DEVICE, principal.application_id, device_id)
    if found is None:
        raise NotFound(f"There is no device {device_id.hex()} here.")
    if states:
        own = records.find(snapshot, DEVICE, principal.application_id, principal.device_id)
        if own is None or not is_gateway_of(own, found):
            raise Forbidden(
                "A device token sends state for its own device and, as a gateway, for its peripherals only."
            )
    elif not key_admits(principal.key, found.doc | {"id": device_id.hex()}):
        raise Forbidden(f"The access key of this token does not allow the device {device_id.hex()}.")


def check_peripheral(
    snapshot: Snapshot, application_id: bytes, gateway: bytes, device: bytes, connection: str
) -> None:
    """Raise `NotFound` or `Forbidden` unless a device is a peripheral of the device that a connection belongs to.

    `connection` is what it is called in the sentence.
    """
    own = records.find(snapshot, DEVICE, application_id, gateway)
    found = records.find(snapshot, DEVICE, application_id, device)
    if own is None or found is None:
        raise NotFound(f"device: there is no device {device.hex()} in this application.")
    if not is_gateway_of(own, found):
        raise Forbidden(f"device: {device.hex()} is not a peripheral of the device of this {connection}.")


def is_gateway_of(gateway: Found, device: Found) -> bool:
    """Return whether `device` is a peripheral of `gateway`, according to both records."""
    return (
        gateway.doc["deviceClass"] in GATEWAYS
        and device.doc["deviceClass"] == "peripheral"
        and device.doc.get("gatewayId") == gateway.id.hex()
    )
