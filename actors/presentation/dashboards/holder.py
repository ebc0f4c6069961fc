"""The parent of a dashboard: an application, a user or an organization; and what it reaches."""

from __future__ import annotations

from typing import Literal, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.membership import ORGANIZATION, find_membership
from trunkline.actors.people.organizations.roles import Level
from trunkline.store.snapshot import Snapshot

HolderKind = Literal["application", "user", "org"]


class Holder(NamedTuple):
    """The parent of a dashboard: the kind of its actor, and its id."""

    kind: HolderKind
    id: bytes

    @property
    def ref(self) -> Ref:
        """The actor that writes the dashboards."""
        return Ref(self.kind, ROOT, self.id)

    @property
    def resource(self) -> str:
        """The name of the resource by which the parent knows its dashboards."""
        return "applicationDashboard" if self.kind == "application" else "dashboard"


def find_holder(snapshot: Snapshot, parent: bytes) -> Holder | None:
    """The parent with this id; None if it was deleted, and its dashboards will be swept."""
    kinds: tuple[HolderKind, ...] = ("application", "user", "org")
    for name, kind in zip(kinds, (APPLICATION, USER, ORGANIZATION), strict=True):
        if records.find(snapshot, kind, ROOT, parent) is not None:
            return Holder(name, parent)
    return None


def reaches(snapshot: Snapshot, holder: Holder, application: bytes) -> bool:
    """Whether a dashboard may show an application: its own, one of its owner, or one that its owner can read."""
    if holder.kind == "application":
        return holder.id == application
    found = records.find(snapshot, APPLICATION, ROOT, application)
    if found is None:
        return False
    owner = bytes.fromhex(found.doc["ownerId"])
    if owner == holder.id:
        return True
    member = find_membership(snapshot, owner, holder.id) if holder.kind == "user" else None
    return member is not None and member.application_level(application) >= Level.READ
