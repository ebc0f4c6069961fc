"""Groups of the users of an experience: who may use which endpoints, and which devices belong to whom.

A group may have a parent. The devices of a group also belong to the groups above it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.query.fields import ID, IDS, TAGS, TEXT, TIME, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.query.text import as_edited, parse_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.changes import changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body, Query
from trunkline.actors.core.values.terms import Description, Id, Ids, Name, RecordView, TagFilters
from trunkline.actors.fleet.devices.queries.memberships import MEMBERSHIPS
from trunkline.actors.fleet.devices.queries.selection import device_filter, scans_application
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.actors.presentation.experience.kind import GROUP
from trunkline.actors.presentation.experience.read_context import ExperienceContext
from trunkline.actors.presentation.experience.relations import (
    ENDPOINTS_OF_GROUP,
    USERS_OF_GROUP,
    relate,
    unrelate,
)
from trunkline.actors.presentation.experience.terms import TagMap
from trunkline.store import keys

GROUP_FIELDS: Final = Fields(
    "experience group",
    {
        "id": ID,
        "creationDate": TIME,
        "lastUpdated": TIME,
        "name": TEXT,
        "parentId": ID,
        "ancestorId": IDS,
        "groupTags": TAGS,
        "experienceUserId": IDS,
        "experienceEndpointId": IDS,
    },
)

GroupQuery = Annotated[dict[str, Any], query_over(GROUP_FIELDS)]
_DeviceQueryText = Annotated[str, Meta(max_length=8192)]


class GroupPost(Body, frozen=True):
    """A new group. A device belongs to it by its id, by a tag, or by the query."""

    name: Name
    description: Description | UnsetType = UNSET
    experience_user_ids: Ids | UnsetType = UNSET
    experience_endpoint_ids: Ids | UnsetType = UNSET
    group_tags: TagMap | UnsetType = UNSET
    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    device_query_json: _DeviceQueryText | UnsetType | None = UNSET
    parent_id: Id | UnsetType | None = UNSET


@changes_of(GroupPost)
class GroupPatch(Body, frozen=True):
    """Changes of a group; omitted fields stay as they are. Lists and maps are replaced, null removes the parent."""


class GroupPage(Page, frozen=True):
    """A page of groups. `query` takes the place of `filter`."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    query: GroupQuery | None = None


class GroupChoice(Query, frozen=True):
    """Which numbers of devices are shown: of the group itself, and of it with all groups below."""

    include_direct_device_count: bool = False
    include_total_device_count: bool = False


class GroupView(RecordView, frozen=True, kw_only=True):
    """A group. `ancestorIds` are the groups above it, the nearest first."""

    experience_group_id: Id
    application_id: Id
    name: str
    experience_user_ids: list[Id]
    experience_endpoint_ids: list[Id]
    group_tags: dict[str, str]
    device_ids: list[Id]
    device_tags: list[Any]
    ancestor_ids: list[Id]
    description: str | None = None
    device_query_json: str | None = None
    parent_id: Id | None = None
    direct_device_count: int | None = None
    total_device_count: int | None = None


def _check(change: Change) -> None:
    """Check the parent, the devices and the query of devices."""
    owner, new, named = change.owner, change.new, change.named
    for field in ("deviceIds", "deviceTags"):
        new.setdefault(field, [])
    new.setdefault("groupTags", {})
    if named.get("parentId") is not None:
        new["parentId"] = new["parentId"].lower()
        _check_parent(change)
    if named.get("deviceIds"):
        new["deviceIds"] = list(dict.fromkeys(id.lower() for id in new["deviceIds"]))
        # One that was deleted since may stay, so that a group can be sent back as it was read.
        for id in set(new["deviceIds"]).difference((change.old or {}).get("deviceIds", ())):
            if records.find(Staged(owner), DEVICE, owner.ref.id, bytes.fromhex(id)) is None:
                raise Invalid(f"deviceIds: there is no device {id} in this application.")
    if named.get("deviceQueryJson") is not None:
        _check_query(named["deviceQueryJson"])
    relate(change, USERS_OF_GROUP)
    relate(change, ENDPOINTS_OF_GROUP)


def _check_parent(change: Change) -> None:
    """Raise `Invalid` unless the parent exists and is not below the group; also if the groups are too deep."""
    owner, parent = change.owner, change.new["parentId"]
    above: str | None = parent
    most = owner.system.limits.experience_group_ancestors_max
    for _ in range(most):
        if above is None:
            return
        if above == change.id.hex():
            raise Invalid(
                f"parentId: {parent} is this group or lies below it; a group cannot be its own ancestor."
            )
        found = records.find(Staged(owner), GROUP, owner.ref.id, bytes.fromhex(above))
        if found is None:
            raise Invalid(f"parentId: there is no experience group {above} in this application.")
        above = found.doc.get("parentId")
    raise Invalid(f"parentId: {parent} has {most} groups above it, which is the limit.")


def _check_query(text: str) -> None:
    try:
        query = json.loads(text)
    except (ValueError, RecursionError):
        raise Invalid(
            "deviceQueryJson: is not JSON; give the text of an advanced query of devices."
        ) from None
    compiled = compile_query(as_edited(query), DEVICE_FIELDS, at="deviceQueryJson")
    if circular := MEMBERSHIPS & compiled.fields:
        raise Invalid(f"deviceQueryJson: {min(circular)} depends on the devices of groups; leave it out.")


def _before_delete(owner: Actor, id: bytes, doc: Doc) -> None:
    """Refuse the deletion of a group with groups below it: whoever is above them would lose their devices."""
    _, low, high = index_range(GROUP, owner.ref.id, "parentId", keys.sortable(id.hex()))
    assert high is not None
    below = Staged(owner).range(keys.INDEXES, low, high)
    if below:
        raise Invalid(
            f"{len(below)} experience groups have this group as their parent; move or delete them first."
        )
    unrelate(owner, USERS_OF_GROUP, id, doc)
    unrelate(owner, ENDPOINTS_OF_GROUP, id, doc)


def _join(context: ExperienceContext, id: bytes, doc: Doc, query: object) -> Doc:
    shown: Doc = {"ancestorIds": context.ancestors(doc)}
    if getattr(query, "include_direct_device_count", False):
        shown["directDeviceCount"] = _count_devices(context, [doc])
    if getattr(query, "include_total_device_count", False):
        shown["totalDeviceCount"] = _count_devices(context, [doc, *_below(context, id)])
    return shown


def _below(context: ExperienceContext, group: bytes) -> Iterator[Doc]:
    """All groups below a group. Parents form no circles, so each is found once."""
    left = [group]
    while left:
        _, low, high = index_range(GROUP, context.parent, "parentId", keys.sortable(left.pop().hex()))
        for key in context.snapshot.keys(keys.INDEXES, low, high):
            id = bytes(key[-keys.ID_BYTES :])
            doc = context.record(GROUP, id.hex())
            if doc is not None:
                left.append(id)
                yield doc


def _count_devices(context: ExperienceContext, groups: list[Doc]) -> int:
    """The number of devices that belong to one of the groups, each counted once."""
    context.reading.check_time(is_long=scans_application(context.snapshot, context.parent))
    ids = {id for group in groups for id in group["deviceIds"]}
    tags = [tag for group in groups for tag in group["deviceTags"]]
    texts = [group["deviceQueryJson"] for group in groups if group.get("deviceQueryJson")]
    queries = [parse_query(text, "deviceQueryJson") for text in texts]
    filters = [device_filter(context.snapshot, context.parent, query).match for query in queries]
    matches = [match or (lambda _doc: True) for match in filters]
    return sum(
        doc["id"] in ids or has_tag(doc["tags"], tags) or any(match(doc) for match in matches)
        for _, doc in records.scan(context.snapshot, DEVICE, context.parent)
    )


GROUPS: Final = Resource(
    name="experienceGroup",
    kind=GROUP,
    post=GroupPost,
    patch=GroupPatch,
    page=GroupPage,
    view=GroupView,
    query_replaces_filter=True,
    fields=GROUP_FIELDS,
    choice=GroupChoice,
    only_get_chooses=True,
    check=_check,
    before_delete=_before_delete,
    context=ExperienceContext,
    join=_join,
    derived={
        "ancestorId": lambda context, doc: context.ancestors(dict(doc)),
        "experienceUserId": lambda _context, doc: doc["experienceUserIds"],
        "experienceEndpointId": lambda _context, doc: doc["experienceEndpointIds"],
    },
)
