"""The `_links` of answers: where a record and its parents are to be found, by the record's `_type`."""

from __future__ import annotations

from typing import Any

_APPLICATION = "/applications/{applicationId}"
_DEVICE = _APPLICATION + "/devices/{deviceId}"

_TABLE = _APPLICATION + "/data-tables/{dataTableId}"

_BARE = frozenset({"dataTableRows"})
"""Lists of which the items have no links: their fields are named by the caller, `_type` among them."""

_LINKS: dict[str, dict[str, str]] = {
    "application": {"self": _APPLICATION, "devices": _APPLICATION + "/devices"},
    "applications": {"self": "/applications"},
    "applicationKey": {"self": _APPLICATION + "/keys/{applicationKeyId}", "application": _APPLICATION},
    "applicationKeys": {"self": _APPLICATION + "/keys", "application": _APPLICATION},
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
_APPLICATION_TOKEN = {"self": _APPLICATION + "/tokens/{apiTokenId}", "application": _APPLICATION}
_APPLICATION_TOKENS = {"self": _APPLICATION + "/tokens", "application": _APPLICATION}
_USER_TOKEN = {"self": "/me/tokens/{apiTokenId}", "me": "/me"}
_USER_TOKENS = {"self": "/me/tokens", "me": "/me"}


def with_links(value: dict[str, Any]) -> None:
    """Add `_links` to a record, or to a list and each of its items."""
    if value["_type"] not in _BARE:
        for item in value.get("items", ()):
            if "_type" in item:
                with_links(item)
    if value["_type"] == "eventPlusNewCount" and "event" in value:
        with_links(value["event"])
    templates = _templates(value)
    if templates is not None:
        value["_links"] = {name: {"href": template.format_map(value)} for name, template in templates.items()}


def _templates(value: dict[str, Any]) -> dict[str, str] | None:
    type = value["_type"]
    if type == "apiToken":
        return _APPLICATION_TOKEN if "applicationId" in value else _USER_TOKEN
    if type == "apiTokens":
        return _APPLICATION_TOKENS if "applicationId" in value else _USER_TOKENS
    return _LINKS.get(type)
