"""The list of open alarms: their events with the rules and how they stand. A pure read of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.events.alarm_causes import NO_DEVICE, decode_caused
from trunkline.actors.data.events.alarm_messages import AlarmPage, ListAlarms
from trunkline.actors.data.events.kind import EVENT, LEVELS
from trunkline.actors.fleet.alarms.kind import ALARM_RULE
from trunkline.actors.fleet.alarms.standing import Standing, decode_standings
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

_INLINE_MAX = 16
"""Open alarms that are read in the event loop: some 0.3 ms."""


class _Open(NamedTuple):
    """An open alarm whose event nobody has resolved."""

    device: bytes
    rule: bytes
    event: bytes
    doc: Doc

    @property
    def place(self) -> tuple[Any, ...]:
        """Its place in the list."""
        return -LEVELS.index(self.doc["level"]), self.doc["state"] != "new", -self.doc["creationDate"]


def list_alarms(reading: Reading, message: ListAlarms) -> Doc:
    """A page of open alarms."""
    snapshot, application, query = reading.snapshot, message.application, message.query
    found = sorted(_found(reading, application, query), key=lambda each: each.place)
    first = query.page * query.per_page
    page = found[first : first + query.per_page]
    items = [_shown(snapshot, application, each) for each in page]
    return {
        "items": items,
        "count": len(items),
        "totalCount": len(found),
        "newCount": sum(each.doc["state"] == "new" for each in found),
        "page": query.page,
        "perPage": query.per_page,
        "applicationId": application.hex(),
    }


def _found(reading: Reading, application: bytes, query: AlarmPage) -> Iterator[_Open]:
    snapshot, prefix = reading.snapshot, keys.open_alarms_prefix(application)
    device = None if query.device_id is None else bytes.fromhex(query.device_id)
    wanted = None if query.alarm_rule_id is None else bytes.fromhex(query.alarm_rule_id)
    if device is not None:
        prefix += device
    for number, (key, event) in enumerate(snapshot.range(keys.EVENTS, prefix, keys.prefix_end(prefix))):
        reading.check_time(is_long=number >= _INLINE_MAX)
        rule = bytes(key[-keys.ID_BYTES :])
        if wanted is not None and rule != wanted:
            continue
        found = records.find(snapshot, EVENT, application, bytes(event))
        if found is not None and found.doc["state"] != "resolved":
            yield _Open(bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES]), rule, bytes(event), found.doc)


def _shown(snapshot: Snapshot, application: bytes, alarm: _Open) -> Doc:
    doc = alarm.doc
    standing = _standing(snapshot, application, alarm)
    detail = snapshot.get(keys.EVENTS, keys.event_detail_key(application, alarm.event))
    told: Doc = {} if detail is None else decode(detail)
    opened = (told.get("data") or {}).get("alarm", {})
    shown: Doc = {
        "eventId": alarm.event.hex(),
        "alarmRuleId": alarm.rule.hex(),
        "level": doc["level"],
        "state": doc["state"],
        "subject": doc["subject"],
        "openedAt": opened.get("openedAt", iso(doc["creationDate"])),
        "count": max(standing.count, 1),
    }
    if alarm.device != NO_DEVICE:
        shown["deviceId"] = alarm.device.hex()
    rule = records.doc_of(snapshot, ALARM_RULE, application, alarm.rule)
    if rule is not None:
        shown |= {"alarmRuleName": rule["name"], "conditionType": rule["condition"]["type"]}
    device = records.doc_of(snapshot, DEVICE, application, alarm.device)
    if device is not None:
        shown["deviceName"] = device["name"]
    if "message" in told:
        shown["message"] = told["message"]
    if standing.value is not None:
        shown["value"] = standing.value
    if standing.last_ms >= 0:
        shown["lastAt"] = iso(standing.last_ms)
    return shown


def _standing(snapshot: Snapshot, application: bytes, alarm: _Open) -> Standing:
    """How the rule of an alarm stands; a device keeps it, or the event log for rules about events."""
    caused = snapshot.get(keys.META, keys.caused_alarms_key(application, alarm.device))
    found: Standing | None = decode_caused(caused).get(alarm.rule)
    if found is None:
        raw = snapshot.get(keys.TIMELINE, keys.alarms_key(alarm.device))
        found = decode_standings(None if raw is None else bytes(raw)).get(alarm.rule)
    return found or Standing()
