"""The kinds of device records, and what is derived from them."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.records.kind import Doc, Kind, Prefixes
from trunkline.store import keys


def _sort_key(doc: Doc, field: str) -> Any:
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


def _reported(_application: bytes, device: bytes) -> Prefixes:
    """What the device reported and was told."""
    return ((keys.TIMELINE, device), (keys.COMMANDS, device), (keys.LOGS, device))


DEVICE: Final = Kind(
    name="device",
    noun="device",
    indexes=("name", "creationDate", "lastUpdated", "connectionStatus"),
    sort_key=_sort_key,
    counted_as="deviceCount",
    ends_access=frozenset({"tags"}),
    owned_keys=_reported,
)
"""Access keys may choose devices by their tags."""

DELETED_DEVICE: Final = Kind(
    name="deletedDevice",
    noun="device",
    indexes=("name", "creationDate", "lastUpdated", "connectionStatus", "deletedAt"),
    sort_key=_sort_key,
    owned_keys=_reported,
)
