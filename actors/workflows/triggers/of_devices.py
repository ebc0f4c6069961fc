"""Triggers that wait for devices: named by the id of a device, or by its tags.

A key of tags is `key/value`, `key/` for any value, or `/value` for any key. What an editor shows as one trigger may be
several: one for each device and each tag that is chosen. Those have the same `uiId`, and count as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.workflows.triggers.index import Triggers, Watcher

What = Literal["", "Connect", "Disconnect", "Inactivity"]
"""The end of the types of such triggers. The type without an end is that of states."""


def watchers_of_device(triggers: Triggers, what: What, id: bytes, tags: Iterable[Doc]) -> tuple[Watcher, ...]:
    """The triggers that wait for something of a device with these tags."""
    found: dict[tuple[bytes, str | int], Watcher] = {}
    for each in triggers.get(f"deviceId{what}", id.hex()):
        found.setdefault(_node_of(each), each)
    by_tag = f"deviceTag{what}"
    if triggers.has_type(by_tag):
        for tag in tags:
            key, value = tag["key"], tag["value"]
            for place in (f"{key}/{value}", f"{key}/", f"/{value}"):
                for each in triggers.get(by_tag, place):
                    found.setdefault(_node_of(each), each)
    return tuple(found.values())


def _node_of(watcher: Watcher) -> tuple[bytes, str | int]:
    return watcher.flow, watcher.meta.get("uiId") or watcher.position
