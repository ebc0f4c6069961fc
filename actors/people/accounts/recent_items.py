"""Recent items: what a user opened last. They are one bounded record of the user, with the newest item first.

Owns the record and its bounds. Whether an item exists and can still be reached is decided when the list is read
(`actors/profile.py`), so nothing has to be changed here when an item is deleted.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from trunkline.actors.core.records.kind import OTHER_OWNER, Kind
from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import Id, Name
from trunkline.limits.table import Limits

ItemType = Literal["application", "device", "flow", "dashboard", "organization"]

RECENT_ITEMS: Final = Kind(
    name="recentItems",
    noun="list of recent items",
    home="owner",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""One record for each user: its id and its parent are the id of the user."""

Item = list[str]
"""The type of an item, the id of its parent ("" if none was given), and its id."""


class RecentItemPost(Body, frozen=True):
    """An item that the user has opened. Devices and workflows need the application as `parentId`."""

    item_type: ItemType
    item_id: Id
    parent_id: Id | UnsetType = UNSET


class RecentItemChoice(Query, frozen=True):
    """Which recent items are listed."""

    item_type: ItemType
    parent_id: Id | None = None


class RecentItem(View, frozen=True):
    """An item of a list of recent items."""

    id: Id
    name: Name


class RecentItemList(View, frozen=True):
    """The items of one type that a user opened last, the newest first."""

    item_type: ItemType
    items: list[RecentItem]
    parent_id: Id | None = None


class AddRecentItem(Message, frozen=True):
    """Add an item to the user's recent items, as the newest."""

    item_type: str
    parent_id: str
    item_id: str


class CheckRecentItem(Message, frozen=True):
    """Read whether the user reaches the item of a body. The answer is the message that adds it."""

    user: bytes
    body: RecentItemPost


class ListRecentItems(Message, frozen=True):
    """Read the recent items of a user."""

    user: bytes
    query: RecentItemChoice


def with_newest(items: list[Item], newest: Item, limits: Limits) -> list[Item]:
    """The items with `newest` as the first, shortened to the bounds: of a list (type and parent), and of all."""
    kept, left = [newest], limits.recent_list_items_max - 1
    for item in items:
        if item == newest:
            continue
        if item[:2] == newest[:2]:
            if left == 0:
                continue
            left -= 1
        kept.append(item)
    return kept[: limits.recent_items_max]
