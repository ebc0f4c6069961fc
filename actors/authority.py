"""Who a token stands for, and what it reaches. Pure reading: the edge verifies signatures and asks here.

A `Principal` is what a verified token amounts to at this moment: the account, key or token record behind it
was read, is active, and is remembered in it. It is void as soon as `System.authority_epoch` changes; the
edge then resolves the token again, so that a revoked key ends access with the next request.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline.actors.accounts.actor import email_key, token_generation
from trunkline.actors.accounts.messages import Session
from trunkline.actors.applications.actor import hash_secret
from trunkline.actors.applications.messages import Creator
from trunkline.actors.messages.reads import Reach
from trunkline.actors.records import records
from trunkline.actors.records.kinds import API_TOKEN, APPLICATION, APPLICATION_KEY, DEVICE, GATEWAYS, USER
from trunkline.actors.values.errors import Forbidden, NotFound, Unauthorized
from trunkline.actors.values.ids import ROOT
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_KEY = re.compile(r"[0-9a-f]{48}")
GONE = "The token does not hold any more; log in again."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Principal:
    """The bearer of a token. Equal only to itself.

    `kind` is user, device or application. `scopes` are those of the token. `expires_ms` is None for a
    token without an expiry. Ids that do not apply are None.
    """

    kind: str
    scopes: frozenset[str]
    expires_ms: int | None
    ttl_s: float | None = None
    """How long the token was to live when it was made."""
    user_id: bytes | None = None
    session: Session | None = None
    application_id: bytes | None = None
    device_id: bytes | None = None
    token_id: bytes | None = None
    name: str = ""
    key: Mapping[str, Any] = field(default_factory=dict)
    owns: dict[bytes, bool] = field(default_factory=dict)
    """Applications that this user was seen to own, or not. Filled by `check_application`."""

    @property
    def creator(self) -> Creator:
        """Who is written into records that this principal makes."""
        if self.token_id is not None:
            return Creator(self.token_id.hex(), "apiToken", self.name)
        assert self.user_id is not None
        return Creator(self.user_id.hex(), "user", self.name)


def resolve(snapshot: Snapshot, claims: Mapping[str, Any], scopes: frozenset[str]) -> Principal:
    """The principal of verified claims. Raises `Unauthorized` where what stands behind them is gone.

    Claims: `typ` (user, device, application), `sub` (id), `iat` (seconds, fractions), `exp` (seconds,
    optional), `app`, `key` (device tokens), `jti` (API tokens), `gen`, `auth` (users' sessions).
    """
    expires_ms = None if claims.get("exp") is None else round(claims["exp"] * 1000)
    ttl_s = None if claims.get("exp") is None else round(claims["exp"] - claims["iat"], 3)
    subject = bytes.fromhex(claims["sub"])
    token_id = bytes.fromhex(claims["jti"]) if "jti" in claims else None
    if claims["typ"] == "user":
        user = _live(records.find(snapshot, USER, ROOT, subject))
        session = session_of(claims, user)
        if session.generation != token_generation(user) or session.since_ms < user["tokenCutoff"]:
            raise Unauthorized(GONE)
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
        _live(records.find(snapshot, APPLICATION, ROOT, subject))
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
    _live(records.find(snapshot, APPLICATION, ROOT, application_id))
    device = _live(records.find(snapshot, DEVICE, application_id, subject))
    key = _live(records.find(snapshot, APPLICATION_KEY, application_id, bytes.fromhex(claims["key"])))
    if key["status"] != "active" or not key_admits(key, device | {"id": subject.hex()}):
        raise Unauthorized(GONE)
    return Principal(
        kind="device",
        scopes=scopes,
        expires_ms=expires_ms,
        application_id=application_id,
        device_id=subject,
        key=key,
    )


def session_of(claims: Mapping[str, Any], user: records.Doc) -> Session:
    """The session of a user's token. One that the server made for itself began when it was made."""
    since_ms = claims.get("auth", round(claims["iat"] * 1000))
    return Session(claims.get("gen", token_generation(user)), since_ms)


def session_claims(session: Session) -> dict[str, Any]:
    """The session as it goes into a token."""
    return {"gen": session.generation, "auth": session.since_ms}


# Logging in.


class Admitted(NamedTuple):
    """A device that showed an access key and its secret."""

    application_id: bytes
    device: records.Doc
    key_id: bytes
    key: records.Doc
    owner_type: str


def admit_device(snapshot: Snapshot, device_id: bytes, key: str, secret: str) -> Admitted:
    """Check an access key's secret and that the key admits the device. `Unauthorized` says no more than that."""
    refusal = Unauthorized("deviceId, key and secret do not fit together.")
    if _KEY.fullmatch(key) is None:
        raise refusal
    application_id, key_id = bytes.fromhex(key[:24]), bytes.fromhex(key[24:])
    application = records.find(snapshot, APPLICATION, ROOT, application_id)
    found = records.find(snapshot, APPLICATION_KEY, application_id, key_id)
    stored: bytes = found.doc["secretHash"] if found is not None else bytes(32)
    right = hmac.compare_digest(stored, hash_secret(secret))
    device = records.find(snapshot, DEVICE, application_id, device_id)
    if application is None or found is None or not right or device is None or found.doc["status"] != "active":
        raise refusal
    if not key_admits(found.doc, device.doc | {"id": device_id.hex()}):
        raise refusal
    return Admitted(application_id, device.doc, key_id, found.doc, application.doc["ownerType"])


def find_user(snapshot: Snapshot, email: str) -> bytes | None:
    """The id of the account with this e-mail address."""
    return snapshot.get(keys.UNIQUE, email_key(email))


def _live(found: records.Found | None) -> records.Doc:
    if found is None:
        raise Unauthorized(GONE)
    return found.doc


def _check_api_token(snapshot: Snapshot, owner: bytes, token_id: bytes | None, name: str) -> str:
    """A log-in token has no record; an API token has one, and it must be active."""
    if token_id is None:
        return name
    token = _live(records.find(snapshot, API_TOKEN, owner, token_id))
    if token["status"] != "active":
        raise Unauthorized(GONE)
    return str(token["name"])


# Fences.


def check_application(snapshot: Snapshot, principal: Principal, application_id: bytes) -> None:
    """Raise `NotFound` where there is no such application, `Forbidden` where the token does not reach it."""
    found = records.find(snapshot, APPLICATION, ROOT, application_id)
    if found is None:
        raise NotFound(f"There is no application {application_id.hex()}.")
    if principal.kind == "user":
        reached = principal.user_id is not None and found.doc["ownerId"] == principal.user_id.hex()
    else:
        reached = principal.application_id == application_id
    if not reached:
        raise Forbidden(f"This token does not reach the application {application_id.hex()}.")
    if principal.kind == "user":
        principal.owns[application_id] = True


def check_device(snapshot: Snapshot, principal: Principal, device_id: bytes, *, states: bool) -> None:
    """The fence of a device token: itself, its peripherals' state, and the devices that its key allows.

    `states` marks the operations that are for the device itself and, through a gateway, its peripherals
    (sending state, setting the connection status). Raises `NotFound` or `Forbidden`.
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


def is_gateway_of(gateway: records.Found, device: records.Found) -> bool:
    """Whether `device` is a peripheral of `gateway`, as both are now."""
    return (
        gateway.doc["deviceClass"] in GATEWAYS
        and device.doc["deviceClass"] == "peripheral"
        and device.doc.get("gatewayId") == gateway.id.hex()
    )


def reach_of(principal: Principal) -> Reach | None:
    """What a list may show to this principal; None for everything in the application."""
    if principal.kind != "device" or principal.key["filterType"] == "all":
        return None
    assert principal.device_id is not None
    return Reach(
        device_id=principal.device_id.hex(),
        filter_type=principal.key["filterType"],
        device_ids=principal.key["deviceIds"],
        device_tags=principal.key["deviceTags"],
    )


def reaches(reach: Reach, device: Mapping[str, Any]) -> bool:
    """Whether a device (a document with its `id` in hexadecimal) lies within the reach of a device token."""
    if reach.device_id == device["id"]:
        return True
    key = {
        "filterType": reach.filter_type,
        "deviceIds": reach.device_ids,
        "deviceTags": reach.device_tags,
    }
    return key_admits(key, device)


def key_admits(key: Mapping[str, Any], device: Mapping[str, Any]) -> bool:
    """Whether an access key allows a device (a document with its `id` in hexadecimal)."""
    chosen = key["filterType"]
    if chosen == "all":
        return True
    if chosen == "none":
        return False
    named = device["id"] in key["deviceIds"] or has_tag(device["tags"], key["deviceTags"])
    return named if chosen == "whitelist" else not named


def chooses_by_tags(key: Mapping[str, Any]) -> bool:
    """Whether the devices of an access key depend on their tags. `key` is empty where there is none."""
    return bool(key) and key["filterType"] in ("whitelist", "blacklist") and bool(key["deviceTags"])


def has_tag(tags: Sequence[Mapping[str, str]], filters: Sequence[Mapping[str, str]]) -> bool:
    """Whether one of the filters (key, value, or both) matches one of the tags."""
    return any(
        all(tag[part] == wanted for part, wanted in wanted_parts.items())
        for wanted_parts in filters
        if wanted_parts
        for tag in tags
    )


def key_admits_address(key: Mapping[str, Any], address: str) -> bool:
    """Whether an access key may be used from this network address (its list names addresses and networks)."""
    chosen = key.get("addressFilterType", "all")
    if chosen == "all":
        return True
    try:
        caller = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(caller, ipaddress.IPv6Address) and caller.ipv4_mapped is not None:
        # On a socket for both versions an IPv4 caller arrives as ::ffff:192.0.2.7.
        caller = caller.ipv4_mapped
    listed = any(caller in ipaddress.ip_network(entry, strict=False) for entry in key["addresses"])
    return listed if chosen == "whitelist" else not listed
