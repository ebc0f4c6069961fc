"""The kinds of records: their names on disk and the fields that lists sort by."""

from __future__ import annotations

from typing import Any

from trunkline.actors.records.records import Doc, Kind


def _device_sort_key(doc: Doc, field: str) -> Any:
    if field == "connectionStatus":
        return connection_status(doc)
    return doc.get(field)


def connection_status(doc: Doc) -> str | None:
    """`connected`, `disconnected`, or None for a device that was never heard of."""
    connection = doc.get("connection")
    if not connection:
        return None
    return "connected" if connection["connected"] else "disconnected"


LEVELS = ("info", "warning", "error", "critical")
"""The levels of events, the least severe first: lists sort them in this order."""

STATES = ("new", "acknowledged", "resolved")
"""The states of events in the order of a usual life, in which lists sort them; any may follow any."""

SEVERITY = "severity"
"""No field of an event but an order: by level, and within a level by creation."""


def _event_sort_key(doc: Doc, field: str) -> Any:
    if field == "level":
        return LEVELS.index(doc["level"])
    if field == "state":
        return STATES.index(doc["state"])
    if field == SEVERITY:
        # Times end with the year 9999, which takes 48 bits, so the level stands above all of them.
        return LEVELS.index(doc["level"]) << 48 | doc["creationDate"]
    return doc.get(field)


GATEWAYS = frozenset({"gateway", "edgeCompute"})
"""Classes of devices that report for peripherals."""

USER = Kind("user", "user", indexes=())
APPLICATION = Kind("application", "application", indexes=())
DEVICE = Kind(
    "device",
    "device",
    indexes=("name", "creationDate", "lastUpdated", "connectionStatus"),
    sort_key=_device_sort_key,
)
DELETED_DEVICE = Kind(
    "deletedDevice",
    "device",
    indexes=("name", "creationDate", "lastUpdated", "connectionStatus", "deletedAt"),
    sort_key=_device_sort_key,
)
APPLICATION_KEY = Kind("applicationKey", "access key", indexes=())
API_TOKEN = Kind("apiToken", "API token", indexes=())
JOB = Kind("job", "job", indexes=())
DATA_TABLE = Kind("dataTable", "data table")
EVENT = Kind(
    "event",
    "event",
    indexes=("creationDate", "lastUpdated", "level", "state", "subject", "deviceId"),
    sort_key=_event_sort_key,
    part="state",
    part_indexes=("creationDate", SEVERITY),
)

KINDS = {
    kind.name: kind
    for kind in (
        USER,
        APPLICATION,
        DEVICE,
        DELETED_DEVICE,
        APPLICATION_KEY,
        API_TOKEN,
        JOB,
        DATA_TABLE,
        EVENT,
    )
}
