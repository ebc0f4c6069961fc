"""Reads of events: one event, a page, the most severe new event, all that match. Pure reads of a snapshot.

A list is found from records alone; the details outside the record (message, data, updates) are read only for events
that are shown. If a query or a filter bounds an indexed field, only records within the bounds are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

from trunkline.actors.core.query.bounds import intersect_fields
from trunkline.actors.core.query.compile import Bounds, compile_glob, compile_query, glob_bounds
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, facet_index
from trunkline.actors.core.records.listing import (
    AccessPath,
    Listing,
    candidates,
    find_access_paths,
    index_range,
    read_page,
)
from trunkline.actors.core.records.page import Match, all_of, envelope
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.answer_size import AnswerSize
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.events.kind import EVENT, EVENT_STATES, LEVELS, SEVERITY
from trunkline.actors.data.events.messages import (
    EVENT_FIELDS,
    EventChoice,
    EventPage,
    GetEvent,
    GetMostRecentEvent,
    ListEvents,
    RecentChoice,
)
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

Shown = dict[str, Any]

SHOWN_INLINE_MAX = 16
"""Events that a read may show in the event loop. Each may have a hundred updates: about half a millisecond."""

NAMES_KEPT_MAX = 1000
"""Names of devices that a read caches: as many as a page may have events."""


# Filters.


class EventFilter(NamedTuple):
    """A compiled choice of events: a predicate (None: all), a state, and index ranges that contain all matches."""

    match: Match | None
    facet: str | None = None
    access_paths: tuple[AccessPath, ...] = ()


def event_filter(application: bytes, choice: EventChoice | EventPage | RecentChoice) -> EventFilter:
    """Compile a choice of events. Raises `QueryError` naming the path."""
    matches: list[Match] = []
    bounds: list[Mapping[str, Bounds]] = []
    by_subject = isinstance(choice, RecentChoice) or choice.filter_field is not None
    if by_subject and choice.filter:
        matches_filter = compile_glob(choice.filter)
        matches.append(lambda doc: matches_filter(doc["subject"]))
        within = glob_bounds(choice.filter)
        bounds += [] if within is None else [{"subject": within}]
    if choice.query is not None:
        query = compile_query(choice.query, EVENT_FIELDS, at="query")
        matches += [query.matches] if choice.query else []
        bounds.append(query.bounds)
    state = "new" if isinstance(choice, RecentChoice) else choice.state
    return EventFilter(all_of(matches), state, tuple(_ways(application, intersect_fields(bounds))))


def matches_event(filter: EventFilter, id: bytes, doc: Doc) -> bool:
    """Return whether the filter selects an event."""
    if filter.facet is not None and doc["state"] != filter.facet:
        return False
    return filter.match is None or filter.match({**doc, "id": id.hex()})


_INDEXED_AS_STORED = frozenset({"id", "creationDate", "lastUpdated", "subject", "deviceId"})
"""Fields whose index contains the value that a query sees. The indexes of `level` and `state` contain ranks."""


def _ways(application: bytes, bounds: Mapping[str, Bounds]) -> Iterator[AccessPath]:
    """Yield, for each bounded field with an index, the index ranges that contain all events within the bounds."""
    plain = {field: each for field, each in bounds.items() if field in _INDEXED_AS_STORED}
    yield from find_access_paths(EVENT, application, plain)
    if "state" in bounds:
        parts = (facet_index("creationDate", state) for state in EVENT_STATES if state in bounds["state"])
        yield tuple(index_range(EVENT, application, part) for part in parts)
    if "level" in bounds:
        ranks = (keys.sortable(rank) for rank, level in enumerate(LEVELS) if level in bounds["level"])
        yield tuple(index_range(EVENT, application, "level", rank) for rank in ranks)


# Showing.


class EventPresenter:
    """Shows events of one application as the caller sees them. Caches the names of devices.

    If `bounded`, all events together may have as many bytes as one answer. Exports are not bounded.
    """

    __slots__ = ("_application", "_name_of", "_size", "_snapshot")

    def __init__(self, snapshot: Snapshot, application: bytes, size: AnswerSize | None) -> None:
        self._snapshot = snapshot
        self._application = application
        self._size = size
        self._name_of = lru_cache(maxsize=NAMES_KEPT_MAX)(partial(_device_name, snapshot, application))

    def show(self, found: Found) -> Shown:
        """Return an event as the caller sees it. Raises `PayloadTooLarge` if the answer becomes too large."""
        doc = found.doc
        self._count(found.raw)
        shown: Shown = {
            "id": found.id.hex(),
            "applicationId": self._application.hex(),
            **self.summary(found.id, doc),
        }
        if doc.get("detail"):
            raw = self._snapshot.get(keys.EVENTS, keys.event_detail_key(self._application, found.id))
            if raw is not None:
                self._count(raw)
                shown |= decode(raw)
        shown["disableTagChangeTracking"] = doc.get("disableTagChangeTracking", False)
        first, end = doc["updates"]
        shown["updates"] = self._updates(found.id) if first != end else []
        shown["_etag"] = found.revision
        shown["_type"] = "event"
        return shown

    def summary(self, id: bytes, doc: Doc) -> Shown:
        """Return what the record of an event has, without its message, data and updates."""
        shown: Shown = {
            "eventId": id.hex(),
            "creationDate": iso(doc["creationDate"]),
            "lastUpdated": iso(doc["lastUpdated"]),
        }
        for field in ("sourceType", "sourceId", "sourceName", "level", "state", "subject", "deviceId"):
            if field in doc:
                shown[field] = doc[field]
        name = self._name_of(doc["deviceId"]) if "deviceId" in doc else None
        if name is not None:
            shown["deviceName"] = name
        shown["eventTags"] = doc["eventTags"]
        return shown

    def _count(self, raw: bytes) -> None:
        if self._size is not None:
            self._size.add(len(raw))

    def _updates(self, event: bytes) -> list[Shown]:
        prefix = keys.event_updates_prefix(self._application, event)
        shown = []
        for _, raw in self._snapshot.range(keys.EVENTS, prefix, keys.prefix_end(prefix)):
            self._count(raw)
            update = decode(raw)
            update["creationDate"] = iso(update["creationDate"])
            shown.append(update)
        return shown


def _device_name(snapshot: Snapshot, application: bytes, device_id: str) -> str | None:
    """Return the name that the device has, or had when it was deleted."""
    for kind in (DEVICE, DELETED_DEVICE):
        found = records.find(snapshot, kind, application, bytes.fromhex(device_id))
        if found is not None:
            return str(found.doc["name"])
    return None


# Reads.


def get_event(reading: Reading, message: GetEvent) -> Shown:
    """Return one event."""
    snapshot = reading.snapshot
    found = records.find(snapshot, EVENT, message.application, message.event)
    if found is None:
        raise NotFound(f"There is no event {message.event.hex()} here.")
    return EventPresenter(snapshot, message.application, reading.answer_size()).show(found)


def event_listing(message: ListEvents) -> Listing:
    """Return the listing that a page of events is read from."""
    query = message.query
    filter = event_filter(message.application, query)
    return Listing.of(
        query,
        EVENT,
        message.application,
        match=filter.match,
        facet=filter.facet,
        access_paths=filter.access_paths,
    )


def list_events(reading: Reading, message: ListEvents) -> Shown:
    """Return a page of events. Raises `PayloadTooLarge` if the events with their details exceed one answer."""
    snapshot = reading.snapshot
    query = message.query
    listing = event_listing(message)
    count = records.total(snapshot, EVENT, message.application, listing.facet)
    reading.check_time(is_long=min(query.per_page, count) > SHOWN_INLINE_MAX)
    found, total = read_page(reading, listing)
    presenter = EventPresenter(snapshot, message.application, reading.answer_size())
    items = [presenter.show(each) for each in found]
    shown = envelope("events", items, total, query)
    shown["applicationId"] = message.application.hex()
    if query.state is not None:
        shown["state"] = query.state
    return shown


def get_most_recent_event(reading: Reading, message: GetMostRecentEvent) -> Shown:
    """Return the newest of the most severe new events, and the number of new events."""
    snapshot = reading.snapshot
    application = message.application
    filter = event_filter(application, message.query)
    listing = Listing(
        kind=EVENT,
        parent=application,
        sort_field=SEVERITY,
        descending=True,
        page=0,
        per_page=1,
        match=filter.match,
        facet=filter.facet,
        access_paths=filter.access_paths,
    )
    found, count = read_page(reading, listing)
    presenter = EventPresenter(snapshot, application, reading.answer_size())
    shown: Shown = {"event": presenter.show(found[0])} if found else {}
    return shown | {"newCount": count, "applicationId": application.hex(), "_type": "eventPlusNewCount"}


def matching(snapshot: Snapshot, *, application: bytes, choice: EventChoice, most: int) -> list[bytes]:
    """Return the ids of at most `most` of the events that `choice` selects, in the order of ids."""
    match, facet, access_paths = event_filter(application, choice)
    listing = Listing(EVENT, application, "id", False, 0, 1, match, facet, access_paths)
    return sorted(id for id, _ in islice(candidates(snapshot, listing), most))


def matching_between(
    snapshot: Snapshot, application: bytes, choice: EventChoice, after: bytes, end: bytes
) -> Iterator[bytes]:
    """Yield the ids of the events that `choice` selects, in order: after `after`, up to and including `end`."""
    filter = event_filter(application, choice)
    prefix = keys.record_prefix(EVENT.name, application)
    for key, raw in snapshot.range(keys.RECORDS, prefix + after + b"\x00", prefix + end + b"\x00"):
        id = bytes(key[-12:])
        if matches_event(filter, id, decode(raw)):
            yield id


def events_in_order(
    snapshot: Snapshot, application: bytes, query: dict[str, Any] | None = None, *, at: str = "query"
) -> Iterator[Shown]:
    """Yield every event that an advanced query matches (None: every event), the oldest first.

    For exports: events are read one at a time, so memory does not grow with their number. Raises `QueryError` at the
    first step.
    """
    match = None if query is None else compile_query(query, EVENT_FIELDS, at=at).matches
    presenter = EventPresenter(snapshot, application, None)
    prefix = keys.index_prefix(EVENT.name, application, "creationDate")
    for key in snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix)):
        found = records.find(snapshot, EVENT, application, bytes(key[-12:]))
        if found is not None and (match is None or match({**found.doc, "id": found.id.hex()})):
            yield presenter.show(found)
