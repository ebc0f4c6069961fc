"""The organization actor: the only writer of an organization's record, its members and its invitations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import msgspec

from trunkline.actors.organizations.membership import MEMBER, MEMBERSHIP, ORGANIZATION
from trunkline.actors.organizations.messages import (
    CreateOrg,
    DeleteOrg,
    ModifyMember,
    OrgPatch,
    OrgPost,
    PatchOrg,
    RemoveMember,
)
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc, Kind, facet_count
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.records.owner import RecordOwner
from trunkline.actors.records.revision import check_match
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Created, Message
from trunkline.store import keys
from trunkline.store.codec import decode


class Organization(RecordOwner):
    """One organization. `ref.parent` is `ids.ROOT`."""

    kind: ClassVar[str] = "org"
    noun: ClassVar[str] = "organization"
    own: ClassVar[Kind] = ORGANIZATION
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateOrg})

    __slots__ = ()

    def on_create_org(self, message: CreateOrg) -> Created:
        """Create the organization with its first administrator; the answer is its id."""
        named = _named(message.body) | {"mfaMode": message.body.mfa_mode}
        created = self.create(named)
        self.add_member(message.user, {"role": "admin", "applicationRoles": [], "dashboardRoles": []})
        return created

    def on_patch_org(self, message: PatchOrg) -> None:
        """Change the fields that the body sets."""
        check_match(message.if_match, self.raw)
        self.change(_named(message.body))

    def on_delete_org(self, message: DeleteOrg) -> None:
        """Delete the organization. Raises `Invalid` while it owns applications."""
        check_match(message.if_match, self.raw)
        id = self.ref.id
        owned = self._total(APPLICATION, ROOT, facet_count(id.hex()))
        if owned:
            raise Invalid(
                f"The organization owns applications: {owned}. Delete or transfer them first; nothing was deleted."
            )
        for user, doc in list(self._members()):
            self._erase_member(user, doc)
        self.delete(keys.COUNTS, keys.total_key(MEMBER.name, id))
        records.erase(self, ORGANIZATION, ROOT, id, self.doc)
        self.exists = False

    def on_modify_member(self, message: ModifyMember) -> None:
        """Change the roles of a member. Raises `Invalid` if no administrator would be left."""
        body = message.body
        user = bytes.fromhex(body.user_id)
        old = self._member(user)
        new = old | roles_of(body)
        check_roles(new)
        if old["role"] == "admin" and new["role"] != "admin":
            self._check_last_admin(user)
        new["lastUpdated"] = records.next_update_ms(self.system.clock.wall_ms(), old)
        records.write(self, MEMBER, self.ref.id, user, old, new)

    def on_remove_member(self, message: RemoveMember) -> None:
        """Remove a member. Raises `Invalid` if no administrator would be left."""
        doc = self._member(message.member)
        if doc["role"] == "admin":
            self._check_last_admin(message.member)
        self._erase_member(message.member, doc)

    # Members.

    def add_member(self, user: bytes, roles: Doc) -> None:
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

    def _member(self, user: bytes) -> Doc:
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(MEMBER.name, self.ref.id, user))
        if raw is None:
            raise NotFound(f"The user {user.hex()} is not a member of this organization.")
        doc: Doc = decode(raw)
        return doc

    def _members(self) -> Iterator[tuple[bytes, Doc]]:
        prefix = keys.record_prefix(MEMBER.name, self.ref.id)
        end = keys.prefix_end(prefix)
        assert end is not None
        for key, raw in self.system.journal.range(keys.RECORDS, prefix, end):
            yield key[-keys.ID_BYTES :], decode(raw)

    def _check_last_admin(self, user: bytes) -> None:
        if not any(doc["role"] == "admin" for id, doc in self._members() if id != user):
            raise Invalid(
                f"The user {user.hex()} is the only administrator of the organization {self.ref.id.hex()}; "
                "make another member an administrator first, or delete the organization."
            )

    def _total(self, kind: Kind, parent: bytes, name: str = "n") -> int:
        raw = self.system.journal.get(keys.COUNTS, keys.total_key(kind.name, parent))
        return 0 if raw is None else int(decode(raw).get(name, 0))


def _named(body: OrgPost | OrgPatch) -> Doc:
    """The fields that a body sets, as they are stored. Raises `Invalid` for what this server does not have."""
    named: Doc = msgspec.to_builtins(body)
    for field in _UNSUPPORTED:
        if named.pop(field, None) is not None:
            raise Invalid(f"{field}: this server has no plans and no payments; leave the field out.")
    return named


def roles_of(body: msgspec.Struct) -> Doc:
    """The roles that a body sets, with ids in lower case. Raises `Invalid` for an id that stands in a list twice."""
    named: Doc = {field: value for field, value in msgspec.to_builtins(body).items() if field in _ROLES}
    for field in ("applicationRoles", "dashboardRoles"):
        seen: set[str] = set()
        for each in named.get(field, ()):
            id = each["resourceId"] = each["resourceId"].lower()
            if id in seen:
                raise Invalid(f"{field}: {id} stands in the list twice; name each resource once.")
            seen.add(id)
    return named


def check_roles(roles: Doc) -> None:
    """Raise `Invalid` for an administrator with roles in single resources: they would restrict nothing."""
    for field in ("applicationRoles", "dashboardRoles"):
        if roles["role"] == "admin" and roles[field]:
            raise Invalid(
                f"{field}: an administrator reaches everything; give an empty list, or the role edit or a lower one."
            )


_ROLES: Final = frozenset({"role", "applicationRoles", "dashboardRoles"})
_UNSUPPORTED: Final = ("planId", "cardToken")
