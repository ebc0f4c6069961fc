"""Reading events: one, a page, the most severe, all that match. Pure reads of a snapshot.

A list looks at records only; what a record leaves out (message, data, updates) is read for the events that
are shown. Where a query or a filter bounds a field that has an index, only what lies within is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

from trunkline.actors.devices.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.events.kind import EVENT, EVENT_STATES, LEVELS, SEVERITY
from trunkline.actors.events.messages import (
    EVENT_FIELDS,
    EventChoice,
    EventPage,
    GetEvent,
    GetMostRecentEvent,
    ListEvents,
    RecentChoice,
)
from trunkline.actors.query.bounds import intersect_fields
from trunkline.actors.query.compile import Bounds, compile_glob, compile_query, glob_bounds
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc, facet_index
from trunkline.actors.records.listing import (
    AccessPath,
    Listing,
    candidates,
    find_access_paths,
    index_range,
    read_page,
)
from trunkline.actors.records.page import all_of, envelope
from trunkline.actors.records.reading import Reading
from trunkline.actors.records.revision import Found
from trunkline.actors.values.answer_size import AnswerSize
from trunkline.actors.values.errors import NotFound
from trunkline.actors.values.timestamps import iso
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

Match = Callable[[Mapping[str, Any]], bool]
Shown = dict[str, Any]

SHOWN_INLINE_MAX = 16
"""Events that are shown inside the event loop. Each may have a hundred updates: about half a millisecond."""

NAMES_KEPT_MAX = 1000
"""Names of devices that a read remembers: as many as a page has events."""


# Choosing.


class Chosen(NamedTuple):
    """What a choice of events says: a predicate (None: all of them), and where those that match must lie."""

    match: Match | None
    part: str | None = None
    near: tuple[AccessPath, ...] = ()


def choose(application: bytes, choice: EventChoice | EventPage | RecentChoice) -> Chosen:
    """Read a choice of events. Raises `QueryError` naming the path where its query is none."""
    matches: list[Match] = []
    bounds: list[Mapping[str, Bounds]] = []
    by_subject = isinstance(choice, RecentChoice) or choice.filter_field is not None
    if by_subject and choice.filter:
        fits_filter = compile_glob(choice.filter)
        matches.append(lambda doc: fits_filter(doc["subject"]))
        within = glob_bounds(choice.filter)
        bounds += [] if within is None else [{"subject": within}]
    if choice.query is not None:
        query = compile_query(choice.query, EVENT_FIELDS, at="query")
        matches += [query.matches] if choice.query else []
        bounds.append(query.bounds)
    state = "new" if isinstance(choice, RecentChoice) else choice.state
    return Chosen(all_of(matches), state, tuple(_ways(application, intersect_fields(bounds))))


def fits(chosen: Chosen, id: bytes, doc: Doc) -> bool:
    """Whether an event is meant."""
    if chosen.part is not None and doc["state"] != chosen.part:
        return False
    return chosen.match is None or chosen.match({**doc, "id": id.hex()})


_STORED_PLAINLY = frozenset({"id", "creationDate", "lastUpdated", "subject", "deviceId"})
"""Fields with an index by what the query sees. `level` and `state` are sorted by their rank."""


def _ways(application: bytes, bounds: Mapping[str, Bounds]) -> Iterator[AccessPath]:
    """The ways to all events that lie within the bounds, one for each field with an index."""
    plain = {field: each for field, each in bounds.items() if field in _STORED_PLAINLY}
    yield from find_access_paths(EVENT, application, plain)
    if "state" in bounds:
        parts = (facet_index("creationDate", state) for state in EVENT_STATES if state in bounds["state"])
        yield tuple(index_range(EVENT, application, part) for part in parts)
    if "level" in bounds:
        ranks = (keys.sortable(rank) for rank, level in enumerate(LEVELS) if level in bounds["level"])
        yield tuple(index_range(EVENT, application, "level", rank) for rank in ranks)


# Showing.


class Showing:
    """Shows events of one application, and reads the name of a device once.

    Together they may have as many bytes as one answer, unless they are not `bounded` (as in an export).
    """

    __slots__ = ("_application", "_name_of", "_snapshot", "_weight")

    def __init__(self, snapshot: Snapshot, application: bytes, *, bounded: bool = True) -> None:
        self._snapshot = snapshot
        self._application = application
        self._weight = AnswerSize() if bounded else None
        self._name_of = lru_cache(maxsize=NAMES_KEPT_MAX)(partial(_device_name, snapshot, application))

    def show(self, found: Found) -> Shown:
        """An event as the caller sees it. Raises `PayloadTooLarge` where the answer gets too large."""
        doc, id = found.doc, found.id.hex()
        self._weigh(found.raw)
        shown: Shown = {
            "id": id,
            "eventId": id,
            "applicationId": self._application.hex(),
            "creationDate": iso(doc["creationDate"]),
            "lastUpdated": iso(doc["lastUpdated"]),
        }
        for field in ("sourceType", "sourceId", "sourceName", "level", "state", "subject", "deviceId"):
            if field in doc:
                shown[field] = doc[field]
        name = self._name_of(doc["deviceId"]) if "deviceId" in doc else None
        if name is not None:
            shown["deviceName"] = name
        if doc.get("detail"):
            raw = self._snapshot.get(keys.EVENTS, keys.event_detail_key(self._application, found.id))
            if raw is not None:
                self._weigh(raw)
                shown |= decode(raw)
        shown["eventTags"] = doc["eventTags"]
        shown["disableTagChangeTracking"] = doc.get("disableTagChangeTracking", False)
        first, end = doc["updates"]
        shown["updates"] = self._updates(found.id) if first != end else []
        shown["_etag"] = found.etag
        shown["_type"] = "event"
        return shown

    def _weigh(self, raw: bytes) -> None:
        if self._weight is not None:
            self._weight.add(len(raw))

    def _updates(self, event: bytes) -> list[Shown]:
        prefix = keys.event_updates_prefix(self._application, event)
        shown = []
        for _, raw in self._snapshot.range(keys.EVENTS, prefix, keys.prefix_end(prefix)):
            self._weigh(raw)
            update = decode(raw)
            update["creationDate"] = iso(update["creationDate"])
            shown.append(update)
        return shown


def _device_name(snapshot: Snapshot, application: bytes, device_id: str) -> str | None:
    """The name that the device has now, or had when it was deleted."""
    for kind in (DEVICE, DELETED_DEVICE):
        found = records.find(snapshot, kind, application, bytes.fromhex(device_id))
        if found is not None:
            return str(found.doc["name"])
    return None


# Reading.


def get_event(reading: Reading, message: GetEvent) -> Shown:
    """One event."""
    snapshot = reading.snapshot
    found = records.find(snapshot, EVENT, message.application, message.event)
    if found is None:
        raise NotFound(f"There is no event {message.event.hex()} here.")
    return Showing(snapshot, message.application).show(found)


def event_listing(message: ListEvents) -> Listing:
    """What an event list asks for."""
    query = message.query
    chosen = choose(message.application, query)
    return Listing.of(
        query, EVENT, message.application, match=chosen.match, facet=chosen.part, access_paths=chosen.near
    )


def list_events(reading: Reading, message: ListEvents) -> Shown:
    """A page of events. Raises `PayloadTooLarge` where what belongs to them is too much for one answer."""
    snapshot = reading.snapshot
    query = message.query
    listing = event_listing(message)
    count = records.total(snapshot, EVENT, message.application, listing.facet)
    reading.check_time(is_long=min(query.per_page, count) > SHOWN_INLINE_MAX)
    found, total = read_page(reading, listing)
    showing = Showing(snapshot, message.application)
    items = [showing.show(each) for each in found]
    shown = envelope("events", items, total, query)
    shown["applicationId"] = message.application.hex()
    if query.state is not None:
        shown["state"] = query.state
    return shown


def get_most_recent_event(reading: Reading, message: GetMostRecentEvent) -> Shown:
    """The newest of the most severe new events, and how many new events there are."""
    snapshot = reading.snapshot
    application = message.application
    chosen = choose(application, message.query)
    listing = Listing(
        kind=EVENT,
        parent=application,
        sort_field=SEVERITY,
        descending=True,
        page=0,
        per_page=1,
        match=chosen.match,
        facet=chosen.part,
        access_paths=chosen.near,
    )
    found, count = read_page(reading, listing)
    shown: Shown = {"event": Showing(snapshot, application).show(found[0])} if found else {}
    return shown | {"newCount": count, "applicationId": application.hex(), "_type": "eventPlusNewCount"}


def matching(snapshot: Snapshot, *, application: bytes, choice: EventChoice, most: int) -> list[bytes]:
    """The ids of the events that are meant, at most so many, in the order of ids."""
    match, part, near = choose(application, choice)
    listing = Listing(EVENT, application, "id", False, 0, 1, match, part, near)
    return sorted(id for id, _ in islice(candidates(snapshot, listing), most))


def matching_between(
    snapshot: Snapshot, application: bytes, choice: EventChoice, after: bytes, end: bytes
) -> Iterator[bytes]:
    """The ids of the events that are meant, in the order of ids, from behind one id up to another."""
    chosen = choose(application, choice)
    prefix = keys.record_prefix(EVENT.name, application)
    for key, raw in snapshot.range(keys.RECORDS, prefix + after + b"\x00", prefix + end + b"\x00"):
        id = bytes(key[-12:])
        if fits(chosen, id, decode(raw)):
            yield id


def events_in_order(
    snapshot: Snapshot, application: bytes, query: dict[str, Any] | None = None, *, at: str = "query"
) -> Iterator[Shown]:
    """Every event that an advanced query matches (None: every event), the oldest first, one at a time.

    For exports: an event is read when it is asked for, so memory does not grow with their number. Raises
    `QueryError` at the first step.
    """
    match = None if query is None else compile_query(query, EVENT_FIELDS, at=at).matches
    showing = Showing(snapshot, application, bounded=False)
    prefix = keys.index_prefix(EVENT.name, application, "creationDate")
    for key in snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix)):
        found = records.find(snapshot, EVENT, application, bytes(key[-12:]))
        if found is not None and (match is None or match({**found.doc, "id": found.id.hex()})):
            yield showing.show(found)
