"""Retention of events: which have not been changed for too long. The event log removes them
(`data/events/actor.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.core.records import records
from trunkline.actors.core.records.expiry import NEVER_MS, Part, Step, kept_since_ms
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.platform.applications.archive_days import oldest_unarchived_ms
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot

_KEYS_PER_EVENT = 10
"""Keys of an event without updates: its record, its index entries, its detail."""


class ExpireEvents(Message, frozen=True):
    """Remove those of the events whose last change was before `oldest_ms`. The answer is their number, in a list."""

    events: list[bytes]
    oldest_ms: int


def expired_events(
    snapshot: Snapshot, application: bytes, oldest_ms: int, keys_max: int
) -> tuple[list[bytes], int | None]:
    """The events that were not changed since `oldest_ms`, the oldest first: as many as have about `keys_max` keys.

    Also the time in ms of the last change of the first event that is left; None if there is none.
    """
    found: list[bytes] = []
    db, low, high = index_range(EVENT, application, "lastUpdated")
    for key in snapshot.keys(db, low, high):
        event = records.find(snapshot, EVENT, application, bytes(key[-keys.ID_BYTES :]))
        if event is None:
            continue
        if event.doc["lastUpdated"] >= oldest_ms or keys_max <= 0:
            return found, event.doc["lastUpdated"]
        first, end = event.doc["updates"]
        keys_max -= _KEYS_PER_EVENT + end - first
        found.append(event.id)
    return found, None


def search_events(snapshot: Snapshot, step: Step) -> Part:
    """Search the events of an application, those first that were not changed for longest."""
    application = step.owner
    oldest_ms = kept_since_ms(step.limits.event_keep_days, step.now_ms)
    unarchived_ms = oldest_unarchived_ms(snapshot, application, "events")
    # An event is archived by its creation, which is never after its last change.
    oldest_ms = oldest_ms if unarchived_ms is None else min(oldest_ms, unarchived_ms)
    if not oldest_ms:
        return Part([], None, None, NEVER_MS)
    events, next_ms = expired_events(snapshot, application, oldest_ms, step.limits.removed_entries_max)
    message = ExpireEvents(events=events, oldest_ms=oldest_ms)
    asks: list[Ask] = [(Ref("eventLog", application, application), message)] if events else []
    if next_ms is None:
        return Part(asks, None, None, NEVER_MS)
    return Part(asks, b"" if next_ms < oldest_ms else None, None, next_ms - oldest_ms)
