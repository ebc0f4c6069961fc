"""The organization actor: the only writer of an organization's record, its members and its invitations."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from trunkline.actors.core.outgoing.mail_head import check_address
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind, facet_count
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.owner import RecordOwner
from trunkline.actors.core.records.resource import Resources
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Created, Message
from trunkline.actors.people.accounts.actor import email_key
from trunkline.actors.people.organizations.invitations import (
    INVITE,
    INVITED,
    AcceptInvite,
    DismissInvite,
    InviteMember,
    NewInvite,
    RejectInvite,
    RevokeInvite,
    address_key,
    check_expiry,
    has_expired,
    hash_token,
)
from trunkline.actors.people.organizations.membership import (
    MEMBER,
    MEMBERSHIP,
    ORGANIZATION,
    check_other_admin,
)
from trunkline.actors.people.organizations.messages import (
    CreateOrg,
    DeleteOrg,
    ModifyMember,
    OrgPatch,
    OrgPost,
    PatchOrg,
    RemoveMember,
)
from trunkline.store import keys
from trunkline.store.codec import decode, encode


class Organization(RecordOwner):
    """One organization. `ref.parent` is `ids.ROOT`."""

    kind: ClassVar[str] = "org"
    noun: ClassVar[str] = "organization"
    own: ClassVar[Kind] = ORGANIZATION
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateOrg})

    __slots__ = ()

    def on_create_org(self, message: CreateOrg) -> Created:
        """Create the organization with its first administrator; the answer is its id."""
        named = self._named(message.body, message.user) | {
            "mfaMode": message.body.mfa_mode,
            "founderId": message.user.hex(),  # who is charged for it (`core/records/owners.py`)
        }
        created = self.create(named)
        self._add_member(message.user, {"role": "admin", **NO_RESOURCE_ROLES})
        return created

    def on_patch_org(self, message: PatchOrg) -> None:
        """Change the fields that the body sets."""
        check_match(message.if_match, self.raw)
        self.change(self._named(message.body, message.user))

    def on_delete_org(self, message: DeleteOrg) -> None:
        """Delete the organization. Raises `Invalid` while it owns applications or dashboards."""
        check_match(message.if_match, self.raw)
        id = self.ref.id
        for kind, owned in (
            (APPLICATION, self._total(APPLICATION, ROOT, facet_count(id.hex()))),
            (self._dashboard, self._total(self._dashboard, id)),
        ):
            if owned:
                raise Invalid(
                    f"The organization owns {kind.nouns}: {owned}. Delete or transfer them first; nothing was deleted."
                )
        for user, doc in self._records(MEMBER):
            self._erase_member(user, doc)
        for invite, doc in self._records(INVITE):
            self._erase_invite(invite, doc)
        records.erase(self, ORGANIZATION, ROOT, id, self.doc)
        # The sweeper removes its dashboards and jobs.
        self.put(keys.META, keys.purge_key(id), encode({"orgId": id.hex()}))
        self.exists = False

    def on_modify_member(self, message: ModifyMember) -> None:
        """Change the roles of a member. Raises `Invalid` if no administrator would be left.

        A new administrator loses the roles in single resources.
        """
        user = bytes.fromhex(message.body.user_id)
        old, named = self._record_of(MEMBER, user), roles_of(message.body)
        new = old | (NO_RESOURCE_ROLES if named.get("role") == "admin" else {}) | named
        self._check_roles(new, named)
        if old["role"] == "admin" and new["role"] != "admin":
            self._check_last_admin(user)
        new["lastUpdated"] = records.next_update_ms(self.system.clock.wall_ms(), old)
        records.write(self, MEMBER, self.ref.id, user, old, new)

    def on_remove_member(self, message: RemoveMember) -> None:
        """Remove a member. Raises `Invalid` if no administrator would be left."""
        doc = self._record_of(MEMBER, message.member)
        if doc["role"] == "admin":
            self._check_last_admin(message.member)
        self._erase_member(message.member, doc)

    def _named(self, body: OrgPost | OrgPatch, user: bytes) -> Doc:
        """The fields that a body sets, as they are stored. Raises `Invalid` for what this server does not have."""
        named: Doc = msgspec.to_builtins(body)
        for field in _UNSUPPORTED:
            if named.pop(field, None) is not None:
                raise Invalid(f"{field}: this server has no plans and no payments; leave the field out.")
        if named.get("mfaMode", "notRequired") != "notRequired":
            raw = records.raw_of(self.system.journal.get, USER, ROOT, user)
            if raw is None or not decode(raw).get("twoFactorAuthEnabled"):
                raise Invalid(
                    "mfaMode: enable two-factor authentication for yourself first, or you would lock yourself out."
                )
        return named

    # Invitations.

    def on_invite_member(self, message: InviteMember) -> NewInvite:
        """Store an invitation, which replaces an earlier one to the same address. Raises `Invalid`."""
        body, limits = message.body, self.system.limits
        journal, now_ms = self.system.journal, self.system.clock.wall_ms()
        check_address(body.email)
        user = journal.get(keys.UNIQUE, email_key(body.email))
        if user is not None and journal.get(keys.RECORDS, self._key(MEMBER, user)) is not None:
            raise Invalid(f"email: {body.email} is a member already; change the role instead.")
        roles = NO_RESOURCE_ROLES | roles_of(body)
        self._check_roles(roles, roles)
        kept = 0
        for id, doc in self._records(INVITE):
            if address_key(doc["email"]) == address_key(body.email) or has_expired(doc, now_ms):
                self._erase_invite(id, doc)
            else:
                kept += 1
        if kept >= limits.organization_invites_max:
            raise Invalid(
                f"The organization has {kept} open invitations, which is the most; revoke one first."
            )
        if self._total(INVITED, address_key(body.email)) >= limits.address_invites_max:
            raise Invalid(
                f"email: this address has {limits.address_invites_max} open invitations, which is the most; "
                "ask its owner to answer them first."
            )
        id, token = self.system.ids.new(now_ms), self.system.random_bytes(32).hex()
        invite = {
            "email": body.email,
            **roles,
            "disallowTransfer": body.disallow_transfer,
            "inviteDate": now_ms,
            "ttl": limits.invite_s,
            "tokenHash": hash_token(token),
            "invitedById": message.user.hex(),
        }
        records.write(self, INVITE, self.ref.id, id, None, invite)
        records.write(self, INVITED, address_key(body.email), id, None, {"orgId": self.ref.id.hex()})
        inviter = records.raw_of(journal.get, USER, ROOT, message.user)
        by = "A user" if inviter is None else str(decode(inviter)["email"])
        return NewInvite(id, token, self.doc["name"], by)

    def on_revoke_invite(self, message: RevokeInvite) -> None:
        """Revoke an invitation."""
        self._erase_invite(message.invite, self._record_of(INVITE, message.invite))

    def on_accept_invite(self, message: AcceptInvite) -> None:
        """Make the user a member. Somebody who is a member already keeps the roles."""
        invite = self._record_of(INVITE, message.invite)
        check_expiry(invite, self.system.clock.wall_ms())
        self._erase_invite(message.invite, invite)
        if self.system.journal.get(keys.RECORDS, self._key(MEMBER, message.user)) is None:
            self._add_member(message.user, {field: invite[field] for field in ROLE_FIELDS})

    def on_reject_invite(self, message: RejectInvite) -> None:
        """End an invitation."""
        self._erase_invite(message.invite, self._record_of(INVITE, message.invite))

    def on_dismiss_invite(self, message: DismissInvite) -> None:
        """Hide an invitation from the list of the invited user."""
        old = self._record_of(INVITE, message.invite)
        records.write(self, INVITE, self.ref.id, message.invite, old, old | {"dismissed": True})

    def _erase_invite(self, id: bytes, doc: Doc) -> None:
        records.erase(self, INVITE, self.ref.id, id, doc)
        records.erase(self, INVITED, address_key(doc["email"]), id, {})

    # Members.

    def _add_member(self, user: bytes, roles: Doc) -> None:
        """Stage a new member. Raises `Invalid` at the limits of the organization and of the user."""
        limits, now_ms = self.system.limits, self.system.clock.wall_ms()
        if self._total(MEMBER, self.ref.id) >= limits.organization_members_max:
            raise Invalid(
                f"The organization has {limits.organization_members_max} members, which is the most; "
                "remove one first."
            )
        if self._total(MEMBERSHIP, user) >= limits.user_organizations_max:
            raise Invalid(
                f"The user belongs to {limits.user_organizations_max} organizations, which is the most; "
                "leave one first."
            )
        doc = {"creationDate": now_ms, "lastUpdated": now_ms, **roles}
        records.write(self, MEMBER, self.ref.id, user, None, doc)
        records.write(self, MEMBERSHIP, user, self.ref.id, None, {"creationDate": now_ms})

    def _erase_member(self, user: bytes, doc: Doc) -> None:
        records.erase(self, MEMBER, self.ref.id, user, doc)
        records.erase(self, MEMBERSHIP, user, self.ref.id, {})

    def _check_roles(self, roles: Doc, named: Doc) -> None:
        """Raise `Invalid` for roles in resources that restrict nobody, or that the organization does not own.

        `named` are the roles that the call sets: what the others name may have been deleted since.
        """
        for field, kind in (("applicationRoles", APPLICATION), ("dashboardRoles", self._dashboard)):
            if roles["role"] == "admin" and roles[field]:
                raise Invalid(
                    f"{field}: an administrator reaches everything; give an empty list, "
                    "or the role edit or a lower one."
                )
            for position, each in enumerate(named.get(field, ())):
                if not self._owns(kind, bytes.fromhex(each["resourceId"])):
                    raise Invalid(
                        f"{field}[{position}].resourceId: the organization has no {kind.noun} "
                        f"{each['resourceId']}; name only what it owns."
                    )

    def _owns(self, kind: Kind, id: bytes) -> bool:
        """Whether the organization owns an application or a dashboard."""
        parent = ROOT if kind is APPLICATION else self.ref.id
        raw = records.raw_of(self.system.journal.get, kind, parent, id)
        return raw is not None and (kind is not APPLICATION or decode(raw)["ownerId"] == self.ref.id.hex())

    @property
    def _dashboard(self) -> Kind:
        return self.system.component(Resources)["dashboard"].kind

    def _key(self, kind: Kind, id: bytes) -> bytes:
        return keys.record_key(kind.name, self.ref.id, id)

    def _record_of(self, kind: Kind, id: bytes) -> Doc:
        """The record of a member (`id` is the user) or of an invitation. Raises `NotFound`."""
        raw = self.system.journal.get(keys.RECORDS, self._key(kind, id))
        if raw is None:
            raise NotFound(f"The organization has no {kind.noun} {id.hex()}.")
        doc: Doc = decode(raw)
        return doc

    def _records(self, kind: Kind) -> list[tuple[bytes, Doc]]:
        prefix = keys.record_prefix(kind.name, self.ref.id)
        end = keys.prefix_end(prefix)
        assert end is not None
        found = self.system.journal.range(keys.RECORDS, prefix, end)
        return [(key[-keys.ID_BYTES :], decode(raw)) for key, raw in found]

    def _check_last_admin(self, user: bytes) -> None:
        check_other_admin(self._records(MEMBER), self.ref.id, user)

    def _total(self, kind: Kind, parent: bytes, name: str = "n") -> int:
        raw = self.system.journal.get(keys.COUNTS, keys.total_key(kind.name, parent))
        return 0 if raw is None else int(decode(raw).get(name, 0))


def roles_of(body: msgspec.Struct) -> Doc:
    """The roles that a body sets, with ids in lower case. Raises `Invalid` for an id that stands in a list twice."""
    named: Doc = {field: value for field, value in msgspec.to_builtins(body).items() if field in ROLE_FIELDS}
    for field in ("applicationRoles", "dashboardRoles"):
        seen: set[str] = set()
        for each in named.get(field, ()):
            id = each["resourceId"] = each["resourceId"].lower()
            if id in seen:
                raise Invalid(f"{field}: {id} appears twice in the list; name each resource once.")
            seen.add(id)
    return named


NO_RESOURCE_ROLES: Final[Doc] = {"applicationRoles": [], "dashboardRoles": []}
ROLE_FIELDS: Final = frozenset({"role", "applicationRoles", "dashboardRoles"})
_UNSUPPORTED: Final = ("planId", "cardToken")
