"""Reads of the current user: the profile with its summary, and the recent items. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from trunkline.actors.access.authority import reaches_application
from trunkline.actors.catalogue import COUNTED, KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.feature import Reader
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.records.summary import chosen_counts
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.people.accounts.messages import GetMe, MeView
from trunkline.actors.people.accounts.recent_items import (
    RECENT_ITEMS,
    AddRecentItem,
    CheckRecentItem,
    Item,
    ListRecentItems,
    RecentItemPost,
)
from trunkline.actors.people.accounts.tokens import API_TOKEN
from trunkline.actors.people.organizations.membership import MEMBERSHIP, ORGANIZATION, find_membership
from trunkline.actors.people.organizations.roles import Level
from trunkline.store.snapshot import Snapshot

Shown = dict[str, Any]

_ME: Final = Shape(MeView)
_RECENT: Final = {
    "recentApplications": "application",
    "recentDashboards": "dashboard",
    "recentOrganizations": "organization",
}
"""The lists of recent items in a profile, each with the type of its items."""
_WITH_PARENT: Final = ("device", "flow", "dashboard")
"""The types of items that belong to an application, or to the user or an organization (dashboards)."""


def get_me(reading: Reading, message: GetMe) -> Shown:
    """The current user."""
    snapshot, user, query = reading.snapshot, message.user, message.query
    counts = records.total(snapshot, APPLICATION, ROOT, user.hex()) * len(COUNTED)
    reading.check_time(is_long=counts > SCAN_INLINE_MAX)
    found = records.find(snapshot, USER, ROOT, user)
    if found is None:
        raise NotFound("The user of this token does not exist any more.")
    doc, id = found.doc, found.id.hex()
    names = [doc[field] for field in ("firstName", "lastName") if doc.get(field)]
    is_shown = chosen_counts(COUNTED, query.summary_include, query.summary_exclude)
    shown = {
        "id": id,
        "userId": id,
        **_ME.of({**doc, "tokenCutoff": doc["tokenCutoff"] or None}),
        "emailVerified": "emailVerified" in doc,
        "needsToVerifyEmail": "emailVerified" not in doc,
        "twoFactorAuthEnabled": "twoFactorAuthEnabled" in doc,
        "codehostConnected": doc.get("codehostConnected", False),
        "fullName": " ".join(names),
        "summary": _summary_of(snapshot, user, is_shown),
    }
    if query.include_recent:
        for name, type in _RECENT.items():
            shown[name] = _recent_items(reading, user, type, None)
    return shown | {"_etag": found.revision, "_type": "me"}


def _summary_of(snapshot: Snapshot, user: bytes, is_shown: Callable[[str], bool]) -> dict[str, int]:
    """Return the chosen counts of what the user owns."""
    owned = list(ids_of_facet(snapshot, APPLICATION, ROOT, user.hex()))
    summary = {"apiTokenCount": records.total(snapshot, API_TOKEN, user), "appCount": len(owned)}
    summary["orgCount"] = records.total(snapshot, MEMBERSHIP, user)
    for field, kind in COUNTED.items():
        if is_shown(field) and field not in summary:
            summary[field] = sum(records.total(snapshot, kind, application) for application in owned)
    return {field: count for field, count in summary.items() if is_shown(field)}


# Recent items.


def list_recent_items(reading: Reading, message: ListRecentItems) -> Shown:
    """The items of one type that the user opened last. Those that do not exist or cannot be reached are left out."""
    query = message.query
    parent = None if query.parent_id is None else query.parent_id.lower()
    return _recent_items(reading, message.user, query.item_type, parent)


def check_recent_item(reading: Reading, message: CheckRecentItem) -> AddRecentItem:
    """Return the message that adds the item. Raises `Invalid` if there is no such item that the user reaches."""
    body = message.body
    parent = "" if body.parent_id is UNSET else body.parent_id.lower()
    if not parent and body.item_type in ("device", "flow"):
        raise Invalid(f"parentId: is missing; it is the application of the {body.item_type}.")
    if not parent and body.item_type == "dashboard":
        parent = message.user.hex()
    item = [body.item_type, parent, body.item_id.lower()]
    if _name_of(reading.snapshot, message.user, item, parent or None) is None:
        raise Invalid(_no_such_item(body))
    return AddRecentItem(item_type=item[0], parent_id=item[1], item_id=item[2])


def _no_such_item(body: RecentItemPost) -> str:
    where = "" if body.parent_id is UNSET else f" in {body.parent_id}"
    return f"itemId: there is no {body.item_type} {body.item_id}{where} that you can reach."


def _recent_items(reading: Reading, user: bytes, type: str, parent: str | None) -> Shown:
    """A list of recent items; of all parents if `parent` is None."""
    found = records.find(reading.snapshot, RECENT_ITEMS, user, user)
    shown: Shown = {"itemType": type, "items": []}
    if parent is not None:
        shown["parentId"] = parent
    seen: set[str] = set()
    for item in _items(found.doc if found else {}, type):
        name = None if item[2] in seen else _name_of(reading.snapshot, user, item, parent)
        if name is not None:
            seen.add(item[2])
            shown["items"].append({"id": item[2], "name": name})
            if len(seen) == reading.limits.recent_list_items_max:
                break
    return shown


def _items(doc: Doc, type: str) -> Iterator[Item]:
    return (item for item in doc.get("items", ()) if item[0] == type)


def _name_of(snapshot: Snapshot, user: bytes, item: Item, parent: str | None) -> str | None:
    """The name of an item; None if it does not exist, cannot be reached, or has another parent than `parent`."""
    type, own_parent, id = item
    if type in _WITH_PARENT:
        if parent not in (None, own_parent):
            return None
        holder = bytes.fromhex(own_parent)
        if not _reaches_parent(snapshot, user, holder, bytes.fromhex(id)):
            return None
        found = records.find(snapshot, KINDS[type], holder, bytes.fromhex(id))
        return None if found is None else str(found.doc["name"])
    if type == "application":
        found = records.find(snapshot, APPLICATION, ROOT, bytes.fromhex(id))
        if found is None or not reaches_application(snapshot, user, found):
            return None
        return str(found.doc["name"]) if parent in (None, found.doc["ownerId"]) else None
    if type == "organization" and find_membership(snapshot, bytes.fromhex(id), user) is not None:
        found = records.find(snapshot, ORGANIZATION, ROOT, bytes.fromhex(id))
        return None if found is None else str(found.doc["name"])
    return None


def _reaches_parent(snapshot: Snapshot, user: bytes, parent: bytes, item: bytes) -> bool:
    """Whether a user may read what belongs to an application, to a user, or to an organization (a dashboard)."""
    if parent == user:
        return True
    application = records.find(snapshot, APPLICATION, ROOT, parent)
    if application is not None:
        return reaches_application(snapshot, user, application)
    membership = find_membership(snapshot, parent, user)
    return membership is not None and membership.dashboard_level(item) >= Level.READ


READERS: Final[Mapping[type[Message], Reader]] = {
    GetMe: get_me,
    CheckRecentItem: check_recent_item,
    ListRecentItems: list_recent_items,
}
