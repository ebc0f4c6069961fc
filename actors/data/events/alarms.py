"""Alarms as events: the event log opens one for each alarm that has opened, and resolves it when the alarm closes.

Owns which event is that of which alarm. What it looks at is how the rules of a device stand by now
(`fleet/alarms/standing.py`), against what it was told before; what it writes and the removal of the marker are one
batch, so an alarm has one event, also when the server was killed in between. An alarm that has opened and closed since
the last look is an event that is resolved already; one that has done so several times is one event as well.

A person may resolve the event while the alarm is still open. Then it stays so until the alarm closes and opens again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.events.alarm_messages import SettleNotice
from trunkline.actors.data.events.alarm_sender import AlarmSender
from trunkline.actors.data.events.messages import CreateEvent, EventPatch, EventPost, PatchEvent
from trunkline.actors.fleet.alarms.conditions import shown, words_of
from trunkline.actors.fleet.alarms.kind import ALARM_RULE
from trunkline.actors.fleet.alarms.notices import Notice, first_notice
from trunkline.actors.fleet.alarms.standing import Standing, decode_standings
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.store import keys
from trunkline.store.codec import decode, encode

RULE_TAG: Final = "alarmRuleId"
"""The event tag with the id of the rule."""

_COMMENT_CHARS_MAX: Final = 2_000
_SUBJECT_CHARS_MAX: Final = 255
_CLOSED: Final = "The alarm has ended by itself."
_GONE: Final = "The alarm has ended: the rule is not about this device any more, or one of them is gone."


class Log(Protocol):
    """The event log, in a turn."""

    system: Host
    ref: Ref

    def put(self, db: str, key: bytes, value: bytes) -> None: ...
    def after_commit(self, effect: Callable[[], None]) -> None: ...
    def delete(self, db: str, key: bytes) -> None: ...
    def create(self, message: CreateEvent) -> bytes: ...
    def update(self, event: bytes, message: PatchEvent, *, if_open: bool = False) -> None: ...


def follow_alarms(log: Log, devices: Iterable[bytes]) -> None:
    """Open and resolve the events of the devices that have a marker, and remove the markers."""
    for device in devices:
        marker = keys.untold_alarms_key(log.ref.id, device)
        if log.system.journal.get(keys.META, marker) is not None:
            log.delete(keys.META, marker)
            _follow_device(log, device)


def _follow_device(log: Log, device: bytes) -> None:
    application, get = log.ref.id, log.system.journal.get
    standings = decode_standings(get(keys.TIMELINE, keys.alarms_key(device)))
    told_key = keys.told_alarms_key(application, device)
    raw = get(keys.EVENTS, told_key)
    told: dict[bytes, int] = {} if raw is None else dict(decode(raw))
    after = {rule: each.openings for rule, each in standings.items() if each.openings}
    doc = records.doc_of(log.system.journal, DEVICE, application, device)
    by = Creator(device.hex(), "device", "" if doc is None else doc["name"])
    for rule in told.keys() - standings.keys():
        _resolve(log, device, rule, by, _GONE)
    for rule, standing in standings.items():
        if standing.openings > told.get(rule, 0):
            _resolve(log, device, rule, by, _CLOSED)
            _open(log, device, rule, standing, by)
        elif not standing.is_open:
            _resolve(log, device, rule, by, _CLOSED)
    if after:
        log.put(keys.EVENTS, told_key, encode(list(after.items())))
    elif raw is not None:
        log.delete(keys.EVENTS, told_key)


def _open(log: Log, device: bytes, rule: bytes, standing: Standing, by: Creator) -> None:
    """Create the event of an alarm. Nothing if the rule or the device is gone: then it ends with the next look."""
    application, journal = log.ref.id, log.system.journal
    doc = records.doc_of(journal, ALARM_RULE, application, rule)
    if doc is None or not records.exists(journal, DEVICE, application, device):
        return
    body = EventPost(
        level=doc["severity"],
        subject=f"{doc['name']}: {by.name}"[:_SUBJECT_CHARS_MAX],
        message=_why(doc, standing),
        state="new" if standing.is_open else "resolved",
        data={"alarm": _told(rule, standing)},
        device_id=device.hex(),
        event_tags={RULE_TAG: rule.hex()},
    )
    event = log.create(CreateEvent(body=body, by=by))
    if standing.is_open:
        log.put(keys.EVENTS, keys.open_alarm_key(application, device, rule), event)
        notice = first_notice(rule, doc, device, standing.opened_ms)
        if notice is not None:
            _keep_notice(log, event, notice)


def _resolve(log: Log, device: bytes, rule: bytes, by: Creator, comment: str) -> None:
    """Resolve the event of an alarm, if it has one."""
    key = keys.open_alarm_key(log.ref.id, device, rule)
    event = log.system.journal.get(keys.EVENTS, key)
    if event is not None:
        log.delete(keys.EVENTS, key)
        notice = _notice(log, event)
        if notice is not None:
            _keep_notice(log, event, _ended(notice, log.system.clock.wall_ms()))
        log.update(event, PatchEvent(event, EventPatch(state="resolved", comment=comment), by), if_open=True)


def settle_notice(log: Log, message: SettleNotice, by: Creator) -> int | None:
    """Store what is left of a notice; it has ended if its alarm has ended meanwhile. Returns when it is due."""
    event, before = message.event, _notice(log, message.event)
    if message.comment:
        log.update(event, PatchEvent(event, EventPatch(comment=message.comment[:_COMMENT_CHARS_MAX]), by))
    if before is None:
        return None
    after = None if message.notice is None else Notice.decoded(message.notice)
    if after is not None and before.has_ended and not after.has_ended:
        after = _ended(after, log.system.clock.wall_ms())
    if after is None:
        log.delete(keys.META, keys.alarm_notice_key(log.ref.id, event))
        return None
    log.put(keys.META, keys.alarm_notice_key(log.ref.id, event), after.encoded())
    return after.due_ms


def _notice(log: Log, event: bytes) -> Notice | None:
    raw = log.system.journal.get(keys.META, keys.alarm_notice_key(log.ref.id, event))
    return None if raw is None else Notice.decoded(raw)


def _keep_notice(log: Log, event: bytes, notice: Notice) -> None:
    application = log.ref.id
    log.put(keys.META, keys.alarm_notice_key(application, event), notice.encoded())
    log.after_commit(partial(log.system.component(AlarmSender).set, application, event, notice.due_ms))


def _ended(notice: Notice, now_ms: int) -> Notice:
    """The notice when its alarm has ended: those who were told are told of that, at once."""
    notice.has_ended = True
    notice.due_ms, notice.left, notice.attempts = now_ms, None, 0
    return notice


def _told(rule: bytes, standing: Standing) -> Doc:
    """What the event says of its alarm for programs."""
    told: Doc = {"alarmRuleId": rule.hex(), "openedAt": iso(standing.opened_ms)}
    if standing.first is not None:
        told["value"] = standing.first
    return told


def _why(rule: Doc, standing: Standing) -> str:
    """Why there is an alarm, in a sentence."""
    text = words_of(rule["condition"])
    if "attribute" not in rule["condition"]:
        text = text[0].upper() + text[1:]
    if rule["durationSeconds"]:
        text += f", for {rule['durationSeconds']:g} seconds"
    if standing.first is not None:
        text += f": it was {shown(standing.first)}"
    return f"{text}."
