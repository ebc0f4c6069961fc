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
from typing import Any, Final, Protocol

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.events.alarm_causes import NO_DEVICE, Caused, Causes, creator_of
from trunkline.actors.data.events.alarm_messages import SettleNotice
from trunkline.actors.data.events.alarm_sender import AlarmSender
from trunkline.actors.data.events.kind import EVENT
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
_GONE: Final = (
    "The alarm has ended: its rule is disabled, or not about this device any more, or one of them is gone."
)


class Log(Protocol):
    """The event log, in a turn."""

    system: Host
    ref: Ref
    causes: Causes

    def put(self, db: str, key: bytes, value: bytes) -> None: ...
    def after_commit(self, effect: Callable[[], None]) -> None: ...
    def delete(self, db: str, key: bytes) -> None: ...
    def create(self, message: CreateEvent, alarm: list[bytes] | None = None) -> bytes: ...
    def update(self, event: bytes, message: PatchEvent, *, if_open: bool = False) -> None: ...


def follow_alarms(log: Log, devices: Iterable[bytes]) -> None:
    """Open and resolve the events of the devices that have a marker or alarms of events, and remove the markers."""
    get, application = log.system.journal.get, log.ref.id
    for device in devices:
        marker = keys.untold_alarms_key(application, device)
        if get(keys.META, marker) is not None:
            log.delete(keys.META, marker)
        elif get(keys.META, keys.caused_alarms_key(application, device)) is None:
            continue
        _follow_device(log, device)
    log.causes.flush()


def _follow_device(log: Log, device: bytes) -> None:
    application, get = log.ref.id, log.system.journal.get
    caused = log.causes.look(device)
    standings = decode_standings(get(keys.TIMELINE, keys.alarms_key(device))) | caused
    told_key = keys.told_alarms_key(application, device)
    raw = get(keys.EVENTS, told_key)
    told: dict[bytes, int] = {} if raw is None else dict(decode(raw))
    for rule in told.keys() - standings.keys():
        _resolve(log, device, rule, _why_gone(log, device, rule))
    for rule, standing in standings.items():
        if standing.openings and standing.openings != told.get(rule, 0):
            _resolve(log, device, rule, _CLOSED)
            _open(log, device, rule, standing)
        elif not standing.is_open:
            _resolve(log, device, rule, _CLOSED)
    log.causes.forget_closed(device)
    after = {
        rule: each.openings
        for rule, each in standings.items()
        if each.openings and (each.is_open or rule not in caused)
    }
    if after == told:
        return
    if after:
        log.put(keys.EVENTS, told_key, encode(list(after.items())))
    else:
        log.delete(keys.EVENTS, told_key)


def _why_gone(log: Log, device: bytes, rule: bytes) -> str:
    """Why the device does not judge a rule any more, of which an alarm was open."""
    application, journal = log.ref.id, log.system.journal
    doc = records.doc_of(journal, ALARM_RULE, application, rule)
    record = records.doc_of(journal, DEVICE, application, device)
    name = None if doc is None else doc["condition"].get("attribute")
    if name is None or record is None or name in {each["name"] for each in record["attributes"]}:
        return _GONE
    return f"The alarm has ended: the device has no attribute {name} any more, which its rule is about."


def _open(log: Log, device: bytes, rule: bytes, standing: Standing) -> None:
    """Create the event of an alarm. Nothing if the rule or the device is gone: then it ends with the next look."""
    application, journal = log.ref.id, log.system.journal
    doc = records.doc_of(journal, ALARM_RULE, application, rule)
    if doc is None:
        return
    fields: dict[str, Any] = {}
    if device == NO_DEVICE:
        assert isinstance(standing, Caused)
        by, on = creator_of(standing.source), str(standing.first)
    else:
        record = records.doc_of(journal, DEVICE, application, device)
        if record is None:
            return
        by, on = Creator(device.hex(), "device", record["name"]), record["name"]
        fields = {"device_id": device.hex()}
    body = EventPost(
        level=doc["severity"],
        subject=f"{doc['name']}: {on}"[:_SUBJECT_CHARS_MAX],
        message=_why(doc, standing),
        state="new" if standing.is_open else "resolved",
        data={"alarm": _told(rule, standing)},
        event_tags={RULE_TAG: rule.hex()},
        **fields,
    )
    event = log.create(CreateEvent(body=body, by=by), alarm=[device, rule])
    if standing.is_open:
        log.put(keys.EVENTS, keys.open_alarm_key(application, device, rule), event)
        notice = first_notice(rule, doc, device, standing.opened_ms)
        if notice is not None:
            _keep_notice(log, event, notice)


def _resolve(log: Log, device: bytes, rule: bytes, comment: str) -> None:
    """Resolve the event of an alarm, if it has one."""
    key = keys.open_alarm_key(log.ref.id, device, rule)
    event = log.system.journal.get(keys.EVENTS, key)
    if event is not None:
        log.delete(keys.EVENTS, key)
        notice = _notice(log, event)
        if notice is not None:
            _keep_notice(log, event, _ended(notice, log.system.clock.wall_ms()))
        _comment(log, event, EventPatch(state="resolved", comment=comment), if_open=True)


def _comment(log: Log, event: bytes, body: EventPatch, *, if_open: bool = False) -> None:
    """Update the event of an alarm in the name of who had created it: mostly the device."""
    doc = records.doc_of(log.system.journal, EVENT, log.ref.id, event)
    if doc is not None:
        log.update(event, PatchEvent(event, body, creator_of(doc)), if_open=if_open)


def settle_notice(log: Log, message: SettleNotice) -> int | None:
    """Store what is left of a notice; it has ended if its alarm has ended meanwhile. Returns when it is due."""
    event, before = message.event, _notice(log, message.event)
    if message.comment:
        _comment(log, event, EventPatch(comment=message.comment[:_COMMENT_CHARS_MAX]))
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
    if isinstance(standing, Caused):
        told["eventId"] = standing.by.hex()
    return told


def _why(rule: Doc, standing: Standing) -> str:
    """Why there is an alarm, in a sentence."""
    text = words_of(rule["condition"])
    if "attribute" not in rule["condition"]:
        text = text[0].upper() + text[1:]
    if rule["durationSeconds"]:
        text += f", for {rule['durationSeconds']:g} seconds"
    if isinstance(standing, Caused):
        text += f": {standing.first}"
    elif standing.first is not None:
        text += f": it was {shown(standing.first)}"
    return f"{text}."
