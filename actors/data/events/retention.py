"""Retention of events: which have not been changed for too long. The event log removes them
(`data/events/actor.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.core.records import records
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events.kind import EVENT
from trunkline.store import keys

if TYPE_CHECKING:
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
