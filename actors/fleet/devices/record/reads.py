"""Reads of one device: its record and its attributes. Its history: `fleet/devices/state/history.py`. Pure reads of a
snapshot."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from trunkline.actors.core.query.compile import compile_glob
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.attributes import Attributes, shown_attribute
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import DeviceShape
from trunkline.actors.fleet.devices.record.read_messages import GetAttribute, GetDevice, ListAttributes
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

DECLARED_MAX = 4096
"""Records whose decoded attributes are cached, by the bytes of the record: some 10 MB."""


ANCESTORS_SHOWN_MAX = 1000
"""The API's bound on the ancestors of a device."""


class Opened(NamedTuple):
    """A device that was read from a snapshot, with its declared attributes."""

    id: bytes
    found: Found
    attributes: Attributes


def open_device(snapshot: Snapshot, application: bytes, device: bytes) -> Opened:
    """Read a device. Raises `NotFound` if there is no such device in the application."""
    found = records.find(snapshot, DEVICE, application, device)
    if found is None:
        raise _missing(device)
    return Opened(device, found, Attributes(found.doc["attributes"], found.doc["attributeNext"]))


class Declared(NamedTuple):
    """The declared attributes of a device, without its record."""

    id: bytes
    attributes: Attributes


def open_declared(snapshot: Snapshot, application: bytes, device: bytes) -> Declared:
    """Read only the declared attributes of a device, with a cache. Raises `NotFound` as `open_device`.

    Reads of states use the same devices again and again, and decoding a record takes longer than decoding a state.
    """
    raw = records.raw_of(snapshot.get, DEVICE, application, device)
    if raw is None:
        raise _missing(device)
    return Declared(device, _attributes_of(raw))


@lru_cache(maxsize=DECLARED_MAX)
def _attributes_of(raw: bytes) -> Attributes:
    doc = decode(raw)
    return Attributes(doc["attributes"], doc["attributeNext"])


def _missing(device: bytes) -> NotFound:
    return NotFound(f"There is no device {device.hex()} here.")


# The record.


def get_device(reading: Reading, message: GetDevice) -> dict[str, Any]:
    """Return one device."""
    snapshot = reading.snapshot
    found = open_device(snapshot, message.application, message.device).found
    return show_device(Ancestors(snapshot, message.application), found, message.query)


class Ancestors:
    """The ancestors of the devices of an application: a read that shows many devices reads each ancestor once."""

    def __init__(self, snapshot: Snapshot, application: bytes) -> None:
        self.application = application
        self._snapshot = snapshot
        self._parents: dict[str, str | None] = {}

    def of(self, doc: Doc) -> list[str]:
        """Return the ids of the parent, its parent and so on: at most `ANCESTORS_SHOWN_MAX`."""
        found: dict[str, None] = {}
        parent = doc.get("parentId")
        while parent is not None and parent not in found and len(found) < ANCESTORS_SHOWN_MAX:
            found[parent] = None
            if parent not in self._parents:
                above = records.find(self._snapshot, DEVICE, self.application, bytes.fromhex(parent))
                self._parents[parent] = None if above is None else above.doc.get("parentId")
            parent = self._parents[parent]
        return list(found)


def show_device(ancestors: Ancestors, found: Found, shape: DeviceShape) -> dict[str, Any]:
    """Return a device as the caller sees it."""
    doc, id = found.doc, found.id.hex()
    shown: dict[str, Any] = {
        "id": id,
        "deviceId": id,
        "applicationId": ancestors.application.hex(),
        "creationDate": iso(doc["creationDate"]),
        "lastUpdated": iso(doc["lastUpdated"]),
        "name": doc["name"],
        "deviceClass": doc["deviceClass"],
    }
    for field in (
        "description",
        "gatewayId",
        "systemInterval",
        "keepDuplicates",
        "expectedIntervalSeconds",
        "parentId",
    ):
        if doc.get(field) is not None:
            shown[field] = doc[field]
    if "parentId" in shown:
        shown["ancestorIds"] = ancestors.of(doc)
    attributes = [shown_attribute(attribute) for attribute in doc["attributes"]]
    shown["tags"] = tags_as_object(doc["tags"]) if shape.tags_as_object else doc["tags"]
    shown["attributes"] = attributes_as_object(attributes) if shape.attributes_as_object else attributes
    if not shape.exclude_connection_info:
        connection = doc.get("connection")
        shown["connectionInfo"] = (
            {"connected": connection["connected"], "time": iso(connection["time"])}
            if connection
            else {"connected": None}
        )
    if "deletedAt" in doc:
        shown["deletedAt"] = iso(doc["deletedAt"])
    shown["_etag"] = found.revision
    shown["_type"] = "device"
    return shown


def tags_as_object(tags: Collection[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the values of tags by key, in the order of the list."""
    grouped: dict[str, list[str]] = {}
    for tag in tags:
        grouped.setdefault(tag["key"], []).append(tag["value"])
    return grouped


def attributes_as_object(attributes: Collection[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return declared attributes by name."""
    return {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in attributes}


# Attributes.


def get_attribute(reading: Reading, message: GetAttribute) -> dict[str, Any]:
    """Return one attribute."""
    snapshot = reading.snapshot
    device = open_device(snapshot, message.application, message.device)
    return _show_attribute(message.application, message.device, device.attributes.find(message.name))


def list_attributes(reading: Reading, message: ListAttributes) -> dict[str, Any]:
    """Return all attributes that match the filter, sorted. There is no paging: a device has at most 256."""
    snapshot = reading.snapshot
    query = message.query
    device = open_device(snapshot, message.application, message.device)
    docs = [_show_attribute(message.application, message.device, doc) for doc in device.attributes.docs]
    if query.filter and query.filter_field is not None:
        matches, field = compile_glob(query.filter), query.filter_field
        docs = [doc for doc in docs if matches(doc[field])]
    docs.sort(
        key=lambda doc: (doc[query.sort_field].casefold(), doc["name"].casefold(), doc["name"]),
        reverse=query.sort_direction == "desc",
    )
    shown = {
        "items": docs,
        "count": len(docs),
        "totalCount": len(docs),
        "sortField": query.sort_field,
        "sortDirection": query.sort_direction,
        "applicationId": message.application.hex(),
        "deviceId": message.device.hex(),
        "_type": "deviceAttributes",
    }
    if query.filter_field is not None:
        shown["filterField"] = query.filter_field
    if query.filter is not None:
        shown["filter"] = query.filter
    return shown


def _show_attribute(application: bytes, device: bytes, doc: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **shown_attribute(doc),
        "applicationId": application.hex(),
        "deviceId": device.hex(),
        "_type": "deviceAttribute",
    }
