"""The kinds of records: their names on disk and the fields that lists sort by."""

from __future__ import annotations

from typing import Any

from trunkline.actors.records import Doc, Kind


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

KINDS = {
    kind.name: kind
    for kind in (USER, APPLICATION, DEVICE, DELETED_DEVICE, APPLICATION_KEY, API_TOKEN, JOB, DATA_TABLE)
}
