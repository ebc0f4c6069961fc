"""Lists across the devices of an application: pages of devices and of composite states, names, tags.

Pure reads of a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from trunkline.actors.core.query import bounds as query_bounds
from trunkline.actors.core.records.listing import Listing, find_access_paths, read_page, text_filter
from trunkline.actors.core.records.page import all_of, envelope, glob_match, glob_range
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.timestamps import as_number
from trunkline.actors.fleet.devices.queries.selection import (
    DeviceFilter,
    device_filter,
    devices_within,
    opened,
    reach_filter,
    scans_application,
)
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.fleet.devices.record.messages import DevicePage, DeviceShape
from trunkline.actors.fleet.devices.record.read_messages import (
    ListAttributeNames,
    ListCompositeStates,
    ListDeviceNames,
    ListDevices,
    ListTagKeys,
    ListTagValues,
)
from trunkline.actors.fleet.devices.record.reads import Ancestors, show_device
from trunkline.actors.fleet.devices.state.history import (
    attribute_names,
    composite,
    composite_span,
    oldest_state_ms,
)
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.store.snapshot import Snapshot

# Lists.


def device_listing(snapshot: Snapshot, message: ListDevices) -> Listing:
    """Return the listing that a page of devices is read from."""
    query = message.query
    matches = [*reach_filter(message.reach), *glob_match(query, query.filter_field)]
    bounds = [glob_range(query, query.filter_field)]
    if query.device_class:
        classes = frozenset(query.device_class)
        matches.append(lambda doc: doc["deviceClass"] in classes)
    if query.tag_filter:
        filters = [msgspec.to_builtins(each) for each in query.tag_filter]
        matches.append(lambda doc: has_tag(doc["tags"], filters))
    if query.parent_id is not None:
        parent = _parent_of(query)
        matches.append(lambda doc: doc.get("parentId") == parent)
    if query.query is not None:
        filter = device_filter(snapshot, message.application, query.query)
        matches += [] if filter.match is None else [filter.match]
        bounds.append(filter.bounds)
    kind = DELETED_DEVICE if query.query_deleted else DEVICE
    return Listing.of(
        query,
        kind,
        message.application,
        match=all_of(matches),
        access_paths=tuple(
            find_access_paths(kind, message.application, query_bounds.intersect_fields(bounds))
        ),
        text=text_filter(kind, message.application, query, query.filter_field, is_all=len(matches) == 1),
    )


def _parent_of(query: DevicePage) -> str | None:
    """The parent that the listed devices have; None for devices without one. Only where `parentId` is given."""
    assert query.parent_id is not None
    return None if query.parent_id == "null" else query.parent_id.lower()


def list_devices(reading: Reading, message: ListDevices) -> dict[str, Any]:
    """Return a page of devices."""
    snapshot = reading.snapshot
    query = message.query
    found, total = read_page(reading, device_listing(snapshot, message))
    shape = DeviceShape(
        exclude_connection_info=query.exclude_connection_info,
        tags_as_object=query.tags_as_object,
        attributes_as_object=query.attributes_as_object,
    )
    ancestors = Ancestors(snapshot, message.application)
    items = [show_device(ancestors, each, shape) for each in found]
    shown = envelope("devices", items, total, query)
    if query.device_class is not None and len(query.device_class) == 1:
        shown["deviceClass"] = query.device_class[0]  # the field is one class: with several there is none
    if query.tag_filter is not None:
        shown["tagFilter"] = msgspec.to_builtins(query.tag_filter)
    if query.parent_id is not None:
        shown["parentId"] = _parent_of(query)
    shown["applicationId"] = message.application.hex()
    return shown


def list_composite_states(reading: Reading, message: ListCompositeStates) -> dict[str, Any]:
    """Return a page of devices with their composite states."""
    snapshot = reading.snapshot
    query = message.query
    span = composite_span(query.start, query.end, message.now_ms)
    names = attribute_names(query.attributes)
    reading.check_time(is_long=as_number(query.end) != 0)  # an end in the past may require reading points
    found, total = read_page(reading, composite_listing(snapshot, message))
    size, oldest_ms = reading.answer_size(), oldest_state_ms(reading, message.now_ms)
    items = [
        {
            "id": each.id.hex(),
            "name": each.doc["name"],
            "compositeState": composite(snapshot, opened(each), span, names, size, oldest_ms),
        }
        for each in found
    ]
    shown = envelope("compositeDevicesState", items, total, query)
    shown["applicationId"] = message.application.hex()
    return shown


def composite_listing(snapshot: Snapshot, message: ListCompositeStates) -> Listing:
    """Return the listing that a page of composite states is read from. `filter` is about the name."""
    query = message.query
    matches = [*reach_filter(message.reach), *glob_match(query, "name")]
    filter = DeviceFilter()
    if query.query is not None:
        filter = device_filter(snapshot, message.application, query.query)
        matches += [] if filter.match is None else [filter.match]
    return Listing.of(
        query,
        DEVICE,
        message.application,
        match=all_of(matches),
        access_paths=tuple(
            find_access_paths(
                DEVICE,
                message.application,
                query_bounds.intersect_fields([glob_range(query, "name"), filter.bounds]),
            )
        ),
        text=text_filter(DEVICE, message.application, query, "name", is_all=len(matches) == 1),
    )


# Names and tags.

_Search = ListAttributeNames | ListDeviceNames | ListTagKeys | ListTagValues


def _devices_searched(reading: Reading, message: _Search) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    snapshot = reading.snapshot
    reading.check_time(is_long=scans_application(snapshot, message.application))
    query = message.query.query
    filter = DeviceFilter() if query is None else device_filter(snapshot, message.application, query)
    for id, doc in devices_within(snapshot, message.application, filter.bounds):
        if filter.match is None or filter.match(doc):
            yield id, doc


def _names_starting_with(found: Iterable[str], starts_with: str | None, names_max: int) -> list[str]:
    names = {name for name in found if starts_with is None or name.startswith(starts_with)}
    return sorted(names, key=lambda name: (name.casefold(), name))[:names_max]


def list_attribute_names(reading: Reading, message: ListAttributeNames) -> dict[str, Any]:
    """Return the names of attributes, optionally of certain data types only."""
    types = message.query.data_type
    found = (
        attribute["name"]
        for _, doc in _devices_searched(reading, message)
        for attribute in doc["attributes"]
        if types is None or attribute["dataType"] in types
    )
    return {
        "attributeNames": _names_starting_with(found, message.query.starts_with, reading.limits.names_max)
    }


def list_device_names(reading: Reading, message: ListDeviceNames) -> dict[str, Any]:
    """Return id, class and name of devices, sorted by name."""
    starts_with = message.query.starts_with
    found = [
        {"id": id.hex(), "deviceClass": doc["deviceClass"], "name": doc["name"]}
        for id, doc in _devices_searched(reading, message)
        if starts_with is None or doc["name"].startswith(starts_with)
    ]
    found.sort(key=lambda each: (each["name"].casefold(), each["name"], each["id"]))
    return {"deviceSummary": found[: reading.limits.names_max]}


def list_tag_keys(reading: Reading, message: ListTagKeys) -> dict[str, Any]:
    """Return the keys of tags."""
    found = (tag["key"] for _, doc in _devices_searched(reading, message) for tag in doc["tags"])
    return {"tagKeys": _names_starting_with(found, message.query.starts_with, reading.limits.names_max)}


def list_tag_values(reading: Reading, message: ListTagValues) -> dict[str, Any]:
    """Return the values of one tag key."""
    key = message.query.key
    found = (
        tag["value"]
        for _, doc in _devices_searched(reading, message)
        for tag in doc["tags"]
        if tag["key"] == key
    )
    return {
        "tagKey": key,
        "tagValues": _names_starting_with(found, message.query.starts_with, reading.limits.names_max),
    }
