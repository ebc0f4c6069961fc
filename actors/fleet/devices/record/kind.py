"""The kinds of device records, deleted ones included, and the connection status that is derived from a record."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.records.kind import HISTORY, Doc, Kind, Prefixes
from trunkline.limits.table import DAY_MS, Limits
from trunkline.store import keys


def _sort_key(doc: Doc, field: str) -> Any:
    if field == "connectionStatus":
        return connection_status(doc)
    return doc.get(field)


def connection_status(doc: Doc) -> str | None:
    """Return `connected`, `disconnected`, or None if the device has never had a connection status."""
    connection = doc.get("connection")
    if not connection:
        return None
    return "connected" if connection["connected"] else "disconnected"


GATEWAYS = frozenset({"gateway", "edgeCompute"})
"""Classes of devices that report for peripherals."""


def restorable_since_ms(now_ms: int, limits: Limits) -> int:
    """Return the time in ms before which deleted devices can no longer be restored.

    The restoration and the sweep of deleted devices use the same time, so no device is restored while it is removed.
    """
    return now_ms - limits.device_restore_days * DAY_MS


def _reported(application: bytes, device: bytes) -> Prefixes:
    """The states, commands and connection log of a device, and the answers that are kept for repeated calls."""
    return (
        (keys.RUNS, device),
        (keys.TIMELINE, device),
        (keys.COMMANDS, device),
        (keys.LOGS, device),
        (keys.ANSWERS, keys.answers_prefix(application, "device", device)),
    )


DEVICE: Final = Kind(
    name="device",
    noun="device",
    indexes=("name", "creationDate", "lastUpdated", "connectionStatus"),
    sort_key=_sort_key,
    counted_as="deviceCount",
    ends_access=frozenset({"tags"}),
    owned_keys=_reported,
    audited_as="Device",
)
"""A change of `tags` may end access, because access keys may select devices by tag."""

DELETED_DEVICE: Final = Kind(
    name="deletedDevice",
    noun="device",
    indexes=("name", "creationDate", "lastUpdated", "connectionStatus", "deletedAt"),
    title=None,
    sort_key=_sort_key,
    owned_keys=_reported,
    counted_as=None,
    audited_as=None,
    not_portable=HISTORY,
)

EXPERIENCE_GROUP: Final = Kind(
    name="experienceGroup",
    noun="experience group",
    indexes=("name", "creationDate", "lastUpdated", "parentId"),
    counted_as="experienceGroupCount",
    audited_as="ExperienceGroup",
)
"""The groups of the users of an experience. Devices belong to them, so queries over devices read them."""
