"""Reading many devices: lists, selections by id, tag or query, names and tags across an application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from trunkline.actors.accounts.reach import Reach, has_tag, reaches
from trunkline.actors.devices.attributes import Attributes
from trunkline.actors.devices.history import chosen_names, composite, composite_span
from trunkline.actors.devices.kind import DELETED_DEVICE, DEVICE, connection_status
from trunkline.actors.devices.messages import DeviceShape
from trunkline.actors.devices.read_messages import (
    ListAttributeNames,
    ListCompositeStates,
    ListDeviceNames,
    ListDevices,
    ListTagKeys,
    ListTagValues,
    SelectDevices,
)
from trunkline.actors.devices.reads import Opened, ancestors, open_device, show_device
from trunkline.actors.devices.terms import DEVICE_FIELDS
from trunkline.actors.query import bounds as query_bounds
from trunkline.actors.query.compile import Bounds, compile_query
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.listing import Listing, candidates, find_access_paths, read_page
from trunkline.actors.records.page import Match, all_of, envelope, glob_match, glob_range
from trunkline.actors.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.records.revision import Found
from trunkline.actors.values.answer_size import AnswerSize
from trunkline.actors.values.errors import Forbidden, Invalid, PayloadTooLarge
from trunkline.actors.values.terms import TagFilter
from trunkline.store.snapshot import Snapshot

NAMES_MAX = 1000
"""The API's bound on what a search for names gives back."""

SELECTION_MAX = 1000
"""Devices that one call may mean: the API's bound on a list of ids, kept for tags and queries as well."""


# Matching.


class Wanted(NamedTuple):
    """Which stored devices are asked for: what tells (None: all), and where the fields of those must lie."""

    match: Match | None = None
    bounds: Mapping[str, Bounds] = {}


_INDEXED = frozenset({"id", "name", "creationDate", "lastUpdated", "deletedAt"})
"""Fields that are stored as the query sees them and may have an index."""

_STATUSES = {"connected": "connected", "disconnected": "disconnected", "notConnected": None}
"""What `connectionStatus` is to a query, and what its index holds."""


def device_query(snapshot: Snapshot, application: bytes, query: object, field: str = "query") -> Wanted:
    """The compiled advanced query over stored device documents. Raises `QueryError` naming the path."""
    compiled = compile_query(query, DEVICE_FIELDS, at=field)
    bounds = {name: each for name, each in compiled.bounds.items() if name in _INDEXED}
    status = compiled.bounds.get("connectionStatus")
    if status is not None:
        bounds["connectionStatus"] = query_bounds.one_of(
            stored for shown, stored in _STATUSES.items() if shown in status
        )
    if not query:
        return Wanted()
    derived: dict[str, Callable[[dict[str, Any]], Any]] = {
        "attributeName": lambda doc: [attribute["name"] for attribute in doc["attributes"]],
        "connectedAt": lambda doc: (doc.get("connection") or {}).get("connectedAt"),
        "disconnectedAt": lambda doc: (doc.get("connection") or {}).get("disconnectedAt"),
        "connectionStatus": lambda doc: connection_status(doc) or "notConnected",
        "ancestorId": lambda doc: ancestors(snapshot, application, doc),
    }
    needed = [(name, make) for name, make in derived.items() if name in compiled.fields]
    if not needed:
        return Wanted(compiled.matches, bounds)

    def match(doc: Mapping[str, Any]) -> bool:
        stored = dict(doc)
        return compiled.matches({**stored, **{name: make(stored) for name, make in needed}})

    return Wanted(match, bounds)


def within(reach: Reach | None) -> list[Match]:
    """The fence of a device token as a predicate; nothing where the token reaches the whole application."""
    return [] if reach is None else [lambda doc: reaches(reach, doc)]


# Lists.


def device_listing(snapshot: Snapshot, message: ListDevices) -> Listing:
    """What a device list asks for."""
    query = message.query
    matches = [*within(message.reach), *glob_match(query, query.filter_field)]
    bounds = [glob_range(query, query.filter_field)]
    if query.device_class:
        classes = frozenset(query.device_class)
        matches.append(lambda doc: doc["deviceClass"] in classes)
    if query.tag_filter:
        filters = [msgspec.to_builtins(each) for each in query.tag_filter]
        matches.append(lambda doc: has_tag(doc["tags"], filters))
    if query.parent_id is not None:
        parent = None if query.parent_id == "null" else query.parent_id.lower()
        matches.append(lambda doc: doc.get("parentId") == parent)
    if query.query is not None:
        wanted = device_query(snapshot, message.application, query.query)
        matches += [] if wanted.match is None else [wanted.match]
        bounds.append(wanted.bounds)
    kind = DELETED_DEVICE if query.query_deleted else DEVICE
    return Listing.of(
        query,
        kind,
        message.application,
        match=all_of(matches),
        access_paths=tuple(
            find_access_paths(kind, message.application, query_bounds.intersect_fields(bounds))
        ),
    )


def list_devices(reading: Reading, message: ListDevices) -> dict[str, Any]:
    """A page of devices."""
    snapshot = reading.snapshot
    query = message.query
    found, total = read_page(reading, device_listing(snapshot, message))
    shape = DeviceShape(
        exclude_connection_info=query.exclude_connection_info,
        tags_as_object=query.tags_as_object,
        attributes_as_object=query.attributes_as_object,
    )
    items = [show_device(snapshot, message.application, each, shape) for each in found]
    shown = envelope("devices", items, total, query)
    shown["applicationId"] = message.application.hex()
    return shown


def list_composite_states(reading: Reading, message: ListCompositeStates) -> dict[str, Any]:
    """A page of devices with their composite states."""
    snapshot = reading.snapshot
    query = message.query
    span = composite_span(query.start, query.end, message.now_ms)
    names = chosen_names(query.attributes)
    reading.check_time(is_long=query.end != 0)  # then points must be read
    found, total = read_page(reading, composite_listing(snapshot, message))
    weight = AnswerSize()
    items = [
        {
            "id": each.id.hex(),
            "name": each.doc["name"],
            "compositeState": composite(snapshot, _opened(each), span, names, weight),
        }
        for each in found
    ]
    shown = envelope("compositeDevicesState", items, total, query)
    shown["applicationId"] = message.application.hex()
    return shown


def composite_listing(snapshot: Snapshot, message: ListCompositeStates) -> Listing:
    """What a page of composite states asks for."""
    query = message.query
    matches = within(message.reach)
    wanted = Wanted()
    if query.query is not None:
        wanted = device_query(snapshot, message.application, query.query)
        matches += [] if wanted.match is None else [wanted.match]
    return Listing.of(
        query,
        DEVICE,
        message.application,
        match=all_of(matches),
        access_paths=tuple(find_access_paths(DEVICE, message.application, wanted.bounds)),
    )


def _opened(found: Found) -> Opened:
    return Opened(found.id, found, Attributes(found.doc["attributes"], found.doc["attributeNext"]))


# Selections.


def select(
    snapshot: Snapshot,
    application: bytes,
    ids: Sequence[str] | msgspec.UnsetType,
    tags: Sequence[TagFilter] | msgspec.UnsetType,
    query: dict[str, Any] | msgspec.UnsetType,
    *,
    default_all: bool,
    reach: Reach | None = None,
) -> list[Opened]:
    """The devices that are named by id, by tag or by query (any of them), each once.

    Raises `Invalid` where nothing names a device (unless `default_all`) and for an id that is not there;
    `Forbidden` for an id out of `reach`, while tags and queries find nothing out there; `PayloadTooLarge`
    where more than 1,000 devices are meant.
    """
    chosen: dict[bytes, Opened] = {}
    for text in ids or ():
        id = bytes.fromhex(text)
        found = records.find(snapshot, DEVICE, application, id)
        if found is None:
            raise Invalid(f"deviceIds: there is no device {text} in this application.")
        if reach is not None and not reaches(reach, found.doc | {"id": id.hex()}):
            raise Forbidden(f"The access key of this token does not allow the device {text}.")
        chosen[id] = _opened(found)
    matches: list[Match] = []
    bounds: Mapping[str, Bounds] = {}
    if tags:
        filters = [msgspec.to_builtins(each) for each in tags]
        matches.append(lambda doc: has_tag(doc["tags"], filters))
    if query is not msgspec.UNSET:
        wanted = device_query(snapshot, application, query, "deviceQuery")
        # Devices by tag may lie anywhere.
        bounds = {} if matches else wanted.bounds
        matches.append(wanted.match or (lambda _doc: True))
    if not chosen and not matches:
        if not default_all:
            raise Invalid("deviceIds, deviceTags or deviceQuery: name the devices by one of them at least.")
        matches.append(lambda _doc: True)
    if matches:
        fence = within(reach)
        for id, doc in _narrowed(snapshot, application, bounds):
            if id in chosen or not any(match(doc) for match in matches):
                continue
            if all(match(doc) for match in fence):
                if len(chosen) >= SELECTION_MAX:
                    raise PayloadTooLarge(
                        f"More than {SELECTION_MAX} devices are meant, which is the bound of one call; "
                        "narrow the tags or the query, or page through the devices and name them by id."
                    )
                chosen[id] = open_device(snapshot, application, id)
    return list(chosen.values())


def _narrowed(
    snapshot: Snapshot, application: bytes, bounds: Mapping[str, Bounds]
) -> Iterator[tuple[bytes, Doc]]:
    """All devices that lie within the bounds, and maybe others, in no promised order."""
    near = tuple(find_access_paths(DEVICE, application, bounds))
    return candidates(snapshot, Listing(DEVICE, application, "id", False, 0, 1, access_paths=near))


def select_devices(reading: Reading, message: SelectDevices) -> list[bytes]:
    """The ids of the devices that a command to many means."""
    snapshot = reading.snapshot
    reading.check_time(is_long=scans_application(snapshot, message.application))
    body = message.body
    chosen = select(
        snapshot,
        message.application,
        body.device_ids,
        body.device_tags,
        body.device_query,
        default_all=False,
    )
    return [device.id for device in chosen]


def scans_application(snapshot: Snapshot, application: bytes) -> bool:
    """True where looking at every device of the application takes more than a moment."""
    return records.total(snapshot, DEVICE, application) > SCAN_INLINE_MAX


# Names and tags.

_Search = ListAttributeNames | ListDeviceNames | ListTagKeys | ListTagValues


def _searched(snapshot: Snapshot, message: _Search) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    query = message.query.query
    wanted = Wanted() if query is None else device_query(snapshot, message.application, query)
    for id, doc in _narrowed(snapshot, message.application, wanted.bounds):
        if wanted.match is None or wanted.match(doc):
            yield id, doc


def _starting(found: Iterable[str], starts_with: str | None) -> list[str]:
    chosen = {each for each in found if starts_with is None or each.startswith(starts_with)}
    return sorted(chosen, key=lambda each: (each.casefold(), each))[:NAMES_MAX]


def list_attribute_names(reading: Reading, message: ListAttributeNames) -> dict[str, Any]:
    """The names of attributes, of some data types if asked."""
    snapshot = reading.snapshot
    reading.check_time(is_long=scans_application(snapshot, message.application))
    types = message.query.data_type
    found = (
        attribute["name"]
        for _, doc in _searched(snapshot, message)
        for attribute in doc["attributes"]
        if types is None or attribute["dataType"] in types
    )
    return {"attributeNames": _starting(found, message.query.starts_with)}


def list_device_names(reading: Reading, message: ListDeviceNames) -> dict[str, Any]:
    """Devices in the shortest form, by name."""
    snapshot = reading.snapshot
    reading.check_time(is_long=scans_application(snapshot, message.application))
    starts_with = message.query.starts_with
    found = [
        {"id": id.hex(), "deviceClass": doc["deviceClass"], "name": doc["name"]}
        for id, doc in _searched(snapshot, message)
        if starts_with is None or doc["name"].startswith(starts_with)
    ]
    found.sort(key=lambda each: (each["name"].casefold(), each["name"], each["id"]))
    return {"deviceSummary": found[:NAMES_MAX]}


def list_tag_keys(reading: Reading, message: ListTagKeys) -> dict[str, Any]:
    """The keys of tags."""
    snapshot = reading.snapshot
    reading.check_time(is_long=scans_application(snapshot, message.application))
    found = (tag["key"] for _, doc in _searched(snapshot, message) for tag in doc["tags"])
    return {"tagKeys": _starting(found, message.query.starts_with)}


def list_tag_values(reading: Reading, message: ListTagValues) -> dict[str, Any]:
    """The values of one tag key."""
    snapshot = reading.snapshot
    reading.check_time(is_long=scans_application(snapshot, message.application))
    key = message.query.key
    found = (
        tag["value"] for _, doc in _searched(snapshot, message) for tag in doc["tags"] if tag["key"] == key
    )
    return {"tagKey": key, "tagValues": _starting(found, message.query.starts_with)}
