"""The kind of event records, and the order of levels and states."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.records.kind import HISTORY, Doc, Kind, Prefixes
from trunkline.store import keys

LEVELS = ("info", "warning", "error", "critical")
"""The levels of events, the least severe first. Lists sort them in this order."""

EVENT_STATES = ("new", "acknowledged", "resolved")
"""The states of events in their usual sequence. Lists sort them in this order; every change of state is allowed."""

SEVERITY = "severity"
"""A sort order and not a field: by level, and within a level by creation."""


def _sort_key(doc: Doc, field: str) -> Any:
    if field == "level":
        return LEVELS.index(doc["level"])
    if field == "state":
        return EVENT_STATES.index(doc["state"])
    if field == SEVERITY:
        # Times up to the year 9999 need 48 bits, so the level is in the bits above.
        return LEVELS.index(doc["level"]) << 48 | doc["creationDate"]
    return doc.get(field)


def _details(application: bytes, event: bytes) -> Prefixes:
    """The message, the data and the updates of an event."""
    return ((keys.EVENTS, application + event),)


EVENT: Final = Kind(
    name="event",
    noun="event",
    indexes=("creationDate", "lastUpdated", "level", "state", "subject", "deviceId"),
    sort_key=_sort_key,
    title="subject",
    facet="state",
    facet_indexes=("creationDate", SEVERITY),
    counted_as="eventCount",
    owned_keys=_details,
    audited_as="Event",
    not_portable=HISTORY,
)
