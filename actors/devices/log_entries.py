"""The entries of a device's command log and connection log."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.devices.messages import Connected, Disconnected
from trunkline.actors.values.timestamps import iso


def shown_command(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a logged command as the caller sees it."""
    shown: dict[str, Any] = {"name": entry["name"], "time": iso(entry["time"])}
    if "payload" in entry:
        shown["payload"] = entry["payload"]
    return shown


_LOG_FIELDS: tuple[tuple[str, str], ...] = (
    ("disconnectReason", "disconnect_reason"),
    ("messagesFromClient", "messages_from_client"),
    ("messagesToClient", "messages_to_client"),
    ("ipAddress", "ip_address"),
)


def log_entry(connected: int, status: Connected | Disconnected) -> dict[str, Any]:
    """Return the entry of the connection log to store, with the fields that the caller gave."""
    entry: dict[str, Any] = {"connected": connected}
    for name, attribute in _LOG_FIELDS:
        value = getattr(status, attribute, msgspec.UNSET)
        if value is not msgspec.UNSET:
            entry[name] = value
    return entry
