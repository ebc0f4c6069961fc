"""Memberships: which organizations a user belongs to, and with which role.

For other packages:

- `memberships(snapshot, user)`: the organizations of a user, each with the role.
- `find_membership(snapshot, org, user)`: the role of one user in one organization; None for somebody else.
- `Membership.level`, `.application_level(id)`, `.dashboard_level(id)`: what the role allows (`roles.py`).
- `applications_of(snapshot, membership)`: the applications of the organization that a member can read.

What a token may do with an application or an organization is decided by `authority.py`. The dispatcher asks it for
every path that contains `{applicationId}` or `{orgId}`; a handler that has such an id from elsewhere calls
`check_access` of `http/calls/access.py`.

A member is stored twice, in one batch: as a `MEMBER` of the organization, with the role, and as a `MEMBERSHIP` of the
user, which makes the organizations of a user one range. A `MEMBER` has the id of its user, so a changed or deleted one
revokes what depends on this user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import OTHER_OWNER, Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION, ORGANIZATION_NAME, USER
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.records.source import Values
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.roles import ROLES, Level, Role
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

ORGANIZATION: Final = Kind(
    name=ORGANIZATION_NAME,
    noun="organization",
    home="root",
    indexes=(),
    ends_access=frozenset({"mfaMode"}),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
MEMBER: Final = Kind(
    name="orgMember",
    noun="member",
    home="root",
    indexes=(),
    ends_access=frozenset({"role", "applicationRoles", "dashboardRoles"}),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""A member of an organization, its parent. The id is that of the user."""

MEMBERSHIP: Final = Kind(
    name="orgMembership",
    noun="membership",
    home="root",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""The same from the side of the user, its parent. The id is that of the organization."""


class Membership(NamedTuple):
    """A user's membership in an organization. The roles by id apply instead of `role`.

    `needs_second_factor`: the organization requires two-factor authentication, and the user does not have it. Then no
    role has any effect.
    """

    org: bytes
    role: Role
    application_roles: Mapping[bytes, Role]
    dashboard_roles: Mapping[bytes, Role]
    needs_second_factor: bool = False

    @classmethod
    def of(cls, org: bytes, doc: Doc) -> Membership:
        """The membership that the record of a member describes."""
        return cls(org, doc["role"], _by_id(doc["applicationRoles"]), _by_id(doc["dashboardRoles"]))

    @property
    def level(self) -> Level:
        """The level in the organization."""
        return self._level(self.role)

    def application_level(self, application: bytes) -> Level:
        """The level in one of its applications."""
        return self._level(self.application_roles.get(application, self.role))

    def dashboard_level(self, dashboard: bytes) -> Level:
        """The level in one of its dashboards."""
        return self._level(self.dashboard_roles.get(dashboard, self.role))

    def _level(self, role: Role) -> Level:
        return Level.MEMBER if self.needs_second_factor else ROLES[role]


def find_membership(snapshot: Values, org: bytes, user: bytes) -> Membership | None:
    """The membership of a user in an organization; None if there is none."""
    found = records.find(snapshot, MEMBER, org, user)
    if found is None:
        return None
    owner = records.find(snapshot, ORGANIZATION, ROOT, org)
    if owner is not None and requires_second_factor(owner.doc, found.doc["role"]):
        account = records.find(snapshot, USER, ROOT, user)
        if account is None or not account.doc.get("twoFactorAuthEnabled"):
            return Membership(org, found.doc["role"], {}, {}, needs_second_factor=True)
    return Membership.of(org, found.doc)


def requires_second_factor(org: Doc, role: Role) -> bool:
    """Whether an organization requires two-factor authentication of members with this role."""
    return bool(org["mfaMode"] == "required" or (org["mfaMode"] == "adminRequired" and role == "admin"))


def memberships(snapshot: Snapshot, user: bytes) -> Iterator[Membership]:
    """Yield the memberships of a user, in the order of the ids of the organizations."""
    prefix = keys.record_prefix(MEMBERSHIP.name, user)
    for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        found = find_membership(snapshot, bytes(key[-keys.ID_BYTES :]), user)
        if found is not None:
            yield found


def check_other_admin(roles: Iterable[tuple[bytes, Doc]], org: bytes, user: bytes) -> None:
    """Raise `Invalid` if none of the members (ids of users, documents) but `user` is an administrator."""
    if not any(doc["role"] == "admin" for id, doc in roles if id != user):
        raise Invalid(
            f"The user {user.hex()} is the only administrator of the organization {org.hex()}; "
            "make another member an administrator first, or delete the organization."
        )


class Selection(NamedTuple):
    """The applications of an organization that a member can read: all but `hidden`, or else only those in `only`."""

    hidden: frozenset[bytes] = frozenset()
    only: frozenset[bytes] | None = None


def selection_of(snapshot: Snapshot, membership: Membership) -> Selection:
    """Select the applications of an organization that a member can read. All ids in the answer are its applications."""
    reads = membership.level >= Level.READ
    owner = membership.org.hex()
    others = set()
    for id, role in membership.application_roles.items():
        if (ROLES[role] >= Level.READ) != reads:
            found = records.find(snapshot, APPLICATION, ROOT, id)
            if found is not None and found.doc["ownerId"] == owner:
                others.add(id)
    return Selection(hidden=frozenset(others)) if reads else Selection(only=frozenset(others))


def applications_of(snapshot: Snapshot, membership: Membership) -> list[bytes]:
    """The ids of the applications of an organization that a member can read."""
    selection = selection_of(snapshot, membership)
    if selection.only is not None:
        return sorted(selection.only)
    owned = ids_of_facet(snapshot, APPLICATION, ROOT, membership.org.hex())
    return [id for id in owned if id not in selection.hidden]


def _by_id(roles: list[Doc]) -> dict[bytes, Role]:
    return {bytes.fromhex(each["resourceId"]): each["role"] for each in roles}
