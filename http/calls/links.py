"""The `_links` of answers: where a record and its parents are to be found.

Those of plain resources follow from their rows; the others stand here, by the `_type` of the record.
"""

from __future__ import annotations

from typing import Any

from trunkline.http.calls.route import Links

_APPLICATION = "/applications/{applicationId}"
_DEVICE = _APPLICATION + "/devices/{deviceId}"

_TABLE = _APPLICATION + "/data-tables/{dataTableId}"

_BARE = frozenset({"dataTableRows"})
"""Lists of which the items have no links: their fields are named by the caller, `_type` among them."""

_LINKS: dict[str, dict[str, str]] = {
    "application": {"self": _APPLICATION, "devices": _APPLICATION + "/devices"},
    "applications": {"self": "/applications"},
    "device": {
        "self": _DEVICE,
        "application": _APPLICATION,
        "state": _DEVICE + "/state",
        "commandStream": _DEVICE + "/commandStream",
    },
    "devices": {"self": _APPLICATION + "/devices", "application": _APPLICATION},
    "compositeDevicesState": {"self": _APPLICATION + "/devices/compositeState", "application": _APPLICATION},
    "deviceAttribute": {
        "self": _DEVICE + "/attributes/{name}",
        "device": _DEVICE,
        "application": _APPLICATION,
    },
    "deviceAttributes": {"self": _DEVICE + "/attributes", "device": _DEVICE, "application": _APPLICATION},
    "applicationJobLog": {"self": _APPLICATION + "/jobLogs/{jobId}", "application": _APPLICATION},
    "applicationJobLogs": {"self": _APPLICATION + "/jobLogs", "application": _APPLICATION},
    "dataTable": {
        "self": _TABLE,
        "application": _APPLICATION,
        "rows": _TABLE + "/rows",
    },
    "dataTables": {"self": _APPLICATION + "/data-tables", "application": _APPLICATION},
    "dataTableRows": {"self": _TABLE + "/rows", "dataTable": _TABLE, "application": _APPLICATION},
    "event": {"self": _APPLICATION + "/events/{eventId}", "application": _APPLICATION},
    "events": {"self": _APPLICATION + "/events", "application": _APPLICATION},
    "eventPlusNewCount": {
        "self": _APPLICATION + "/events/mostRecentBySeverity",
        "application": _APPLICATION,
    },
    "me": {"self": "/me", "applications": "/applications"},
}


def add_links(value: dict[str, Any], links: Links | None) -> None:
    """Add `_links` to a record, or to a list and each of its items.

    `links` are those of the row; without them they follow from the `_type`.
    """
    type = value["_type"]
    if type not in _BARE:
        for item in value.get("items", ()):
            if "_type" in item:
                add_links(item, None if links is None or links.items is None else Links(links.items))
    if type == "eventPlusNewCount" and "event" in value:
        add_links(value["event"], None)
    templates = _LINKS.get(type) if links is None else links.own
    if templates is not None:
        value["_links"] = {name: {"href": template.format_map(value)} for name, template in templates.items()}
