"""Updates of events: the new record, and the update that is added to the event's history. Pure: no store, no clock.

An update contains the old and the new value of every changed field (of tags only if their changes are tracked). So
applying the complete history to the event as it was created gives the current event.

`comment` and `data` of a patch belong to the update; an event's own data never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.records import next_update_ms
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.events.messages import EVENT_TAGS_MAX, EventPatch, TagChanges

NameOf = Callable[[str], str | None]
"""A function from a device id to the device's name; None if the device does not exist (any more)."""


class Updated(NamedTuple):
    """The record after an update, and the entry for the history; None if there is no entry."""

    doc: Doc
    update: Doc | None


def apply_update(doc: Doc, body: EventPatch, by: Creator, now_ms: int, name_of: NameOf) -> Updated:
    """Apply the update `body` to the event `doc`, which is not modified.

    An empty body changes neither record nor history. Otherwise `lastUpdated` always increases, so that equal entity
    tags mean equal records.
    """
    if body == EventPatch():
        return Updated(doc, None)
    time_ms = next_update_ms(now_ms, doc)
    after: Doc = {**doc, "lastUpdated": time_ms}
    update: Doc = {**source_fields(by), "creationDate": time_ms}
    if body.comment is not UNSET:
        update["comment"] = body.comment
    if body.data is not UNSET:
        update["data"] = body.data
    if body.state is not UNSET:
        update["state"] = body.state
        _change(after, update, "state", body.state)
    if body.level is not UNSET:
        _change(after, update, "level", body.level)
    if body.subject is not UNSET:
        _change(after, update, "subject", body.subject)
    if body.device_id is not UNSET:
        _change_device(after, update, body.device_id, name_of)
    if body.event_tags is not UNSET:
        _change_tags(after, update, body.event_tags)
    only_tags = body == EventPatch(event_tags=body.event_tags)
    return Updated(after, None if only_tags and doc.get("disableTagChangeTracking") else update)


def with_tags(body: EventPatch, doc: Doc, changes: TagChanges) -> EventPatch:
    """The update with changes of single tags of the event `doc`. Raises `Invalid` if it would have too many."""
    if not changes:
        return body
    tags = {**(doc["eventTags"] if body.event_tags is UNSET else body.event_tags), **changes}
    kept = {key: value for key, value in tags.items() if value is not None}
    if len(kept) > EVENT_TAGS_MAX:
        raise Invalid(
            f"eventTags: the event would have {len(kept)} tags; an event has at most {EVENT_TAGS_MAX}."
        )
    return msgspec.structs.replace(body, event_tags=kept)


def source_fields(by: Creator) -> Doc:
    """Return the fields of an event or an update that name its creator."""
    found: Doc = {"sourceType": by.type, "sourceId": by.id}
    if by.name:
        found["sourceName"] = by.name
    return found


def _change(after: Doc, update: Doc, field: str, new: str) -> None:
    if after[field] != new:
        update[f"{field}Change"] = {"old": after[field], "new": new}
        after[field] = new


def _change_device(after: Doc, update: Doc, device_id: str | None, name_of: NameOf) -> None:
    old = after.get("deviceId")
    new = None if device_id is None else device_id.lower()
    if old == new:
        return
    change: Doc = {}
    for word, id in (("old", old), ("new", new)):
        if id is not None:
            change[word] = id
            name = name_of(id)
            if name is not None:
                change[f"{word}DeviceName"] = name
    update["deviceIdChange"] = change
    after.pop("deviceId", None)
    if new is not None:
        after["deviceId"] = new


def _change_tags(after: Doc, update: Doc, new: dict[str, str]) -> None:
    old: dict[str, str] = after["eventTags"]
    after["eventTags"] = dict(new)
    if after.get("disableTagChangeTracking"):
        return
    changes: dict[str, dict[str, Any]] = {}
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            values = {"old": old.get(key), "new": new.get(key)}
            changes[key] = {word: value for word, value in values.items() if value is not None}
    if changes:
        update["tagsChange"] = changes
