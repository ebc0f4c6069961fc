"""Selection of devices: by id, by tag or by advanced query, and within the reach of a device token.

Owns the filter that a query is compiled to, and the choice of the devices that a call names. Does not own lists
(`fleet/devices/queries/lists.py`). Pure reads of a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from trunkline.actors.core.query import bounds as query_bounds
from trunkline.actors.core.query.compile import Bounds, Query, compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import Listing, candidates, find_access_paths
from trunkline.actors.core.records.page import Match
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import Forbidden, Invalid, PayloadTooLarge
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.core.values.terms import TagFilter
from trunkline.actors.fleet.devices.queries.memberships import MEMBERSHIPS, Memberships
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.record.kind import DEVICE, connection_status
from trunkline.actors.fleet.devices.record.read_messages import (
    SelectDevices,
)
from trunkline.actors.fleet.devices.record.reads import Ancestors, Opened, open_device
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.actors.fleet.devices.state.signs_of_life import Life, life_of
from trunkline.actors.people.accounts.reach import Reach, has_tag, reaches
from trunkline.store.snapshot import Snapshot

# Filters.


class DeviceFilter(NamedTuple):
    """A filter of stored devices: a predicate (None: all match), and bounds on the fields of those that match."""

    match: Match | None = None
    bounds: Mapping[str, Bounds] = {}


_INDEXED = frozenset({"id", "name", "creationDate", "lastUpdated", "deletedAt"})
"""Fields that may have an index, and whose stored value is the value that a query sees."""

Derived = Mapping[str, Callable[[dict[str, Any]], Any]]
"""Fields that are computed for a query, each with the function that computes it from the stored document."""

_DERIVED: Derived = {
    "attributeName": lambda doc: [attribute["name"] for attribute in doc["attributes"]],
    "connectedAt": lambda doc: (doc.get("connection") or {}).get("connectedAt"),
    "disconnectedAt": lambda doc: (doc.get("connection") or {}).get("disconnectedAt"),
    "connectionStatus": lambda doc: connection_status(doc) or "notConnected",
}

_STATUSES = {"connected": "connected", "disconnected": "disconnected", "notConnected": None}
"""The values of `connectionStatus` in a query, each with its value in the index."""


def device_filter(
    snapshot: Snapshot, application: bytes, query: object, field: str = "query"
) -> DeviceFilter:
    """Compile an advanced query over stored device documents. Raises `QueryError` naming the path."""
    compiled = compile_query(query, DEVICE_FIELDS, at=field)
    bounds = {name: each for name, each in compiled.bounds.items() if name in _INDEXED}
    status = compiled.bounds.get("connectionStatus")
    if status is not None:
        bounds["connectionStatus"] = query_bounds.one_of(
            stored for shown, stored in _STATUSES.items() if shown in status
        )
    if not query:
        return DeviceFilter()
    ancestors = Ancestors(snapshot, application)
    memberships = Memberships(
        snapshot, application, lambda inner: device_filter(snapshot, application, inner).match
    )
    of_others: Derived = {
        "ancestorId": ancestors.of,
        "experienceGroupId": memberships.groups_of,
        "experienceUserId": memberships.users_of,
        "lastSeen": lambda doc: _life(snapshot, doc).seen_ms,
        "expectedBy": lambda doc: _life(snapshot, doc).expected_by_ms,
    }
    return DeviceFilter(_with_derived(compiled, {**_DERIVED, **of_others}), bounds)


def _life(snapshot: Snapshot, doc: Doc) -> Life:
    return life_of(snapshot, bytes.fromhex(doc["id"]), doc)


def own_filter(query: object, field: str) -> Match:
    """Compile an advanced query that depends on nothing but the device itself.

    Raises `QueryError` naming the path, and `Invalid` for fields that depend on other records.
    """
    compiled = compile_query(query, DEVICE_FIELDS, at=field)
    for name in ("ancestorId", "lastSeen", "expectedBy", *sorted(MEMBERSHIPS)):
        if name in compiled.fields:
            raise Invalid(
                f"{field}: {name} depends on other records than the device, which a stream does not follow; "
                "select the devices by their tags or other fields of their own."
            )
    return _with_derived(compiled, _DERIVED)


def _with_derived(compiled: Query, derived: Derived) -> Match:
    """The predicate of a query, with those of the derived fields that it uses."""
    needed = [(name, make) for name, make in derived.items() if name in compiled.fields]
    if not needed:
        return compiled.matches

    def match(doc: Mapping[str, Any]) -> bool:
        stored = dict(doc)
        return compiled.matches({**stored, **{name: make(stored) for name, make in needed}})

    return match


def reach_filter(reach: Reach | None) -> list[Match]:
    """Return the reach of a device token as a predicate; empty if the token reaches the whole application."""
    return [] if reach is None else [lambda doc: reaches(reach, doc)]


# Selections.


def opened(found: Found) -> Opened:
    """Return a device that was found, with its declared attributes."""
    return Opened(found.id, found, Attributes(found.doc["attributes"], found.doc["attributeNext"]))


def select(
    reading: Reading,
    application: bytes,
    ids: Sequence[str] | msgspec.UnsetType,
    tags: Sequence[TagFilter] | msgspec.UnsetType,
    query: dict[str, Any] | msgspec.UnsetType,
    *,
    default_all: bool,
    reach: Reach | None = None,
) -> list[Opened]:
    """Return the devices that are selected by id, by tag or by query (at least one of them), each once.

    Without ids, tags and query: all devices if `default_all`, else `Invalid`. Also raises `Invalid` for an unknown
    id, `Forbidden` for an id outside `reach` (tags and queries select only inside it), and `PayloadTooLarge` if more
    than `selected_devices_max` devices are selected.
    """
    snapshot, devices_max = reading.snapshot, reading.limits.selected_devices_max
    selected: dict[bytes, Opened] = {}
    for text in ids or ():
        id = bytes.fromhex(text)
        found = records.find(snapshot, DEVICE, application, id)
        if found is None:
            raise Invalid(f"deviceIds: there is no device {text} in this application.")
        if reach is not None and not reaches(reach, found.doc | {"id": id.hex()}):
            raise Forbidden(f"The access key of this token does not allow the device {text}.")
        selected[id] = opened(found)
    matches: list[Match] = []
    bounds: Mapping[str, Bounds] = {}
    if tags:
        filters = [msgspec.to_builtins(each) for each in tags]
        matches.append(lambda doc: has_tag(doc["tags"], filters))
    if query is not msgspec.UNSET:
        filter = device_filter(snapshot, application, query, "deviceQuery")
        # The bounds of the query do not hold for devices that are selected by tag.
        bounds = {} if matches else filter.bounds
        matches.append(filter.match or (lambda _doc: True))
    if not selected and not matches:
        if not default_all:
            raise Invalid("deviceIds, deviceTags or deviceQuery: name the devices by one of them at least.")
        matches.append(lambda _doc: True)
    if matches:
        in_reach = reach_filter(reach)
        for id, doc in devices_within(snapshot, application, bounds):
            if id in selected or not any(match(doc) for match in matches):
                continue
            if all(match(doc) for match in in_reach):
                if len(selected) >= devices_max:
                    raise PayloadTooLarge(
                        f"More than {devices_max} devices are selected, which is the limit of one call; "
                        "narrow the tags or the query, or page through the devices and name them by id."
                    )
                selected[id] = open_device(snapshot, application, id)
    return list(selected.values())


def chosen(reading: Reading, application: bytes, choice: Mapping[str, Any]) -> list[Opened]:
    """Return the devices of `deviceIds`, `deviceTags` and `deviceQuery`, none if none of them has anything.

    Ids of no device are left out. Raises `Invalid` and `PayloadTooLarge` as `select`.
    """
    snapshot = reading.snapshot
    ids = [
        id
        for id in choice.get("deviceIds", ())
        if records.find(snapshot, DEVICE, application, bytes.fromhex(id)) is not None
    ]
    tags, query = choice.get("deviceTags", ()), choice.get("deviceQuery", msgspec.UNSET)
    if not ids and not tags and query is msgspec.UNSET:
        return []
    try:
        filters = msgspec.convert(tags, list[TagFilter])
    except msgspec.ValidationError as error:
        raise Invalid(f"deviceTags{invalid(error, 'body', list[TagFilter], tags).message}") from None
    return select(reading, application, ids, filters, query, default_all=False)


def devices_within(
    snapshot: Snapshot, application: bytes, bounds: Mapping[str, Bounds]
) -> Iterator[tuple[bytes, Doc]]:
    """Yield all devices within the bounds, and possibly others, in no particular order."""
    paths = tuple(find_access_paths(DEVICE, application, bounds))
    return candidates(snapshot, Listing(DEVICE, application, "id", False, 0, 1, access_paths=paths))


def select_devices(reading: Reading, message: SelectDevices) -> list[bytes]:
    """Return the ids of the devices that a command to many devices selects."""
    snapshot = reading.snapshot
    reading.check_time(is_long=scans_application(snapshot, message.application))
    body = message.body
    selected = select(
        reading,
        message.application,
        body.device_ids,
        body.device_tags,
        body.device_query,
        default_all=False,
        reach=message.reach,
    )
    return [device.id for device in selected]


def scans_application(snapshot: Snapshot, application: bytes) -> bool:
    """Return whether reading every device of the application takes too long for the event loop."""
    return records.total(snapshot, DEVICE, application) > SCAN_INLINE_MAX
