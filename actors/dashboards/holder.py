"""The parent of a dashboard: an application or a user; and what it reaches."""

from __future__ import annotations

from typing import Literal, NamedTuple

from trunkline.actors.records import records
from trunkline.actors.records.kinds import APPLICATION, USER
from trunkline.actors.values.ids import ROOT
from trunkline.store.snapshot import Snapshot

HolderKind = Literal["application", "user"]


class Holder(NamedTuple):
    """The parent of a dashboard: the kind of its actor, and its id."""

    kind: HolderKind
    id: bytes

    @property
    def resource(self) -> str:
        """The name of the resource by which the parent knows its dashboards."""
        return "applicationDashboard" if self.kind == "application" else "dashboard"


def find_holder(snapshot: Snapshot, parent: bytes) -> Holder | None:
    """The parent with this id; None if it was deleted, and its dashboards will be swept."""
    if records.find(snapshot, APPLICATION, ROOT, parent) is not None:
        return Holder("application", parent)
    return None if records.find(snapshot, USER, ROOT, parent) is None else Holder("user", parent)


def reaches(snapshot: Snapshot, holder: Holder, application: bytes) -> bool:
    """Whether a dashboard may show an application: its own, or one of the user that owns the dashboard."""
    if holder.kind == "application":
        return holder.id == application
    found = records.find(snapshot, APPLICATION, ROOT, application)
    return found is not None and found.doc["ownerId"] == holder.id.hex()
