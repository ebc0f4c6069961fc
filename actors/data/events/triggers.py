"""Which workflows a new or updated event triggers, and what their runs are told."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from trunkline.actors.core.query.compile import compile_glob
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.events.updates import NameOf
from trunkline.actors.workflows.triggers.index import FlowIndex, Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.store import keys
from trunkline.store.codec import decode

_ANY: Final = "any"
_STATES: Final = frozenset({"new", "acknowledged", "resolved"})
_TOLD_BYTES: Final = 256 * 1024
"""Updates that a run is told: the newest ones, as stored."""

_FIELDS: Final = ("sourceType", "sourceId", "sourceName", "level", "state", "subject", "deviceId")

_matcher = lru_cache(maxsize=1_000)(compile_glob)


def watchers_of_event(actor: Actor, doc: Doc) -> list[Watcher]:
    """The triggers that wait for an event as it is now."""
    triggers = actor.system.component(FlowIndex).of(actor.ref.id)
    return [
        each
        for key in (doc["level"], _ANY)
        for each in triggers.get("event", key)
        if each.wants(doc["state"], _STATES) and _matcher(each.config.get("subject") or "")(doc["subject"])
    ]


def stage_event(
    actor: Actor,
    id: bytes,
    doc: Doc,
    detail: Doc | None,
    update: Doc | None,
    by: Creator,
    origin: Origin | None,
    name_of: NameOf,
) -> None:
    """Stage the triggers of an event in the turn of the log. `detail` is None where it is to be read."""
    watchers = watchers_of_event(actor, doc)
    if not watchers:
        return
    application = actor.ref.id
    told: Doc = {"id": id.hex(), "eventId": id.hex(), "applicationId": application.hex()}
    told |= {name: iso(doc[name]) for name in ("creationDate", "lastUpdated")}
    told |= {name: doc[name] for name in _FIELDS if name in doc}
    name = name_of(doc["deviceId"]) if "deviceId" in doc else None
    if name is not None:
        told["deviceName"] = name
    if detail is None and doc.get("detail"):
        raw = actor.system.journal.get(keys.EVENTS, keys.event_detail_key(application, id))
        detail = None if raw is None else decode(raw)
    told |= detail or {}
    told["eventTags"] = doc["eventTags"]
    updates = [
        *_updates_before(actor, id, doc, has_new=update is not None),
        *([] if update is None else [update]),
    ]
    told["allUpdates"] = [{**each, "creationDate": iso(each["creationDate"])} for each in updates]
    if updates:
        told["latestUpdate"] = told["allUpdates"][-1]
    cause = Cause(doc["level"], told, doc["lastUpdated"], origin=origin or Origin(by.id, by.type))
    stage(actor, watchers, cause)


def _updates_before(actor: Actor, id: bytes, doc: Doc, *, has_new: bool) -> list[Doc]:
    """The updates that are stored, the oldest first. `doc` counts the new one, which is not."""
    first, end = doc["updates"]
    found: list[Doc] = []
    size = 0
    for number in range(end - 1 - has_new, first - 1, -1):
        raw = actor.system.journal.get(keys.EVENTS, keys.event_update_key(actor.ref.id, id, number))
        size += 0 if raw is None else len(raw)
        if raw is None or size > _TOLD_BYTES:
            break
        found.append(decode(raw))
    return found[::-1]
