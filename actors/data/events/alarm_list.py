"""The list of open alarms: their events with the rules and how they stand. A pure read of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.events.alarm_causes import NO_DEVICE, decode_caused
from trunkline.actors.data.events.alarm_messages import AlarmPage, ListAlarms
from trunkline.actors.data.events.alarm_order import is_new, order_key
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.fleet.alarms.kind import ALARM_RULE
from trunkline.actors.fleet.alarms.standing import Standing, decode_standings
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

_INLINE_MAX = 16
"""Open alarms that are shown in the event loop: some 0.3 ms."""


class _Open(NamedTuple):
    """An open alarm whose event nobody has resolved."""

    event: bytes
    device: bytes
    rule: bytes


def list_alarms(reading: Reading, message: ListAlarms) -> Doc:
    """A page of open alarms. The others are counted by their keys."""
    application, query = message.application, message.query
    wanted = None if query.alarm_rule_id is None else bytes.fromhex(query.alarm_rule_id)
    first, total, new = query.page * query.per_page, 0, 0
    page: list[_Open] = []
    for key, value in _ordered(reading.snapshot, application, query):
        if wanted is not None and value[keys.ID_BYTES :] != wanted:
            continue
        if first <= total < first + query.per_page:
            page.append(_Open(bytes(key[-keys.ID_BYTES :]), value[: keys.ID_BYTES], value[keys.ID_BYTES :]))
        total += 1
        new += is_new(key)
        reading.check_time(is_long=total > SCAN_INLINE_MAX or len(page) > _INLINE_MAX)
    items = [shown for each in page if (shown := _shown(reading.snapshot, application, each)) is not None]
    return {
        "items": items,
        "count": len(items),
        "totalCount": total,
        "newCount": new,
        "page": query.page,
        "perPage": query.per_page,
        "applicationId": application.hex(),
    }


def _ordered(snapshot: Snapshot, application: bytes, query: AlarmPage) -> Iterator[tuple[bytes, bytes]]:
    """The keys of open alarms in their order, each with its device and rule."""
    if query.device_id is None:
        prefix = keys.ranked_alarms_prefix(application)
        yield from snapshot.range(keys.EVENTS, prefix, keys.prefix_end(prefix))
        return
    prefix = keys.open_alarms_prefix(application) + bytes.fromhex(query.device_id)
    found = []
    for key, event in snapshot.range(keys.EVENTS, prefix, keys.prefix_end(prefix)):
        doc = records.doc_of(snapshot, EVENT, application, bytes(event))
        place = order_key(application, bytes(event), doc)
        if place is not None:
            found.append((place, bytes(key[-2 * keys.ID_BYTES :])))
    yield from sorted(found)


def _shown(snapshot: Snapshot, application: bytes, alarm: _Open) -> Doc | None:
    doc = records.doc_of(snapshot, EVENT, application, alarm.event)
    if doc is None:
        return None
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
