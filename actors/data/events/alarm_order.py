"""The order of open alarms: the most severe first, of these the new ones, and of these the newest.

Owns the key of each open alarm whose event nobody has resolved, by which a page of them reads no other alarm. The event
log changes it in the batch of the event.
"""

from __future__ import annotations

from typing import Protocol

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.data.events.kind import LEVELS
from trunkline.store import keys

_NEW_AT = len(keys.ranked_alarms_prefix(bytes(keys.ID_BYTES))) + 1


class Log(Protocol):
    """The event log, in a turn."""

    ref: Ref

    def put(self, db: str, key: bytes, value: bytes) -> None: ...
    def delete(self, db: str, key: bytes) -> None: ...


def place_alarm(log: Log, event: bytes, before: Doc | None, after: Doc | None) -> None:
    """Stage the place of an open alarm whose event was changed; None stands for one that is not listed."""
    old, new = order_key(log.ref.id, event, before), order_key(log.ref.id, event, after)
    if old == new:
        return
    if old is not None:
        log.delete(keys.EVENTS, old)
    if new is not None and after is not None:
        log.put(keys.EVENTS, new, b"".join(after["alarm"]))


def order_key(application: bytes, event: bytes, doc: Doc | None) -> bytes | None:
    """The key of an open alarm with this event; None if somebody has resolved it."""
    if doc is None or doc["state"] == "resolved":
        return None
    rank = len(LEVELS) - 1 - LEVELS.index(doc["level"])
    is_new, created_ms = doc["state"] == "new", doc["creationDate"]
    return keys.ranked_alarm_key(application, rank, is_new=is_new, created_ms=created_ms, event=event)


def is_new(key: bytes) -> bool:
    """Whether the event of an open alarm with this key is new."""
    return not key[_NEW_AT]
