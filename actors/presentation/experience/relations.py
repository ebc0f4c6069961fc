"""Relations between groups and their members, which both records store: a user knows its groups, a group its users.

The two sides change in one batch, so each can be read without the other.
"""

from __future__ import annotations

from typing import NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.resource import Change
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.presentation.experience.kind import ENDPOINT, GROUP, USER


class Relation(NamedTuple):
    """A field with ids of other records, and the field of those that holds the ids of these."""

    field: str
    kind: Kind
    back: str


GROUPS_OF_USER = Relation("experienceGroupIds", GROUP, "experienceUserIds")
GROUPS_OF_ENDPOINT = Relation("experienceGroupIds", GROUP, "experienceEndpointIds")
USERS_OF_GROUP = Relation("experienceUserIds", USER, "experienceGroupIds")
ENDPOINTS_OF_GROUP = Relation("experienceEndpointIds", ENDPOINT, "experienceGroupIds")


def relate(change: Change, relation: Relation) -> None:
    """Stage the other side of a changed relation. Raises `Invalid` for an id of no record, and for a full record."""
    field = relation.field
    new = list(dict.fromkeys(id.lower() for id in change.new.get(field, ())))
    old = [] if change.old is None else change.old[field]
    change.new[field] = new
    for id in new:
        if id not in old:
            _add(change, relation, id)
    for id in old:
        if id not in new:
            _remove(change.owner, relation, id, change.id.hex())


def unrelate(owner: Actor, relation: Relation, id: bytes, doc: Doc) -> None:
    """Stage the removal of a record that is deleted from the other side of its relation."""
    for other in doc[relation.field]:
        _remove(owner, relation, other, id.hex())


def _add(change: Change, relation: Relation, id: str) -> None:
    owner, (field, kind, back) = change.owner, relation
    found = records.find(Staged(owner), kind, owner.ref.id, bytes.fromhex(id))
    if found is None:
        raise Invalid(f"{field}: there is no {kind.noun} {id} in this application.")
    most = owner.system.limits.experience_group_members_max
    doc = found.doc
    if len(doc[back]) >= most:
        raise Invalid(f"{field}: the {kind.noun} {id} has {most} {back} already, which is the limit.")
    _write(owner, kind, id, doc, {**doc, back: [*doc[back], change.id.hex()]})


def _remove(owner: Actor, relation: Relation, id: str, member: str) -> None:
    _, kind, back = relation
    found = records.find(Staged(owner), kind, owner.ref.id, bytes.fromhex(id))
    if found is not None:
        left = [each for each in found.doc[back] if each != member]
        _write(owner, kind, id, found.doc, {**found.doc, back: left})


def _write(owner: Actor, kind: Kind, id: str, old: Doc, new: Doc) -> None:
    records.write(owner, kind, owner.ref.id, bytes.fromhex(id), old, new)
