"""The entries of a device's command log and connection log."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.messages import Connected, Disconnected

EXPIRES, SENT, ACKNOWLEDGED, DROPPED = "expires", "sent", "acknowledged", "dropped"
"""The fields of the entry of a command that waits for the device, times in ms. `expires` is 0 if it waits for ever; an
entry without it never waited. `dropped` is when it expired because too many commands waited, or because it was too
large for the client."""


def shown_command(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a logged command as the streams show it."""
    shown: dict[str, Any] = {"name": entry["name"], "time": iso(entry["time"])}
    if "payload" in entry:
        shown["payload"] = entry["payload"]
    return shown


def command_history(number: int, entry: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """Return a logged command with what happened to it, if it waits or waited for the device."""
    shown = shown_command(entry)
    if EXPIRES not in entry:
        return shown
    expires_ms = entry.get(DROPPED) or entry[EXPIRES]
    if ACKNOWLEDGED in entry:
        status = "acknowledged"
    elif 0 < expires_ms <= now_ms:
        status = "expired"
    else:
        status = "sent" if SENT in entry else "queued"
    shown |= {"id": number, "status": status}
    times = {"sentAt": entry.get(SENT), "acknowledgedAt": entry.get(ACKNOWLEDGED), "expiresAt": expires_ms}
    return shown | {name: iso(time_ms) for name, time_ms in times.items() if time_ms}


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
