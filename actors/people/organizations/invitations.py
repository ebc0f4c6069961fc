"""Invitations: records, messages, reads and the mail.

The token of an invitation is only in its mail; a hash of it is stored. Whoever has the mail can answer the invitation
once, until it expires. A user with the address of the invitation, if it is verified, can also answer it without the
token.

An invitation is stored twice, in one batch: as an `INVITE` of the organization, and as an `INVITED` of its address,
which makes the invitations of an address one range.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.outgoing.mail import MailMessage
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import OTHER_OWNER, Doc, Kind
from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import Gone, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.people.organizations.membership import ORGANIZATION, requires_second_factor
from trunkline.actors.people.organizations.messages import ResourceRoles, RoleIn
from trunkline.actors.people.organizations.roles import Role
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

INVITE: Final = Kind(
    name="orgInvite",
    noun="invitation",
    home="root",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""An invitation of an organization, its parent."""

INVITED: Final = Kind(
    name="orgInvited",
    noun="invitation",
    home="root",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""The same from the side of the address: the parent is made from it (`address_key`), the id is the same."""

# Bodies and query strings.


class InvitePost(Body, frozen=True):
    """An invitation. It replaces an earlier one to the same address."""

    email: Email
    role: Role
    application_roles: ResourceRoles | UnsetType = UNSET
    dashboard_roles: ResourceRoles | UnsetType = UNSET
    disallow_transfer: bool = False


class InviteAction(Body, frozen=True):
    """The answer to an invitation, with the token of its mail."""

    email: Email
    token: Annotated[str, Meta(min_length=1, max_length=256)]
    accept: bool


class MyInviteAction(Body, frozen=True):
    """The answer to an invitation. `dismiss` hides it from the list; its mail can still be answered."""

    action: Literal["accept", "dismiss", "reject"]


class InviteLink(Query, frozen=True):
    """The token of an invitation and the address that it was sent to."""

    token: Annotated[str, Meta(max_length=256)]
    email: Email


class InviteRemoval(Query, frozen=True):
    """Which invitation is revoked."""

    invite_id: Id


# Messages to the actor of the organization.


class InviteMember(Message, frozen=True):
    """Store an invitation by `user`. The answer is a `NewInvite`."""

    throttle = "invite_member"

    body: InvitePost
    user: bytes


class NewInvite(msgspec.Struct, frozen=True):
    """A stored invitation with its token, which is stored nowhere."""

    id: bytes
    token: str
    org_name: str
    invited_by: str
    """The e-mail address of the user who invites."""


class RevokeInvite(Message, frozen=True):
    """Revoke an invitation."""

    invite: bytes


class AcceptInvite(Message, frozen=True):
    """Make a user a member, with the roles of the invitation, which ends. Raises `Gone` if it has expired."""

    invite: bytes
    user: bytes


class RejectInvite(Message, frozen=True):
    """End an invitation."""

    invite: bytes


class DismissInvite(Message, frozen=True):
    """Hide an invitation from the list of the invited user."""

    invite: bytes


# Messages of reads.


class ListInvites(Message, frozen=True):
    """The invitations of an organization."""

    org: bytes
    now_ms: int


class ListMyInvites(Message, frozen=True):
    """The invitations of a user."""

    user: bytes
    now_ms: int


class GetMyInvite(Message, frozen=True):
    """One invitation of a user."""

    user: bytes
    invite: bytes
    now_ms: int


class FindInvite(Message, frozen=True):
    """The organization and the id of the invitation with this token, or else with this id. Raises `NotFound`."""

    email: str
    token: str | None = None
    invite: bytes | None = None


class GetInvite(Message, frozen=True):
    """The invitation with a token."""

    query: InviteLink
    now_ms: int


# Answers.


class InviteView(View, frozen=True):
    """An invitation that was not answered yet. `ttl` in seconds from `inviteDate`."""

    id: Id
    email: str
    role: Role
    application_roles: list[RoleIn]
    dashboard_roles: list[RoleIn]
    invite_date: IsoTime
    ttl: int
    has_expired: bool
    disallow_transfer: bool


class InvitedBy(View, frozen=True):
    """The user who sent an invitation."""

    full_name: str
    email: str


class MyInviteView(View, frozen=True):
    """An invitation of the current user. `ttl` in seconds from `inviteDate`."""

    id: Id
    org_name: str
    role: Role
    requires_mfa: bool = msgspec.field(name="requiresMFA")
    invite_date: IsoTime
    ttl: int
    expired: bool
    invited_by: InvitedBy | None = None


class InviteInfo(View, frozen=True):
    """What an invitation is about. `ttl` in seconds from `inviteDate`."""

    org_name: str
    email: str
    role: Role
    invite_date: IsoTime
    ttl: int
    disallow_transfer: bool


class InviteResult(View, frozen=True):
    """The outcome of an answer."""

    accepted: bool
    org_id: Id


class MyInviteResult(View, frozen=True):
    """The outcome of an answer."""

    result: Literal["accepted", "rejected", "dismissed"]
    org_id: Id


# Reads.


def list_invites(reading: Reading, message: ListInvites) -> list[Doc]:
    """The invitations of an organization, oldest first."""
    return [
        {
            "id": id.hex(),
            **{field: doc[field] for field in ("email", "role", "applicationRoles", "dashboardRoles", "ttl")},
            "inviteDate": iso(doc["inviteDate"]),
            "hasExpired": has_expired(doc, message.now_ms),
            "disallowTransfer": doc["disallowTransfer"],
        }
        for id, doc in records.scan(reading.snapshot, INVITE, message.org)
    ]


def list_my_invites(reading: Reading, message: ListMyInvites) -> list[Doc]:
    """The invitations of a user, oldest first, without those that were dismissed. Raises `Invalid`."""
    snapshot = reading.snapshot
    found = _of_address(snapshot, verified_address(snapshot, message.user))
    return [
        _show_mine(snapshot, org, invite, message.now_ms)
        for org, invite in found
        if not invite.doc.get("dismissed")
    ]


def get_my_invite(reading: Reading, message: GetMyInvite) -> Doc:
    """One invitation of a user. Raises `NotFound` or `Invalid`."""
    snapshot = reading.snapshot
    for org, invite in _of_address(snapshot, verified_address(snapshot, message.user)):
        if invite.id == message.invite:
            return _show_mine(snapshot, org, invite, message.now_ms)
    raise _missing()


def find_invite(reading: Reading, message: FindInvite) -> tuple[bytes, bytes]:
    """The ids of the organization and of the invitation. Raises `NotFound`."""
    org, invite = _find(reading.snapshot, message.email, message.token, message.invite)
    return org.id, invite.id


def get_invite(reading: Reading, message: GetInvite) -> Doc:
    """What the invitation with a token is about. Raises `NotFound`, or `Gone` if it has expired."""
    query = message.query
    org, invite = _find(reading.snapshot, query.email, query.token, None)
    check_expiry(invite.doc, message.now_ms)
    doc = invite.doc
    return {
        "orgName": org.doc["name"],
        **{field: doc[field] for field in ("email", "role", "ttl", "disallowTransfer")},
        "inviteDate": iso(doc["inviteDate"]),
    }


def verified_address(snapshot: Snapshot, user: bytes) -> str:
    """The e-mail address of a user. Raises `Invalid` unless it is verified: anyone can enter any address."""
    found = records.find(snapshot, USER, ROOT, user)
    if found is None or not found.doc.get("emailVerified"):
        raise Invalid(
            "Your e-mail address is not verified, so your invitations are not shown. `POST /me/verify-email` sends "
            "a mail that verifies it; the token in the mail of an invitation also answers it."
        )
    return str(found.doc["email"])


def _find(snapshot: Snapshot, email: str, token: str | None, invite: bytes | None) -> tuple[Found, Found]:
    hashed = None if token is None else hash_token(token)
    for org, found in _of_address(snapshot, email):
        if invite == found.id or (hashed is not None and hmac.compare_digest(hashed, found.doc["tokenHash"])):
            return org, found
    raise _missing()


def _of_address(snapshot: Snapshot, email: str) -> Iterator[tuple[Found, Found]]:
    """Yield the organization and the invitation for each invitation of an address."""
    for id, doc in records.scan(snapshot, INVITED, address_key(email)):
        org_id = bytes.fromhex(doc["orgId"])
        org = records.find(snapshot, ORGANIZATION, ROOT, org_id)
        invite = records.find(snapshot, INVITE, org_id, id)
        if org is not None and invite is not None:
            yield org, invite


def _show_mine(snapshot: Snapshot, org: Found, invite: Found, now_ms: int) -> Doc:
    doc = invite.doc
    shown: dict[str, Any] = {
        "id": invite.id.hex(),
        "orgName": org.doc["name"],
        "role": doc["role"],
        "requiresMFA": requires_second_factor(org.doc, doc["role"]),
        "inviteDate": iso(doc["inviteDate"]),
        "ttl": doc["ttl"],
        "expired": has_expired(doc, now_ms),
    }
    inviter = records.find(snapshot, USER, ROOT, bytes.fromhex(doc["invitedById"]))
    if inviter is not None:
        shown["invitedBy"] = {"fullName": full_name(inviter.doc), "email": inviter.doc["email"]}
    return shown


def _missing() -> NotFound:
    return NotFound("There is no such invitation; it was answered, revoked or replaced, or never sent.")


# The parts of an invitation.


def address_key(email: str) -> bytes:
    """The parent of the invitations of an address. Case is ignored."""
    return hashlib.sha256(email.casefold().encode()).digest()[: keys.ID_BYTES]


def hash_token(token: str) -> bytes:
    """The hash of a token, which has 256 random bits, so a fast hash is safe."""
    return hashlib.sha256(token.encode()).digest()


def has_expired(doc: Doc, now_ms: int) -> bool:
    """Whether an invitation has expired."""
    return bool(now_ms >= doc["inviteDate"] + doc["ttl"] * 1000)


def check_expiry(doc: Doc, now_ms: int) -> None:
    """Raise `Gone` if an invitation has expired."""
    if has_expired(doc, now_ms):
        raise Gone("The invitation has expired; ask an administrator of the organization for a new one.")


def full_name(user: Doc) -> str:
    """The first and the last name of a user, as far as they are known."""
    return " ".join(user[field] for field in ("firstName", "lastName") if user.get(field))


def mail_of(new: NewInvite, invite: InvitePost, base_url: str, now_ms: int, ttl_s: int) -> MailMessage:
    """The mail with the token."""
    name = " ".join(new.org_name.split())
    answer = msgspec.json.encode({"email": invite.email, "token": new.token, "accept": True}).decode()
    text = (
        f"{new.invited_by} invites you to the organization {name} on {base_url}, with the role {invite.role}.\n\n"
        f"The invitation is for {invite.email}, and valid until {iso(now_ms + ttl_s * 1000)}. To accept it, send\n\n"
        f"POST {base_url}/invites\nContent-Type: application/json\n\n{answer}\n\n"
        'or with "accept": false to decline. Whoever has this mail can do that, once.\n\n'
        "To accept, you need an account with this address. If you have none, ask the operator of the server first; "
        "there is no sign-up.\n"
    )
    return MailMessage(new.id.hex(), invite.email, f"Invitation to {name}", text, now_ms)
