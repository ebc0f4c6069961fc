"""The `_links` of responses: the URLs of a record and of its parents.

The links of plain resources are defined by their routes, the others here, by the `_type` of the record.
"""

from __future__ import annotations

from typing import Any

from trunkline.http.calls.route import LinkTemplates

_APPLICATION = "/applications/{applicationId}"
_DEVICE = _APPLICATION + "/devices/{deviceId}"

_TABLE = _APPLICATION + "/data-tables/{dataTableId}"

_ITEMS_WITHOUT_LINKS = frozenset({"dataTableRows"})
"""Lists whose items have no links: the client chooses the names of their fields, which may include `_type`."""

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
    "org": {"self": "/orgs/{orgId}"},
    "orgs": {"self": "/orgs"},
    "me": {"self": "/me", "applications": "/applications"},
}


def add_links(value: dict[str, Any], links: LinkTemplates | None) -> None:
    """Add `_links` to a record, or to a list and each of its items.

    `links` are the templates of the route; if None, they follow from the `_type`.
    """
    type = value["_type"]
    if type not in _ITEMS_WITHOUT_LINKS:
        for item in value.get("items", ()):
            if "_type" in item:
                add_links(item, None if links is None or links.items is None else LinkTemplates(links.items))
    if type == "eventPlusNewCount" and "event" in value:
        add_links(value["event"], None)
    templates = _LINKS.get(type) if links is None else links.own
    if templates is not None:
        value["_links"] = {name: {"href": template.format_map(value)} for name, template in templates.items()}
